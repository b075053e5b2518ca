// SPDX-License-Identifier: MIT
// The page on `weft serve`: opening, zooming, scrolling, threads by name, search, bookmarks, links, every kind of view.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browse, open, pixels, save, settled, view } from '../browser.mjs';
import { directory, events, example, serve, truth, weft } from './weft.mjs';

const THREADS = '.panel[data-output$="ThreadStatusDataProvider"]';
let traces, store, server, world;
before(async () => {
  traces = example();
  store = directory();
  server = await serve(['--store', store, '--state', directory(), traces]);
  world = { url: server.url, browser: await browse() };
});
after(async () => { await world?.browser.close(); await server?.stop(); });

const spaced = n => n.toLocaleString('en').replace(/,/g, '\u2009');
const names = page => page.locator(`${THREADS} .tree-row:not([hidden])`)
  .evaluateAll(rows => rows.map(r => r.innerText.trim().split(/\s*\n\s*/)));

test('opens: three machines, all events, one clock; nothing is asked of anybody else; a strict policy holds',
  async () => {
  const { page, trouble } = await open(world);
  const recorded = Object.values(truth(traces, 'verify.json').traces).reduce((n, t) => n + t.events, 0);
  assert.match(await page.locator('.vt-count').first().innerText(), new RegExp(`^${spaced(recorded)} events`));
  const hosts = await page.evaluate(() => weft.panels[0].model.roots.map(n => n.entry.labels[0]));
  assert.deepEqual(hosts.sort(), ['client', 'db', 'web']);
  assert.match(await page.locator('.badge').first().innerText(), /^clock ±[\d.]+ [mµ]s$/);
  assert.ok((await pixels(page, `${THREADS} .area canvas:nth-child(2)`, [46, 158, 91])).near > 500, 'running is drawn');
  assert.deepEqual(trouble, []);
  // Requests to other addresses, a script in the page, code made of text: all refused.
  const refused = await page.evaluate(async () => {
    const seen = [];
    addEventListener('securitypolicyviolation', e => seen.push(e.effectiveDirective));
    await fetch('http://127.0.0.1:9/').catch(() => {});
    const s = document.createElement('script');
    s.textContent = 'window.injected = 1';
    document.body.append(s);
    setTimeout(() => new Function('window.made = 1')(), 1); // code evaluated by a test itself is exempt from the policy
    await new Promise(r => setTimeout(r, 200));
    return { seen, made: 'made' in window, injected: 'injected' in window };
  });
  assert.ok(refused.seen.includes('connect-src') && refused.seen.some(d => d.startsWith('script-src')),
    JSON.stringify(refused));
  assert.deepEqual([refused.made, refused.injected], [false, false]);
  await page.close();
});

test('zoom, scroll, a thread by its name', async () => {
  const { page, trouble } = await open(world), expected = truth(traces, 'ground-truth.json').expected[0];
  const area = page.locator(`${THREADS} .area`), box = await area.boundingBox(), whole = await view(page);
  await page.mouse.move(box.x + box.width * 0.6, box.y + 80);
  await page.keyboard.down('Control');
  for (let i = 0; i < 4; i++) await page.mouse.wheel(0, -200);
  await page.keyboard.up('Control');
  await settled(page);
  const near = await view(page);
  assert.ok(near.span < whole.span / 3);
  // States at the mouse's time are finer than before.
  assert.ok(await page.evaluate(() => [...weft.panels[0].data.rows.values()].filter(r => r.complete
    || r.nsPerPx <= weft.session.axis.nsPerPx * 1.05).length) > 3);
  await page.mouse.wheel(0, 1500);
  await settled(page);
  const first = (await names(page))[0][0];
  assert.ok(await page.evaluate(() => weft.panels[0].scroller.scrollTop) > 1000, `first row is ${first}`);
  assert.ok(await page.evaluate(() => {
    const g = weft.panels[0], a = Math.ceil(g.scroller.scrollTop / 18);
    return g.model.rows.slice(a, a + 5).every(n => !n.entry.hasData || g.data.rows.has(n.entry.id));
  }), 'the rows that came have states');
  await page.keyboard.press('Home');
  assert.equal((await view(page)).span, whole.span);

  await page.keyboard.press('/');
  await page.keyboard.type('thread:tier host:db');
  await page.waitForFunction(() => weft.panels[0].model.rows.length < 20);
  const found = (await names(page)).filter(r => r[0] === 'tier').map(r => Number(r[1]));
  assert.ok(found.includes(expected.db_tid), `${found} holds ${expected.db_tid}`);
  await page.keyboard.press('Escape');
  assert.deepEqual(trouble, []);
  await page.close();
});

test('search of states: the system calls that the recorded program made, one after the other', async () => {
  const { page } = await open(world), slept = truth(traces, 'ground-truth.json')
    .requests_spec.filter(r => r.web.sleep_us > 0);
  const calls = events(traces, '--names', 'syscall_entry_clock_nanosleep', '--tid',
    String(truth(traces, 'ground-truth.json').expected[0].web_tid)).filter(e => e.host === 'web');
  assert.equal(calls.length, slept.length);
  // States in the call until it sleeps, and again from when the CPU is given back until the call returns.
  const back = events(traces, '--names', 'sched_switch', '--where', 'next_tid == 196').filter(e => e.host === 'web')
    .map(e => e.ts);
  const places = calls.flatMap(c => [c.ts, back.find(t => t > c.ts)]);
  await page.keyboard.press('/');
  await page.keyboard.type('tid:196 host:web state:clock_nanosleep');
  await settled(page);
  for (const t of places) {
    await page.locator('#search').press('Enter');
    await page.waitForFunction(x => String(weft.session.axis.cursor) === x, String(t));
  }
  await page.locator('#search').press('Shift+Enter');
  await page.waitForFunction(x => String(weft.session.axis.cursor) === x, String(places.at(-2)));
  await page.close();
});

test('events: the cursor moves them and they move it; a search finds the next; time in three ways', async () => {
  const { page } = await open(world), packets = events(traces, '--names', 'net_dev_queue');
  const at = packets[40].ts;
  await page.evaluate(t => weft.session.axis.select(BigInt(t)), String(at));
  await page.locator('.vt-row.picked').filter({ hasText: 'net_dev_queue' }).waitFor();
  const clock = new Date(Number(at / 1000000n)).toISOString().slice(11, 23);
  await page.evaluate(() => weft.session.setTimeMode('utc'));
  await page.locator('.vt-row.picked').filter({ hasText: clock }).waitFor();
  await page.evaluate(() => weft.session.setTimeMode('relative'));
  const since = Number(at - BigInt((await server.ask('/experiments'))[0].start)) / 1e9;
  await page.locator('.vt-row.picked').filter({ hasText: `+${since.toFixed(9).slice(0, 5)}` }).waitFor();
  await page.locator('[aria-label="Search in Event type"]').fill('^net_dev_queue$');
  await page.locator('[aria-label="Search in Event type"]').press('Enter');
  await page.waitForFunction(t => String(weft.session.axis.cursor) === t, String(packets[41].ts));
  await page.close();
});

test('only matches: as many lines as events with that name, the next at the cursor; an expression over events; what '
  + 'is wrong is said', async () => {
  const { page } = await open(world), packets = events(traces, '--names', 'sched_waking,sched_wakeup').map(e => e.ts),
    count = page.locator('.vt-count');
  await page.locator('[aria-label="Search in Event type"]').fill('^sched_wak(ing|eup)$');
  await page.getByRole('button', { name: 'Only lines in which all expressions are found' }).click();
  await count.filter({ hasText: new RegExp(`^${spaced(packets.length)} of [\\d\u2009]+ events$`) }).waitFor();
  await page.evaluate(t => weft.session.axis.select(BigInt(t)), String(packets[100] + 1n));
  await page.waitForFunction(() => weft.events.picked === 101);
  await page.locator('.vt-scroll').focus();
  await page.keyboard.press('ArrowDown');
  await page.waitForFunction(t => String(weft.session.axis.cursor) === t, String(packets[102]));
  const names = await page.locator('.vt-row:not([hidden]):not(.waiting)').allInnerTexts();
  assert.ok(names.length > 3 && names.every(n => /sched_wak(ing|eup)\b/.test(n)));
  await page.getByRole('button', { name: 'Only lines in which all expressions are found' }).click();
  await count.filter({ hasText: /^[\d\u2009]+ events$/ }).waitFor();
  await page.locator('[aria-label="Search in Event type"]').press('Escape');

  const woken = events(traces, '--names', 'sched_switch', '--where', 'next_tid == 196'),
    where = page.getByLabel('Only events for which this holds');
  await where.fill('name == "sched_switch" && next_tid == 196');
  await count.filter({ hasText: new RegExp(`^${spaced(woken.length)} of `) }).waitFor();
  await where.fill('next_tid = 196');
  await page.getByText('expression "next_tid = 196": column 10: "=" alone means nothing: use ==', { exact: true })
    .waitFor();
  assert.equal(await page.locator('.vt-row:not([hidden])').count(), 0, 'no line stands below what is wrong');
  await where.press('Escape');
  await count.filter({ hasText: /^[\d\u2009]+ events$/ }).waitFor();
  await page.close();
});

test('what was typed and makes no sense, or is nowhere, is said until something else is typed', async () => {
  const { page, trouble } = await open(world), time = page.getByLabel('Go to time'), count = page.locator('.vt-count');
  await time.fill('noon');
  await time.press('Enter');
  await page.locator('.tip').filter({ hasText: 'Not a time' }).waitFor();
  assert.equal(await time.getAttribute('aria-invalid'), 'true');
  await time.press('Escape');
  await page.locator('.tip').waitFor({ state: 'hidden' });
  assert.deepEqual([await time.getAttribute('aria-invalid'), await time.inputValue()], ['false', '']);

  const field = page.locator('[aria-label="Search in Event type"]');
  await field.fill('no_such_event');
  await field.press('Enter');
  await count.filter({ hasText: 'no match' }).waitFor();
  await settled(page); // end of waiting for more letters
  assert.match(await count.innerText(), /^no match/);
  await field.press('Escape');
  await count.filter({ hasText: /^[\d\u2009]+ events$/ }).waitFor();

  // Sheet of the clocks without a choice; Escape closes it all the same.
  await page.locator('.badge').first().click();
  assert.match(await page.locator('.menu-heading').first().innerText(),
    /^client .* drift -?[\d.]+ ppm .* offset −[\d.]+ ms .* error at end [\d.]+ µs$/);
  await page.keyboard.press('Escape');
  await page.locator('.menu').waitFor({ state: 'hidden' });
  assert.deepEqual(trouble, []);
  await page.close();
});

test('legend: what a view can show, nothing else; names of files keep their ends, bars stand on their ranges',
  async () => {
  const { page, trouble } = await open(world);
  await page.getByRole('tab', { name: 'Legend' }).click();
  const words = page.locator('.legend section').filter({ has: page.getByRole('heading', { name: 'Thread Status' }) })
    .locator('li');
  await words.first().waitFor();
  assert.deepEqual((await words.allInnerTexts()).map(t => t.trim()).sort(),
    ['CPU transition', 'Idle', 'Interrupt', 'System call', 'Unknown', 'Usermode', 'Wait', 'Wait blocked',
      'Wait for CPU']);

  const show = async name => {
    await page.evaluate(n => {
      for (const p of [...weft.panels]) p.close();
      weft.add(weft.session.outputs.find(o => o.name === n));
    }, name);
    await settled(page);
  };
  await show('IO Access');
  const cut = await page.locator('.tree-text.ended').evaluateAll(all =>
    all.filter(e => e.offsetParent && e.firstChild.scrollWidth > e.firstChild.clientWidth)
      .map(e => [e.textContent, e.lastChild.getBoundingClientRect().left < e.parentElement.getBoundingClientRect()
        .right - 20]));
  assert.ok(cut.length > 3 && cut.every(([text, seen]) => /^\/.*\/[^/]+$/.test(text) && seen), JSON.stringify(cut));

  await show('System Call Latency - Latency Density');
  const bars = await page.evaluate(() => {
    const p = weft.panels[0];
    return { box: p.plot.over.getBoundingClientRect().toJSON(),
      ranges: p.series[0].xRanges.map(r => [String(r.start), String(r.end)]), counts: p.series[0].yValues };
  });
  assert.ok(bars.counts[0] > 10);
  // First range, directly right of the axis, whose count the tip shows.
  await page.mouse.move(bars.box.left + 2, bars.box.top + 40);
  await page.locator('.tip').filter({ hasText: spaced(bars.counts[0]) }).waitFor();
  await page.mouse.move(bars.box.right - 2, bars.box.top + 40);
  await page.locator('.tip').filter({ hasText: new RegExp(`${bars.counts.at(-1)}$`) }).waitFor();
  assert.deepEqual(trouble, []);
  await page.close();
});

test('bookmark and link: a second page shows the same', async () => {
  const { page } = await open(world);
  await page.evaluate(() => {
    const a = weft.session.axis;
    a.show(a.min + 2_000_000_000n, a.min + 2_800_000_000n);
    a.select(a.min + 2_100_000_000n, a.min + 2_200_000_000n);
    weft.session.setTimeMode('utc');
  });
  await page.locator(`${THREADS} .tree`).focus();
  await page.keyboard.press('b');
  await page.locator('.bookmarks tbody tr').waitFor();
  await settled(page); // settled link, too
  const there = await view(page), [experiment] = await server.ask('/experiments'),
    [kept] = await server.ask(`/experiments/${experiment.UUID}/bookmarks`);
  assert.deepEqual([String(kept.start), String(kept.end)], [there.anchor, there.cursor]);
  const hash = new URL(page.url()).hash;
  await page.close();
  const again = await open(world, { hash, scheme: 'dark' });
  assert.deepEqual(await view(again.page), there);
  assert.equal(await again.page.evaluate(() => weft.session.timeMode), 'utc');
  await again.page.locator('.bookmarks tbody tr').waitFor();
  await again.page.getByRole('button', { name: /^Remove / }).click();
  await again.page.getByText('No bookmarks yet').waitFor();
  await again.page.close();
});

test('a link to a row opens that row of another server, whose traces lie elsewhere and in another order', async () => {
  const picked = () => {
    const [p] = weft.panels, node = p.model.nodes.get(p.tree.picked);
    return node && { id: node.entry.id, labels: node.entry.labels, host: node.entry.hostId, link: location.hash };
  };
  const pick = async () => {
    const { page } = await open(world);
    // Idle thread, another than the first of its number: each CPU has an idle thread 0.
    const idle = await page.evaluate(() => [...weft.panels[0].model.rows.entries()].filter(([, n]) =>
      n.entry.hostId === 'client' && n.entry.labels[1] === '0').map(([i]) => i));
    assert.ok(idle.length > 1);
    await page.evaluate(i => weft.panels[0].tree.pick(i), idle.at(-1));
    await settled(page);
    const seen = await page.evaluate(picked);
    await page.close();
    return seen;
  };
  const one = await pick(), elsewhere = example(), name = traces.split('/').at(-1);
  assert.match(one.link, new RegExp(`[&#]r=client%2F0%2F[^&]*%2F${one.id}(&|$)`));
  const other = await serve(['--store', directory(), '--name', name,
    ...['web', 'db', 'client'].map(h => `${elsewhere}/${h}`)]);
  const { page, trouble } = await open({ ...world, url: other.url }, { hash: one.link });
  await page.waitForFunction(() => weft.panels[0].tree.picked !== null);
  assert.deepEqual(await page.evaluate(picked), one);
  assert.deepEqual(trouble, []);
  await page.close();
  await other.stop();
});

test('every output opens: with something in it, or words that say why not', async () => {
  const { page, trouble } = await open(world, { width: 1920, height: 1080 });
  const ids = await page.evaluate(() => weft.session.outputs.filter(o => !o.capabilities?.canCreate
    && o.id !== weft.events.output.id).map(o => o.id));
  assert.ok(ids.length > 20);
  for (const id of ids) {
    await page.evaluate(x => {
      for (const p of [...weft.panels]) p.close();
      weft.add(weft.session.outputs.find(o => o.id === x));
    }, id);
    await settled(page);
    const state = await page.evaluate(() => {
      const p = weft.panels[0], overlay = p.root.querySelector('.panel-overlay'),
        words = p.root.querySelector('.vt-words');
      return { said: overlay.hidden ? '' : overlay.className + ' ' + overlay.innerText, words: words && !words.hidden
        ? words.innerText : '',
        shown: p.root.querySelectorAll('.tree-row:not([hidden]), .vt-row:not([hidden])').length
          + p.root.querySelectorAll('.uplot').length };
    });
    assert.ok(!/failed|loading/.test(state.said), `${id}: ${state.said}`);
    assert.ok(state.shown > 0 || state.said.length > 20 || state.words.length > 10, `${id}: ${JSON.stringify(state)}`);
  }
  assert.deepEqual(trouble, []);
  await page.close();
});

test('what is saved of the views: threads and curves as they are on screen', async () => {
  const { page } = await open(world), told = weft('threads', '--store', store, traces);
  const list = Array.isArray(told) ? told : told.threads ?? [told];
  const csv = (await save(page, 'Table, CSV')).toString(), parts = csv.split(/^# /m).slice(1);
  assert.deepEqual(parts.map(p => p.split('\n')[0]), ['Thread Status', 'Resources Status', 'CPU Usage',
    'Events Table']);
  const known = new Set(list.map(t => [t.host, t.comm, t.tid].join())),
    [head, ...rows] = parts[0].trim().split('\n').slice(1).map(l => l.split(','));
  assert.deepEqual(head, ['machine', 'Process', 'TID', 'PID', 'PTID', 'state', 'text', 'begin_ns', 'end_ns',
    'duration_ns']);
  assert.ok(rows.length > 50 && rows.filter(r => known.has(r.slice(0, 3).join()))
    .length > rows.length / 2, `${rows[0]} is not among ${[...known].slice(0, 3).join(' ')}`);
  for (const r of rows) assert.equal(BigInt(r.at(-1)), BigInt(r.at(-2)) - BigInt(r.at(-3)), r.join());
  const { begin, end } = await view(page), curve = parts[2].trim().split('\n').slice(2)
    .map(l => BigInt(l.split(',')[0]));
  assert.ok(curve.length > 100 && curve.every(t => t >= BigInt(begin) && t <= BigInt(end)));
  assert.equal((await save(page, 'Picture, PNG')).subarray(1, 4).toString(), 'PNG');
  await page.close();
});
