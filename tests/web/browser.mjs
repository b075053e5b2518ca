// What the browser tests share: Chromium without a network, a page on a mock server, its errors.
import { createRequire } from 'node:module';
import { createMock } from './mock/server.mjs';

const { chromium } = createRequire(new URL('../../web/package.json', import.meta.url))('playwright-core');

export async function start(options = {}) {
  const mock = createMock(options), url = await mock.listen();
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'] });
  return { mock, url, browser, stop: async () => { await browser.close(); await mock.close(); } };
}

/** A page with the experiment open and its first rows drawn. `trouble` collects what must stay empty. */
export async function open(world, { hash = '', width = 1280, height = 800, scheme = 'light' } = {}) {
  const page = await world.browser.newPage({ viewport: { width, height }, colorScheme: scheme, timezoneId: 'UTC' }), trouble = [];
  page.on('pageerror', e => trouble.push(String(e.stack)));
  page.on('console', m => { if (m.type() === 'error' && !/net::ERR|Failed to load resource/.test(m.text())) trouble.push(m.text()); });
  page.on('request', r => { if (!/^(blob|data):/.test(r.url()) && new URL(r.url()).origin !== new URL(world.url).origin) trouble.push(`request to ${r.url()}`); });
  await page.goto(`${world.url}/${hash}`);
  await page.waitForFunction(() => window.weft?.panels?.some(p => p.loaded && p.data?.rows.size > 3), null, { timeout: 20000 });
  await settled(page);
  return { page, trouble };
}

/** No request under way for a while. */
export async function settled(page) {
  await page.evaluate(() => { window.calmSince = 0; });
  await page.waitForFunction(() => {
    const now = performance.now();
    if (window.weft.session.client.pending) window.calmSince = 0; else window.calmSince ||= now;
    return window.calmSince && now - window.calmSince > 350;
  }, null, { polling: 50, timeout: 20000 });
}

/** Ink of a canvas: how many pixels are not transparent, and how many near the colour. */
export function pixels(page, selector, [r, g, b]) {
  return page.evaluate(([s, want]) => {
    const canvas = document.querySelector(s), { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let inked = 0, near = 0;
    for (let i = 0; i < data.length; i += 4) { if (data[i + 3] > 200) inked++; if (Math.abs(data[i] - want[0]) + Math.abs(data[i + 1] - want[1]) + Math.abs(data[i + 2] - want[2]) < 12 && data[i + 3] > 200) near++; }
    return { inked, near };
  }, [selector, [r, g, b]]);
}
