// SPDX-License-Identifier: MIT
// Critical paths in the page against `weft critpath`: segments, arrows at their places, totals, saved files.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browse, drawn, open, save, settled, view } from '../browser.mjs';
import { directory, example, request as requestOf, serve, truth, weft } from './weft.mjs';

const THREADS = '.panel[data-output$="ThreadStatusDataProvider"]', PATH = '.panel[data-output*="CriticalPath"]';
let traces, store, server, world;
before(async () => {
  traces = example();
  store = directory();
  server = await serve(['--store', store, traces]);
  world = { url: server.url, browser: await browse() };
});
after(async () => { await world?.browser.close(); await server?.stop(); });

const request = id => requestOf(traces, store, id);
const rowsOf = panel => panel.evaluate(p => {
  const view = weft.panels.find(x => x.root === p), out = [];
  for (const r of p.querySelectorAll('.tree-row:not([hidden])')) {
    const n = view.model.rows[r.dataset.row], b = r.getBoundingClientRect();
    out.push({ host: n.entry.hostId, tid: n.entry.metadata.TID?.[0] ?? null, name: r.innerText.trim().split('\n')[0],
      y: b.top + b.height / 2, data: n.entry.hasData });
  }
  return out;
});
/** Returns the colour of the drawing at places of the window: [r, g, b, alpha]. */
const inkAt = (page, places) => page.locator(`${PATH} .area`).evaluate((area, list) => {
  const box = area.getBoundingClientRect(), canvas = area.querySelectorAll('canvas')[1], ctx = canvas.getContext('2d'),
    k = canvas.width / box.width;
  return list.map(([x, y]) => {
    // Thin line: the most coloured pixel of three.
    let best = [0, 0, 0, 0];
    for (const dx of [-1, 0, 1]) {
      const p = [...ctx.getImageData(Math.round((x - box.left + dx) * k), Math.round((y - box.top) * k), 1, 1).data];
      if (p[3] * (p[2] - p[1]) > best[3] * (best[2] - best[1])) best = p;
    }
    return best;
  });
}, places);
const violet = p => p[3] > 60 && p[0] > p[1] + 25 && p[2] > p[1] + 40;
const same = (shown, told) => assert.deepEqual(shown, told.segments.map(s =>
  ({ begin: String(s.begin), end: String(s.end), host: s.host, tid: s.tid, kind: s.state })));
const segments = page => page.evaluate(() => weft.path.pane.segments.map(s =>
  ({ begin: String(weft.session.axis.abs(s.begin)), end: String(weft.session.axis.abs(s.end)), host: s.host,
    tid: s.tid ?? -1, kind: s.kind.replace(/ /g, '-') })));
/** Waits for the end of the search: only its rows are left. */
const found = page => page.locator(`${THREADS} .panel-status`).filter({ hasText: '1 found' }).waitFor();
const complete = page => page.waitForFunction(() => weft.path?.pane.done);

test('of a request: right click on the thread found by name; segments, arrows between machines and totals are those '
  + 'of weft critpath', async () => {
  const { page, trouble } = await open(world, { width: 1440, height: 900 }), [begin, end] = request(10);
  const told = weft('critpath', '--store', store, '--thread', 'client:204', '--begin', String(begin), '--end',
    String(end), traces);
  assert.ok(told.links.filter(l => l.from.host !== l.to.host).length >= 4, 'the request crosses machines');
  await page.evaluate(([a, b]) => { weft.session.axis.select(BigInt(a), BigInt(b)); }, [String(begin), String(end)]);
  await page.keyboard.press('f');
  await page.keyboard.press('/');
  await page.keyboard.type('thread:tier host:client');
  await found(page);
  const row = page.locator(`${THREADS} .tree-row:not([hidden])`).filter({ hasText: 'tier' });
  assert.equal(await row.count(), 1);
  assert.match(await row.innerText(), new RegExp(`\\b${truth(traces, 'ground-truth.json').expected[9].client_tid}\\b`));
  await row.click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Critical path: selection' }).click();
  await complete(page);
  await settled(page);
  same(await segments(page), told);
  assert.equal(await page.locator(`${PATH} .sentence p`).innerText(), told.sentence);

  // Arrows at the places given by clock and rows, in the network's colour; absent when they are switched off.
  const panel = page.locator(PATH), rows = await rowsOf(panel), box = await panel.locator('.area').boundingBox(),
    v = await view(page);
  const x = t => box.x + Number(t - BigInt(v.begin)) / v.span * box.width,
    y = who => rows.find(r => r.data && r.host === who.host && (r.tid ?? -1) === who.tid)?.y;
  const links = told.links.filter(l => l.from.host !== l.to.host && l.from.time >= begin), places = [];
  for (const l of links) {
    const [x1, y1, x2, y2] = [x(l.from.time), y(l.from), x(l.to.time), y(l.to)];
    assert.ok(y1 && y2, `both ends of ${JSON.stringify(l, (_, z) => typeof z === 'bigint' ? String(z) : z)} are rows`);
    // Place between two rows, without a state.
    const between = (Math.min(y1, y2) + 8 - y1) / (y2 - y1);
    places.push([x1 + (x2 - x1) * between, y1 + (y2 - y1) * between]);
  }
  await page.mouse.move(2, 2);
  await drawn(page);
  const on = await inkAt(page, places);
  assert.ok(on.every(violet), `arrows at ${JSON.stringify(places)}: ${JSON.stringify(on)}`);
  const longest = links.map(l => ({ l, a: y(l.from), b: y(l.to) }))
    .sort((p, q) => Math.abs(q.a - q.b) - Math.abs(p.a - p.b))[0];
  await page.mouse.move((x(longest.l.from.time) + x(longest.l.to.time)) / 2, (longest.a + longest.b) / 2);
  await page.locator('.tip')
    .filter({ hasText: new RegExp(`From.*on ${longest.l.from.host}.*To.*on ${longest.l.to.host}`) })
    .filter({ hasText: /Detail\s*[\d.]+:\d+ → [\d.]+:\d+\s*Bytes\s*\d+ in the packet/ })
    .filter({ hasText: /Clock error\s*±/ }).waitFor();
  await page.mouse.move(2, 2);
  await panel.getByRole('button', { name: 'Arrows' }).click();
  await drawn(page);
  assert.ok((await inkAt(page, places)).filter(violet).length === 0, 'without arrows there is nothing');
  await panel.getByRole('button', { name: 'Arrows' }).click();

  // Rows are only those of the path; steps go along it from segment to segment, on any machine; the requested interval
  // stays selected.
  const on_path = new Set(told.segments.map(s => `${s.host} ${s.tid}`)), n = told.segments.length;
  assert.deepEqual(new Set(rows.filter(r => r.data).map(r => `${r.host} ${r.tid ?? -1}`)), on_path);
  assert.ok((await page.locator('.path-title').innerText()).includes(`${n} segments`));
  for (const [i, s] of told.segments.entries()) {
    await page.keyboard.press(i ? ']' : '[');
    if (!i) for (let k = 1; k < n; k++) await page.keyboard.press('['); // step from the first to the last
    const message = told.links.find(l => l.kind === 'network' && l.to.host === s.host && l.to.tid === s.tid
      && l.to.time === s.begin);
    await page.locator('.walk p').filter({ hasText: new RegExp(`^${i + 1}/${n} {2}${s.host} ${s.tid} ${s.comm} `
      + `${s.state.replace('-', ' ')} .* — \\+.*${message
        ? `a message from ${message.from.host}:${message.from.tid} .* came, sent at \\+` : ''}`) }).waitFor();
  }
  // Details of the request's own message: the client's text, and the error of the clocks.
  const { spec } = truth(traces, 'ground-truth.json').log.client.find(x => x.id === 10),
    sent = told.segments.findIndex(s => s.state === 'network');
  for (let k = told.segments.length - 1; k > sent; k--) await page.keyboard.press('[');
  await page.getByRole('tab', { name: 'Details' }).click();
  const details = page.locator('.details').filter({ hasText: /Bytes/ });
  assert.match((await details.innerText()).replace(/\s+/g, ' '), new RegExp(`Bytes ${spec.length + 1} in the packet`));
  await page.keyboard.press(']');
  await page.locator('.walk p').filter({ hasText: /sent at \+[\d.]+ µs \(±[\d.]+ µs\)$/ }).waitFor();
  await page.getByRole('tab', { name: 'Path' }).click();
  const still = await view(page);
  assert.deepEqual([still.anchor, still.cursor], [String(begin), String(end)]);

  // Totals, as readable durations.
  const text = ns => {
    const [k, unit] = ns >= 1e6 ? [1e6, 'ms'] : ns >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
    return `${Number((Number(ns) / k).toPrecision(4))} ${unit}`;
  };
  const lines = await page.locator('.path-pane tbody tr').evaluateAll(all =>
    all.map(r => [...r.cells].map(c => c.innerText.trim())));
  const listed =
    lines.map(c => `${c[2]} ${c[3] || -1} ${c[5].replace(/ /g, '-')} ${Number(parseFloat(c[1]).toPrecision(4))} `
      + `${c[1].split(' ')[1]}`).sort();
  const merged = new Map();
  for (const t of told.totals) {
    const key = `${t.host} ${t.tid} ${t.state}`;
    merged.set(key, (merged.get(key) ?? 0) + Number(t.duration));
  }
  assert.deepEqual(listed, [...merged].map(([k, ns]) => `${k} ${text(ns)}`).sort());

  // Keys n and p step through the segments of the line that was clicked.
  const largest = told.totals[0], steps = told.segments.filter(s => s.host === largest.host && s.tid === largest.tid
    && s.state === largest.state);
  await page.locator('.path-pane tbody tr').first().click();
  for (const s of steps.slice(0, 3)) {
    const now = await view(page);
    assert.deepEqual([now.anchor, now.cursor], [String(s.begin), String(s.end)]);
    await page.keyboard.press('n');
  }
  assert.deepEqual(trouble, []);
  await page.close();
});

test('whole life: every segment, however short; what is saved as CSV and SVG; the link brings it back', async () => {
  const { page, trouble } = await open(world, { width: 1440, height: 900 });
  const told = weft('critpath', '--store', store, '--thread', 'client:204', traces);
  await page.keyboard.press('/');
  await page.keyboard.type('tid:204 host:client');
  await found(page);
  await page.locator(`${THREADS} .tree-row:not([hidden])`).filter({ hasText: 'tier' }).click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Critical path: whole life' }).click();
  await complete(page);
  await settled(page);
  same(await segments(page), told);
  assert.match(await page.locator('.path-title').innerText(), /3 machines, \d+ segments/);

  const csv = (await save(page, 'Table, CSV')).toString(), part = csv.split(/^# /m)
    .find(p => p.startsWith('Critical path')).trim().split('\n').slice(2);
  const spoken = part.map(l => l.split(',')).map(c => `${c.at(-3)} ${c.at(-2)}`),
    exact = new Set(told.segments.map(s => `${s.begin} ${s.end}`));
  assert.ok(spoken.length > 40 && spoken.every(s => exact.has(s)), 'times in the file are those of the path');
  const long = told.segments.filter(s => s.end - s.begin > 5_000_000n).map(s => `${s.begin} ${s.end}`);
  for (const s of long) assert.ok(spoken.includes(s), `${s} is in the file`);

  const svg = (await save(page, 'Picture, SVG')).toString();
  assert.match(svg, /^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  assert.deepEqual(await page.evaluate(text => {
    const d = new DOMParser().parseFromString(text, 'image/svg+xml');
    return [d.querySelectorAll('parsererror').length, d.querySelectorAll('rect').length > 100,
      d.querySelectorAll('line, path, polyline').length > 20];
  }, svg), [0, true, true]);
  for (const word of ['Critical path of tier 204 on client', 'client', 'web', 'db', 'Thread Status'])
    assert.ok(svg.includes(word), `the picture says ${word}`);

  await settled(page);
  const hash = new URL(page.url()).hash, there = await view(page);
  assert.deepEqual(trouble, []);
  await page.close();
  const again = await open(world, { hash, width: 1440, height: 900 });
  await complete(again.page);
  same(await segments(again.page), told);
  assert.deepEqual(await view(again.page), there);
  assert.equal(await again.page.locator('#search').inputValue(), 'tid:204 host:client');

  // Link from a row of the path to that thread's own: under the thread's name.
  await again.page.locator(`${PATH} .tree-row:not([hidden])`).filter({ hasText: 'tier 196' })
    .click({ button: 'right' });
  await again.page.getByRole('menuitem', { name: 'Critical path: whole life' }).click();
  await again.page.getByRole('heading', { name: 'Critical path of tier 196 on web', exact: true }).waitFor();
  // Path already on the server: its thread is named by the drawn segments.
  await again.page.evaluate(() => weft.add(weft.session.outputs.find(o =>
    o.name === 'Critical path of tier 204 on client')));
  await again.page.locator('.path-title strong').filter({ hasText: /^client:204 tier$/ }).waitFor();
  await again.page.close();
});
