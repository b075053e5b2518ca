// SPDX-License-Identifier: MIT
// The page on a coordinator of a server per machine, as on one server; one of them is killed, and comes back.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browse, open, settled, visit } from '../browser.mjs';
import { coordinate, directory, example, serve, weft } from './weft.mjs';

const HOSTS = ['client', 'web', 'db'];
let traces, stores, servers, many, world;
const serveHost = (h, port) => serve(['--no-sync', '--name', 'shop', '--store', stores[h], `${h}=${join(traces, h)}`],
  port);
before(async () => {
  traces = example();
  stores = Object.fromEntries(HOSTS.map(h => [h, directory()]));
  servers = {};
  for (const h of HOSTS) servers[h] = await serveHost(h);
  many = await coordinate(HOSTS.map(h => `--server=${h}=${servers[h].url}`));
  world = { url: many.url, browser: await browse() };
  for (;;) { // loop until its servers have opened their traces
    const [x] = await many.ask('/experiments');
    if (x?.traces.length === 3 && (await many.ask(`/experiments/${x.UUID}`)).indexingStatus === 'COMPLETED') break;
    await new Promise(done => { setTimeout(done, 100); });
  }
});
after(async () => {
  await world?.browser.close();
  await many?.stop();
  for (const s of Object.values(servers ?? {})) await s.stop().catch(() => { /* ignores the killed one */ });
});

async function start(scheme = 'light') {
  const { page, trouble } = await visit(world, { width: 1300, height: 800, scheme });
  await page.waitForFunction(() => window.weft?.home?.isShown);
  await page.waitForFunction(() => ![...document.querySelectorAll('.start .card:not([hidden])')]
    .some(c => c.querySelector('.card-body[hidden]')));
  await settled(page);
  return { page, trouble };
}
const machines = page => page.getByRole('table', { name: 'Machines' }).locator('tbody tr').evaluateAll(rows =>
  rows.map(r => [r.cells[0].innerText.trim(), r.className, r.cells[1].innerText.trim()]));
const until = async (what, f) => {
  for (let i = 0; !await f(); i++) {
    assert.ok(i < 600, what);
    await new Promise(done => { setTimeout(done, 100); });
  }
};

test('Start shows the machines of all servers, and leads to the sentence of the machine\'s own server', async () => {
  const { page, trouble } = await start(), told = weft('requests', '--store', stores.db, `db=${join(traces, 'db')}`);
  assert.deepEqual((await machines(page)).map(m => m[0]).sort(), [...HOSTS].sort());
  assert.ok((await machines(page)).every(m => !m[1] && m[2].endsWith('%')));
  const slowest = page.getByRole('table', { name: 'Slowest requests' }).locator('tbody tr')
    .filter({ hasText: 'db:204' }).first();
  await slowest.focus();
  await slowest.press('Enter');
  const sentence = page.locator('.panel[data-output*="CriticalPath"] .sentence p');
  await sentence.filter({ hasText: 'ms: ' }).waitFor();
  await page.waitForFunction(() => weft.path.pane.done);
  const [first] = told.requests;
  assert.equal(await sentence.innerText(), weft('critpath', '--store', stores.db, '--thread', `db:${first.tid}`,
    '--begin', String(first.begin), '--end', String(first.end), '--request', `db=${join(traces, 'db')}`).sentence);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('paths of threads of two servers stand beside each other, each as its own server tells it', async () => {
  const told = ['web', 'db'].map(h => {
    const trace = `${h}=${join(traces, h)}`, [r] = weft('requests', '--store', stores[h], trace).requests;
    return weft('critpath', '--store', stores[h], '--thread', `${h}:${r.tid}`, '--begin', String(r.begin), '--end',
      String(r.end), trace);
  });
  const wanted = told.map(({ query }) => [query.host, query.tid, String(query.begin), String(query.end)]);
  const { page, trouble } = await open(world, { width: 1280, height: 720 });
  await page.evaluate(([host, tid, x, y]) => weft.session.pathWanted.emit({ thread: { host, tid, name: 'tier' },
    begin: BigInt(x), end: BigInt(y) }), wanted[0]);
  await page.waitForFunction(() => weft.path?.pane.done);
  await page.evaluate(([host, tid, x, y]) => weft.comparer.ask({ thread: { host, tid, name: 'tier' },
    begin: BigInt(x), end: BigInt(y) }), wanted[1]);
  await page.waitForFunction(() => weft.comparer.now?.done);
  await settled(page);
  const drawn = await page.evaluate(() => weft.comparer.now.sides.map(w => w.segments.map(s =>
    [s.begin, s.end, s.host, s.tid ?? -1, s.kind.replace(/ /g, '-')])));
  told.forEach(({ query, segments }, i) => assert.deepEqual(drawn[i], segments.map(s =>
    [Number(BigInt(s.begin) - BigInt(query.begin)), Number(BigInt(s.end) - BigInt(query.begin)), s.host, s.tid,
      s.state])));
  const parts = await page.evaluate(() => weft.comparer.now.parts);
  told.forEach(({ totals }, i) => {
    const sums = {}, shown = {};
    for (const t of totals) sums[`${t.host} ${t.state}`] = (sums[`${t.host} ${t.state}`] ?? 0) + Number(t.duration);
    for (const p of parts.filter(q => q['ab'[i]]))
      shown[`${p.host} ${p.state}`] = (shown[`${p.host} ${p.state}`] ?? 0) + p['ab'[i]];
    assert.deepEqual(shown, sums);
  });
  assert.match(await page.locator('.comparison .sentence p').innerText(), /longer|shorter|as long/);
  assert.equal(await page.locator('.comparison .sentence em').innerText(),
    'a: as web alone tells it; b: as db alone tells it');
  assert.deepEqual(trouble, []);
  await page.close();
});

test('a server that is away is drawn as away, with the reason; whose traces are its is told; it is back', async () => {
  const port = Number(new URL(servers.web.url).port);
  await servers.web.kill();
  await until('web is away', async () => (await many.ask('/servers')).some(s => s.status === 'AWAY'));
  let { page, trouble } = await start();
  const [web, ...others] = await machines(page);
  assert.deepEqual(web, ['web', 'wrong', 'away']);
  assert.deepEqual(others.map(m => [m[0], m[1]]).sort(), [['client', ''], ['db', '']]);
  await page.getByText('2, and 1 of which nothing is there').waitFor();
  const line = page.getByRole('table', { name: 'Machines' }).locator('tbody tr').first();
  assert.equal(await line.getAttribute('title'), 'nobody answers there');
  await line.focus();
  await line.press('Enter');
  await page.getByText('web: nobody answers there').first().waitFor();
  assert.match(await page.locator('.badge.machines').innerText(), /missing: web/);
  // Sheet to open traces, with the server of each.
  await page.locator('.experiment').focus();
  await page.keyboard.press('Enter');
  const listed = page.locator('li', { has: page.locator('input[type=checkbox]') });
  await listed.filter({ hasText: 'web: ' }).first().waitFor();
  assert.deepEqual((await listed.evaluateAll(all => all.map(l => [l.querySelector('.path').innerText,
    !!l.querySelector('.badge.bad')]))).sort(), HOSTS.map(h => [`${h}: ${join(traces, h)}`, h === 'web']).sort());
  await page.waitForFunction(() => document.querySelector('input[type=file]')?.closest('[hidden]'));
  assert.deepEqual(trouble, []);
  await page.close();
  servers.web = await serveHost('web', port);
  await until('web is back', async () => (await many.ask('/servers')).every(s => s.status === 'UP'));
  const [x] = await many.ask('/experiments');
  await until('with its trace', async () => (await many.ask(`/experiments/${x.UUID}`)).traces.length === 3);
  ({ page, trouble } = await start());
  assert.ok((await machines(page)).every(m => !m[1]));
  assert.equal((await machines(page)).length, 3);
  await page.close();
});
