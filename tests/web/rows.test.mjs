// SPDX-License-Identifier: MIT
// Rows of the views, on the mock server: pinned ones, those of chosen machines, those with something in view.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { drawn, open, settled, start } from './browser.mjs';

let world;
before(async () => { world = await start({ threads: 600 }); });
after(() => world.stop());

const THREADS = '.panel[data-output$="ThreadStatusDataProvider"]';
const row = (page, text) => page.locator(`${THREADS} .tree-row:not([hidden])`).filter({ hasText: text });
const menu = async (page, name) => {
  await page.getByRole('button', { name: /^Rows:/ }).press('Enter');
  await page.getByRole('menuitemcheckbox', { name }).first().press('Enter');
  await settled(page);
};
/** Returns the entries with a row of their own, by view. */
const rows = page => page.evaluate(() => Object.fromEntries(weft.panels.filter(p => p.model).map(p => [p.output.name,
  p.model.rows.slice(p.model.pins).filter(n => n.entry.hasData).map(n => n.entry.id)])));

test('pinned rows stay on top while the others scroll: drawn, clicked and hit there; let go; the link keeps them',
  async () => {
  const { page, trouble } = await open(world, { width: 1280, height: 720 });
  const ids = await page.evaluate(() => weft.panels[0].model.rows.filter(n => n.entry.hasData).slice(1, 4)
    .map(n => n.entry.id));
  for (const id of ids.slice(0, 2)) {
    const at = await page.evaluate(i => weft.panels[0].model.rowOf.get(i), id);
    await page.locator(`${THREADS} .tree-row[data-row="${at}"]:not([hidden])`).click({ button: 'right' });
    await page.getByRole('menuitem', { name: 'Pin on top' }).click();
    await settled(page);
  }
  const top = await page.evaluate(() => {
    const v = weft.panels[0];
    v.scroller.scrollTop = 1805;
    return v.model.rows.length;
  });
  await settled(page);
  const head = await page.locator(`${THREADS} .tree-body`).boundingBox(), area = await page.locator(`${THREADS} .area`)
    .boundingBox();
  const [one, two] = [row(page, 'client · ').nth(0), row(page, 'client · ').nth(1)];
  for (const [i, r] of [one, two].entries()) {
    const box = await r.boundingBox();
    assert.ok(Math.abs(box.y - head.y - i * 18) < 1, `row ${i} is at ${box.y - head.y}`);
    assert.equal(await r.getAttribute('aria-rowindex'), String(i + 1));
  }
  // Drawn rows, and those that the mouse finds, are these, and below them those scrolled to.
  const found = await page.evaluate(() => [29, 47, 65, 83].map(y => {
    const hit = weft.panels[0].hit(400, y);
    return hit?.node.entry.id;
  }));
  assert.deepEqual(found.slice(0, 2), ids.slice(0, 2));
  const below = await page.evaluate(() => [65, 83].map(y =>
    weft.panels[0].model.rows[Math.floor((y - 20 + 1805) / 18)].entry.id));
  assert.deepEqual(found.slice(2), below);
  const inked = () => page.evaluate(() => {
    const { canvas, ctx } = weft.panels[0].surface, { data } = ctx.getImageData(0, 20, canvas.width, 36);
    return [...data].reduce((a, b) => (a * 31 + b) >>> 0, 7);
  });
  await page.mouse.move(2, 2);
  await drawn(page);
  const before_ = await inked();
  await page.evaluate(() => { weft.panels[0].scroller.scrollTop = 3600; });
  await settled(page);
  assert.equal(await inked(), before_, 'the same picture, whatever lies below');
  await page.mouse.click(area.x + 400, area.y + 29);
  await settled(page);
  assert.equal(await page.evaluate(() => weft.panels[0].scroller.scrollTop), 3600, 'nothing is scrolled to');
  assert.equal(await page.evaluate(() => weft.panels[0].tree.picked), ids[0]);
  await page.keyboard.press('ArrowDown');
  assert.equal(await page.evaluate(() => weft.panels[0].tree.picked), ids[1]);

  await page.waitForFunction(() => /[#&]pin=\d+%2C\d+/.test(location.hash));
  const { hash } = new URL(page.url());
  assert.deepEqual(trouble, []);
  await page.close();
  const again = await open(world, { hash, width: 1280, height: 720 });
  assert.deepEqual(await again.page.evaluate(() => weft.panels[0].model.rows.slice(0, weft.panels[0].model.pins)
    .map(n => n.entry.id)), ids.slice(0, 2));
  await menu(again.page, /client \w+ \d+/);
  assert.deepEqual(await again.page.evaluate(() => weft.panels[0].model.pins), 1);
  await row(again.page, 'client · ').click({ button: 'right' });
  await again.page.getByRole('menuitem', { name: 'Let go from the top' }).click();
  await settled(again.page);
  assert.deepEqual(await again.page.evaluate(() => [weft.panels[0].model.pins, weft.panels[0].model.rows.length]),
    [0, top - 2]);
  assert.deepEqual(again.trouble, []);
  await again.page.close();
});

test('of chosen machines alone, in all views; the button and the link say so', async () => {
  const { page, trouble } = await open(world, { width: 1280, height: 720 });
  const hosts = p => p.evaluate(() => Object.fromEntries(weft.panels.filter(x => x.model?.nodes.size).map(x => {
    const root = n => n.parent ? root(n.parent) : n;
    return [x.output.name, [...new Set(x.model.rows.map(n => root(n).entry.labels[0]))].sort()];
  })));
  const all = await hosts(page);
  assert.deepEqual(all['Thread Status'], ['client', 'db', 'web']);
  assert.deepEqual(all['CPU Usage'], ['client', 'db', 'web']);
  await menu(page, 'web');
  await menu(page, 'db');
  const two = await hosts(page);
  assert.deepEqual(Object.keys(two), Object.keys(all));
  for (const [name, list] of Object.entries(two)) assert.deepEqual(list, ['db', 'web'], name);
  await menu(page, 'db');
  for (const list of Object.values(await hosts(page))) assert.deepEqual(list, ['web']);
  assert.equal(await page.locator(`${THREADS} .panel-status`).innerText(), '201 found', 'with the machine itself');
  await page.getByRole('button', { name: 'Rows: 1 machine' }).waitFor();
  await page.evaluate(() => weft.session.setSearch('tid:204'));
  await settled(page);
  assert.equal(await page.locator(`${THREADS} .panel-status`).innerText(), '1 found', 'and of these what is searched');
  for (const list of Object.values(await hosts(page))) assert.ok(!list.includes('client') && !list.includes('db'));
  await page.evaluate(() => weft.session.setSearch(''));
  await page.waitForFunction(() => /[#&]m=web(&|$)/.test(location.hash) && !/[#&]q=/.test(location.hash));
  const { hash } = new URL(page.url());
  assert.deepEqual(trouble, []);
  await page.close();
  const again = await open(world, { hash, width: 1280, height: 720 });
  for (const list of Object.values(await hosts(again.page))) assert.deepEqual(list, ['web']);
  await menu(again.page, 'all');
  assert.deepEqual(await hosts(again.page), all);
  assert.deepEqual(again.trouble, []);
  await again.page.close();
});

test('only those with something in view: as the server says, or by their states; again when another time is in view',
  async () => {
  const { page, trouble } = await open(world, { width: 1280, height: 720 });
  const all = await rows(page), cpus = 'Resources Status', wanted = (from, to, n) => all[cpus].filter(id =>
    world.mock.world.sample(id, from, to, n).some(s => s[2] === 'Usermode'));
  // Time in which some CPU is idle throughout, and another one is not.
  let at = 0, width = 50000;
  while (![1, 2, 3].includes(wanted(at, at + width, 1000).length)) at += width;
  const other = at + 700_000_000;
  const go = t => page.evaluate(([a, w]) => {
    const { axis } = weft.session;
    axis.show(axis.min + BigInt(a), axis.min + BigInt(a + w));
  }, [t, width]).then(() => settled(page));
  await go(at);
  await menu(page, 'only those with something in view');
  const { world: made } = world.mock, up = id => { const e = made.byId.get(id); return e.parentId < 0 ? [] : [id,
    ...up(e.parentId)]; };
  const even = new Set(all['Thread Status'].filter(id => made.byId.get(id).tid % 2 === 0).flatMap(up));
  const here = await rows(page);
  assert.deepEqual(new Set(here['Thread Status']), even);
  assert.ok(even.size < all['Thread Status'].length);
  assert.deepEqual(here[cpus], wanted(at, at + width, 1000));
  assert.match(await page.locator(`${THREADS} .panel-status`).innerText(), new RegExp(`^${even.size} found`));
  await go(other);
  assert.deepEqual((await rows(page))[cpus], wanted(other, other + width, 1000));
  await page.waitForFunction(() => /[#&]idle=0/.test(location.hash));
  const filtered = world.mock.log.filter(r => r.body?.parameters?.isFiltered);
  assert.ok(filtered.every(r => r.body.parameters.requested_timerange), 'in which interval');
  await menu(page, 'only those with something in view');
  assert.deepEqual(await rows(page), all);
  assert.deepEqual(trouble, []);
  await page.close();
});
