// What is wrong with a trace: a sign at the top leads to the table that tells, as `weft index` does; none where nothing is wrong.
import assert from 'node:assert/strict';
import { closeSync, openSync, statSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browse, open, settled } from '../browser.mjs';
import { directory, example, notes, serve, weft } from './weft.mjs';

const SIGN = '.badge.notes', TABLE = '.panel[data-output="weft.notes"]';
let browser;
before(async () => { browser = await browse(); });
after(() => browser?.close());

test('damaged traces: the sign counts, a click opens the table, another one brings it into sight', async () => {
  const traces = example(), cut = join(traces, 'db/kernel/ch_1'), packet = openSync(join(traces, 'web/kernel/ch_0'), 'r+');
  truncateSync(cut, statSync(cut).size - 100);
  writeSync(packet, Buffer.alloc(4), 0, 4, 0);
  closeSync(packet);
  const told = notes('index', '--store', directory(), traces);
  assert.ok(told.length >= 2, told.join('\n'));
  const server = await serve(['--store', directory(), traces]), { page, trouble } = await open({ url: server.url, browser });
  await page.locator(SIGN).waitFor();
  // With no packets of web nothing ties the machines: the verbs show that as part of their answers.
  const apart = weft('sync', '--store', directory(), traces).hosts.filter(h => !h.pieces.length).length, all = told.length + apart;
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
    assert.ok(seen.some(t => t.includes(host) && t.includes(file) && t.includes(what.join(': '))), `${line}\n${seen.join('\n')}`);
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

test('sound traces: no sign', async () => {
  const server = await serve(['--store', directory(), example()]), { page, trouble } = await open({ url: server.url, browser });
  await page.locator('.badge').filter({ hasText: 'clock ±' }).waitFor();
  assert.ok(!await page.locator(SIGN).isVisible());
  assert.deepEqual(trouble, []);
  await page.close();
  await server.stop();
});
