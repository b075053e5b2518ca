// SPDX-License-Identifier: MIT
// The viewer on a running trace server: node viewer.mjs URL [ROUNDS]
// How soon rows with states are on the screen after navigation began, and how long a frame of 30 rows takes with as
// many states as the server gives for
// them, and one while all rows are scrolled through. Prints JSON lines; the best of several pages counts. Exit 77 when
// Chromium or playwright-core are not there.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

const program = process.env.CHROMIUM ?? '/usr/bin/chromium', web = new URL('../web/package.json', import.meta.url);
if (!existsSync(program) || !existsSync(new URL('node_modules/playwright-core', web))) process.exit(77);
const { chromium } = createRequire(web)('playwright-core');
const [url, rounds = '3'] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: program, headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'] });

const [{ UUID: experiment }] = await (await fetch(`${url}/tsp/api/experiments`)).json();

/** Of the views: what a link to them shows. */
async function firstPaint() {
  const page = await (await browser.newContext({ viewport: { width: 1920, height: 1080 } })).newPage();
  await page.goto(`${url}/#x=${experiment}&tab=events`);
  await page.waitForFunction(() => window.weft?.panels?.[0]?.data?.rows.size > 3, null,
    { polling: 'raf', timeout: 60000 });
  const ms = await page.evaluate(() => new Promise(done => requestAnimationFrame(() =>
    requestAnimationFrame(() => done(performance.now())))));
  return { page, ms };
}

/** The threads on the screen at that width of the view; then frames as they are when something moves. */
async function frames(page) {
  return page.evaluate(async () => {
    const g = weft.panels[0], { axis } = weft.session, drawn = [];
    g.setHeight(20 + 30 * 18);
    for (let calm = 0; calm < 8;) {
      await new Promise(r => setTimeout(r, 50));
      calm = weft.session.client.pending ? 0 : calm + 1;
    }
    for (let i = 0; i < 60; i++) {
      const began = performance.now();
      g.draw();
      g.surface.ctx.getImageData(0, 0, 1, 1); // makes the canvas finish
      drawn.push(performance.now() - began);
      await new Promise(requestAnimationFrame);
    }
    drawn.sort((a, b) => a - b);
    const shown = g.model.rows.slice(0, 40).filter(n => n.entry.hasData).slice(0, 30)
      .map(n => g.data.rows.get(n.entry.id)).filter(Boolean);
    return { median: drawn[30], rows: shown.length, states: shown.reduce((n, r) => n + r.n, 0),
      span: Number(axis.end - axis.begin) };
  });
}

/** Draws of rows that were not on the screen before, with what the tree's rows cost: 95 of 100 are quicker. */
async function scroll(page) {
  return page.evaluate(async () => {
    const g = weft.panels[0], drawn = [];
    for (let i = 0; i < 200; i++) {
      g.scroller.scrollTop += 331;
      const began = performance.now();
      g.draw();
      drawn.push(performance.now() - began);
      await new Promise(requestAnimationFrame);
    }
    return { ms: drawn.sort((a, b) => a - b)[190], rows: g.model.rows.length };
  });
}

let paint = Infinity, scrolled = { ms: Infinity }, frame = { median: Infinity };
for (let i = 0; i < Number(rounds); i++) {
  const { page, ms } = await firstPaint(), found = await frames(page), passed = await scroll(page);
  scrolled = passed.ms < scrolled.ms ? passed : scrolled;
  paint = Math.min(paint, ms);
  frame = found.median < frame.median ? found : frame;
  await page.context().close();
}
await browser.close();
console.log(JSON.stringify({ bench: 'first paint', ms: paint }));
console.log(JSON.stringify({ bench: 'scroll', ...scrolled }));
console.log(JSON.stringify({ bench: 'frame', ms: frame.median, rows: frame.rows, states: frame.states }));
