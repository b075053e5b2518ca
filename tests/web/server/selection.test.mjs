// SPDX-License-Identifier: MIT
// Figures of the interval between the cursors: the verb `threads` is the reference.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browse, drawn, open, settled } from '../browser.mjs';
import { directory, example, serve, userSpace, weft } from './weft.mjs';

let browser;
before(async () => { browser = await browse(); });
after(() => browser?.close());

const PAGE = '#page-selection', ROWS = `${PAGE} .tree-row:not([hidden])`;
const select = (page, from, until) => page.evaluate(([a, b]) => {
  const { axis } = weft.session;
  axis.select(axis.min + BigInt(a), axis.min + BigInt(b));
}, [from, until]);
async function table(page) {
  const [file] = await Promise.all([page.waitForEvent('download'),
    page.locator('.selection-bar').getByRole('button', { name: 'Save this table' }).click()]), chunks = [];
  for await (const c of await file.createReadStream()) chunks.push(c);
  const [what, head, ...lines] = Buffer.concat(chunks).toString().trim().split('\n'), names = head.split(',');
  return { what, rows: lines.map(l => Object.fromEntries(l.split(',').map((c, i) => [names[i], c]))) };
}

test('threads between the cursors: states as `weft threads` tells them, sorted, saved, and anew for another selection',
  async () => {
    const traces = example(), store = directory(),
      server = await serve(['--store', store, '--reference', 'web', traces]),
      { page, trouble } = await open({ url: server.url, browser }),
      min = await page.evaluate(() => String(weft.session.axis.min));
    // Requests of figures: Start sends some, for its cards; the page of the drawer sends them once it is visible.
    const figures = () => page.evaluate(() => performance.getEntriesByType('resource').filter(e =>
      e.name.includes('/outputs/data/weft.selection.')).length), before = await figures();
    await select(page, 2_000_000_000, 2_100_000_000);
    await settled(page);
    assert.equal(await figures(), before, 'before somebody looks');
    await page.evaluate(() => weft.session.axis.select(null));
    await page.getByRole('tab', { name: 'Selection' }).click();
    await page.locator('.selection-bar', { hasText: 'whole trace' }).waitFor();
    for (const [from, until] of [[2_000_000_000, 3_200_000_000], [1_500_000_000, 1_700_000_000]]) {
      await select(page, from, until);
      await settled(page);
      const begin = BigInt(min) + BigInt(from), end = BigInt(min) + BigInt(until),
        wanted = weft('threads', '--store', store, '--host', 'web', '--begin', `${begin}`, '--end', `${end}`, traces);
      assert.ok(wanted.length > 20);
      const { what, rows } = await table(page), web = rows.filter(r => r.machine === 'web' && r.TID);
      assert.match(what, new RegExp(`^# Time by Thread, ${begin} to ${end} ns$`));
      const line = r => [r.Thread, r.TID, r.PID, r.running, r.preempted, r.blocked, r.timer, r.network].join();
      assert.deepEqual(web.map(line).sort(), wanted.map(t => [t.comm, t.tid, t.pid, t.running, t.preempted, t.blocked,
        t.timer, t.network].join()).sort());
      const running = web.map(r => Number(r.running));
      assert.deepEqual(running, [...running].sort((a, b) => b - a), 'most running time first');
      const most = wanted.reduce((a, t) => t.running > a.running ? t : a);
      const shown = (await page.locator(ROWS).allInnerTexts()).map(t => t.split('\n'));
      const at = shown.findIndex(([name]) => name.includes('web'));
      if (at >= 0 && at + 1 < shown.length)
        assert.ok(shown[at + 1].join(' ').includes(String(most.tid)), shown.join('|'));
    }
    // Sorting by another column, in reverse order.
    await page.locator(`${PAGE} .tree-head`).getByRole('button', { name: 'Network' }).click();
    await drawn(page);
    const waits = (await table(page)).rows.filter(r => r.machine === 'web' && r.TID).map(r => Number(r.network));
    assert.ok(waits.some(Boolean));
    assert.deepEqual(waits, [...waits].sort((a, b) => a - b));
    // Figures of machines and CPUs, and all others.
    await page.getByLabel('Which figures').selectOption({ label: 'Time by CPU' });
    await settled(page);
    const cpus = (await table(page)).rows;
    for (const host of ['client', 'web', 'db']) {
      const its = cpus.filter(r => r.machine === host && r.CPU !== host), own = cpus.find(r => r.CPU === host);
      assert.ok(its.length && Number(own.idle) > 0, JSON.stringify(cpus));
      assert.equal(Number(own.busy), its.reduce((sum, r) => sum + Number(r.busy), 0));
    }
    await page.getByLabel('Which figures').selectOption({ label: 'Event Types' });
    await settled(page);
    assert.ok((await table(page)).rows.some(r => r.Level === 'sched_switch' && Number(r.eventsInRange) > 0));
    // Search that exists already, in figures that are opened after it.
    await page.getByLabel('Search rows and states').fill('tid:1');
    await settled(page);
    await page.getByLabel('Which figures').selectOption({ label: 'Time by Thread' });
    await settled(page);
    assert.deepEqual([...new Set((await table(page)).rows.filter(r => r.TID).map(r => r.TID))], ['1']);
    await page.getByLabel('Search rows and states').fill('');
    await settled(page);
    // Hidden page: no requests.
    await page.getByRole('tab', { name: 'Details' }).click();
    await settled(page);
    const asked = [];
    page.on('request', r => { if (/outputs\/data\//.test(r.url())) asked.push(r.url()); });
    await select(page, 0, 1_000_000);
    await settled(page);
    assert.deepEqual(asked, []);
    await page.getByRole('tab', { name: 'Selection' }).click();
    await settled(page);
    assert.equal(asked.length, 1);
    assert.deepEqual(trouble, []);
    await page.close();
    await server.stop();
  });

test('the flame graph of the selection, where there are stacks', async () => {
  const server = await serve(['--store', directory(), userSpace()]), { page, trouble } = await open({ url: server.url,
    browser });
  await page.getByRole('tab', { name: 'Selection' }).click();
  await page.evaluate(() => {
    const { axis } = weft.session;
    axis.select(axis.min, axis.min + (axis.max - axis.min) / 2n);
  });
  await settled(page);
  const [request] = await Promise.all([
    page.waitForRequest(r => /timeGraph\/.*flamegraph.*\/tree/i.test(r.url()) && /selection_range/.test(r.postData())),
    page.locator('.selection-bar').getByRole('button', { name: 'Flame graph' }).click()]);
  const [min, max] = await page.evaluate(() => [weft.session.axis.min, weft.session.axis.max].map(String));
  assert.ok(request.postData().includes(`[${min},${BigInt(min) + (BigInt(max) - BigInt(min)) / 2n}]`));
  await settled(page);
  assert.deepEqual(trouble, []);
  await page.close();
  await server.stop();
});
