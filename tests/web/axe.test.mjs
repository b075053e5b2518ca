// SPDX-License-Identifier: MIT
// Accessibility according to axe-core: no violations.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { open, settled, start } from './browser.mjs';

const axe = readFileSync(new URL('../../web/node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
let world;
before(async () => { world = await start({ threads: 60, opens: { paths: true, uploads: true }, belowOf: () =>
  ({ root: '/data', path: 'a', traces: [{ name: 'web', path: '/data/a/web', directory: true }] }) }); });
after(() => world.stop());

for (const scheme of ['light', 'dark'])
  test(`axe finds nothing critical or serious: page, menus, help, picker, every view, a path (${scheme})`, async () => {
  const { page } = await open(world, { scheme, width: 1280, height: 720 }), look = async what => {
    const found = await page.evaluate(async () => (await window.axe.run(document)).violations
      .filter(v => v.impact === 'critical' || v.impact === 'serious').flatMap(v => v.nodes.map(n =>
        `${v.id}: ${n.html.slice(0, 200)}`)));
    assert.deepEqual(found, [], what);
  };
  await page.evaluate(axe);
  await look('the page');
  for (const name of ['Open and close views', 'More']) {
    await page.getByRole('button', { name, exact: true }).click();
    await look(name);
    await page.keyboard.press('Escape');
  }
  await page.keyboard.press('?');
  await look('keys');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Open another experiment' }).click();
  await page.locator('.picker-below li').first().waitFor();
  await look('the picker');
  await page.keyboard.press('Escape');
  await page.evaluate(() => {
    for (const p of [...weft.panels]) p.close();
    for (const o of weft.session.outputs) weft.add(o, 120);
    weft.session.pathWanted.emit({ thread: { host: 'client', tid: 204, name: 'tier' } });
  });
  await page.waitForFunction(() => weft.path?.pane.done);
  await settled(page);
  for (const tab of ['Path', 'Details', 'Bookmarks', 'Legend']) {
    await page.getByRole('tab', { name: tab }).click();
    await look(`every view, ${tab}`);
  }
  await page.close();
});
