// SPDX-License-Identifier: MIT
// User-defined analysis: made with the keyboard, errors of expressions are shown, its views show it, it can be removed.
// The events themselves are the reference.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browse, open, settled } from '../browser.mjs';
import { directory, example, lines, serve } from './weft.mjs';

let traces, server, world;
before(async () => {
  traces = example();
  server = await serve(['--store', directory(), '--state', directory(), traces]);
  world = { url: server.url, browser: await browse() };
});
after(async () => { await world?.browser.close(); await server?.stop(); });

const press = async (page, ...keys) => { for (const k of keys) await page.keyboard.press(k); };
const opened = page => page.evaluate(() => weft.panels.map(p => p.output.name));

test('time between timers’ begin and end: form, refusal, chart, figures, link, removal', async () => {
  const { page, trouble } = await open(world), form = page.getByRole('dialog', { name: 'New in-and-out analysis' });
  const entries = lines(traces, '--names', 'timer_hrtimer_expire_entry,timer_hrtimer_expire_exit');
  const going = new Set(), seen = e => `${e.host} ${e.fields.hrtimer}`;
  let pairs = 0;
  for (const e of entries) if (e.name.endsWith('entry')) going.add(seen(e)); else if (going.delete(seen(e))) pairs++;
  assert.ok(pairs > 1000);

  await page.getByRole('button', { name: 'Open and close views' }).focus();
  await press(page, 'Enter');
  await page.keyboard.type('new analysis');
  await press(page, 'Enter');
  assert.equal(await page.evaluate(() => document.activeElement.name), 'name', 'the form has the focus');
  await page.keyboard.type('Timers');
  await press(page, 'Tab');
  await page.keyboard.type('timer_(.*)_entry');
  await press(page, 'Tab');
  await page.keyboard.type('timer_.*_exit');
  await press(page, 'Tab', 'Tab');
  await page.keyboard.type('hrtimer=(0x[0-9a-f]+');
  await press(page, 'Tab');
  await page.keyboard.type('hrtimer=(0x[0-9a-f]+)');
  await page.waitForFunction(() => document.querySelector('.pairs-form select').value === 'TID');
  await page.locator('.pairs-form select').selectOption('');
  await page.locator('.pairs-form [name="contextOutRegex"]').press('Enter');
  assert.match(await form.getByRole('alert').innerText(),
    /^Invalid query parameters: specifiers\[0\]\.contextInRegex .*\(400\)$/);
  assert.deepEqual(await page.evaluate(() => [document.activeElement.name,
    document.activeElement.getAttribute('aria-invalid')]), ['contextInRegex', 'true']);
  assert.deepEqual(await page.evaluate(() => weft.session.outputs.filter(o => o.name.startsWith('Timers')).length), 0);
  await press(page, 'End');
  await page.keyboard.type(')');
  await press(page, 'Enter');
  await form.waitFor({ state: 'detached' });
  await page.waitForFunction(() => weft.panels.some(p => p.output.name === 'Timers - Latency Statistics'
    && p.root.innerText.includes('Total')));
  await settled(page);
  assert.deepEqual((await opened(page)).slice(-2).sort(), ['Timers - Flame Chart', 'Timers - Latency Statistics']);
  const total = await page.locator('.panel[aria-label="Timers - Latency Statistics"]')
    .getByRole('row', { name: /^Total/ }).innerText();
  assert.match(total.replace(/[\s\u2009]+/g, ' '), new RegExp(`\\b${pairs}\\b`), `${pairs} pairs`);
  const hosts = await page.evaluate(() => weft.panels.find(p => p.output.name === 'Timers - Flame Chart')
    .model.roots.map(n => n.entry.labels[0]));
  assert.deepEqual(hosts.sort(), ['client', 'db', 'web']);

  // Page opened by the link: shows it, too.
  await page.waitForFunction(() => location.hash.includes('flamechart'));
  const other = await open(world, { hash: new URL(page.url()).hash });
  assert.ok((await opened(other.page)).includes('Timers - Flame Chart'));
  await other.page.close();

  await page.locator('.panel[aria-label="Timers - Flame Chart"]')
    .getByRole('button', { name: 'Remove it from the server' }).click();
  await settled(page);
  assert.deepEqual((await opened(page)).filter(n => n.startsWith('Timers')), []);
  const [{ UUID }] = await server.ask('/experiments');
  assert.deepEqual((await server.ask(`/experiments/${UUID}/outputs`)).filter(o => o.name.startsWith('Timers')), []);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('Escape leaves the form, and the focus is where it was', async () => {
  const { page } = await open(world), views = page.getByRole('button', { name: 'Open and close views' });
  await views.click();
  await page.getByRole('menuitem', { name: 'New analysis…' }).click();
  await page.getByRole('dialog', { name: 'New in-and-out analysis' }).waitFor();
  await press(page, 'Escape');
  assert.equal(await page.getByRole('dialog').count(), 0);
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Views');
  await page.close();
});
