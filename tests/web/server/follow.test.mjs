// SPDX-License-Identifier: MIT
// New data in the directory of an open experiment are shown by a page that follows it, and offered by one that does
// not.
import assert from 'node:assert/strict';
import { cpSync, readdirSync, renameSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browse, open, settled, view } from '../browser.mjs';
import { directory, example, serve, weft } from './weft.mjs';

let browser;
before(async () => { browser = await browse(); });
after(() => browser?.close());

const machines = page => page.evaluate(() => weft.panels[0].model.roots.map(n => n.entry.labels[0]).sort().join());
// Traces recorded from earlier on cause a complete reopening.
const becomes = (page, wanted) => page.waitForFunction(w =>
  weft.panels[0]?.model.roots.map(n => n.entry.labels[0]).sort().join() === w, wanted);

test('a machine more: shown at once by who follows, else when the sign is clicked', async () => {
  const traces = example(), aside = join(directory(), 'db'), served = directory();
  renameSync(join(traces, 'db'), aside);
  for (const name of ['client', 'web']) cpSync(join(traces, name), join(served, name), { recursive: true });
  const server = await serve(['--store', directory(), served]), one = await open({ url: server.url, browser }),
    other = await open({ url: server.url, browser });
  await one.page.locator('.follow').click();
  await other.page.evaluate(() => {
    const { axis } = weft.session;
    axis.show(axis.min + 1_000_000_000n, axis.min + 2_000_000_000n);
    axis.select(axis.min + 1_100_000_000n, axis.min + 1_200_000_000n);
  });
  await settled(other.page);
  const there = await view(other.page), was = weft('sync', '--store', directory(), served).reference;
  assert.deepEqual([await machines(one.page), await machines(other.page)], ['client,web', 'client,web']);
  cpSync(aside, join(served, 'db'), { recursive: true });
  await becomes(one.page, 'client,db,web');
  await other.page.locator('.fresh').waitFor();
  assert.equal(await machines(other.page), 'client,web');
  await other.page.locator('.fresh').click();
  await becomes(other.page, 'client,db,web');
  await other.page.locator('.fresh').waitFor({ state: 'hidden' });
  // Clock of the new machine: it may be the best known one; the same instants are shown, by that clock.
  const { pieces } = weft('sync', '--store', directory(), served).hosts.find(h => h.host === was), now =
    await view(other.page), scaled = text => {
    const [, sign, whole, part = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text);
    return BigInt(sign + whole + part.padEnd(24, '0').slice(0, 24));
  }, by = t => {
    const p = pieces.find(p => BigInt(t) <= BigInt(p.end)) ?? pieces.at(-1);
    return (scaled(p.drift) * BigInt(t) + scaled(p.offset_ns)) / 10n ** 24n;
  };
  for (const key of ['begin', 'end', 'anchor', 'cursor']) {
    const off = BigInt(now[key]) - by(there[key]);
    assert.ok(off >= -3n && off <= 3n, `${key}: ${now[key]}, not ${by(there[key])}`);
  }
  assert.deepEqual([...one.trouble, ...other.trouble], []);
  await one.page.close();
  await other.page.close();
  await server.stop();
});

test('a trace becomes shorter: the page comes upon it by itself, and says so', async () => {
  const traces = example(), server = await serve(['--store', directory(), traces]),
    { page, trouble } = await open({ url: server.url, browser });
  for (const host of ['web', 'db', 'client'])
    for (const name of readdirSync(join(traces, host, 'kernel')).filter(n => n.startsWith('ch_'))) {
      const stream = join(traces, host, 'kernel', name);
      truncateSync(stream, statSync(stream).size / 2);
    }
  await page.locator('.notice').filter({ hasText: 'opened again' }).waitFor();
  await page.waitForFunction(() => weft.panels.length && weft.panels[0].loaded);
  assert.deepEqual(trouble, []);
  await page.close();
  await server.stop();
});
