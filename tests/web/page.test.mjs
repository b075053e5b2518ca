// SPDX-License-Identifier: MIT
// The page in Chromium against the mock server: its use.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BEGIN } from './mock/world.mjs';
import { drawn, open, pixels, save, settled, start, view } from './browser.mjs';

let world;
before(async () => { world = await start({ threads: 600 }); });
after(() => world.stop());

const graph = '.panel[data-output$="ThreadStatusDataProvider"]';

test('opens the only experiment: rows, states, curves, events, overview', async () => {
  const { page, trouble } = await open(world);
  assert.equal(await page.title(), 'three-tier – weft');
  assert.equal(await page.locator(`${graph} .tree-row:not([hidden])`).first().innerText()
    .then(t => t.replace(/\s+/g, ' ').trim()), 'client');
  assert.ok((await pixels(page, `${graph} .area canvas:nth-child(2)`, [46, 158, 91])).inked > 20000,
    'the graph is drawn');
  assert.match(await page.locator('.vt-row').first().innerText(), /22:13:20/);
  await page.locator('.badge').filter({ hasText: /^clock ±210\.0 µs$/ }).waitFor();
  const histogram = world.mock.log.findLast(l => /HistogramDataProvider\/xy$/.test(l.path)).body.parameters,
    { start: from, end: to, nbTimes } = histogram.requested_timerange;
  const lost = Array.from({ length: nbTimes }, (_, i) => i * Math.floor(Number(to - from) / (nbTimes - 1)))
    .filter(t => t > 0.71 * world.mock.world.length && t < 0.72 * world.mock.world.length).length * 40;
  await page.locator('.badge').filter({ hasText: `${lost} events lost` }).waitFor();
  const red = await pixels(page, '.overview canvas', [208, 47, 47]);
  assert.ok(red.near > 50, 'lost events are red in the strip');
  assert.deepEqual(trouble, []);
  await page.close();
});

test('keys: w s a d, Home, f, Backspace; ctrl-wheel zooms at the mouse', async () => {
  const { page } = await open(world);
  await page.locator(graph).locator('.tree').focus();
  const whole = await view(page);
  await page.keyboard.press('w');
  const near = await view(page);
  assert.ok(Math.abs(near.span / whole.span - 1 / 1.5) < 0.01);
  await page.keyboard.press('d');
  assert.ok(BigInt((await view(page)).begin) > BigInt(near.begin));
  await page.keyboard.press('a');
  assert.equal((await view(page)).begin, near.begin);
  await page.keyboard.press('s');
  await page.keyboard.press('Home');
  assert.equal((await view(page)).span, whole.span);
  const area = page.locator(graph).locator('.area'), box = await area.boundingBox();
  await page.mouse.move(box.x + box.width / 4, box.y + 60);
  const at = await page.evaluate(x => String(weft.session.axis.timeAt(x)), box.width / 4);
  await page.keyboard.down('Control');
  for (let i = 0; i < 5; i++) await page.mouse.wheel(0, -240);
  await page.keyboard.up('Control');
  await page.waitForFunction(most => Number(weft.session.axis.end - weft.session.axis.begin) < most, whole.span / 5);
  await drawn(page);
  const zoomed = await view(page);
  const stays = await page.evaluate(x => String(weft.session.axis.timeAt(x)), box.width / 4);
  assert.ok(Math.abs(Number(BigInt(stays) - BigInt(at))) < zoomed.span / 100, 'the time under the mouse stays');
  await page.keyboard.press('Home');
  await page.mouse.move(box.x + 200, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, box.y + 60, { steps: 4 });
  await page.mouse.up();
  const selected = await view(page);
  assert.ok(Number(BigInt(selected.cursor) - BigInt(selected.anchor)) > 0);
  assert.match(await page.locator('.delta').innerText(), /Δ .* s/);
  await page.keyboard.press('f');
  assert.equal((await view(page)).begin, selected.anchor);
  await page.keyboard.press('Backspace');
  assert.equal((await view(page)).span, whole.span);
  await page.close();
});

test('a pan draws in the same frame; finer data follow; what is left behind is cancelled', async () => {
  const { page } = await open(world);
  const result = await page.evaluate(async () => {
    const g = weft.panels.find(p => p.part && !p.path), { axis } = weft.session, before = g.surface.canvas.toDataURL();
    axis.zoom(0.3, 300);
    await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)));
    return { changed: g.surface.canvas.toDataURL() !== before, requests: g.data.requests };
  });
  assert.ok(result.changed);
  await settled(page);
  const fine = await page.evaluate(() => {
    const g = weft.panels.find(p => p.part && !p.path);
    return [...g.data.rows.values()].filter(r => r.nsPerPx <= weft.session.axis.nsPerPx * 1.05 || r.complete).length;
  });
  assert.ok(fine > 5);
  // Burst of movements, some in each frame: far fewer requests than movements.
  const before = world.mock.log.filter(l => /states$/.test(l.path)).length;
  await page.evaluate(async () => {
    for (let i = 0; i < 60; i++) {
      weft.session.axis.pan(15);
      if (i % 6 === 5) await new Promise(requestAnimationFrame);
    }
  });
  await settled(page);
  const asked = world.mock.log.filter(l => /states$/.test(l.path)).length - before;
  assert.ok(asked < 60, `${asked} requests for 60 movements of two graphs`);
  await page.close();
});

test('only rows on screen are asked for', async () => {
  const { page } = await open(world);
  const most = Math.max(...world.mock.log.filter(l => /ThreadStatus.*states$/.test(l.path))
    .map(l => l.body.parameters.requested_items.length));
  assert.ok(most <= 64, `${most} rows in one request`);
  const all = new Set(world.mock.log.filter(l => /ThreadStatus.*states$/.test(l.path))
    .flatMap(l => l.body.parameters.requested_items));
  assert.ok(all.size < 120, `${all.size} of 600 rows were ever asked for`);
  await page.close();
});

test('critical path: right click, arrows between machines, progressive, totals, n and p, glow', async () => {
  const { page, trouble } = await open(world);
  world.mock.paths.pending = true;
  await page.evaluate(() => { const a = weft.session.axis; a.select(a.min + 2000000000n, a.min + 2090000000n); });
  await page.locator(graph).locator('.tree-row').filter({ hasText: 'tier' }).first().click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Critical path: selection' }).click();
  await page.waitForFunction(() => weft.path?.pane.segments.some(s => /asking/.test(s.label)));
  world.mock.paths.pending = false;
  await page.waitForFunction(() => weft.path?.pane.segments.length >= 14 && weft.path.view.data.arrows.length === 4);
  await settled(page);
  const created = world.mock.log.find(l => l.method === 'POST' && /CriticalPathDataProvider$/.test(l.path)).body;
  assert.deepEqual(created.parameters, { thread: 204, host: 'client', id: 2, begin: BEGIN + 2000000000n,
    end: BEGIN + 2090000000n });
  assert.equal(created.sourceTypeId, 'weft.critical-path');
  const pink = await pixels(page, '.panel[data-output*="CriticalPath"] .area canvas:nth-child(2)', [180, 92, 196]);
  assert.equal(await page.evaluate(() => weft.panels[0].path), true);
  await page.evaluate(() => { const a = weft.session.axis; a.show(a.min + 1999000000n, a.min + 2092000000n); });
  await settled(page);
  const near = await pixels(page, '.panel[data-output*="CriticalPath"] .area canvas:nth-child(2)', [180, 92, 196]);
  assert.ok(near.near > 40 || pink.near > 40, 'arrows in the network colour');
  const first = await page.locator('.path-pane tbody tr').first().innerText();
  assert.match(first.replace(/\s+/g, ' '), /45\.2 % 40\.00 ms db 1002 postgres running 2/);
  await page.locator('.path-pane tbody tr').first().click();
  const one = await view(page);
  assert.equal(one.anchor, String(BEGIN + 2025000000n));
  await page.keyboard.press('n');
  assert.equal((await view(page)).anchor, String(BEGIN + 2070000000n));
  await page.keyboard.press('p');
  assert.equal((await view(page)).anchor, String(BEGIN + 2025000000n));
  assert.equal(await page.evaluate(() => weft.session.glow.size), 3);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('search: rows by name and machine, states by expression, n finds the next', async () => {
  const { page } = await open(world);
  await page.keyboard.press('/');
  await page.keyboard.type('tid:204 host:web');
  await page.waitForFunction(() => weft.panels.find(p => p.part).model.rows.length === 2);
  assert.match(await page.locator(graph).locator('.panel-status').innerText(), /1 found/);
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => weft.panels.find(p => p.part).model.rows.length > 500);
  await page.keyboard.press('/');
  await page.keyboard.type('host:web');
  const drawn = () => page.evaluate(() => {
    const v = weft.panels.find(p => p.curves);
    return [v.curves.map(c => v.model.nodes.get(c.id).entry.labels[0]), v.plot.series.length - 1];
  });
  await page.waitForFunction(() => weft.panels.find(p => p.curves).plot.series.length === 2);
  assert.deepEqual(await drawn(), [['web'], 1], 'curves go with their rows');
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => weft.panels.find(p => p.curves).plot.series.length === 4);
  await page.keyboard.press('/');
  await page.keyboard.type('nothinghasthisname');
  await page.getByText('No row of Thread Status matches').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.type('state:openat');
  await settled(page);
  const sent = world.mock.log.filter(l => /states$/.test(l.path)).at(-1).body.parameters.filter_query_parameters;
  assert.deepEqual(sent, { strategy: 'DEEP', filter_expressions_map: { 1: ['openat'] } });
  const told = () => page.locator(graph).locator('.panel-status').innerText();
  const [, some, shown] = /^(\d+) of (\d+) rows on screen have it$/.exec(await told());
  const having = await page.evaluate(() => {
    const g = weft.panels[0], top = Math.floor(g.scroller.scrollTop / 18),
      rows = g.model.rows.slice(top, top + Math.ceil((g.main.clientHeight - 20) / 18))
        .map(n => g.data.rows.get(n.entry.id)).filter(Boolean);
    return [rows.filter(r => r.label.some((l, i) => l === 'openat' && !r.tags[i])).length, rows.length];
  });
  assert.deepEqual([Number(some), Number(shown)], having);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => weft.session.axis.cursor !== null);
  await settled(page);
  const label = () => page.evaluate(() => {
    const g = weft.graph(), hit = g.current();
    return hit && hit.row.label[hit.index];
  });
  const one = (await view(page)).cursor;
  assert.equal(await label(), 'openat');
  await page.keyboard.press('n'); // focus at its former place
  assert.equal(await page.locator('#search').inputValue(), 'state:openat');
  await page.waitForFunction(c => String(weft.session.axis.cursor) > c, one);
  await settled(page);
  assert.equal(await label(), 'openat');
  await page.keyboard.press('p');
  await page.waitForFunction(c => String(weft.session.axis.cursor) === c, one);
  await page.keyboard.press('/');
  await page.keyboard.type('state:nosuchcall');
  await page.locator(graph).getByText('no state on screen matches').waitFor();
  // Search for rows and states together: the next state of that kind in those rows.
  await page.keyboard.press('Escape');
  assert.ok(await page.evaluate(() => document.activeElement.classList.contains('tree')), 'left for the rows');
  await page.evaluate(() => weft.session.axis.select(null));
  await page.keyboard.press('/');
  await page.keyboard.type('host:web tid:204 (state:openat || state:read)');
  await page.locator(graph).getByText(/^1 found · [12] of \d+ rows on screen have it$/).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => weft.session.axis.cursor !== null);
  await settled(page);
  assert.match(await label(), /^(openat|read)$/);
  assert.deepEqual(await page.evaluate(() => {
    const { node } = weft.graph().current();
    return [node.entry.labels[0], node.entry.hostId];
  }), ['tier', 'web']);
  await page.close();
});

test('events: follow the cursor, move it, search', async () => {
  const { page } = await open(world);
  await page.evaluate(() => { const a = weft.session.axis; a.select(a.min + 10_000_000_000n); });
  await page.waitForFunction(() => weft.events.picked === 1_000_000);
  await page.locator('.vt-row.picked').filter({ hasText: '22:13:30' }).waitFor();
  await page.locator('.vt-scroll').focus();
  await page.keyboard.press('ArrowDown');
  assert.equal((await view(page)).cursor, String(BEGIN + 10_000_010_000n));
  await page.locator('.vt-filter').nth(3).fill('net_dev');
  await page.locator('.vt-filter').nth(3).press('Enter');
  await page.waitForFunction(() => weft.events.picked > 1_000_001);
  await page.locator('.vt-row.picked').filter({ hasText: 'net_dev_queue' }).waitFor();
  await page.locator('.vt-scroll').focus();
  await page.keyboard.press('End');
  await page.waitForFunction(() => weft.events.picked === 1_999_999);
  await page.locator('.vt-row.picked').waitFor();
  await page.close();
});

test('bookmark, link restored in a new page', async () => {
  const { page } = await open(world);
  await page.evaluate(() => {
    const a = weft.session.axis;
    a.show(a.min + 3000000000n, a.min + 3400000000n);
    a.select(a.min + 3100000000n, a.min + 3200000000n);
    weft.session.setTimeMode('utc');
  });
  await page.locator(graph).locator('.tree').focus();
  await page.keyboard.press('b');
  await page.locator('.bookmarks tbody tr').waitFor();
  assert.equal(world.mock.log.filter(l => /bookmarks$/.test(l.path) && l.method === 'POST').at(-1)
    .body.parameters.start, BEGIN + 3100000000n);
  await page.evaluate(() => weft.session.pathWanted.emit({ thread: { host: 'client', tid: 204, name: 'tier' },
    begin: weft.session.axis.min + 2000000000n, end: weft.session.axis.min + 2090000000n }));
  await page.waitForFunction(() => weft.path?.pane.segments.length >= 14);
  await settled(page); // settled link, too
  const hash = new URL(page.url()).hash, there = await view(page);
  await page.close();
  const again = await open(world, { hash });
  await again.page.waitForFunction(() => weft.path?.pane.segments.length >= 14);
  assert.deepEqual(await view(again.page), there);
  assert.equal(await again.page.evaluate(() => weft.session.timeMode), 'utc');
  await again.page.close();
});

test('views: every kind opens; empty ones say why', async () => {
  const { page, trouble } = await open(world, { width: 1920, height: 1080 });
  await page.evaluate(() => {
    for (const p of [...weft.panels]) p.close();
    for (const o of weft.session.outputs) weft.add(o, 150);
  });
  await settled(page);
  await page.locator('.stack').evaluate(e => { e.scrollTop = e.scrollHeight; });
  await settled(page);
  assert.equal(await page.locator('.panel-overlay.failed').count(), 0);
  await page.getByText('Disk I/O View has no series in this trace').waitFor({ state: 'attached' });
  assert.ok(await page.locator('.plot canvas').count() >= 4);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('lost events: an edge below the ruler, the rows keep their colours', async () => {
  const { page } = await open(world);
  const seen = await page.locator(`${graph} .area canvas:nth-child(2)`).evaluate(c => {
    const { axis } = weft.session, ctx = c.getContext('2d'), length = Number(axis.max - axis.min),
      at = (t, y) => [...ctx.getImageData(Math.round(t * length / axis.nsPerPx), y, 1, 1).data];
    return { edge: at(0.715, 21), before: at(0.6, 21), row: at(0.715, 30), rowBefore: at(0.6, 30) };
  });
  const red = p => p[3] > 100 && p[0] > 150 && p[1] < 110;
  assert.ok(red(seen.edge) && !red(seen.before), JSON.stringify(seen));
  assert.ok(seen.row[3] < 60, `a breath: ${JSON.stringify(seen)}`);
  await page.close();
});

test('flame graph: an axis of its own from 0, keys zoom it where the focus is, of the selection on demand',
  async () => {
  const { page, trouble } = await open(world);
  await page.evaluate(() => {
    for (const p of [...weft.panels]) p.close();
    weft.add(weft.session.outputs.find(o => o.type === 'GANTT_CHART'));
  });
  await settled(page);
  const axis = () => page.evaluate(() => {
    const a = weft.panels[0].axis;
    return [a.min, a.max, a.begin, a.end].map(Number);
  }), whole = await view(page);
  assert.deepEqual(await axis(), [0, 8e9, 0, 8e9]);
  const labels = page.locator('.panel .tree-row:not([hidden])');
  assert.equal(await labels.count(), 3);
  await page.locator('.panel .tree').focus();
  await page.keyboard.press('w');
  assert.ok((await axis())[3] - (await axis())[2] < 6e9, 'its axis is nearer');
  assert.deepEqual(await view(page), whole, 'that of the experiment stays');
  await page.evaluate(() => { const a = weft.session.axis; a.select(a.min + 1000n, a.min + 5000n); });
  await page.getByRole('button', { name: 'Of the whole trace, or of the selection' }).click();
  await page.waitForFunction(() => Number(weft.panels[0].axis.max) === 4e9);
  await settled(page);
  assert.deepEqual(world.mock.log.filter(l => /flamegraph.*states$/.test(l.path)).at(-1)
    .body.parameters.selection_range, [BEGIN + 1000n, BEGIN + 5000n]);
  const csv = (await save(page, 'Table, CSV')).toString();
  assert.match(csv, /,1,main,main,0,3000000000,3000000000$/m);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('pictures and tables of what is seen', async () => {
  const { page } = await open(world);
  await page.evaluate(() => { const a = weft.session.axis; a.show(a.min + 2000000000n, a.min + 2030000000n); });
  await settled(page);
  const svg = (await save(page, 'Picture, SVG')).toString();
  assert.match(svg, /^<svg /);
  assert.ok(svg.split('<rect').length > 100);
  assert.match(svg, />tier {2}204</);
  assert.equal((await save(page, 'Picture, PNG')).subarray(1, 4).toString(), 'PNG');
  // Names of rows, meaning of colours, the selection.
  await page.evaluate(() => {
    const a = weft.session.axis;
    weft.panels[0].model.rows[3].entry.labels[0] = 'a<b>&"\u0001';
    a.select(a.min + 2010000000n, a.min + 2020000000n);
    weft.session.pathWanted.emit({ thread: { host: 'client', tid: 204, name: 'tier' }, begin: a.min + 2000000000n,
      end: a.min + 2090000000n });
  });
  await page.waitForFunction(() => weft.path?.pane.done);
  await settled(page);
  const picture = await page.evaluate(text => {
    const d = new DOMParser().parseFromString(text, 'image/svg+xml'), words = s =>
      [...d.querySelectorAll(s)].map(t => t.textContent);
    return { bad: d.querySelectorAll('parsererror').length, all: words('text'), legend: words('.legend text'),
      selection: [...d.querySelectorAll('.selection')].map(r =>
        [r.getAttribute('x'), r.getAttribute('width')].map(Number)),
      want: [weft.session.axis.px(weft.session.axis.anchor), 10e6 / weft.session.axis.nsPerPx],
      cursors: d.querySelectorAll('.cursor').length, views: weft.panels.length };
  }, (await save(page, 'Picture, SVG')).toString());
  assert.equal(picture.bad, 0);
  assert.ok(picture.all.includes('tier 204') && !picture.all.some(t => /\[tier/.test(t)), 'plain names');
  assert.ok(picture.all.some(t => t.startsWith('a<b>&"\ufffd')));
  for (const name of ['running', 'Usermode', 'System call', 'Wait blocked', 'client'])
    assert.ok(picture.legend.includes(name), `${name}: ${picture.legend}`);
  assert.equal(picture.selection.length, picture.views);
  for (const s of picture.selection) s.forEach((v, i) => assert.ok(Math.abs(v - picture.want[i]) < 0.02, `${s}`));
  assert.equal(picture.cursors, 2 * picture.views);
  assert.ok(picture.all.some(t => t.startsWith('10.00')), 'how long the selection is');
  const csv = (await save(page, 'Table, CSV')).toString();
  assert.ok(/^client,tier,204,204,.*Usermode,,17\d{17},17\d{17},\d+$/m.test(csv), csv.slice(0, 300));
  // Formulas of spreadsheets are kept as text.
  await page.evaluate(() => {
    const { rows } = weft.panels.find(p => !p.path).model;
    ['=cmd()', '@x', '\tq', '-1', '+a"b,c'].forEach((name, i) => { rows[1 + i].entry.labels[0] = name; });
  });
  const guarded = (await save(page, 'Table, CSV')).toString();
  for (const cell of ["'=cmd()", "'@x", '"\'\tq"', '-1', '"\'+a""b,c"'])
    assert.ok(guarded.includes(`\nclient,${cell},`), cell);
  await page.close();
});

test('keyboard only: focus is seen, menu of a row, path', async () => {
  const { page } = await open(world);
  // Focused elements have names, and edges their positions; lists of tabs contain only tabs.
  assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('[role="separator"]:not([aria-valuenow]), '
    + '[role="tablist"] > :not([role="tab"]), [role="row"][aria-checked]')].map(e => e.className)), []);
  assert.equal(await page.getByRole('main').count(), 1);
  assert.equal(await page.getByRole('button', { name: 'three-tier' }).getAttribute('aria-label'),
    'three-tier: Open another experiment');
  for (let i = 0; i < 30 && !(await page.evaluate(() => document.activeElement?.classList.contains('tree'))); i++)
    await page.keyboard.press('Tab');
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, 'solid');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Shift+F10');
  await page.getByRole('menuitem', { name: 'Critical path: whole life' }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.menu').count(), 0);
  const before = await view(page), width = () => page.locator(`${graph} .area`).evaluate(e => e.offsetWidth),
    wide = await width();
  await page.locator('.overview').focus();
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowRight');
  const moved = await view(page);
  assert.ok(moved.span < before.span && BigInt(moved.begin) > BigInt(before.begin), 'the strip zooms and pans by keys');
  await page.locator(`${graph} .splitter`).focus();
  await page.keyboard.press('ArrowRight');
  await drawn(page);
  assert.equal(await width(), wide - 16);
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.help').count(), 0);
  // Letters go to the next entry that begins with them, ticked or not.
  await page.getByRole('button', { name: 'More', exact: true }).focus();
  await page.keyboard.press('Enter');
  const entry = () => page.evaluate(() => document.activeElement.dataset.label);
  await page.keyboard.press('d');
  assert.equal(await entry(), 'Dark theme');
  await page.keyboard.press('End');
  assert.equal(await entry(), 'Keys and mouse');
  await page.keyboard.press('Home');
  assert.equal(await entry(), 'Picture, SVG');
  await page.keyboard.press('Escape');
  // Escape cancels dragging.
  const edge = page.locator(`${graph} .splitter`), at = await edge.boundingBox(), narrow = await width();
  await page.mouse.move(at.x + 2, at.y + 20);
  await page.mouse.down();
  await page.mouse.move(at.x + 22, at.y + 20);
  await drawn(page);
  const dragged = await width();
  assert.ok(dragged < narrow);
  await page.keyboard.press('Escape');
  await page.mouse.move(at.x + 82, at.y + 20);
  await drawn(page);
  assert.equal(await width(), dragged);
  await page.mouse.up();
  await page.locator('.experiment').focus();
  await page.keyboard.press('Enter');
  await page.locator('.picker').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.picker').waitFor({ state: 'detached' });
  assert.equal(await page.evaluate(() => document.activeElement.className), 'experiment',
    'focus is where the picker was opened');
  await page.close();
});
