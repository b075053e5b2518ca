// SPDX-License-Identifier: MIT
// Colour of a pixel against brute force: each state's share of the pixel's time, mixed in OKLab; sampled rows estimate
// the same shares.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open, start } from './browser.mjs';
import { dice } from './random.mjs';

let world, page;
before(async () => { world = await start({ threads: 30 }); ({ page } = await open(world)); });
after(() => world.stop());

/** Paints one row of the states and returns each pixel [r, g, b, a]. */
const paint = (states, view) => page.evaluate(([list, v]) => {
  const g = weft.panels[0], Painter = g.part.painter.constructor, painter = new Painter(g.looks),
    canvas = document.createElement('canvas');
  canvas.width = v.width;
  canvas.height = 20;
  const n = list.length, row = { n, start: Float64Array.from(list, s => s[0]), end: Float64Array.from(list, s => s[1]),
    style: Uint16Array.from(list, s => g.looks.index(s[2] ? { parentKey: s[2] } : undefined)),
    tags: new Uint8Array(n), label: new Array(n), from: 0, to: 1e15, nsPerPx: v.sampled ? v.nsPerPx : 0,
    complete: !v.sampled };
  painter.begin(v.width, 1, 1, '10px sans-serif');
  painter.row(row, 0, 20, v.v0, v.nsPerPx);
  const ctx = canvas.getContext('2d');
  painter.end(ctx);
  const d = ctx.getImageData(0, 10, v.width, 1).data;
  return { pixels: Array.from({ length: v.width }, (_, i) => [...d.slice(i * 4, i * 4 + 4)]),
    colours: Object.fromEntries([...new Set(list.map(s => s[2]).filter(Boolean))].map(k => {
    const l = g.looks.ofKey(k);
    return [k, [l.r, l.g, l.b]];
  })) };
}, [states, view]);

const random = dice(12345);
const KEYS = ['Usermode', 'System call', 'Unheard of', null]; // states of full height, or blank

// OKLab by its definition, through XYZ (Ottosson 2020; sRGB: IEC 61966-2-1), and back by inverting that.
const times = (m, v) => m.map(row => row.reduce((sum, x, i) => sum + x * v[i], 0));
const inverse = ([[a, b, c], [d, e, f], [g, h, i]]) => {
  const det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
  return [[e * i - f * h, c * h - b * i, b * f - c * e], [f * g - d * i, a * i - c * g, c * d - a * f],
    [d * h - e * g, b * g - a * h, a * e - b * d]].map(row => row.map(x => x / det));
};
const XYZ = [[0.4123908, 0.3575843, 0.1804808], [0.212639, 0.7151687, 0.0721923], [0.0193308, 0.1191948, 0.9505322]],
  M1 = [[0.8189330101, 0.3618667424, -0.1288597137], [0.0329845436, 0.9293118715, 0.0361456387],
    [0.0482003018, 0.2643662691, 0.633851707]],
  M2 = [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.808675766]];
const toLab = rgb => times(M2, times(M1, times(XYZ, rgb.map(c => c / 255)
  .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))).map(Math.cbrt));
const toRgb = lab => times(inverse(XYZ), times(inverse(M1), times(inverse(M2), lab).map(v => v ** 3)))
  .map(c => 255 * (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055));

function brute(states, view, x, colours) {
  const from = view.v0 + x * view.nsPerPx, to = from + view.nsPerPx, sum = [0, 0, 0];
  let opaque = 0;
  for (const [a, b, key] of states) {
    const share = Math.max(0, Math.min(b, to) - Math.max(a, from)) / view.nsPerPx;
    if (!share || !key) continue;
    opaque += share;
    toLab(colours[key]).forEach((c, i) => { sum[i] += share * c; });
  }
  return opaque < 0.02 ? [0, 0, 0, 0] : [...toRgb(sum.map(s => s / opaque)), opaque * 255];
}

test('two colours: the mix that CSS calls oklab', async () => {
  for (const share of [0.2, 0.5, 0.8]) {
    const states = [[0, share * 1000, 'Usermode'], [share * 1000, 1000, 'Wait blocked']],
      { pixels: [pixel], colours } = await paint(states, { width: 1, v0: 0, nsPerPx: 1000, sampled: false });
    const want = await page.evaluate(([a, b, p]) => {
      const ctx = document.createElement('canvas').getContext('2d');
      ctx.fillStyle = `color-mix(in oklab, rgb(${a}) ${p * 100}%, rgb(${b}))`;
      ctx.fillRect(0, 0, 1, 1);
      return [...ctx.getImageData(0, 0, 1, 1).data];
    }, [colours.Usermode, colours['Wait blocked'], share]);
    pixel.forEach((c, i) => assert.ok(Math.abs(c - want[i]) <= 2, `${share}: ${pixel} instead of ${want}`));
  }
});

test('complete rows: every pixel is the exact mix', async () => {
  for (let round = 0; round < 12; round++) {
    const states = [], view = { width: 300, v0: Math.floor(random() * 5000), nsPerPx: 50 + random() * 2000,
      sampled: false };
    for (let t = 0; t < 700_000;) {
      const d = 1 + Math.floor(random() ** 4 * 30_000);
      states.push([t, t + d, KEYS[Math.floor(random() * 4)]]);
      t += d;
    }
    const { pixels, colours } = await paint(states, view);
    for (let x = 0; x < view.width; x++) {
      const want = brute(states, view, x, colours);
      // Tolerance: beside a blank of the same style the rectangle's last pixel may be left out as a border; colours are
      // rounded.
      const off = pixels[x].reduce((m, c, i) => Math.max(m, i < 3 && want[3] < 20 ? 0 : Math.abs(c - want[i])), 0);
      const border = states.some(([a, b, k], i) => k && states[i + 1]?.[2] === k
        && Math.abs((b - view.v0) / view.nsPerPx - x - 1) <= 1);
      assert.ok(off <= 6 || border, `round ${round}, pixel ${x}: ${pixels[x]} instead of ${want.map(Math.round)}`);
    }
  }
});

test('sampled rows: shares over some pixels are those of the states, no state is drawn over what is known',
  async () => {
  const states = [], view = { width: 400, v0: 0, nsPerPx: 10_000, sampled: true };
  for (let t = 0; t < 4_000_000;) {
    const use = t < 2_000_000 ? 0.3 : 0.7, run = Math.floor((0.5 + random()) * 800 * use),
      rest = Math.floor((0.5 + random()) * 800 * (1 - use));
    states.push([t, t + run, 'Usermode'], [t + run, t + run + rest, null]);
    t += run + rest;
  }
  const found = [];
  for (let t = 0, k = 0; t < 4_000_000; t += view.nsPerPx) {
    while (states[k][1] <= t) k++;
    if (found.at(-1) !== states[k]) found.push(states[k]);
  }
  const { pixels } = await paint(found, view), mean = (a, b) =>
    pixels.slice(a, b).reduce((s, p) => s + p[3], 0) / (b - a) / 255;
  assert.ok(Math.abs(mean(0, 195) - 0.3) < 0.08, `${mean(0, 195)}`);
  assert.ok(Math.abs(mean(205, 400) - 0.7) < 0.08, `${mean(205, 400)}`);
  // Short state between two long ones: at most its pixel.
  const alone = await paint([[0, 1_000_000, null], [1_000_000, 1_000_100, 'Usermode'], [1_000_100, 4_000_000, null]],
    view);
  assert.ok(alone.pixels.filter(p => p[3] > 0).length <= 1);
});
