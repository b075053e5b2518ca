// SPDX-License-Identifier: MIT
// Latencies: on logarithmic axes with round numbers, or linear ones on request; and statements of answers.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open, settled, start } from './browser.mjs';

let world;
before(async () => { world = await start({ threads: 60 }); });
after(() => world.stop());

const only = async (page, name) => {
  await page.evaluate(n => {
    for (const p of [...weft.panels]) p.close();
    weft.add(weft.session.outputs.find(o => o.name === n), 300);
  }, name);
  await settled(page);
};
/** Returns the places of values on the axis, in px, of the first view. */
const places = (page, axis, values) => page.evaluate(([a, v]) => v.map(x => weft.panels[0].plot.valToPos(x, a)),
  [axis, values]);
/** Returns the words drawn on the plot's canvas. */
const words = page => page.evaluate(async () => {
  const { plot } = weft.panels[0], seen = [], { fillText } = plot.ctx;
  plot.ctx.fillText = function (t, x, y) { seen.push([t, x, y]); fillText.call(this, t, x, y); };
  plot.redraw();
  await new Promise(requestAnimationFrame);
  plot.ctx.fillText = fillText;
  return seen;
});
const even = places => Math.abs((places[1] - places[0]) - (places[2] - places[1])) < 0.01;
const NS = { ns: 1, 'µs': 1e3, ms: 1e6, s: 1e9 }, ns = text => {
  const m = /^([\d.]+) (ns|µs|ms|s)$/.exec(text);
  return m ? Number(m[1]) * NS[m[2]] : NaN;
};

test('points over time: decades stand at equal distances, the ticks are round and where they say; linear on demand',
  async () => {
  const { page, trouble } = await open(world);
  await only(page, 'System Call - Latency vs Time');
  assert.ok(even(await places(page, 'y', [1e3, 1e5, 1e7])));
  const seen = (await words(page)).filter(w => w[0]).map(([t, , y]) => [ns(t), y]),
    scale = await page.evaluate(() => devicePixelRatio);
  assert.ok(seen.length >= 4, JSON.stringify(seen));
  for (const [v, y] of seen) {
    assert.ok([1, 2, 5].includes(Number(v.toExponential()[0])) && /^\de/.test(v.toExponential()), `${v} ns is round`);
    const [at] = await places(page, 'y', [v]);
    assert.ok(Math.abs((at + await page.evaluate(() => weft.panels[0].plot.bbox.top / devicePixelRatio)) * scale - y)
      < 8, `${v}`);
  }
  // Points are complete, also those of 0 ns.
  const points = await page.evaluate(() => {
    const p = weft.panels[0], c = p.curves[0];
    c.y[0] = 0;
    return [p.drawn(c)[0], p.drawn(c).every(v => v >= 1)];
  });
  assert.deepEqual(points, [1, true]);
  const button = page.getByRole('button', { name: 'Logarithmic axes' });
  assert.equal(await button.getAttribute('aria-pressed'), 'true');
  await button.click();
  await settled(page);
  assert.equal(await button.getAttribute('aria-pressed'), 'false');
  assert.ok(even(await places(page, 'y', [0, 1e6, 2e6])));
  await page.reload();
  await page.waitForFunction(() => window.weft?.panels?.[0]?.plot);
  assert.equal(await button.getAttribute('aria-pressed'), 'false', 'the choice is kept');
  assert.deepEqual(trouble, []);
  await page.close();
});

test('distribution: ranges by ratio are asked for, and their bars stand on them; equal ones on demand', async () => {
  const { page, trouble } = await open(world), asked = () => world.mock.log.findLast(l =>
    /Density.*xy$/.test(l.path)).body.parameters.x_scale;
  await only(page, 'System Call - Latency Density');
  assert.equal(asked(), 'logarithmic');
  assert.ok(even(await places(page, 'x', [1e3, 1e5, 1e7])));
  const { ranges, data } = await page.evaluate(() => {
    const { plot, series } = weft.panels[0];
    return { ranges: series[0].xRanges.map(r => [Number(r.start), Number(r.end)]), data: [...plot.data[0]] };
  });
  assert.deepEqual(data, ranges.map(r => r[0]));
  // Colours of a bar in it, of the ground above it and between bars.
  const at = await page.evaluate(k => {
    const { plot, series } = weft.panels[0], [s] = series, r = s.xRanges[k], { ctx } = plot, px = devicePixelRatio,
      x0 = plot.valToPos(Number(r.start), 'x', true), x1 = plot.valToPos(Number(r.end), 'x', true),
      y = plot.valToPos(s.yValues[k], 'y', true),
      alpha = (x, yy) => ctx.getImageData(Math.round(x), Math.round(yy), 1, 1).data[3];
    return { inside: alpha((x0 + x1) / 2, y + 6 * px), left: alpha(x0 + 2, y + 6 * px),
      above: alpha((x0 + x1) / 2, y - 4 * px) };
  }, Math.floor(ranges.length / 2));
  assert.ok(at.inside > 100 && at.left > 100 && at.above < 80, JSON.stringify(at));
  const ticks = (await words(page)).map(([t]) => ns(t)).filter(v => v > 0);
  assert.ok(ticks.length >= 3 && ticks.every(v => [1, 2, 5].includes(Number(v.toExponential()[0]))), `${ticks}`);
  await page.getByRole('button', { name: 'Logarithmic axes' }).click();
  await settled(page);
  assert.equal(asked(), undefined);
  assert.ok(even(await places(page, 'x', [0, 1e4, 2e4])));
  assert.deepEqual(trouble, []);
  await page.close();
});

test('what an answer says that it lacks stands in the bar of every kind of view', async () => {
  const { page } = await open(world);
  world.mock.now.lack = 'db is away';
  for (const name of ['Thread Status', 'CPU Usage', 'System Call - Latency Density',
    'System Call - Latency Statistics']) {
    await only(page, name);
    const status = page.locator('.panel-status').first();
    assert.match(await status.innerText(), /db is away/, name);
    assert.ok(await page.locator('.panel.partial').count(), name);
  }
  await only(page, 'Clock Synchronisation');
  await page.locator('.panel .vt-lack').filter({ hasText: 'db is away' }).waitFor();
  world.mock.now.lack = undefined;
  // Incomplete machines are listed beside the answer.
  world.mock.now.hosts = { complete: 1, lacking: [{ host: 'web', status: 'FAILED', statusMessage: 'no metadata' },
    { host: 'db', status: 'PARTIAL', statusMessage: '' }] };
  await only(page, 'CPU Usage');
  await page.locator('.panel.partial .panel-status').filter({ hasText: 'web is missing: no metadata; db is not whole' })
    .waitFor();
  world.mock.now.hosts = undefined;
  await only(page, 'Thread Status');
  assert.equal(await page.locator('.panel.partial').count(), 0);
  await page.close();
});

test('columns of a table are what the server states of them, whatever they are called', async () => {
  world.mock.now.stated = true;
  const { page, trouble } = await open(world);
  await only(page, 'Events Table');
  await page.locator('.panel .vt-row:not(.waiting)').first().waitFor();
  const heads = await page.locator('.panel .vt-head .vt-cell').allInnerTexts();
  assert.deepEqual(heads.map(t => t.trim()), ['Spalte 0', 'Spalte 3', 'Spalte 4', 'Spalte 1']);
  // Format of times as on the whole page.
  const first = (await page.locator('.panel .vt-row .vt-cell').first().innerText()).trim();
  assert.match(first, /^\d\d:\d\d:\d\d/);
  world.mock.now.stated = false;
  await only(page, 'Events Table');
  await page.locator('.panel .vt-row:not(.waiting)').first().waitFor();
  assert.deepEqual((await page.locator('.panel .vt-head .vt-cell').allInnerTexts()).map(t => t.trim()),
    ['Timestamp', 'Trace', 'CPU', 'Event type', 'Contents']);
  assert.deepEqual(trouble, []);
  await page.close();
});
