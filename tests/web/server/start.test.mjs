// SPDX-License-Identifier: MIT
// Start on recorded traces: its lines equal the verbs' output; links from them to paths, rows and machines, by keys and
// by mouse.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browse, settled, view, views, visit } from '../browser.mjs';
import { directory, example, serve, truth, userSpace, weft } from './weft.mjs';

const PATH = '.panel[data-output*="CriticalPath"]', THREADS = '.panel[data-output$="ThreadStatusDataProvider"]';
let traces, store, server, world, told;
before(async () => {
  traces = example();
  store = directory();
  told = weft('requests', '--store', store, traces);
  server = await serve(['--store', store, '--state', directory(), traces]);
  world = { url: server.url, browser: await browse() };
});
after(async () => { await world?.browser.close(); await server?.stop(); });

const list = (page, name) => page.getByRole('table', { name });
const lines = async (page, name) => (await list(page, name).locator('tbody tr').evaluateAll(rows =>
  rows.map(r => [...r.cells].map(c => c.innerText.trim()))));
/** Opens a page that shows Start, all of it. */
async function start({ settles = true, ...options } = {}) {
  const { page, trouble } = await visit(options.world ?? world, { height: 720, ...options });
  await page.waitForFunction(() => window.weft?.home?.isShown);
  await page.waitForFunction(() => ![...document.querySelectorAll('.start .card:not([hidden])')]
    .some(c => c.querySelector('.card-body[hidden]')));
  if (settles) await settled(page); // waits for the picture of durations, the groups
  return { page, trouble };
}
/** Formats digits like the page. */
const text = ns => {
  const [unit, name] = ns >= 1e9 ? [1e9, 's'] : ns >= 1e6 ? [1e6, 'ms'] : ns >= 1e3 ? [1e3, 'µs'] : [1, 'ns'],
    x = Number(ns) / unit;
  return `${x.toFixed(unit === 1 ? 0 : x >= 100 ? 1 : x >= 10 ? 2 : 3)} ${name}`;
};
const party = p => `${p.host}:${p.tid} ${p.comm}`, took = r => r.end - r.begin;

test('from the opened page to the answer: one key; the sentence is that of weft critpath, the path selected and '
  + 'fitted, and from request to request', async () => {
  const began = Date.now(), { page, trouble } = await start({ settles: false }),
    [slowest, second] = told.requests;
  // Client's log: 88 ms of the request were its own.
  const logged = truth(traces, 'ground-truth.json').log.client.map(x => x.t_recv - x.t_send);
  assert.equal(Math.floor(Math.max(...logged) / 1e6), 88);
  await page.waitForFunction(() => document.activeElement?.closest('[aria-label="Slowest requests"] tbody'));
  await page.keyboard.press('Enter');
  const sentence = page.locator(`${PATH} .sentence p`);
  await sentence.filter({ hasText: 'ms: ' }).waitFor();
  await page.waitForFunction(() => weft.path.pane.done);
  console.log(`# ${Date.now() - began} ms from the address to the sentence of the slowest request`);
  const { begin, end } = slowest.client, asked = ['critpath', '--store', store, '--thread', 'client:204', '--begin',
    String(begin), '--end', String(end), '--request', traces];
  assert.ok(Math.max(...logged) - Number(end - begin) < 8e6, 'the one that the client logged');
  assert.equal(await sentence.innerText(), weft(...asked).sentence);
  await settled(page);
  const v = await view(page);
  assert.deepEqual([v.anchor, v.cursor], [String(begin), String(end)]);
  assert.ok(BigInt(v.begin) < begin && BigInt(v.end) > end && v.span < Number(end - begin) * 1.2, 'fitted');
  const bar = page.locator('.request-bar p'), words = async () => (await bar.innerText()).replace(/\s+/g, ' '),
    n = told.requests.length, median = text(took(told.requests[n >> 1]));
  assert.equal(await words(), `Request 1 of ${n} ${party(slowest.client)} → ${party(slowest)} ${text(end - begin)}, of `
    + `it ${text(took(slowest))} in web (median ${median}, slower than ${Math.floor((n - 1) / n * 100)} %)`);
  const box = await Promise.all(['.request-bar', '.sentence', '.panel-main'].map(s =>
    page.locator(`${PATH} ${s}`).boundingBox()));
  assert.ok(box[0].y < box[1].y && box[1].y < box[2].y, 'the question, the answer, the picture');

  assert.ok(await page.getByRole('button', { name: 'The next slower request' }).isDisabled());
  await page.getByRole('button', { name: 'The next faster request' }).press('Enter');
  await bar.filter({ hasText: `Request 2 of ${n}` }).waitFor();
  await page.waitForFunction(() => weft.path?.pane.done);
  asked[6] = String(second.client.begin);
  asked[8] = String(second.client.end);
  assert.equal(await sentence.innerText(), weft(...asked).sentence);
  assert.equal(await page.locator(PATH).count(), 1);
  assert.ok(await page.locator(THREADS).count(), 'the usual views stand below');
  // Link of the path, not of Start.
  await settled(page);
  const again = await visit(world, { hash: new URL(page.url()).hash });
  await again.page.locator(`${PATH} .sentence p`).filter({ hasText: 'ms: ' }).waitFor();
  assert.ok(await again.page.evaluate(() => !weft.home.isShown));
  assert.deepEqual([...trouble, ...again.trouble], []);
  await again.page.close();
  await page.close();
});

for (const scheme of ['light', 'dark'])
  test(`lines say what the verbs say, all in the window (${scheme})`, async () => {
  const { page, trouble } = await start({ scheme });
  assert.deepEqual((await lines(page, 'Slowest requests')).map(c => c.slice(0, 4)), told.requests.map(r =>
    [text(took(r)), `${party(r.client)} → ${party(r)}`, r.machines.join(' '), String(r.group)]));
  assert.deepEqual((await lines(page, 'Groups of like requests')).map(c => c.slice(0, 5)), told.groups.map(g =>
    [String(g.id), `${g.host} ${g.comm}`, String(g.count), text(g.p50), text(g.p99)]));
  const bars = await page.locator('.histogram > div').evaluateAll(all => all.map(b =>
    [Number(/: (\d+) request/.exec(b.title)[1]), b.firstChild.getBoundingClientRect().height]));
  assert.equal(bars.reduce((sum, [count]) => sum + count, 0), told.requests.length);
  for (const [a, b] of bars.flatMap(x => bars.map(y => [x, y])))
    assert.equal(Math.sign(a[0] - b[0]), Math.sign(Math.round((a[1] - b[1]) * 10)), 'the more, the higher');

  const clocks = weft('sync', '--store', store, traces).hosts;
  const machines = await lines(page, 'Machines');
  assert.deepEqual(machines.map(c => c[0]).sort(), clocks.map(x => x.host).sort());
  assert.deepEqual(machines.filter(c => !c[5]).map(c => c[0]), clocks.filter(x => x.category === 'reference')
    .map(x => x.host), 'all but the reference have an error');
  assert.ok(machines.every((c, i) => !i || parseFloat(c[1]) <= parseFloat(machines[i - 1][1])), 'the busiest first');

  // Threads ordered by any of the columns, as in the verb.
  for (const [head, sort] of [['Ran', 'running'], ['For a CPU', 'preempted'], ['Network', 'network'],
    ['Disk', 'block-device']]) {
    // Causes, if the server has them.
    if (sort !== 'running' && !await page.evaluate(() => weft.session.outputs.some(o =>
      o.id === 'weft.selection.threads'))) continue;
    await page.getByRole('button', { name: new RegExp(`^${head}`) }).and(page.locator('.card[aria-label="Threads"] th '
      + 'button')).click();
    const column = (await list(page, 'Threads').locator('th').allInnerTexts()).findIndex(x => x.startsWith(head)),
      seen = (await lines(page, 'Threads')).map(c => [c[0], c[column]]),
      those = weft('threads', '--store', store, '--sort', sort, '--limit', '12', traces).filter(t => t[sort] > 0);
    assert.deepEqual(seen.slice(0, those.length), those.map(t => [party(t), text(t[sort])]));
  }
  const boxes = await page.locator('.start .card').evaluateAll(all => all.map(c => c.getBoundingClientRect().toJSON()));
  assert.equal(boxes.length, 3);
  for (const b of boxes) assert.ok(b.left >= 0 && b.right <= 1280 && b.top >= 0 && b.bottom <= 720 && b.width > 250);
  assert.ok(boxes[0].right <= boxes[1].left && boxes[1].right <= boxes[2].left, 'side by side');
  assert.deepEqual(trouble, []);
  await page.close();
});

test('by keys alone: down the lists, to a group’s slowest, a thread’s row, a machine’s rows, and back each time',
  async () => {
  const { page, trouble } = await start(),
    press = async (...keys) => { for (const k of keys) await page.keyboard.press(k); };
  const focused = () => page.evaluate(() => [document.activeElement.closest('table')?.getAttribute('aria-label'),
    [...document.activeElement.parentNode.children].indexOf(document.activeElement)]);
  await page.waitForFunction(() => document.activeElement?.closest('[aria-label="Slowest requests"] tbody'));
  await press('ArrowDown', 'ArrowDown', 'ArrowUp');
  assert.deepEqual(await focused(), ['Slowest requests', 1]);
  await press('End', 'PageUp', 'Home', 'Tab', 'ArrowDown');
  assert.deepEqual(await focused(), ['Groups of like requests', 1]);
  await press('Enter');
  const of2 = told.requests.findIndex(r => r.group === 2);
  await page.locator('.request-bar').filter({ hasText: `Request ${of2 + 1} of` }).waitFor();
  await page.waitForFunction(() => weft.path?.pane.done);
  await page.locator('body').evaluate(() => document.activeElement.blur());
  await press('h');
  assert.ok(await page.locator('.start').isVisible() && !await page.locator(PATH).isVisible());

  await list(page, 'Threads').locator('tbody tr').first().focus();
  await press('ArrowDown', 'Enter');
  const [thread] = await page.evaluate(() => [weft.session.picked]),
    row = page.locator(`${THREADS} .tree-row.picked:not([hidden])`);
  const second = weft('threads', '--store', store, '--limit', '2', traces)[1];
  assert.deepEqual([thread.host, thread.tid], [second.host, second.tid]);
  await row.waitFor();
  await settled(page);
  assert.deepEqual(await row.evaluate(r => weft.panels.find(p => p.root.contains(r)).model.rows[r.dataset.row].entry
    .labels.slice(0, 2)), [second.comm, String(second.tid)]);
  const [a, b] = [await row.boundingBox(), await page.locator(`${THREADS} .panel-main`).boundingBox()];
  assert.ok(a.y >= b.y && a.y + a.height <= b.y + b.height, 'in sight');

  await page.getByRole('button', { name: 'Requests, machines and threads (h)' }).press('Enter');
  await list(page, 'Machines').getByRole('row', { name: /^db/ }).dblclick();
  await page.waitForFunction(() => {
    const p = weft.panels.find(x => x.output.id.endsWith('ThreadStatusDataProvider'));
    return p.model.rows.length && p.model.rows.every(n => p.hostOf(n) === 'db');
  });
  assert.equal(await page.locator('#search').inputValue(), 'host:db');

  await page.getByRole('button', { name: 'Requests, machines and threads (h)' }).press('Enter');
  await press('Escape');
  assert.ok(await page.locator(THREADS).isVisible());
  assert.deepEqual(trouble, []);
  await page.close();
});

test('no requests: it begins with the threads; a trace without any kernel event goes straight to the views',
  async () => {
  const alone = await serve(['--store', directory(), join(traces, 'client')]),
    { page, trouble } = await start({ world: { ...world, url: alone.url } });
  await page.waitForFunction(() => document.activeElement?.closest('[aria-label="Threads"] tbody'));
  assert.ok(!await page.locator('.card[aria-label="Requests"]').isVisible());
  await page.getByText('no requests were found').waitFor();
  await page.keyboard.press('Escape');
  await views(page);
  assert.deepEqual(trouble, []);
  await page.close();
  await alone.stop();
  const user = await serve(['--store', directory(), userSpace()]), other = await visit({ ...world, url: user.url });
  await views(other.page);
  assert.ok(await other.page.evaluate(() => weft.home === null));
  assert.ok(!await other.page.getByRole('button', { name: 'Requests, machines and threads (h)' }).isVisible());
  await other.page.close();
  await user.stop();
});
