// SPDX-License-Identifier: MIT
// Problems of a trace: a sign at the top leads to the table with those of `weft index`; none without problems.
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browse, open, settled, view } from '../browser.mjs';
import { directory, example, lines, notes, serve, weft } from './weft.mjs';

const SIGN = '.badge.notes', TABLE = '.panel[data-output="weft.notes"]';
let browser;
before(async () => { browser = await browse(); });
after(() => browser?.close());

test('damaged traces: the sign counts, a click opens the table, another one brings it into sight', async () => {
  const traces = example(), cut = join(traces, 'db/kernel/ch_1'),
    packet = openSync(join(traces, 'web/kernel/ch_0'), 'r+');
  truncateSync(cut, statSync(cut).size - 100);
  writeSync(packet, Buffer.alloc(4), 0, 4, 0);
  closeSync(packet);
  const told = notes('index', '--store', directory(), traces);
  assert.ok(told.length >= 2, told.join('\n'));
  const server = await serve(['--store', directory(), traces]),
    { page, trouble } = await open({ url: server.url, browser });
  await page.locator(SIGN).waitFor();
  // Packets of web are missing, so nothing relates the machines: the verbs show that as part of their answers.
  const apart = weft('sync', '--store', directory(), traces).hosts.filter(h => !h.pieces.length).length,
    all = told.length + apart;
  assert.equal(apart, 2);
  assert.equal(await page.locator(SIGN).innerText(), `${all} notes`);
  assert.equal(await page.locator('.badge').first().innerText(), 'clock unknown');
  assert.equal(await page.locator(TABLE).count(), 0);
  await page.locator(SIGN).click();
  const rows = page.locator(`${TABLE} .vt-row:not([hidden]):not(.waiting)`);
  await rows.filter({ hasText: 'cut off by the end of the file' }).waitFor();
  assert.equal(await rows.count(), all);
  const seen = (await rows.allInnerTexts()).map(t => t.replace(/\s+/g, ' '));
  for (const line of told) {
    const [host, file, ...what] = line.split(': ');
    assert.ok(seen.some(t => t.includes(host) && t.includes(file)
      && t.includes(what.join(': '))), `${line}\n${seen.join('\n')}`);
  }
  await page.evaluate(() => { document.querySelector('.stack').scrollTop = 0; });
  await page.locator(SIGN).click();
  await settled(page);
  assert.equal(await page.locator(TABLE).count(), 1);
  const box = await page.locator(TABLE).boundingBox(), stack = await page.locator('.stack').boundingBox();
  assert.ok(box.y < stack.y + stack.height, 'in sight');
  assert.deepEqual(trouble, []);
  await page.close();
  await server.stop();
});

test('a sign names the machines that are missing, or in parts, and why; whole again, it goes', async () => {
  const traces = example(), cut = join(traces, 'db/kernel/ch_1'), whole = readFileSync(cut),
    web = join(traces, 'web/kernel/metadata'), described = readFileSync(web);
  truncateSync(cut, statSync(cut).size - 100);
  writeFileSync(web, 'no metadata');
  const server = await serve(['--store', directory(), traces]),
    { page, trouble } = await open({ url: server.url, browser }), sign = page.locator('.badge.machines');
  await sign.waitFor();
  const [uuid, output] = await page.evaluate(() => [weft.session.uuid, weft.panels[0].output.id]);
  const { lacking } = (await server.ask(`/experiments/${uuid}/outputs/timeGraph/${output}/tree`,
    { parameters: {} })).hosts;
  assert.deepEqual(lacking.map(l => l.status).sort(), ['FAILED', 'PARTIAL']);
  const gone = lacking.find(l => l.status === 'FAILED'), part = lacking.find(l => l.status === 'PARTIAL');
  assert.ok(gone.host.includes('web'), gone.host);
  assert.equal(part.host, 'db');
  assert.equal(await sign.innerText(), `missing: ${gone.host.split('/').pop()} · partial: db`);
  await sign.click();
  const why = await page.locator('.menu').innerText();
  for (const l of lacking)
    assert.ok(why.includes(l.host) && why.includes(l.statusMessage), `${why}\n${l.statusMessage}`);
  await page.getByRole('menuitem', { name: 'All notes' }).click();
  await page.locator(TABLE).waitFor();
  // Repaired: the server opens the trace, and the page takes it.
  writeFileSync(web, described);
  writeFileSync(cut, whole);
  await page.locator('.fresh').click({ timeout: 60000 });
  await sign.waitFor({ state: 'hidden' });
  await settled(page);
  assert.ok(!await sign.isVisible());
  assert.deepEqual(trouble, []);
  await page.close();
  await server.stop();
});

test('sound traces: no sign', async () => {
  const server = await serve(['--store', directory(), example()]),
    { page, trouble } = await open({ url: server.url, browser });
  await page.locator('.badge').filter({ hasText: 'clock ±' }).waitFor();
  assert.ok(!await page.locator(SIGN).isVisible());
  assert.ok(!await page.locator('.badge.machines').isVisible());
  assert.deepEqual(trouble, []);
  await page.close();
  await server.stop();
});

for (const who of ['this page', 'somebody else'])
  test(`a file is cut off while the page shows it, and ${who} comes upon it: opened again by itself, where one was, `
    + `with what is left and a sign`, async () => {
  // Frozen: else the server itself may be the first to detect it.
  const traces = example(), server = await serve(['--frozen', '--store', directory(), traces]),
    { page, trouble } = await open({ url: server.url, browser });
  await page.evaluate(() => { const a = weft.session.axis; a.show(a.min + 1_000_000_000n, a.min + 1_500_000_000n); });
  await settled(page);
  const there = await view(page), stream = join(traces, 'web/kernel/ch_0'),
    total = await page.locator('.vt-count').first().innerText();
  truncateSync(stream, statSync(stream).size / 2);
  if (who !== 'this page') {
    const experiment = `/experiments/${await page.evaluate(() => weft.session.uuid)}`,
      table = `${experiment}/outputs/table/${await page.evaluate(() => weft.events.output.id)}/lines`;
    assert.match((await server.ask(table, { parameters: { requested_table_index: 0, requested_table_count: 5 } }))
      .title, /cut off/);
    for (let ms = 0; (await server.ask(experiment)).indexingStatus !== 'COMPLETED'; ms += 50) {
      assert.ok(ms < 120000);
      await page.waitForTimeout(50);
    }
  }
  await page.evaluate(() => { const a = weft.session.axis; a.select(a.min + 1_100_000_000n); });
  await page.locator('.notice').filter({ hasText: 'opened again' }).waitFor();
  await page.locator(SIGN).waitFor();
  await settled(page);
  const left = lines(traces, '--store', directory()).filter(e => e.name).length;
  assert.notEqual(total, await page.locator('.vt-count').first().innerText());
  assert.equal((await page.locator('.vt-count').first().innerText()).replace(/\D/g, ''), String(left));
  const now = await view(page);
  assert.deepEqual([now.begin, now.end], [there.begin, there.end]);
  // Rows and their numbers are the current ones.
  const told = (await server.ask(`/experiments/${await page.evaluate(() => weft.session.uuid)}`
    + `/outputs/timeGraph/${await page.evaluate(() => weft.panels[0].output.id)}/tree`, { parameters: {} }))
    .model.entries;
  assert.deepEqual(await page.evaluate(() => [...weft.panels[0].model.nodes.values()].map(n =>
    [n.entry.id, n.entry.labels[0]]).sort((a, b) => a[0] - b[0])),
    told.map(e => [e.id, e.labels[0]]).sort((a, b) => a[0] - b[0]));
  assert.deepEqual(trouble, []);
  await page.close();
  await server.stop();
});
