// SPDX-License-Identifier: MIT
// Opening: choices offered by a server, progress of reading, unreadable traces.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, settled, start, visit } from './browser.mjs';

const path = page => page.getByLabel('Path of a trace on the server'), upload = page =>
  page.getByLabel('Trace to upload: tar or zip');
const picker = async page => {
  await page.getByRole('button', { name: 'Open another experiment' }).click();
  await settled(page);
};

test('only what the server allows is offered; what lies below its root is listed, level by level', async () => {
  const below = { '': ['lttng', 'one'], lttng: ['host<b>'] }, trouble = [];
  for (const [opens, offered] of [[{ paths: false, uploads: false }, [false, false]],
    [{ paths: false, uploads: true }, [false, true]], [undefined, [true, true]]]) {
    const world = await start({ threads: 30, opens }), { page } = await open(world);
    await picker(page);
    assert.deepEqual([await path(page).isVisible(), await upload(page).isVisible()], offered, JSON.stringify(opens));
    assert.ok(!world.mock.log.some(l => /below$/.test(l.path)));
    await world.stop();
  }
  const world = await start({ threads: 30, opens: { paths: true, uploads: false }, belowOf: p => ({
    root: '/data/traces', path: p, more: p !== '',
    traces: below[p].map(name => ({ name, path: `/data/traces/${p ? `${p}/` : ''}${name}`,
      directory: name === 'lttng' })) }) }), { page } = await open(world);
  page.on('pageerror', e => trouble.push(String(e)));
  await picker(page);
  assert.deepEqual([await path(page).isVisible(), await upload(page).isVisible()], [true, false]);
  await page.getByRole('heading', { name: 'Traces below /data/traces' }).waitFor();
  const list = () => page.locator('.picker-below li .link').allInnerTexts();
  assert.deepEqual(await list(), ['lttng', 'one']);
  await page.getByRole('button', { name: 'What lies in lttng' }).click();
  await page.getByRole('heading', { name: 'Traces below /data/traces/lttng' }).waitFor();
  assert.deepEqual(await list(), ['host<b>']);
  await page.getByText('There are more').waitFor();
  await page.getByRole('button', { name: 'The directory above' }).click();
  await page.getByRole('heading', { name: 'Traces below /data/traces', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Open /data/traces/one' }).click();
  await page.locator('.picker-message.bad').waitFor(); // missing on the made-up server
  assert.deepEqual(world.mock.log.findLast(l => l.method === 'POST').body.parameters.uri, '/data/traces/one');
  assert.deepEqual(trouble, []);
  await world.stop();
});

test('the nodes of a cluster: what each is doing, and what answers lack; of other servers nobody asks', async () => {
  const plain = await start({ threads: 30 }), { page: other } = await open(plain);
  await picker(other);
  assert.ok(!plain.mock.log.some(l => /cluster$/.test(l.path)));
  await plain.stop();
  const disk = { path: '/data', free_bytes: 2 ** 31, bytes: 2 ** 33 }, missing = [],
    web = { node: 'web', state: 'open', text: '', keeper: true, hosts: 2, unrelated: 1, release: '9.8', fetches: true,
      clock_ahead_ns: 0, clock_error_ns: 1500, disk },
    db = { node: 'd<b>', state: 'away', text: 'it does not answer', keeper: false, hosts: 1, unrelated: 0 },
    world = await start({ threads: 30, cluster: () => ({ nodes: [web, db], missing }) });
  missing.push({ node: 'd<b>', kind: 'opening', text: 'node d<b> indexes its traces' });
  const { page, trouble } = await open(world);
  await picker(page);
  await page.getByRole('heading', { name: 'Nodes of the cluster' }).waitFor();
  const lines = (await page.locator('.picker-nodes li').allInnerTexts()).map(t => t.replace(/\s+/g, ' '));
  assert.deepEqual(lines, ['web weft 9.8 · 2 machines, 1 on its own clock · fetches a trace · keeps the clocks · '
    + '2 GiB free of 8 GiB · clock 0 ± 1.500 µs open', 'd<b> 1 machine · it does not answer away']);
  assert.deepEqual(await page.locator('.picker-nodes .bad').allInnerTexts(),
    ['away', 'Missing in answers: node d<b> indexes its traces']);
  // Automatic retry.
  Object.assign(db, { state: 'open', text: '' });
  missing.pop();
  await page.locator('.picker-nodes li', { hasText: 'd<b>' }).getByText('open').waitFor();
  assert.equal(await page.locator('.picker-nodes .bad').count(), 0);
  assert.deepEqual(trouble, []);
  await world.stop();
});

test('while traces are read: how much of them, and how long it will take; then the views', async () => {
  const world = await start({ threads: 30, grows: true }), { now } = world.mock, read = bytes =>
    Object.assign(now, { indexed: { bytes, of: 100e6 } });
  Object.assign(read(10e6), { version: 0, indexingStatus: 'RUNNING' });
  const { page, trouble } = await visit(world), bar = page.getByRole('progressbar', { name: 'Read so far' });
  await bar.waitFor();
  assert.equal(await bar.getAttribute('aria-valuenow'), '10');
  assert.match(await page.locator('.opening').innerText(), /10 % of 100\.0 MB/);
  const began = Date.now();
  await page.waitForTimeout(1700);
  read(40e6);
  const rest = page.locator('.opening').filter({ hasText: /about \d+ s left/ });
  await rest.waitFor();
  // Speed at most that since the first look: 30 MB in the time passed, 60 are left.
  const seconds = Number(/about (\d+) s/.exec(await rest.innerText())[1]), passed = (Date.now() - began) / 1000;
  assert.ok(seconds >= 2 && seconds <= passed * 2 + 2, `${seconds} s after ${passed} s`);
  assert.equal(await bar.getAttribute('aria-valuenow'), '40');
  Object.assign(now, { version: 1, indexingStatus: 'COMPLETED', indexed: undefined });
  await page.waitForFunction(() => window.weft?.panels?.[0]?.data?.rows.size > 3);
  assert.equal(await page.locator('.opening').count(), 0);
  assert.deepEqual(trouble, []);
  await world.stop();
});

test('what cannot be read is said large, with the reason and ways on', async () => {
  const world = await start({ threads: 30 }), { now } = world.mock;
  Object.assign(now, { indexingStatus: 'CLOSED', why: 'x/metadata: line 1: byte 0x15 has no meaning here' });
  const { page, trouble } = await visit(world), sheet = page.locator('.opening.broken');
  await sheet.getByRole('heading', { name: 'three-tier cannot be read' }).waitFor();
  await sheet.getByText(now.why).waitFor();
  assert.ok(await sheet.locator('h2').evaluate(e => parseFloat(getComputedStyle(e).fontSize)) >= 20);
  await sheet.getByRole('button', { name: 'Open another experiment' }).click();
  await page.locator('.picker').waitFor();
  await page.keyboard.press('Escape');
  Object.assign(now, { indexingStatus: 'COMPLETED', why: undefined,
    hosts: { complete: 2, lacking: [{ host: 'db', status: 'FAILED', statusMessage: 'the text ends' }] } });
  await sheet.getByRole('button', { name: 'Ask the server again' }).click();
  await page.locator('.notice').filter({ hasText: 'Not everything could be read: db is missing: the text ends' })
    .waitFor();
  await settled(page);
  await page.locator('.notice').getByRole('button', { name: 'Dismiss' }).click();
  await page.evaluate(() => weft.session.axis.zoom(0.5, 300));
  await settled(page);
  assert.ok(!await page.locator('.notice').isVisible(), 'said once');
  assert.deepEqual(trouble, []);
  await world.stop();
});
