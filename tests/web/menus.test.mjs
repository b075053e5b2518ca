// SPDX-License-Identifier: MIT
// Menus: views with their descriptions, found by words; names of buttons; effects of the right button; tooltips.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BEGIN } from './mock/world.mjs';
import { drawn, open, settled, start, view } from './browser.mjs';

let world;
before(async () => { world = await start({ threads: 60 }); });
after(() => world.stop());

const graph = '.panel[data-output$="ThreadStatusDataProvider"]', views = page =>
  page.getByRole('button', { name: 'Open and close views' });
/** Returns the visible part of the open menu: [label, line] of entries, and the headings. */
const shown = page => page.evaluate(() => ({
  items: [...document.querySelectorAll('.menu button')].filter(b => b.offsetParent).map(b =>
    [b.dataset.label, b.querySelector('.menu-line')?.textContent ?? '']),
  groups: [...document.querySelectorAll('.menu-heading')].filter(b => b.offsetParent).map(b => b.textContent),
}));

test('views: critical paths first, each view with what the server says of it; words find some; by keys', async () => {
  const { page, trouble } = await open(world), outputs = await (await fetch(
    `${world.url}/tsp/api/experiments/${world.mock.uuid}/outputs`)).json();
  await views(page).click();
  const { items, groups } = await shown(page);
  assert.equal(groups[0], 'Critical paths');
  for (const o of outputs.filter(o => o.type !== 'NONE' && !o.capabilities?.canCreate && !/Events Table/.test(o.name)))
    assert.deepEqual(items.filter(i => i[0] === o.name), [[o.name, o.description]]);
  assert.equal(await page.evaluate(() => document.activeElement.type), 'search');
  // Words of the group, the name or the line, in any order.
  await page.keyboard.type('time FIGURES');
  assert.deepEqual((await shown(page)).items, []);
  await page.getByText('Nothing here has “time FIGURES”.').waitFor();
  for (let i = 0; i < 'time FIGURES'.length; i++) await page.keyboard.press('Backspace');
  await page.keyboard.type('latency sys');
  const latencies = outputs.filter(o => /latency/i.test(o.name) && /sys/i.test(o.name)).map(o => o.name);
  assert.deepEqual((await shown(page)).items.map(i => i[0]).sort(), latencies.sort());
  await page.keyboard.press('ArrowDown');
  const at = () => page.evaluate(() => document.activeElement.dataset.label);
  const [first, second] = (await shown(page)).items;
  assert.equal(await at(), first[0]);
  await page.keyboard.press('ArrowDown');
  assert.equal(await at(), second[0]);
  await page.keyboard.press('x'); // goes to the field
  assert.deepEqual((await shown(page)).items, []);
  await page.keyboard.press('Backspace');
  const before = await page.evaluate(() => weft.panels.length);
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => weft.panels.length), before + 1);
  assert.equal(await page.evaluate(() => weft.panels.at(-1).output.name), first[0]);
  assert.equal(await page.locator('.menu').count(), 0);
  await views(page).click();
  assert.equal(await page.getByRole('menuitemcheckbox', { name: first[0] }).getAttribute('aria-checked'), 'true');
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Views');
  assert.deepEqual(trouble, []);
  await page.close();
});

test('views: the critical path of the picked thread, of the selection', async () => {
  const { page } = await open(world);
  await views(page).click();
  assert.ok(await page.getByRole('menuitem', { name: 'Critical path of a thread' }).isDisabled());
  await page.keyboard.press('Escape');
  await page.locator(graph).locator('.tree-row').filter({ hasText: 'tier' }).first().click();
  await page.evaluate(() => { const a = weft.session.axis; a.select(a.min + 2000000000n, a.min + 2090000000n); });
  await views(page).click();
  await page.keyboard.type('critical 204');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => weft.path);
  const made = world.mock.log.findLast(l => l.method === 'POST' && /CriticalPathDataProvider$/.test(l.path)).body;
  assert.deepEqual([made.parameters.thread, made.parameters.host, made.parameters.begin, made.parameters.end],
    [204, 'client', BEGIN + 2000000000n, BEGIN + 2090000000n]);
  await page.close();
});

test('buttons: a name for who hears the page, a picture for who sees it, no letters that stand for pictures',
  async () => {
  const { page } = await open(world);
  await page.evaluate(() => {
    for (const o of weft.session.outputs) weft.add(o, 120);
    weft.session.pathWanted.emit({ thread: { host: 'client', tid: 204, name: 'tier' } });
  });
  await settled(page);
  const odd = await page.evaluate(() => [...document.querySelectorAll('button')].filter(b => b.offsetParent)
    .filter(b => !(b.getAttribute('aria-label') ?? b.textContent).trim() || /[\u2190-\u2bff×−]/.test(b.textContent)
    || [...b.querySelectorAll('svg')].some(s => s.getAttribute('aria-hidden') !== 'true')).map(b => b.outerHTML));
  assert.deepEqual(odd, []);
  const size = await page.locator(`${graph} .panel-tools .icon`).first().boundingBox();
  assert.ok(size.width > 8 && size.height > 8);
  assert.equal(await page.evaluate(() => document.fonts.size), 0);
  await page.close();
});

test('right button: a drag zooms and opens no menu, the next click opens one', async () => {
  const { page } = await open(world), box = await page.locator(`${graph} .area`).boundingBox(), y = box.y + 60,
    press = async () => {
      await page.mouse.move(box.x + 300, y);
      await page.mouse.down({ button: 'right' });
    };
  const whole = await view(page), at = x => page.evaluate(p => String(weft.session.axis.timeAt(p)), x);
  const [from, to] = [await at(300), await at(500)];
  await press();
  await page.mouse.move(box.x + 500, y, { steps: 5 });
  assert.equal(await page.locator('.menu').count(), 0);
  await page.mouse.up({ button: 'right' });
  await drawn(page);
  assert.equal(await page.locator('.menu').count(), 0);
  const near = await view(page);
  assert.deepEqual([near.begin, near.end], [from, to]);
  assert.deepEqual([near.anchor, near.cursor], [whole.anchor, whole.cursor], 'the selection stays');
  await press();
  await page.mouse.up({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Zoom back' }).click();
  assert.equal((await view(page)).span, whole.span);
  await page.close();
});

test('tooltips: go when a menu comes, and do not come while one is there', async () => {
  const { page } = await open(world), box = await page.locator(`${graph} .area`).boundingBox(),
    tip = page.locator('.tip');
  await page.mouse.move(box.x + 300, box.y + 68);
  await tip.waitFor();
  await page.mouse.down({ button: 'right' });
  await page.mouse.up({ button: 'right' });
  await page.locator('.menu').waitFor();
  await tip.waitFor({ state: 'hidden' });
  await page.mouse.move(box.x + 200, box.y + 68);
  await settled(page);
  assert.ok(!await tip.isVisible());
  await page.keyboard.press('Escape');
  await page.mouse.move(box.x + 210, box.y + 68);
  await tip.waitFor();
  await page.close();
});
