// SPDX-License-Identifier: MIT
// Spans of pilot jobs in the page: rows, colours, events, tooltips, search.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browse, open, pixels, settled } from '../browser.mjs';
import { directory, serve } from './weft.mjs';

const PANEL = '.panel[data-output="weft.spans"]', T0 = 1700000000n * 10n ** 9n, S = 10n ** 9n;
const hex = (n, width) => n.toString(16).padStart(width, '0');

/** Writes two simultaneous jobs, below their submitter: stages of 1, 2 and 7 s; the second one's last one failed. */
function glideins() {
  const spans = [], add = (id, parent, name, begin, end, more = {}) => spans.push({ traceId: hex(7, 32),
    spanId: hex(id, 16), parentSpanId: parent ? hex(parent, 16) : '', name, kind: 1,
    startTimeUnixNano: String(T0 + begin), endTimeUnixNano: String(T0 + end), ...more });
  add(1, 0, 'submit', 0n, S / 2n);
  for (const job of [0, 1]) {
    const at = S + BigInt(job) * S, id = 10 * (job + 1);
    add(id, 1, 'glidein', at, at + 10n * S);
    add(id + 1, id, 'init', at, at + S);
    add(id + 2, id, 'setup', at + S, at + 3n * S, { events: [
      { timeUnixNano: String(T0 + at + 2n * S), name: 'checked', attributes: [{ key: 'of',
        value: { stringValue: 'disk' } }] }] });
    add(id + 3, id, 'payload', at + 3n * S, at + 10n * S, job ? { status: { code: 2, message: 'no proxy' } } : {});
  }
  return { resourceSpans: [{ resource: { attributes: [{ key: 'service.name', value: { stringValue: 'glidein' } }] },
    scopeSpans: [{ spans }] }] };
}

let server, world;
before(async () => {
  const file = join(directory(), 'jobs.json');
  writeFileSync(file, JSON.stringify(glideins()));
  server = await serve(['--spans', file]);
  world = { url: server.url, browser: await browse() };
});
after(async () => { await world?.browser.close(); await server?.stop(); });

test('the glideins stand one below the other, each with its stages; failed ones are red; a tooltip names the stage',
  async () => {
  for (const scheme of ['light', 'dark']) {
    const { page, trouble } = await open(world, { scheme });
    const names = await page.locator(`${PANEL} .tree-row:not([hidden])`).evaluateAll(rows => rows.map(r =>
      r.innerText.trim().split(/\s*\n\s*/)[0]));
    assert.match(names[0], /^glidein: submit/);
    assert.deepEqual(names.slice(1), ['critical path', 'critical path 2', 'glidein', 'submit', 'glidein',
      'init, setup, payload', 'glidein', 'init, setup, payload']);
    const canvas = `${PANEL} .area canvas:nth-child(2)`;
    assert.ok((await pixels(page, canvas, [198, 40, 40])).near > 500, 'what failed is red');
    // Stages of the second job, at setup: 3 s to 5 s of 12.
    const box = await page.locator(`${PANEL} .area`).boundingBox(), row = await page.locator(
      `${PANEL} .tree-row:not([hidden])`).nth(8).boundingBox();
    const tip = page.locator('.tip:visible');
    await page.mouse.move(box.x + box.width * 3.4 / 12, row.y + row.height / 2);
    await tip.filter({ hasText: 'checked: of=disk' }).waitFor();
    assert.match(await tip.innerText(), /Operation\s+setup/);
    await page.mouse.move(box.x + box.width * 9 / 12, row.y + row.height / 2);
    await tip.filter({ hasText: 'error: no proxy' }).waitFor();
    assert.deepEqual(trouble, []);
    await page.close();
  }
});

test('the menu says what the view is; search finds spans by their operation', async () => {
  const { page, trouble } = await open(world);
  await page.getByRole('button', { name: 'Open and close views' }).click();
  await page.getByText('Traces of services and jobs').first().waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.type('payload');
  await page.waitForFunction(() => weft.panels[0].model.rows.filter(n => n.entry.labels[0].startsWith('init')).length
    === 2 && !weft.panels[0].model.rows.some(n => n.entry.labels[0] === 'submit'));
  await page.keyboard.press('Escape');
  await settled(page);
  await page.keyboard.press('/');
  await page.keyboard.type('state:payload');
  await settled(page);
  await page.locator('#search').press('Enter'); // stage of the first one begins 4 s after all
  await page.waitForFunction(x => String(weft.session.axis.cursor) === x, String(T0 + 4n * S));
  assert.deepEqual(trouble, []);
  await page.close();
});
