// SPDX-License-Identifier: MIT
// Rows with something in view, and those of chosen machines, in the page against the recorded events.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browse, open, settled } from '../browser.mjs';
import { directory, events, example, request, serve } from './weft.mjs';

let traces, store, server, world;
before(async () => {
  traces = example();
  store = directory();
  server = await serve(['--store', store, traces]);
  world = { url: server.url, browser: await browse() };
});
after(async () => { await world?.browser.close(); await server?.stop(); });

const choose = async (page, name) => {
  await page.getByRole('button', { name: /^Rows:/ }).click();
  await page.getByRole('menuitemcheckbox', { name }).click();
  await settled(page);
};
const threads = page => page.evaluate(() => weft.panels.find(p => p.output.name === 'Thread Status').model.rows
  .filter(n => n.match && n.entry.hasData).map(n => `${n.entry.hostId} ${n.entry.metadata.TID[0]}`));

test('only those with something in view: who ran or was woken during a request; of chosen machines alone', async () => {
  const { page, trouble } = await open(world, { width: 1280, height: 720 }), [begin, end] = request(traces, store, 9),
    all = await threads(page);
  await page.evaluate(([a, b]) => weft.session.axis.show(BigInt(a), BigInt(b)), [String(begin), String(end)]);
  await choose(page, 'only those with something in view');
  const shown = new Set(await threads(page)), span = [String(begin), String(end)];
  const switches = events(traces, '--names', 'sched_switch', '--begin', span[0], '--end', span[1]),
    ran = new Set(switches.flatMap(e => [`${e.host} ${e.fields.prev_tid}`, `${e.host} ${e.fields.next_tid}`])
      .filter(t => !/ 0$/.test(t)));
  assert.ok(ran.size > 3 && all.length > 200, `${ran.size} of ${all.length}`);
  for (const t of ran) assert.ok(shown.has(t), `${t} ran`);
  // Rest: threads above one that ran, those that were only woken, and those that ran throughout.
  const woken = new Set(events(traces, '--names', 'sched_wak*', '--begin', span[0], '--end', span[1])
    .map(e => `${e.host} ${e.fields.tid}`));
  const above = new Set(await page.evaluate(() => weft.panels.find(p => p.output.name === 'Thread Status').model.rows
    .filter(n => n.children.some(c => !c.hidden)).map(n => `${n.entry.hostId} ${n.entry.metadata.TID?.[0]}`)));
  const rest = [...shown].filter(t => !ran.has(t) && !woken.has(t) && !above.has(t));
  assert.ok(rest.length <= 5, `no more than there are CPUs: ${rest}`);
  assert.ok(shown.size < all.length / 2, `${shown.size} of ${all.length}`);

  await choose(page, 'web');
  assert.deepEqual(new Set(await threads(page)), new Set([...shown].filter(t => t.startsWith('web '))));
  await choose(page, 'only those with something in view');
  assert.deepEqual(await threads(page), all.filter(t => t.startsWith('web ')));
  assert.deepEqual(trouble, []);
  await page.close();
});
