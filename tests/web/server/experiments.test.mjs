// SPDX-License-Identifier: MIT
// Experiments in the page: the picker with paths and uploads, a server that dies and comes back.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browse, open, settled, views, visit } from '../browser.mjs';
import { directory, example, lines, serve, truth, userSpace } from './weft.mjs';

let traces, browser;
before(async () => { traces = example(); browser = await browse(); });
after(() => browser?.close());
const recorded = host => truth(traces, 'verify.json').traces[`${host}/kernel`].events;
const spaced = n => n.toLocaleString('en').replace(/,/g, '\u2009');

test('picker: a path, a wrong one, an upload, two traces together', async () => {
  const server = await serve(['--store', directory(), '--state', directory(), '--trace-root', traces]),
    world = { url: server.url, browser };
  const { page, trouble } = await visit(world);
  await page.getByText('None yet.').waitFor();
  // Folders below the root can be chosen.
  await page.getByRole('button', { name: `Open ${join(traces, 'web')}` }).waitFor();
  assert.deepEqual(await page.locator('.picker-below li .link').allInnerTexts(), ['client', 'db', 'web']);
  await page.getByLabel('Path of a trace on the server').fill('/nowhere/at all');
  await page.getByRole('button', { name: 'Open', exact: true }).click();
  await page.locator('.picker-message.bad').waitFor();
  await page.getByLabel('Path of a trace on the server').fill(join(traces, 'web'));
  await page.getByRole('button', { name: 'Open', exact: true }).click();
  await views(page);
  assert.equal(await page.title(), 'web – weft');
  await page.locator('.vt-count').filter({ hasText: `${spaced(recorded('web'))} events` }).waitFor();

  const archive = join(directory(), 'database.tar.gz');
  execFileSync('tar', ['-czf', archive, '-C', join(traces, 'db'), 'kernel']);
  await page.getByRole('button', { name: 'Open another experiment' }).click();
  await page.getByLabel('Trace to upload: tar or zip').setInputFiles(archive);
  await page.waitForFunction(() => document.title.startsWith('database'));
  await views(page);
  await page.locator('.vt-count').filter({ hasText: `${spaced(recorded('db'))} events` }).waitFor();

  await page.getByRole('button', { name: 'Open another experiment' }).click();
  await page.locator('.picker input[type=checkbox]').first().waitFor();
  for (const box of await page.locator('.picker input[type=checkbox]').all()) await box.check();
  await page.getByRole('button', { name: 'One experiment of the traces that are ticked' }).click();
  await page.waitForFunction(() => !document.querySelector('.picker') && document.title.includes('+'));
  await views(page);
  await page.locator('.vt-count').filter({ hasText: `${spaced(recorded('db') + recorded('web'))} events` }).waitFor();
  assert.deepEqual(trouble, []);
  const broken = join(directory(), 'broken.tar');
  execFileSync('dd', ['if=/dev/urandom', `of=${broken}`, 'bs=1k', 'count=20', 'status=none']);
  await page.getByRole('button', { name: 'Open another experiment' }).click();
  await page.getByLabel('Trace to upload: tar or zip').setInputFiles(broken);
  await page.locator('.picker-message.bad').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.picker').waitFor({ state: 'detached' });

  // State of another experiment is gone; back returns to the former place, by key too. There is no way back to one that
  // was deleted.
  const [here] = (await page.title()).split(' – '), forget = name =>
    page.getByRole('button', { name: `Forget ${name} (the trace files stay)`, exact: true });
  await page.getByRole('button', { name: 'Open another experiment' }).click();
  await forget('web').click();
  await forget('web').waitFor({ state: 'detached' });
  await page.keyboard.press('Escape');
  await page.locator('.picker').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Open another experiment' }).click();
  await forget(here).click();
  await forget(here).waitFor({ state: 'detached' });
  assert.equal(await page.getByRole('button', { name: 'Back to the experiment' }).count(), 0);
  await page.keyboard.press('Escape');
  assert.ok(await page.locator('.picker').isVisible());
  await page.close();
  await server.stop();
});

test('the server dies: a bar says so, what was loaded stays; it comes back and everything goes on, bookmarks and '
  + 'paths included', async () => {
  const store = directory(), state = directory(), begin = () =>
    serve(['--store', store, '--state', state, traces], port);
  let port = 0;
  const server = await begin(), world = { url: server.url, browser };
  port = Number(new URL(server.url).port);
  const { page, trouble } = await open(world, { width: 1440, height: 900 });
  await page.evaluate(() => {
    const a = weft.session.axis;
    a.select(a.min + 2_300_000_000n, a.min + 2_400_000_000n);
    weft.session.pathWanted.emit({ thread: { host: 'client', tid: 204, name: 'tier' } });
  });
  await page.waitForFunction(() => weft.path?.pane.done);
  await page.locator('.path-pane').waitFor();
  await page.keyboard.press('b');
  await page.locator('.bookmarks tbody tr').waitFor();
  await settled(page);
  await server.kill();
  await page.evaluate(() => weft.session.axis.zoom(0.2, 300));
  await page.locator('.notice').filter({ hasText: 'does not answer' }).waitFor();
  const rows = await page.evaluate(() => weft.panels.map(p => p.model?.rows.length ?? 0));
  assert.ok(Math.max(...rows) > 100, 'rows stay');
  await page.getByRole('tab', { name: 'Events' }).click();
  // kept lines
  await page.waitForFunction(() => document.querySelectorAll('.vt-row:not([hidden]):not(.waiting)').length > 3);

  const next = await begin();
  await page.locator('.notice').waitFor({ state: 'hidden' });
  await settled(page);
  await page.evaluate(() => weft.session.axis.zoom(0.5, 300));
  await settled(page);
  const seen = await page.evaluate(() => weft.panels.filter(p => p.data)
    .map(p => [p.output.name, p.model.rows.length, [...p.data.rows.values()].filter(r =>
      r.from <= weft.session.axis.offset).length, p.root.querySelector('.panel-overlay').hidden]));
  for (const [name, n, fresh, fine] of seen)
    assert.ok(n > 3 && fresh > 2 && fine, `${name}: ${n} rows, ${fresh} with data of now`);
  await page.getByRole('tab', { name: 'Bookmarks' }).click();
  await page.locator('.bookmarks tbody tr').waitFor();
  await page.getByRole('tab', { name: 'Events' }).click();
  await page.evaluate(() => weft.session.axis.select(weft.session.axis.min + 3_000_000_000n));
  await page.locator('.vt-row.picked').waitFor();
  assert.deepEqual(trouble, []);
  await page.close();
  await next.stop();
});

test('a program of user space: its calls are the first view, level by level', async () => {
  const program = userSpace(), server = await serve(['--store', directory(), program]),
    { page, trouble } = await open({ url: server.url, browser });
  // Calls of the first thread at the second level until events were lost, from its entries and exits.
  const calls = [], stack = [];
  for (const e of lines(program, '--where', 'vtid == 100')) {
    if (e.name?.endsWith('func_entry')) stack.push(e.ts);
    if (e.name?.endsWith('func_exit')) {
      const begin = stack.pop();
      if (stack.length === 1) calls.push([String(begin), String(e.ts)]);
    }
  }
  assert.ok(calls.length >= 3);
  assert.equal(await page.locator('.panel h2').first().innerText(), 'Flame Chart');
  const shown = await page.evaluate(() => {
    const g = weft.panels[0], level = g.model.rows.find(n => n.entry.labels[0] === '2'
      && n.parent.entry.labels[1] === '100'), row = g.data.rows.get(level.entry.id), out = [];
    for (let i = 0; i < row.n; i++)
      if (row.label[i]) out.push([String(g.axis.abs(row.start[i])), String(g.axis.abs(row.end[i]))]);
    return out;
  });
  assert.deepEqual(shown, calls);
  // Events of the thread, and separately the places of losses.
  const all = lines(program).filter(e => e.name);
  assert.equal(await page.locator('.vt-count').first().innerText(), `${all.length} events, lost ones in 1 place`);
  assert.deepEqual(trouble, []);
  await page.close();
  await server.stop();
});

test('a server that wants a token: the page asks for it, says when it is wrong, and goes where the link leads',
  async () => {
  const file = join(directory(), 'token');
  writeFileSync(file, 'open sesame\n');
  const server = await serve(['--store', directory(), '--token-file', file, traces]),
    { page, trouble } = await visit({ url: server.url, browser }, {});
  const token = page.getByLabel('Token');
  await page.getByText('This server wants a token').waitFor();
  await token.fill('sesame');
  await token.press('Enter');
  await page.getByText('That is not the token of this server.').waitFor();
  await token.fill('open sesame');
  await token.press('Enter');
  await views(page);
  await settled(page); // settled link, too
  assert.ok(!page.url().includes('sesame'));
  const hash = new URL(page.url()).hash;
  await page.close();
  // Token in the address: it is removed, the rest of the link stays.
  const again = await open({ url: server.url, browser }, { hash: `${hash}&token=open%20sesame` });
  assert.ok(!again.page.url().includes('sesame'));
  assert.equal(new URL(again.page.url()).hash, hash);
  assert.deepEqual([...trouble, ...again.trouble], []);
  await again.page.close();
  await server.stop();
});

test('a link to an experiment that is not there says so', async () => {
  const server = await serve(['--store', directory(), traces]),
    { page } = await visit({ url: server.url, browser }, { hash: '#x=00000000-0000-3000-8000-000000000000' });
  await page.getByText('The link names an experiment that this server does not know.').waitFor();
  await page.close();
  await server.stop();
});
