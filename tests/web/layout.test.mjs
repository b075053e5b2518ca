// SPDX-License-Identifier: MIT
// Layout of the page: by mouse and keys, remembered for each experiment, whatever the browser has stored.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { buildSync } from '../../web/node_modules/esbuild/lib/main.js';
import { drawn, open, settled, start } from './browser.mjs';

let world;
before(async () => { world = await start({ threads: 60 }); });
after(() => world.stop());

const threads = '.panel[data-output$="ThreadStatusDataProvider"]',
  cpus = '.panel[data-output$="ResourcesStatusDataProvider"]';
/** Opens the page again in the same browser, at an address. */
const again = async (page, hash = '') => {
  await page.goto('about:blank');
  await page.goto(`${world.url}/${hash}`);
  await page.waitForFunction(() => window.weft?.panels?.length && !weft.arranging);
  await settled(page);
};
const looks = page => page.evaluate(() => ({
  views: weft.panels.map(p => [p.output.name, p.fixed ? p.height : 0, p.folded]),
  drawer: document.querySelector('.drawer').offsetHeight, tab: weft.drawer.now,
  theme: document.documentElement.dataset.theme, row: weft.session.rowHeight }));

test('the drawer: higher and lower by mouse and by keys, remembered', async () => {
  const { page, trouble } = await open(world), grip = page.getByRole('separator', { name: 'Height of the drawer' }),
    height = () => page.locator('.drawer').evaluate(e => e.offsetHeight), first = await height(),
    box = await grip.boundingBox();
  await page.mouse.move(box.x + 300, box.y + 1);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y - 79, { steps: 4 });
  await page.mouse.up();
  assert.equal(await height(), first + 80);
  await grip.focus();
  await page.keyboard.press('ArrowDown');
  assert.equal(await height(), first + 60);
  assert.equal(await grip.getAttribute('aria-valuenow'), String(first + 60));
  await again(page);
  assert.equal(await height(), first + 60);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('views, heights, what is folded, theme, rows, tab: as they were; a link says which views; elsewhere nothing is '
  + 'known', async () => {
  const { page, trouble } = await open(world), fresh = await looks(page);
  await page.getByRole('separator', { name: 'Height of Thread Status' }).focus();
  for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown');
  await page.locator(cpus).getByRole('button', { name: 'Fold this view' }).click();
  await page.getByRole('button', { name: 'Close CPU Usage' }).click();
  await page.getByRole('button', { name: 'Open and close views' }).click();
  await page.keyboard.type('histogram');
  await page.keyboard.press('Enter');
  for (const label of ['Dark theme', 'Compact rows']) {
    await page.getByRole('button', { name: 'More', exact: true }).click();
    await page.getByRole('menuitemcheckbox', { name: label }).click();
  }
  await page.getByRole('tab', { name: 'Legend' }).click();
  await settled(page);
  const then = await looks(page),
    high = await page.locator(`${threads} .panel-main`).evaluate(e => e.offsetHeight);
  assert.deepEqual(then.views, [['Thread Status', high, false],
    ['Resources Status', 0, true], ['Histogram', 0, false]]);
  assert.deepEqual([then.theme, then.row, then.tab], ['dark', 12, 'legend']);
  await again(page);
  assert.deepEqual(await looks(page), then);
  // Views come from the address; heights are still those chosen here.
  const ids = await page.evaluate(() => [weft.panels[2].output.id, weft.panels[0].output.id]);
  await again(page, `#x=${world.mock.uuid}&o=${ids.map(encodeURIComponent).join('|')}`);
  const linked = await looks(page);
  assert.deepEqual(linked.views, [['Histogram', 0, false], ['Thread Status', high, false]]);
  assert.equal(linked.tab, 'events');
  assert.deepEqual(trouble, []);
  await page.close();
  const other = await open(world);
  assert.deepEqual(await looks(other.page), fresh);
  await other.page.close();
});

test('what is stored is garbage, or nothing can be stored: the page opens as at first', async () => {
  const { page } = await open(world), fresh = await looks(page), bad = [null, 1, {}, [], [7], [['X']], [['X', null]],
    [['X', { views: {} }]],
    [['X', { views: [null, 3, { id: 4 }, { id: 'no such view' }], drawer: 'high', tab: 'toString',
      dark: 1, compact: 'x' }]], [['X', { views: [{ id: 'x', height: -1 }], drawer: 1e99 }]]];
  for (const text of ['', '{', '"', ...bad.map(v => JSON.stringify(v).replace('"X"', `"${world.mock.uuid}"`))]) {
    await page.evaluate(t => { weft.arranging = true; localStorage.setItem('weft.layouts', t); }, text);
    await again(page);
    assert.deepEqual(await looks(page), fresh, text);
  }
  await page.addInitScript(() => {
    Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } });
  });
  await again(page);
  assert.deepEqual(await looks(page), fresh);
  await page.getByRole('button', { name: 'Close CPU Usage' }).click();
  await drawn(page);
  assert.equal((await looks(page)).views.length, 2);
  await page.close();
});

test('what is stored stays small: of a thousand experiments with a thousand views each', async () => {
  const store = new Map();
  globalThis.localStorage = { getItem: k => store.get(k) ?? null, setItem: (k, v) => store.set(k, v) };
  const source = buildSync({ entryPoints: [new URL('../../web/src/remember.ts', import.meta.url).pathname],
    bundle: true, format: 'esm', write: false }).outputFiles[0].text;
  const { keepLayout, keptLayout } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const views = Array.from({ length: 1000 }, (_, i) => ({ id: `a view with a long name ${i}`.repeat(9), height: 100 }));
  for (let i = 0; i < 1000; i++) keepLayout(`x${i}`, { views: i % 2 ? views : views.slice(0, 2), drawer: i + 1 });
  const size = [...store.values()].reduce((n, v) => n + v.length, 0);
  assert.ok(size > 1000 && size <= 100_000, `${size}`);
  assert.equal(keptLayout('x999').drawer, 1000);
  assert.equal(keptLayout('x0'), null);
  delete globalThis.localStorage;
});
