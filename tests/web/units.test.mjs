// SPDX-License-Identifier: MIT
// Parts without a page: exact JSON, times, search, shares of a pixel.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { dice } from './random.mjs';

const web = new URL('../../web/', import.meta.url);
const { buildSync } = createRequire(new URL('package.json', web))('esbuild');
const load = async name => import('data:text/javascript;base64,'
  + Buffer.from(buildSync({ entryPoints: [new URL(`src/${name}.ts`, web).pathname], bundle: true, format: 'esm',
    write: false }).outputFiles[0].contents).toString('base64'));

test('JSON: integers beyond 2^53 are exact, everything else as the engine reads it', async () => {
  const { parseJson, writeJson } = await load('json');
  assert.deepEqual(parseJson('{"start":1700000000123456789,"id":7,"y":[1.5e3,-0.25,9007199254740991,9007199254740993],'
    + '"s":"a \\"1700000000123456789\\" \\u00e9"}'),
    { start: 1700000000123456789n, id: 7, y: [1500, -0.25, 9007199254740991, 9007199254740993n],
      s: 'a "1700000000123456789" é' });
  const samples = ['[]', '{}', ' [ 1 , 2 ] ', '{"a":{"b":[null,true,false,"x"]}}', '"\\\\"', '[-0.0,1e-7,0]',
    '{"__proto__":1}', '[1234567890123456,"12345678901234567890"]', '"tab\\tquote\\""'];
  for (const s of samples) assert.deepEqual(parseJson(s.replace(/^/, '')), JSON.parse(s), s);
  const pad = '1234567890123456789';
  for (const bad of ['[1,]', '{"a":1,}', '[01]', '{a:1}', '["x]', '[1 2]', 'nul', '[1]x', '[1', '{"a"}', '[--1]',
    '[1.]', '"a\nb"', '[+1]', ''])
    assert.throws(() => parseJson(`${bad}`.length ? `[${pad},${bad}]` : ''), SyntaxError, bad);
  assert.equal(writeJson({ a: 1700000000123456789n, b: [1n, 'x"', null], c: undefined }),
    '{"a":1700000000123456789,"b":[1,"x\\"",null]}');
});

test('a tree cut anywhere on its way is the tree; its first entries are there before the last', async () => {
  const { EntryReader } = await load('treestream');
  const entry = (id, name) => ({ id, parentId: id - 1, labels: [name, `]}{["\\`, ''],
    metadata: { entries: [{ 'model': [id] }] } });
  const model = { headers: [{ name: 'é "entries": [' }], autoExpandLevel: -1,
    entries: [entry(1, 'tür\\'), entry(2, '日本 "x"'), entry(3, '')] },
    tail = { status: 'COMPLETED', statusMessage: 'a]b' };
  const answers = [{ model, ...tail }, { ...tail, model: { entries: model.entries, headers: model.headers } },
    { model: { ...model, entries: [] }, ...tail }, { model: null, ...tail }, { model: { entries: 7 } }];
  const texts = [...answers.map(a => JSON.stringify(a)), JSON.stringify(answers[0], null, 2)];
  for (const text of texts) {
    const bytes = new TextEncoder().encode(text), whole = JSON.parse(text);
    for (const step of [1, 2, 3, 7, 50]) {
      const reader = new EntryReader();
      for (let i = 0; i < bytes.length; i += step) reader.push(bytes.subarray(i, i + step));
      assert.deepEqual(reader.end(), whole, `${step}: ${text}`);
    }
    for (let i = 1; i <= bytes.length; i++) {
      const reader = new EntryReader();
      reader.push(bytes.subarray(0, i));
      // Entries present so far are final.
      reader.entries.forEach((e, k) => assert.deepEqual(e, whole.model.entries[k]));
      const { entries, ...head } = whole.model ?? {};
      if (reader.entries.length && text === texts[0] && reader.entries.length < 3)
        assert.deepEqual(reader.head(), { ...head, entries: [] });
      if (i < bytes.length) assert.throws(() => reader.end(), SyntaxError, `${i}: ${text}`);
      reader.push(bytes.subarray(i));
      assert.deepEqual(reader.end(), whole, `${i}: ${text}`);
    }
  }
  assert.equal(new EntryReader().end(), null);
});

test('a long tree that is all there at once: its first entries are told, and others have their turn while the rest is '
  + 'read', async () => {
  const { TspClient } = await load('tsp'), before = globalThis.fetch, many = 60000;
  const entries = Array.from({ length: many }, (_, i) => ({ id: i, parentId: -1, labels: [`thread ${i}`, String(i)],
    start: 0, end: 1e9, metadata: { TID: [i] } }));
  const bytes = new TextEncoder().encode(JSON.stringify({ model: { headers: [{ name: 'Name' }, { name: 'TID' }],
    entries }, status: 'COMPLETED', statusMessage: '' }));
  globalThis.fetch = async () => new Response(new ReadableStream({ start(c) { c.enqueue(bytes); c.close(); } }),
    { status: 200 });
  try {
    let told = 0, turns = 0, reading = true;
    const turn = () => { if (told && reading) { turns++; setTimeout(turn); } };
    const answer = await new TspClient('').tree('x', 'timeGraph', 'o', null, undefined, {}, first => {
      told = first.entries.length;
      setTimeout(turn);
    });
    reading = false;
    assert.ok(told >= 150 && told < many / 2, `${told} first`);
    assert.equal(answer.model.entries.length, many);
    assert.ok(turns > 0);
  } finally { globalThis.fetch = before; }
});

test('times and durations, and back', async () => {
  const { formatSpan, formatTickTime, formatTime, formatDuration, parseTime, parseDuration,
    ticks } = await load('time');
  const t = 1700000000123456789n, origin = 1700000000000000000n;
  assert.equal(formatTime(t, 'utc', origin).replace(/\u2009/g, ' '), '22:13:20.123 456 789');
  assert.equal(formatTime(t, 'relative', origin, 6).replace(/\u2009/g, ' '), '+0.123 456 s');
  assert.equal(formatDuration(88_494_107n), '88.49 ms');
  assert.equal(formatDuration(999), '999 ns');
  assert.equal(formatDuration(125e9), '2 min 05 s');
  assert.equal(formatDuration(BigInt(404753.5 * 3600) * 1000000000n).replace(/\u2009/g, ' '), '16 864 d 18 h');
  const day = 86_400_000_000_000n;
  assert.equal(formatTickTime(t, 'utc', origin, { step: day }), '2023-11-14');
  assert.equal(formatTickTime(origin + 3n * day, 'relative', origin, { step: day }), '+3 d');
  assert.equal(formatTickTime(t, 'utc', origin, { step: 10n, digits: 0 }), '22:13:20');
  assert.equal(formatSpan(t, t + day, 'utc', origin, 3), '2023-11-14 22:13:20 – 2023-11-15 22:13:20');
  assert.equal(parseTime('22:13:20.123456789', 'utc', origin), t);
  assert.equal(parseTime('2023-11-14 22:13:20.123456789', 'utc', origin), t);
  assert.equal(parseTime(formatTime(t, 'utc', origin), 'utc', origin), t);
  assert.equal(parseTime('+1.5ms', 'local', origin), origin + 1_500_000n);
  assert.equal(parseTime('1700000000123456789', 'utc', origin), t);
  assert.equal(parseTime('yesterday', 'utc', origin), null);
  assert.equal(parseDuration('2.5 s'), 2_500_000_000n);
  for (const span of [50n, 12_345n, 7_000_000n, 3_000_000_000n, 86_400_000_000_000n * 40n]) {
    const k = ticks(origin, origin + span, 0.1, 'utc', origin);
    assert.ok(k.times.length >= 1 && k.times.length <= 11, `${span}: ${k.times.length}`);
    for (const x of k.times) assert.equal(x % k.step, 0n);
  }
});

test('an answer’s code says that its message is a note, its numbers how far it is; words only where nothing is stated',
  async () => {
  const { TspClient } = await load('tsp'), kept = globalThis.fetch;
  const ask = async (answer, codes) => {
    globalThis.fetch = async url => new Response(JSON.stringify(String(url).endsWith('/identifier') ? { codes }
      : { model: null, status: 'COMPLETED', ...answer }));
    const { note, progress } = await new TspClient('http://server').lines('x', 'y', {});
    return [note, progress];
  };
  try {
    for (const [answer, codes, expected] of [
      [{ statusMessage: 'Fertig' }, true, ['', null]],
      [{ statusMessage: 'Fertig' }, undefined, ['Fertig', null]],
      [{ statusMessage: 'Completed' }, undefined, ['', null]],
      [{ statusMessage: 'Completed', code: 'NOTE' }, true, ['Completed', null]],
      [{ statusMessage: 'db is away', code: 'NOTE' }, undefined, ['db is away', null]],
      [{ status: 'FAILED', statusMessage: 'no', code: 'FAILED' }, true, ['', null]],
      [{ status: 'RUNNING', statusMessage: 'Reading, 40 %', code: 'NOTE' }, true, ['', null]],
      [{ status: 'RUNNING', statusMessage: '40 %', progress: { done: 1, of: 4 } }, true, ['', 0.25]],
      [{ status: 'RUNNING', progress: { done: 9, of: 4 } }, true, ['', 1]],
      ...[{ done: -1, of: 4 }, { done: 0, of: 0 }, { done: 'x', of: 4 }, { done: 1 }, 'x', null].map(progress =>
        [{ status: 'RUNNING', progress }, true, ['', null]]),
    ]) assert.deepEqual(await ask(answer, codes), expected, JSON.stringify(answer));
  } finally { globalThis.fetch = kept; }
});

test('amounts: prefixes stand before signs of units, apart from words', async () => {
  const { formatValue } = await load('time');
  assert.deepEqual([formatValue(1234, 'exits/s'), formatValue(12, 'exits/s'), formatValue(2048, 'B/s'),
    formatValue(1500, 'Hz')], ['1.23 k exits/s', '12 exits/s', '2 KiB/s', '1.50 kHz']);
});

test('counts are grouped, names of things are not', async () => {
  const { formatCount } = await load('time');
  const plain = (text, column) => formatCount(text, column).replace(/\u2009/g, ' ');
  assert.equal(plain('27041', 'Count'), '27 041');
  assert.equal(plain('-45211626', 'Offset (ns)'), '−45 211 626');
  for (const [text, column] of [['9999', 'Count'], ['100123', 'TID'], ['47984', 'Source port'], ['12345.5', 'Count'],
    ['web', 'Count']])
    assert.equal(plain(text, column), text);
});

test('search: rows and states apart', async () => {
  const { parseSearch, filterParameters } = await load('query');
  const entry = { labels: ['tier', '204'], metadata: { TID: [204] }, hostId: 'web' };
  assert.equal(parseSearch('tier host:we').rows(entry, 'web tier 204'), true);
  assert.equal(parseSearch('tid:20').rows(entry, 'web tier 204'), false);
  // Integers; containers are identified by their entries.
  for (const [text, hostId, Container, found] of [['host:node-1', 'node-1', [], true],
    ['host:node-1', 'node-10', [], false],
    ['host:1', 'node-21', [], false], ['host:node', 'node-10', [], true], ['host:1-1', '1-10 1-1', [], true],
    ['pod:db', 'node-1', ['db'], true], ['POD:db', 'node-1', [], false], ['container:db-2', 'node-1', ['db-23'], false],
    ['host:node-1 pod:web', 'node-1', ['web'], true]])
    assert.equal(parseSearch(text).rows({ labels: ['db', '7'], metadata: { Container }, hostId }, 'node-1 db 7'), found,
      text);
  assert.equal(parseSearch('pod:db').ofThreads, true);
  assert.equal(parseSearch('').rows, null);
  assert.deepEqual(parseSearch('nginx state:openat duration>10ms').states, ['openat && duration>10ms']);
  assert.equal(parseSearch('tid:1').ofThreads, true);
  // Queries for rows and states together, however they are joined; quotes keep words together.
  for (const [text, states, row] of [['tier state:read', 'read', true], ['tier && state:read', 'read', true],
    ['state:read && tier && duration > 10 ms', 'read && duration>10ms', true],
    ['duration > 10ms', 'duration>10ms', null], ['read || write', 'read || write', null],
    ['host:web state:read || state:write', 'read || write', true],
    ['host:db (read || write)', '(read || write)', false],
    ['read || write && tid:204', 'read || write', true], ['tid:204 && (read || write) && duration>1ms',
      '(read || write) && duration>1ms', true], ['state:"wait blocked" duration>1ms', '"wait blocked" && duration>1ms',
      null], ['state:', undefined, null], ['&&', undefined, null],
    ['||', undefined, null], ['(tier)', undefined, false]]) {
    const found = parseSearch(text);
    assert.equal(found.states[0], states, text);
    if (row !== null) assert.equal(found.rows(entry, 'web tier 204'), row, text);
  }
  assert.equal(filterParameters(parseSearch('nginx'), false), null);
  assert.deepEqual(filterParameters(parseSearch('state:read'), true),
    { strategy: 'DEEP', filter_expressions_map: { 4: ['read'] } });
});

test('link: written and read again', async () => {
  const { readLink, retimed, writeLink } = await load('link');
  const s = { experiment: 'u-1', view: [1700000000000000001n, 1700000000000000009n], selection: [1n, 2n],
    outputs: ['a:b c', 'd'], search: 'x & y', exclude: true, mode: 'utc',
    picked: { host: 'h/1', tid: 3, name: 'n m', id: 2 ** 52 - 1 },
    path: { host: 'h', tid: 4, name: 'kworker/0:2', begin: 5n, end: 6n },
    compared: { host: 'h|1', tid: 5, name: 'n', id: 9, begin: 7n, end: 8n }, pinned: [2 ** 52 - 1, 3],
    machines: ['a|b', 'c/d'], busyOnly: true, byPod: true, tab: 'path', follow: true,
    reference: 'web', clock: 'db 1&' };
  assert.deepEqual(readLink(writeLink(s)), s);
  for (const path of [{}, { id: 7 }, { begin: 5n, end: 6n }, { id: 7, begin: 5n, end: 6n },
    { begin: 5n, end: 6n, request: true }, { id: 7, begin: 5n, end: 6n, request: true }]) {
    const one = { ...s, path: { host: 'h', tid: 4, name: 'n', ...path } };
    assert.deepEqual(readLink(writeLink(one)), one);
  }
  assert.deepEqual(retimed(s, t => t + 3n), { ...s, view: [1700000000000000004n, 1700000000000000012n],
    selection: [4n, 5n], path: { ...s.path, begin: 8n, end: 9n }, compared: { ...s.compared, begin: 10n, end: 11n } });
  assert.equal(readLink('#nothing'), null);
  assert.deepEqual(readLink('#x=u-1&pin=3,x,-1,4e99').pinned, [3]);
  // Link cut in the middle of an encoding: the part before is used.
  assert.deepEqual(readLink('#x=u-1&r=h/3/50%25').picked, { host: 'h', tid: 3, name: '50%' });
  assert.deepEqual(readLink('#x=u-1&r=h/3/n/x').picked, { host: 'h', tid: 3, name: 'n' });
});

test('contrast: words can be read on every ground of both themes', () => {
  const css = readFileSync(new URL('src/app.css', web), 'utf8'),
    [light, dark] = [/:root \{([^}]*)\}/, /data-theme="dark"\] \{([^}]*)\}/].map(r =>
      Object.fromEntries([...r.exec(css)[1].matchAll(/--([\w-]+): (#[0-9a-f]{6})/g)].map(m => [m[1], m[2]])));
  const luminance = c => {
    const [r, g, b] = [1, 3, 5].map(i => {
      const s = parseInt(c.slice(i, i + 2), 16) / 255;
      return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  for (const [name, t] of [['light', light], ['dark', { ...light, ...dark }]])
    for (const [ink, grounds] of [['text', ['back', 'raised', 'hover', 'picked']],
      ['dim', ['back', 'raised', 'hover', 'picked']], ['accent', ['back', 'raised']], ['bad', ['back', 'bad-back']],
      ['good', ['good-back']], ['middling', ['middling-back', 'raised']]])
      for (const g of grounds)
        assert.ok(contrast(t[ink], t[g]) >= 4.5, `${name}: ${ink} on ${g}: ${contrast(t[ink], t[g]).toFixed(2)}`);
});

test('views share the height: all of it, none below its least nor beyond its most while another wants some',
  async () => {
  const { share } = await load('layout'), random = dice(1), below = n => Math.floor(random() * n);
  for (let round = 0; round < 300; round++) {
    const wants = Array.from({ length: 1 + below(6) }, () => {
      const least = 60 + below(100);
      return { weight: 0.5 + random() * 40, least, most: random() < 0.4 ? Infinity : least + below(200) };
    });
    const room = below(1500), got = share(room, wants), least = wants.reduce((s, w) => s + w.least, 0),
      most = wants.reduce((s, w) => s + w.most, 0), sum = got.reduce((a, b) => a + b, 0);
    const told = JSON.stringify({ room, wants, got });
    got.forEach((h, i) => assert.ok(h >= wants[i].least, told));
    assert.equal(sum, Math.max(room, least), told);
    if (room <= most) got.forEach((h, i) => assert.ok(h <= wants[i].most + wants.length, told));
  }
  assert.deepEqual(share(600, [{ weight: 2, least: 100, most: Infinity }, { weight: 1, least: 100, most: Infinity }]),
    [367, 233]);
});

test('tree: fold, filter with ancestors, sort, rings are broken', async () => {
  const { TreeModel, compareLabels } = await load('tree');
  const m = new TreeModel(), e = (id, parentId, ...labels) => ({ id, parentId, labels, hasData: true, metadata: {} });
  m.set({ headers: [{ name: 'Name' }, { name: 'TID' }], autoExpandLevel: -1,
    entries: [e(1, -1, 'web'), e(2, 1, 'b', '10'), e(3, 1, 'a', '9'), e(4, 3, 'c', '2'), e(5, 6, 'x'), e(6, 5, 'y')] });
  assert.deepEqual(m.rows.map(n => n.entry.id).slice(0, 4), [1, 2, 3, 4]);
  assert.equal(m.rows.length, 6);
  m.sort(1);
  assert.deepEqual(m.rows.map(n => n.entry.id).filter(i => i < 5), [1, 3, 4, 2]);
  m.filter({ test: x => x.labels[0] === 'c', ofThreads: false });
  assert.deepEqual(m.rows.map(n => n.entry.id), [1, 3, 4]);
  assert.equal(m.found, 1);
  m.filter({ test: null, ofThreads: false });
  m.fold(m.nodes.get(3), true);
  assert.equal(m.seenRow(4), m.rowOf.get(3));
  assert.ok(compareLabels('9 ms', '10 ms') < 0 && compareLabels('900 µs', '1 ms') < 0);
});

test('times that are typed or pasted, and ranges', async () => {
  const { parseTime, parseRange, formatSpan, formatTime } = await load('time');
  const origin = BigInt(Date.UTC(2026, 10, 21, 1, 37, 55)) * 1_000_000n, at = (s, ns = 0) =>
    BigInt(Date.UTC(2026, 10, 21, 1, 37, s)) * 1_000_000n + BigInt(ns);
  const one = (text, mode = 'utc') => parseTime(text, mode, origin);
  assert.equal(one('1795225077.700165960'), 1795225077700165960n);
  assert.equal(one('[1795225077.700165960]'), 1795225077700165960n);
  assert.equal(one('1795225077700165960'), 1795225077700165960n);
  assert.equal(one('2026-11-21T01:37:57.7Z', 'local'), at(57, 700_000_000));
  assert.equal(one('01:37:57.7Z', 'relative'), at(57, 700_000_000));
  assert.equal(one('+1.5'), origin + 1_500_000_000n);
  for (const none of ['', '1.2.3', '12:31 x', '[12]x', '..', 'tomorrow']) assert.equal(one(none), null, none);
  const two = (text, mode = 'utc') => parseRange(text, mode, origin), ms = 1_000_000n;
  const wanted = [at(57), at(58, 5_000_000)];
  for (const text of ['01:37:57..01:37:58.005', '01:37:57 .. 01:37:58.005', '01:37:57 – 01:37:58.005',
    '01:37:58.005…01:37:57', '01:37:57 - 01:37:58.005', '2026-11-21 01:37:57 to 2026-11-21 01:37:58.005',
    '01:37:57 +1005ms', '01:37:57+1.005s', '01:37:58.005 -1005 ms', '01:37:58.005 −1005 ms', '+2s..+3.005s',
    `${at(57)} .. ${at(58, 5_000_000)}`, `${at(57)} +1005ms`])
    assert.deepEqual(two(text), wanted, text);
  assert.deepEqual(two('+2s +50ms'), [at(57), at(57) + 50n * ms]);
  assert.deepEqual(two('01:37:57 ±5ms'), [at(57) - 5n * ms, at(57) + 5n * ms]);
  for (const none of ['', '..', '01:37:57..', '..01:37:57', '01:37:57 +5', '01:37:57 .. x', '1..2..3', '+50ms'])
    assert.equal(two(none), null, none);
  // Texts written by the page can be read by it.
  for (const mode of ['utc', 'relative', 'local']) {
    assert.deepEqual(two(formatSpan(...wanted, mode, origin, 9), mode), wanted, mode);
    assert.equal(one(formatTime(wanted[1], mode, origin), mode), wanted[1], mode);
  }
});

test('times by another clock: pieces, beyond them, and back', async () => {
  const { ClockMap } = await load('clock'), d = dice(2), base = 1_795_225_075_000_000_000n;
  for (let round = 0; round < 50; round++) {
    const pieces = [];
    let from = base, ref = base + BigInt(Math.floor(d() * 2e11) - 1e11);
    for (let i = 0; i < 1 + Math.floor(d() * 5); i++) {
      const length = BigInt(1 + Math.floor(d() * 2e9)), drift = BigInt(Math.round(1e6 + (d() - 0.5) * 600));
      const refLength = length * drift / 1_000_000n;
      pieces.push({ from, until: from + length, refFrom: ref, refUntil: ref + refLength });
      from += length;
      ref += refLength;
    }
    const map = new ClockMap('h', pieces);
    for (const p of pieces) {
      assert.equal(map.meant(p.from), p.refFrom);
      assert.equal(map.shown(p.refUntil), p.until);
    }
    let last = null;
    for (let i = -3n; i <= 60n; i++) {
      const t = base + (from - base) * i / 57n, there = map.meant(t), back = map.shown(there) - t;
      assert.ok(back >= -1n && back <= 1n, String(back));
      assert.ok(last === null || there >= last);
      last = there;
    }
  }
});
