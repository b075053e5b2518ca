// Containers (pods) of two machines in the page: grouped by the Rows menu, found by `pod:`; as `weft threads` tells.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browse, open, settled } from '../browser.mjs';
import { directory, example, serve, weft } from './weft.mjs';

let store, server, world, threads;
before(async () => {
  const traces = example('pods');
  store = directory();
  threads = weft('threads', '--all', '--store', store, traces).filter(t => t.tid);
  server = await serve(['--store', store, traces]);
  world = { url: server.url, browser: await browse() };
});
after(async () => { await world?.browser.close(); await server?.stop(); });

const rows = page => page.evaluate(() => weft.panels.find(p => p.output.name === 'Thread Status').model.rows.map(n => {
  const path = [];
  for (let p = n.parent; p; p = p.parent) path.unshift(p.entry.labels[0]);
  return { path, name: n.entry.labels[0], match: n.match, tid: n.entry.metadata.TID?.[0] ?? null };
}));
/** The rows once there are so many of containers. */
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
