// SPDX-License-Identifier: MIT
// Start on a made-up server: a hundred thousand requests, a list that is not ready yet, a card that fails, hostile
// names.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HOSTILE, requestAt } from './mock/start.mjs';
import { drawn, settled, start, view, views, visit } from './browser.mjs';

const COUNT = 100_000;
let world;
before(async () => { world = await start({ start: { requests: COUNT, busy: 2, fails: 1 } }); });
after(() => world.stop());

const rows = page => page.getByRole('table', { name: 'Slowest requests' }).locator('tbody tr');

test('a list that is still being found, a card that fails and is asked for again; the first hundred, and the way to '
  + 'all', async () => {
  const { page, trouble } = await visit(world, { height: 720 });
  await page.getByText('Finding the requests').waitFor();
  await rows(page).first().waitFor();
  assert.equal(await rows(page).count(), 100);
  const words = (await page.locator('.card').first().locator('header').innerText()).replace(/[\s\u2009]+/g, ' ');
  assert.equal(words, `Requests 100 000, median ${(requestAt(COUNT / 2).took / 1e3).toFixed(3)} µs all 100 000`);
  await page.getByText('3 connections have no server').waitFor();
  const threads = page.locator('.card[aria-label="Threads"]');
  await threads.getByText('The disk is away').waitFor();
  await threads.getByRole('button', { name: 'Ask the server again' }).click();
  await threads.getByRole('row', { name: /worker-0 / }).waitFor();
  assert.ok((await rows(page).nth(1).innerText()).includes(HOSTILE), 'a name is a text');
  assert.equal(await page.locator('.start img').count(), 0);

  // Order by disk waits: threads without any are left out.
  await threads.getByRole('button', { name: /^Disk/ }).press('Enter');
  assert.deepEqual((await threads.locator('tbody tr td:first-child').allInnerTexts()).slice(0, 2),
    ['client:1029 worker-29', 'client:1027 worker-27']);
  assert.equal(await threads.locator('tbody tr').count(), 15);
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Disk');

  await page.getByRole('button', { name: 'Requests: a view of all of them' }).click();
  await page.locator('.panel[data-output="weft.requests"] .vt-count').filter({ hasText: /100\s?000/ }).waitFor();
  assert.deepEqual(trouble.filter(t => !/500/.test(t)), []);
  await page.close();
});

test('a request whose client was not recorded: its server’s path; a picture of bars; Start again as it was left',
  async () => {
  const { page, trouble } = await visit(world, { scheme: 'dark' });
  await rows(page).first().waitFor();
  await settled(page);
  const bars = await page.locator('.histogram > div').evaluateAll(all => all.map(d => [d.title, d.innerText.trim(),
    d.firstChild.getBoundingClientRect().height]));
  assert.equal(bars.length, 20);
  assert.deepEqual(bars.map(b => b[1]).filter(Boolean), ['1 ms', '10 ms', '100 ms', '320 ms']);
  assert.ok(bars.every((b, i) => !i || b[2] > bars[i - 1][2]), 'each is higher than the one before');
  await rows(page).nth(2).dblclick();
  const r = requestAt(2), at = await page.waitForFunction(() => weft.path?.pane.done).then(() => settled(page))
    .then(() => view(page));
  assert.deepEqual([at.anchor, at.cursor], [r.begin, r.begin + BigInt(r.took)].map(String));
  const asked = world.mock.log.filter(l => l.body?.sourceTypeId === 'weft.critical-path').at(-1).body.parameters;
  assert.deepEqual([asked.host, asked.thread], ['web', 1001]);
  assert.match(await page.locator('.request-bar').innerText(),
    /Request 3 of 100\s?000\s+192\.0\.2\.7:4711 → web:1001 nginx/);
  await page.locator('body').evaluate(() => document.activeElement.blur());
  await page.keyboard.press('h');
  await drawn(page);
  assert.deepEqual(await page.evaluate(() => [document.activeElement.closest('table').ariaLabel ??
    document.activeElement.closest('table').getAttribute('aria-label'), document.activeElement.rowIndex]),
  ['Slowest requests', 3]);
  // New data replace the old ones, under the same focus.
  assert.ok(await page.evaluate(() => {
    weft.home.refresh();
    return !document.querySelector('.start .card-body[hidden]');
  }));
  await settled(page);
  assert.equal(await page.evaluate(() => document.activeElement.rowIndex), 3);
  // Keys of the views have no effect meanwhile.
  const before = await view(page);
  for (const key of ['w', 'a', 'Home', 'n']) await page.keyboard.press(key);
  assert.deepEqual(await view(page), before);
  await page.keyboard.press('Escape');
  await views(page);
  assert.ok(await page.locator('.panel').first().isVisible());
  assert.deepEqual(trouble.filter(t => !/500/.test(t)), []);
  await page.close();
});

test('a link that says what to look at leads there; one that names the experiment alone leads to Start', async () => {
  const there = await visit(world, { hash: `#x=${world.mock.uuid}&tab=legend` });
  await views(there.page);
  await there.page.getByRole('tab', { name: 'Legend', selected: true }).waitFor();
  const plain = await visit(world, { hash: `#x=${world.mock.uuid}` });
  await rows(plain.page).first().waitFor();
  await settled(plain.page);
  assert.ok(!new URL(plain.page.url()).hash.includes('o='));
  assert.deepEqual([...there.trouble, ...plain.trouble].filter(t => !/500/.test(t)), []);
  await there.page.close();
  await plain.page.close();
});
