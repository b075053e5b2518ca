// SPDX-License-Identifier: MIT
// Containers (pods) of two machines in the page: grouped by the Rows menu, found by `pod:`; as in `weft threads`.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browse, open, settled } from '../browser.mjs';
import { directory, example, serve, weft } from './weft.mjs';

let traces, store, server, world, threads;
before(async () => {
  traces = example('pods');
  store = directory();
  threads = weft('threads', '--all', '--store', store, traces).filter(t => t.tid);
  server = await serve(['--store', store, traces]);
  world = { url: server.url, browser: await browse() };
});
after(async () => { await world?.browser.close(); await server?.stop(); });

const PATH = '.panel[data-output*="CriticalPath"]';
const rows = page => page.evaluate(() => weft.panels.find(p => p.output.name === 'Thread Status').model.rows.map(n => {
  const path = [];
  for (let p = n.parent; p; p = p.parent) path.unshift(p.entry.labels[0]);
  return { path, name: n.entry.labels[0], match: n.match, tid: n.entry.metadata.TID?.[0] ?? null };
}));
/** Returns the rows once there are so many of containers. */
async function grouped(page, n) {
  await page.waitForFunction(want => window.weft?.panels?.find(p => p.output.name === 'Thread Status')?.model.rows
    .filter(r => r.depth === 1 && !r.entry.hasData).length === want, n);
  await settled(page);
  return rows(page);
}

test('threads stand below their containers where the menu says so, and the address keeps it', async () => {
  const { page, trouble } = await open(world, { width: 1280, height: 720 });
  await page.getByRole('button', { name: /^Rows:/ }).click();
  await page.getByRole('menuitemcheckbox', { name: 'below their containers (pods)' }).click();
  const told = [...new Set(threads.filter(t => t.container).map(t => `${t.host} ${t.container}`))].sort(),
    seen = await grouped(page, told.length);
  assert.deepEqual(seen.filter(r => r.tid === null && r.path.length).map(r => `${r.path[0]} ${r.name}`).sort(), told);
  const at = new Set(seen.map(r => `${r.path[0]} ${r.path[1]} ${r.tid}`));
  for (const t of threads.filter(x => x.container))
    assert.ok(at.has(`${t.host} ${t.container} ${t.tid}`), `${t.host} ${t.container} ${t.tid}`);
  await page.waitForFunction(() => location.hash.includes('by=pod'));
  await page.reload();
  assert.equal((await grouped(page, told.length)).length, seen.length);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('a path stands below them, too, with what each had of it', async () => {
  const told = weft('critpath', '--store', store, '--thread', 'node-a:269', '--by', 'container', traces)
    .filter(x => x.container).map(x => `${x.host} ${x.container} ${x.duration}`).sort();
  assert.ok(told.length >= 4);
  const { page, trouble } = await open(world, { width: 1280, height: 720 });
  await page.evaluate(() => {
    const { entry } = weft.panels.find(p => p.output.name === 'Thread Status').model.rows
      .find(n => n.entry.hostId === 'node-a' && Number(n.entry.metadata.TID?.[0]) === 269);
    weft.session.pathWanted.emit({ thread: { host: 'node-a', tid: 269, name: entry.labels[0], id: entry.id } });
  });
  await page.waitForFunction(() => weft.path?.pane.done);
  await page.getByRole('button', { name: /^Rows:/ }).click();
  await page.getByRole('menuitemcheckbox', { name: 'below their containers (pods)' }).click();
  const shown = await page.waitForFunction(path => {
    const of = weft.panels.find(p => p.root === document.querySelector(path)).model.rows
      .filter(r => r.depth === 1 && !r.entry.hasData);
    return of.length && of.map(r =>
      ({ line: `${r.parent.entry.labels[0]} ${r.entry.labels[0]} ${r.entry.metadata.sum[0]}`, n: r.children.length }));
  }, PATH).then(x => x.jsonValue());
  assert.deepEqual(shown.map(x => x.line).sort(), told);
  assert.ok(shown.every(x => x.n > 0));
  assert.deepEqual(trouble, []);
  await page.close();
});

test('pod: finds the threads of containers', async () => {
  const { page, trouble } = await open(world, { width: 1280, height: 720 });
  await page.evaluate(() => weft.session.setSearch('pod:proxy'));
  await settled(page);
  const found = (await rows(page)).filter(r => r.match).map(r => `${r.path[0]} ${r.tid}`);
  assert.deepEqual(found.sort(), threads.filter(t => t.container === 'proxy').map(t => `${t.host} ${t.tid}`).sort());
  assert.ok(found.length > 5);
  assert.deepEqual(trouble, []);
  await page.close();
});
