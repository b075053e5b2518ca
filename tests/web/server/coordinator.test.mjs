// SPDX-License-Identifier: MIT
// Start on a coordinator: its requests are those of all servers, in one order, with links to paths and back.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browse, settled, visit } from '../browser.mjs';
import { coordinate, directory, example, serve, weft } from './weft.mjs';

const HOSTS = ['client', 'web', 'db'];
const servers = [];
let world, many, told;
before(async () => {
  const traces = example();
  told = weft('requests', '--no-sync', '--store', directory(), traces);
  for (const host of HOSTS)
    servers.push(await serve(['--no-sync', '--name', 'shop', '--store', directory(), `${host}=${join(traces, host)}`]));
  for (const s of servers) // waits until its traces are open
    while (!(await s.ask('/experiments')).some(x => x.indexingStatus === 'COMPLETED'))
      await new Promise(done => { setTimeout(done, 50); });
  many = await coordinate(HOSTS.map((host, i) => `--server=${host}=${servers[i].url}`));
  world = { url: many.url, browser: await browse() };
});
after(async () => {
  await world?.browser.close();
  await many?.stop();
  for (const s of servers) await s.stop();
});

const text = ns => {
  const [unit, name] = ns >= 1e9 ? [1e9, 's'] : ns >= 1e6 ? [1e6, 'ms'] : ns >= 1e3 ? [1e3, 'µs'] : [1, 'ns'],
    x = Number(ns) / unit;
  return `${x.toFixed(unit === 1 ? 0 : x >= 100 ? 1 : x >= 10 ? 2 : 3)} ${name}`;
};
const party = p => `${p.host}:${p.tid} ${p.comm}`;

test('requests of all servers, groups with one numbering, the bars of all, from a line to its path', async () => {
  const { page, trouble } = await visit(world, { height: 720 }), list = name => page.getByRole('table', { name }),
    lines = name => list(name).locator('tbody tr').evaluateAll(rows => rows.map(r =>
      [...r.cells].map(c => c.innerText.trim())));
  await page.waitForFunction(() => window.weft?.home?.isShown);
  await page.waitForFunction(() => ![...document.querySelectorAll('.start .card:not([hidden])')]
    .some(c => c.querySelector('.card-body[hidden]')));
  await settled(page);
  const requests = await lines('Slowest requests'), groups = await lines('Groups of like requests');
  assert.deepEqual(requests.map(c => c.slice(0, 2)), told.requests.map(r =>
    [text(r.end - r.begin), `${party(r.client)} → ${party(r)}`]));
  assert.deepEqual(groups.map(c => c[0]), groups.map((_, i) => String(i + 1)));
  assert.deepEqual([...new Set(groups.map(c => c[1]))].sort(), ['db tier', 'web tier']);
  for (const [number, server, count] of groups) {
    const members = requests.filter(c => c[3] === number);
    assert.equal(members.length, Number(count));
    assert.ok(members.every(c => c[1].endsWith(`:${server.startsWith('db') ? 204 : 196} tier`)));
  }
  const bars = await page.locator('.histogram > div').evaluateAll(all => all.map(b =>
    Number(/: (\d+) request/.exec(b.title)[1])));
  assert.equal(bars.reduce((sum, n) => sum + n, 0), told.requests.length);

  await list('Slowest requests').locator('tbody tr').nth(3).dblclick();
  await page.locator('.request-bar').filter({ hasText: `Request 4 of ${told.requests.length}` }).waitFor();
  await page.waitForFunction(() => weft.path?.pane.done);
  await page.getByRole('button', { name: 'Requests, machines and threads (h)' }).press('Enter');
  const last = groups.at(-1)[0], at = requests.findIndex(c => c[3] === last);
  await list('Groups of like requests').locator('tbody tr').last().dblclick();
  await page.locator('.request-bar').filter({ hasText: `Request ${at + 1} of` }).waitFor();
  assert.deepEqual(trouble, []);
  await page.close();
});
