// SPDX-License-Identifier: MIT
// Helpers of the browser tests: Chromium that sends no requests by itself, a page on a server, its errors.
import { createRequire } from 'node:module';
import { createMock } from './mock/server.mjs';

const { chromium } = createRequire(new URL('../../web/package.json', import.meta.url))('playwright-core');
const QUIET = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

// Delay of each request: reveals tests that look before they have waited.
const LATE_MS = Number(process.env.WEFT_LATE_MS ?? 0);

export const browse = (...more) => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  headless: true, args: [...QUIET, ...more], timeout: 120000 });

/** Starts the mock server and a browser. */
export async function start(options = {}) {
  const mock = createMock(options), url = await mock.listen(), browser = await browse();
  return { mock, url, browser, stop: async () => { await browser.close(); await mock.close(); } };
}

/** Opens a page of `world` ({url, browser}). `trouble` collects what must stay empty: errors, and requests that leave
 * the server. */
export async function visit(world, { hash = '', width = 1280, height = 800, scheme = 'light' } = {}) {
  const page = await world.browser.newPage({ viewport: { width, height }, colorScheme: scheme, timezoneId: 'UTC' }),
    trouble = [];
  page.setDefaultTimeout(120000);
  // Timers that are not over. Long ones are left out: they only clear away.
  await page.addInitScript(() => {
    const { setTimeout, clearTimeout } = window, timers = window.timers = new Set();
    window.setTimeout = (f, ms = 0, ...args) => {
      const id = setTimeout(() => { timers.delete(id); f(...args); }, ms);
      if (ms < 5000) timers.add(id);
      return id;
    };
    window.clearTimeout = id => { timers.delete(id); clearTimeout(id); };
  });
  if (LATE_MS) await page.route(/\/tsp\//, async route => {
    await new Promise(done => setTimeout(done, LATE_MS));
    await route.continue().catch(() => { /* aborted requests */ });
  });
  page.on('pageerror', e => trouble.push(String(e.stack)));
  page.on('console', m => {
    if (m.type() === 'error' && !/net::ERR|Failed to load resource/.test(m.text())) trouble.push(m.text());
  });
  page.on('request', r => {
    if (!/^(blob|data):/.test(r.url()) && new URL(r.url()).origin !== new URL(world.url).origin)
      trouble.push(`request to ${r.url()}`);
  });
  await page.goto(`${world.url}/${hash}`);
  return { page, trouble };
}

/** Goes from Start, if there is one, to the views, and waits until their first rows are drawn. */
export const views = page => page.waitForFunction(() => {
  window.weft?.entrance?.leave();
  return window.weft?.panels?.some(p => p.loaded && p.data?.rows.size > 3);
});

/** Opens a page with the experiment and its first rows drawn. `settles`: false for a page that keeps sending
 * requests. */
export async function open(world, { settles = true, ...options } = {}) {
  const { page, trouble } = await visit(world, options);
  await views(page);
  if (settles) await settled(page);
  return { page, trouble };
}

/** Waits until the page is idle for some frames: no request is under way, and none is delayed (requests, the link, a
 * legend). */
export async function settled(page) {
  await page.evaluate(() => { window.calmFrames = 0; });
  await page.waitForFunction(() => {
    window.calmFrames = window.weft.session.client.pending || window.timers.size ? 0 : window.calmFrames + 1;
    return window.calmFrames > 5;
  }, null, { polling: 'raf' });
}

/** Waits until the last actions are drawn. */
export const drawn = page => page.evaluate(() => new Promise(done => {
  requestAnimationFrame(() => requestAnimationFrame(() => done()));
}));

/** Returns the ink of a canvas: how many pixels are not transparent, and how many near the colour. */
export function pixels(page, selector, [r, g, b]) {
  return page.evaluate(([s, want]) => {
    const canvas = document.querySelector(s), { data } = canvas.getContext('2d')
      .getImageData(0, 0, canvas.width, canvas.height);
    let inked = 0, near = 0;
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 3] > 200) inked++;
      if (Math.abs(data[i] - want[0]) + Math.abs(data[i + 1] - want[1]) + Math.abs(data[i + 2] - want[2]) < 12
        && data[i + 3] > 200)
        near++;
    }
    return { inked, near };
  }, [selector, [r, g, b]]);
}

/** Returns the file saved by an entry of the page's menu ⋯. */
export async function save(page, label) {
  await page.getByRole('button', { name: 'More', exact: true }).click();
  const [file] = await Promise.all([page.waitForEvent('download'),
    page.getByRole('menuitem', { name: label }).click()]), chunks = [];
  for await (const c of await file.createReadStream()) chunks.push(c);
  return Buffer.concat(chunks);
}

/** Returns the view's interval and cursors, as strings of ns. */
export const view = page => page.evaluate(() => {
  const a = weft.session.axis, text = t => t === null ? null : String(t);
  return { begin: String(a.begin), end: String(a.end), span: Number(a.end - a.begin), anchor: text(a.anchor),
    cursor: text(a.cursor) };
});
