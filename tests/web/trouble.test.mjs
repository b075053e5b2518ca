// SPDX-License-Identifier: MIT
// Failures: the server goes away and comes back; many rows; slow answers; sizes of the window.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMock } from './mock/server.mjs';
import { drawn, open, pixels, settled, start, visit } from './browser.mjs';

test('the server dies: a bar says so, what was loaded stays, and it goes on when it is back', async () => {
  const world = await start({ threads: 60 });
  const { page } = await open(world);
  const port = Number(new URL(world.url).port);
  await world.mock.close();
  await page.evaluate(() => weft.session.axis.zoom(0.2, 300));
  await page.locator('.notice').filter({ hasText: 'does not answer' }).waitFor();
  assert.ok(await page.evaluate(() => weft.panels[0].model.rows.length) > 20, 'rows stay');
  await page.getByRole('button', { name: 'Ask the server now' }).click();
  await page.waitForTimeout(300);
  assert.ok(await page.locator('.notice').isVisible(), 'still away');
  const next = createMock({ threads: 60 });
  await next.listen(port);
  await page.locator('.notice').waitFor({ state: 'hidden' });
  await settled(page);
  assert.ok(next.log.some(l => /states$/.test(l.path)), 'data are asked for again');
  await world.browser.close();
  await next.close();
});

test('the rows that are seen do not wait for those that are not', async () => {
  const world = await start({ threads: 3000, stalls: true });
  const { page, trouble } = await visit(world), rows = () =>
    page.evaluate(() => [weft.panels[0].model.rows.length, weft.panels[0].data.rows.size]);
  // Rows half of which have not arrived, and will not until they are released.
  await page.waitForFunction(() => window.weft?.panels?.[0]?.data.rows.size > 3);
  await drawn(page);
  assert.ok((await pixels(page, '.panel[data-output$="ThreadStatusDataProvider"] .area canvas:nth-child(2)',
    [46, 158, 91])).inked > 5000, 'their states are drawn');
  const [first] = await rows();
  assert.ok(first >= 100 && first < 1500, `${first} rows`);
  world.mock.release();
  await page.waitForFunction(() => weft.panels[0].model.rows.length > 3000);
  await settled(page);
  assert.equal((await rows())[0], 3003);
  const asked = world.mock.log.filter(l => l.path.endsWith('ThreadStatusDataProvider/states'))
    .map(l => l.body.parameters.requested_items);
  assert.equal(new Set(asked.flat()).size, asked.flat().length, 'no states are asked for twice');
  assert.deepEqual(trouble, []);
  await page.close();
  await world.stop();
});

test('32 000 rows scroll: rows are drawn, few are in the page, only what was passed is asked for', async () => {
  const world = await start({ threads: 32000 });
  const { page } = await open(world, { width: 1920, height: 1080 });
  assert.ok(await page.evaluate(() => weft.panels[0].model.rows.length) >= 32000);
  const result = await page.evaluate(async () => {
    const g = weft.panels[0];
    g.setHeight(620);
    for (let i = 0; i < 240; i++) {
      g.scroller.scrollTop += 331;
      await new Promise(requestAnimationFrame);
    }
    return { dom: document.querySelectorAll('.tree-row').length,
      top: document.querySelector('.tree-row:not([hidden])').dataset.row };
  });
  assert.ok(result.dom < 200, `${result.dom} row elements`);
  assert.ok(Number(result.top) > 4000);
  await settled(page);
  const filled = await page.evaluate(() => {
    const g = weft.panels[0], [a] = [Math.floor(g.scroller.scrollTop / 18)];
    return g.data.rows.has(g.model.rows[a + 3].entry.id);
  });
  assert.ok(filled, 'the rows that are on screen in the end have data');
  const asked = new Set(world.mock.log.filter(l => l.path.endsWith('ThreadStatusDataProvider/states'))
    .flatMap(l => l.body.parameters.requested_items));
  assert.ok(asked.size < 5000, `${asked.size} rows`);
  await world.stop();
});

test('1280 px and both themes: nothing sticks out, the views fill what is between strip and drawer', async () => {
  const world = await start({ threads: 600 });
  for (const [width, height, scheme] of [[1280, 800, 'light'], [1280, 720, 'dark'], [1920, 1080, 'dark']]) {
    const { page } = await open(world, { width, height, scheme });
    const out = await page.evaluate(() =>
      [...document.querySelectorAll('.top > *, .tabs > *, .panel-bar > *')].filter(e =>
        e.getBoundingClientRect().right > innerWidth + 1).map(e => e.className || e.textContent));
    assert.deepEqual(out, []);
    // Checks that no area is empty, and nothing cut, with the first views and with the drawer shut.
    const left = () => page.evaluate(() => {
      const s = document.querySelector('.stack');
      return s.clientHeight - [...s.querySelectorAll('.panel')].reduce((h, p) => h + p.offsetHeight, 0);
    });
    assert.equal(await left(), 0);
    await page.getByRole('tab', { name: 'Events' }).click();
    await drawn(page);
    assert.equal(await left(), 0);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), scheme);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
    await page.close();
  }
  await world.stop();
});
