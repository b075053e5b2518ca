// SPDX-License-Identifier: MIT
// Times by the clock of one machine or another: times printed by the verbs are found at the same instant.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browse, drawn, open, settled, view } from '../browser.mjs';
import { directory, events, example, lines, serve, weft } from './weft.mjs';

let browser, traces, server;
const store = directory();
before(async () => {
  browser = await browse();
  traces = example();
  server = await serve(['--store', store, traces]);
});
after(async () => { await browser?.close(); await server?.stop(); });

const near = (a, b) => { const d = BigInt(a) - BigInt(b); return d >= -2n && d <= 2n; };
async function go(page, text) {
  const field = page.getByLabel('Go to time');
  await field.fill(text);
  await field.press('Enter');
  await drawn(page);
  return view(page);
}
async function timesOf(page, host) {
  await page.getByRole('button', { name: /^times: / }).click();
  await page.getByRole('menuitemcheckbox', { name: new RegExp(`^(✓)?${host}`) }).click();
  await page.getByRole('button', { name: `times: ${host}` }).waitFor();
  await settled(page);
}

test('a time that a verb printed by db’s clock, and one by the reference, is the same instant', async () => {
  const { page, trouble } = await open({ url: server.url, browser });
  const { reference } = weft('sync', '--store', store, traces), own = lines(traces, '--names', 'sched_switch')
    .filter(e => e.host === 'db'), by = events(traces, '--store', store, '--names', 'sched_switch')
    .filter(e => e.host === 'db');
  assert.notEqual(reference, 'db');
  assert.equal(own.length, by.length);
  await page.getByRole('button', { name: `times: ${reference}` }).waitFor();
  for (const i of [0, own.length >> 1, own.length - 1]) {
    await timesOf(page, 'db');
    const pasted = String(own[i].ts), there = await go(page, pasted);
    assert.ok(near(there.cursor, by[i].ts), `${there.cursor} ${by[i].ts}`);
    // Text as it was typed; the event there is db's.
    const wanted = new Date(Number(BigInt(own[i].ts) / 1000000n)).toISOString().slice(11, 22);
    await page.getByRole('button', { name: /^Local/ }).waitFor();
    assert.ok((await page.getByLabel('Go to time').inputValue()).startsWith(wanted), wanted);
    await timesOf(page, reference);
    assert.equal((await view(page)).cursor, there.cursor);
    assert.ok(near((await go(page, String(by[i].ts))).cursor, there.cursor));
  }
  // Tables show times by the selected clock.
  await timesOf(page, 'db');
  const e = own[own.length >> 1];
  await go(page, `${e.ts}`);
  const text = new Date(Number(BigInt(e.ts) / 1000000n)).toISOString().slice(11, 23);
  await page.locator('.vt-row').filter({ hasText: text }).first().waitFor();
  assert.deepEqual(trouble, []);
  await page.close();
});

test('a range goes there and zooms; what lies beside the trace is refused', async () => {
  const { page, trouble } = await open({ url: server.url, browser });
  const there = events(traces, '--store', store), first = BigInt(there[0].ts), t = first + 1000000000n;
  let now = await go(page, `${t} +50ms`);
  assert.deepEqual([now.begin, now.end, now.anchor, now.cursor], [t, t + 50000000n, t, t + 50000000n].map(String));
  now = await go(page, '+1.5s .. +1.6s');
  assert.deepEqual([now.begin, now.end].map(x => BigInt(x) - first), [1500000000n, 1600000000n]);
  await page.keyboard.press('Backspace');
  assert.equal((await view(page)).begin, String(t));
  await page.keyboard.press('g');
  await page.keyboard.type('1000000000000000000');
  await page.keyboard.press('Enter');
  await page.locator('.tip', { hasText: 'Nothing was recorded then' }).waitFor();
  assert.equal((await view(page)).begin, String(t));
  // Numbers by db's clock mean another interval.
  await page.keyboard.press('Escape');
  await timesOf(page, 'db');
  const maps = weft('sync', '--store', store, traces), db = maps.hosts.find(h => h.host === 'db').pieces,
    at = db[db.length >> 1].begin;
  now = await go(page, `${at} +20ms`);
  const own = lines(traces), i = own.findIndex(e => e.host === 'db'
    && BigInt(e.ts) >= BigInt(at)), shift = BigInt(there.filter(e => e.host === 'db')[own.slice(0, i)
    .filter(e => e.host === 'db').length].ts) - BigInt(own[i].ts);
  const off = BigInt(now.begin) - BigInt(at) - shift; // drift over some µs
  assert.ok(off > -100000n && off < 100000n, String(off));
  assert.ok(Math.abs(now.span - 20e6) < 20000, String(now.span));
  assert.deepEqual(trouble, []);
  await page.close();
});

test('a link means the same instants on a server with another reference, by the clock that was shown', async () => {
  const one = await open({ url: server.url, browser }), { reference } = weft('sync', '--store', store, traces);
  await timesOf(one.page, 'client');
  const t = BigInt(events(traces, '--store', store)[0].ts) + 2000000000n;
  await one.page.evaluate(([a, b]) => {
    weft.session.axis.show(BigInt(a), BigInt(b));
    weft.session.axis.select(BigInt(a) + 1000n);
  }, [String(t), String(t + 1000000n)]);
  await settled(one.page);
  const shown = await one.page.getByLabel('Go to time').inputValue(),
    hash = await one.page.evaluate(() => location.hash);
  assert.match(hash, new RegExp(`ref=${reference}&clock=client`));
  await one.page.close();
  const other = await serve(['--store', store, '--reference', 'db', traces]);
  const two = await open({ url: other.url, browser }, { hash });
  await two.page.getByRole('button', { name: 'times: client' }).waitFor();
  await settled(two.page);
  const now = await view(two.page);
  assert.ok(Math.abs(now.span - 1e6) < 1000, String(now.span));
  assert.ok(BigInt(now.begin) - t > 100000n || t - BigInt(now.begin) > 100000n, 'other numbers');
  // Times by a third machine's clock agree within the errors stated by both servers.
  const ns = text => Number(text.split('.')[1].replace(/\D/g, '').padEnd(9, '0')),
    error = Math.max(...weft('sync', '--store', store, '--reference', 'db', traces).hosts
      .flatMap(h => h.pieces.map(p => Math.max(p.error_ns_begin, p.error_ns_end))));
  const apart = Math.abs(ns(await two.page.getByLabel('Go to time').inputValue()) - ns(shown));
  assert.ok(apart < 2 * error, `${apart} ${error}`);
  assert.deepEqual([...one.trouble, ...two.trouble], []);
  await two.page.close();
  await other.stop();
});
