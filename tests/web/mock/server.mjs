// SPDX-License-Identifier: MIT
// A Trace Server Protocol server over the made-up world, with the viewer's bundle; for tests and for working on the
// viewer without traces.
//   node server.mjs [--port 8080] [--threads 600]
import { createServer } from 'node:http';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createStart } from './start.mjs';
import { BEGIN, changes, HOSTS, LOCAL_SENTENCE, path as pathOf, SENTENCE, World } from './world.mjs';

const dist = join(dirname(fileURLToPath(import.meta.url)), '../../../web/dist');
const write = v => typeof v === 'bigint' ? v.toString() : Array.isArray(v) ? `[${v.map(write).join()}]`
  : v && typeof v === 'object'
  ? `{${Object.entries(v).filter(e => e[1] !== undefined).map(([k, x]) => `${JSON.stringify(k)}:${write(x)}`).join()}}`
  : JSON.stringify(v ?? null);
// Times in requests are bare integers beyond 2^53.
const read = text => JSON.parse(text.replace(/([:\[,]\s*)(-?\d{16,})(?=\s*[,\]}])/g, '$1"$2n"'),
  (_, v) => typeof v === 'string' && /^-?\d{16,}n$/.test(v) ? BigInt(v.slice(0, -1)) : v);

const P = 'org.eclipse.tracecompass.';
const THREADS = `${P}internal.analysis.os.linux.core.threadstatus.ThreadStatusDataProvider`,
  CPUS = `${P}internal.analysis.os.linux.core.threadstatus.ResourcesStatusDataProvider`;
const USAGE = `${P}analysis.os.linux.core.cpuusage.CpuUsageDataProvider`,
  HISTOGRAM = `${P}internal.tmf.core.histogram.HistogramDataProvider`;
const EVENTS = `${P}internal.provisional.tmf.core.model.events.TmfEventTableDataProvider`,
  CRIT = `${P}analysis.graph.core.dataprovider.CriticalPathDataProvider`;
const STATS = `${P}analysis.timing.core.segmentstore.SegmentStoreStatisticsDataProvider:System Call`,
  DISK = `${P}analysis.os.linux.core.inputoutput.DisksIODataProvider`;
const SCATTER = `${P}internal.analysis.timing.core.segmentstore.scatter.dataprovider:System Call`,
  DENSITY = `${P}internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider:System Call`;
const FLAME = 'mock.flamegraph', COMPARE = 'weft.critical-path-comparison';
const outputs = [
  { id: THREADS, name: 'Thread Status', description: 'States of threads', type: 'TIME_GRAPH' },
  { id: CPUS, name: 'Resources Status', description: 'States of CPUs', type: 'TIME_GRAPH' },
  { id: USAGE, name: 'CPU Usage', description: 'CPU usage', type: 'TREE_TIME_XY' },
  { id: HISTOGRAM, name: 'Histogram', description: 'Events', type: 'TREE_TIME_XY' },
  { id: DISK, name: 'Disk I/O View', description: 'Disks', type: 'TREE_TIME_XY' },
  { id: SCATTER, name: 'System Call - Latency vs Time', description: '', type: 'TREE_TIME_XY' },
  { id: DENSITY, name: 'System Call - Latency Density', description: '', type: 'TREE_GENERIC_XY' },
  { id: EVENTS, name: 'Events Table', description: 'Events', type: 'TABLE' },
  { id: STATS, name: 'System Call - Latency Statistics', description: '', type: 'DATA_TREE' },
  { id: 'weft.clocks', name: 'Clock Synchronisation', description: '', type: 'TABLE' },
  { id: FLAME, name: 'Flame Graph', description: 'What time was spent in', type: 'GANTT_CHART' },
  { id: CRIT, name: 'Critical Path', description: '', type: 'NONE', capabilities: { canCreate: true } },
  { id: COMPARE, name: 'Critical Path Comparison', description: '', type: 'DATA_TREE',
    capabilities: { canCreate: true } },
];
const style = (color, height = 1) => ({ values: { 'background-color': color, height } });
const STYLES = {
  [THREADS]: { Usermode: style('#2e9e5b'), 'System call': style('#3a6ea5'), 'Wait blocked': style('#b5524a', 0.5),
    'Wait for CPU': style('#d98e04', 0.5), LINK: style('#8b93a1', 0.1) },
  [CPUS]: { Usermode: style('#2e9e5b'), Idle: { values: { 'background-color': '#000000', opacity: 0 } } },
};
const PATH_STYLES = { RUNNING: style('#2e9e5b'), TIMER: style('#5f8aa8'), PREEMPTED: style('#d98e04'),
  BLOCK_DEVICE: style('#6a4fb3'), NETWORK: style('#b45cc4'),
  UNTRACED_PEER: { values: { 'background-color': '#8a5f66', 'style-name': 'untraced peer' } },
  PENDING: { values: { 'background-color': '#9aa0a6', height: 1, opacity: 0.6, 'style-name': 'PENDING' } } };
const UUID = '6fae5dba-9b77-33c1-a1c1-2e2f27b2e4d0', EVENTS_N = 2_000_000;

/** `fine`: number of states of a path that are too short for the samples of all of it. `stalls`: the rows of threads
 * stop half-way until `release` is called. `grows`: a server with versions, which begins with three fifths of the time
 * and without the last thread; `grow` opens a fifth more. Of critical paths the local part is known at first, and all
 * of it after two queries unless `paths.pending` is set. `cluster`: returns the nodes' answers; they are a
 * coordinator's. `start`: options of createStart, for a server with the data of Start. */
export function createMock({ threads = 600, seconds = 20, stalls = false, grows = false, opens = undefined,
  cluster = undefined, start = null, fine = 0, belowOf = () => ({ root: '/traces', path: '', traces: [] }) } = {}) {
  const home = start && createStart(start);
  const world = new World({ threads, seconds }), log = [], derived = new Map(), full = world.length;
  const paths = { pending: false };
  const now = { version: grows ? 1 : undefined, indexingStatus: 'COMPLETED', problem: undefined, lack: undefined,
    hosts: undefined, indexed: undefined, why: undefined, stated: false };
  const cut = fifths => { world.length = full / 5 * fifths; world.end = BEGIN + BigInt(world.length); };
  const eventsNow = () => Math.round(EVENTS_N * world.length / full);
  if (grows) cut(3);
  let bookmarks = [], serial = 0, release;
  const released = new Promise(done => { release = done; });
  const experiment = () => ({ name: 'three-tier', UUID, nbEvents: eventsNow(), start: BEGIN,
    end: world.end, ...now, lack: undefined, hosts: undefined, stated: undefined,
    traces: HOSTS.map((h, i) => ({ name: h, path: `/traces/three-tier/${h}`,
      UUID: `00000000-0000-3000-8000-00000000000${i}`, nbEvents: 1000, start: BEGIN, end: world.end,
      indexingStatus: 'COMPLETED', properties: {} })) });
  const rel = t => Number(BigInt(t) - BEGIN), abs = t => BEGIN + BigInt(Math.round(t));
  const done = (model, message = now.lack ?? 'Completed', status = 'COMPLETED') => ({ model, status,
    statusMessage: message, hosts: now.hosts });
  const times = r => {
    const a = rel(r.start), b = rel(r.end), n = Math.max(2, Math.min(65536, r.nbTimes ?? r.nbSamples ?? 2)),
      step = Math.max(1, Math.floor((b - a) / (n - 1))), out = [];
    for (let i = 0; i < n; i++) out.push(a + i * step);
    return out;
  };
  const matches = (filters, s) => {
    const e = Object.values(filters?.filter_expressions_map ?? {})[0]?.[0];
    if (!e) return true;
    const d = /duration\s*>\s*(\d+)\s*ms/.exec(e);
    const words = (s[3] + s[2]).toLowerCase();
    return d ? s[1] - s[0] > d[1] * 1e6
      : e.replace(/[()]/g, '').split('||').some(w => words.includes(w.trim().toLowerCase()));
  };
  const eventTime = i => Math.floor(i / EVENTS_N * full);
  const eventLine = i => ({ index: i, cells: [String(abs(eventTime(i))), HOSTS[i % 3], String(i % 2),
    ['sched_switch', 'syscall_entry_read', 'net_dev_queue'][i % 3 === 0 ? 0
      : (i >> 2) % 3], `prev_tid=${1000 + i % 97}, next_tid=${1000 + i % 53}, value=${i}`,
      String(abs(eventTime(i)))].map(content => ({ content })) });
  const COLUMNS = ['Timestamp', 'Trace', 'CPU', 'Event type', 'Contents',
    'Timestamp ns'].map((name, id) => ({ id, name, description: name, type: id === 0 ? 'TIMESTAMP' : id === 2 ? 'NUMBER'
      : 'STRING' }));

  // Columns of a server that states their meaning, with other titles.
  const STATED = COLUMNS.map((c, i) => ({ ...c, name: `Spalte ${i}`, key: i ? String(i) : 'timestamp',
    type: i === 5 ? 'TIMESTAMP' : i === 0 ? 'STRING' : c.type, order: i === 5 ? 'ASCENDING' : undefined,
    display: [2, 5].includes(i) ? 'ASIDE' : i === 1 ? 'WIDE' : undefined }));

  /** States in force at one of the times. */
  const sampled = (states, p) => {
    const at = p.requested_times?.map(rel) ?? times(p.requested_timerange);
    let i = 0;
    return states.filter(s => {
      while (i < at.length && at[i] < s.begin) i++;
      return i < at.length && at[i] < s.end;
    });
  };
  const finely = found => {
    const i = found.states.findIndex(s => s.key === 'TIMER'), { begin, ...wait } = found.states[i], piece = 70;
    if (fine) found.states.splice(i, 1, ...Array.from({ length: fine }, (_, k) => ({ ...wait, begin: begin + k * piece,
      end: begin + (k + 1) * piece, key: k % 2 ? 'PREEMPTED' : 'RUNNING' })), { ...wait, begin: begin + fine * piece });
    return found;
  };
  function timeGraph(id, what, p) {
    const d = derived.get(id), range = p.requested_timerange;
    if (d) {
      const found = finely(pathOf(d.begin)), full = d.polls > 2 && !paths.pending,
        hosts = found.workers.slice(0, full ? 3 : 1),
        base = 900_000_000, message = full ? 'Completed' : 'local path done, asking web…', status = full ? 'COMPLETED'
          : 'RUNNING';
      const workerId = k => base + 10 + k;
      if (what === 'tree') {
        d.polls++;
        return done({ headers: [{ name: 'Name', tooltip: '' }],
          entries: hosts.flatMap(([host, tid, name], k) => [{ id: base + k, parentId: -1, labels: [host], start: BEGIN,
            end: world.end, hasData: false, hostId: host,
            metadata: k ? {} : { sentence: [full ? SENTENCE : LOCAL_SENTENCE] } },
          { id: workerId(k), parentId: base + k, labels: [`[${name},${tid}]`], start: BEGIN, end: world.end,
            hasData: true, hostId: host, metadata: { hostId: [host], TID: [tid] } },
          // Path crossed by a signal only.
          { id: base + 20 + k, parentId: base + k, labels: [`[kworker,31]`], start: BEGIN, end: world.end,
            hasData: true, hostId: host, metadata: { hostId: [host], TID: [31], sum: [0] } }]) }, message, status);
      }
      if (what === 'states')
        return done({ rows: hosts.map(([host, tid], k) => ({ entryId: workerId(k),
          states: [...sampled(found.states.filter(s => s.host === host && s.tid === tid), p)
            .map(s => ({ start: abs(s.begin), end: abs(s.end), label: s.label || undefined,
              style: { parentKey: s.key } })),
        ...(full || k ? [] : [{ start: abs(d.begin + 0.9e6), end: abs(d.begin + 85e6), label: 'asking web…',
          style: { parentKey: 'PENDING' } }])].sort((a, b) => a.start < b.start ? -1 : 1) })) }, message, status);
      if (what === 'arrows')
        return done(full ? found.arrows.map(a => ({ start: abs(a.begin), end: abs(a.end), sourceId: workerId(a.from),
          targetId: workerId(a.to), style: { parentKey: 'NETWORK' } })) : []);
      const since = (rel(p.requested_element.time) - d.begin) / 1e6;
      return done({ State: 'again', Segment: '7 of 9', Began: `+${since} ms, made up`, Before: 'what was before',
        After: 'what comes after', 'Share of the path': '5 %' });
    }
    if (id === FLAME) {
      // Amounts of time from 0: twice as much in the whole trace as in a selection.
      const k = p.selection_range ? 1n : 2n, s = 1_000_000_000n,
        rows = [[1, [[0n, 3n * s * k, 'main'], [3n * s * k, 4n * s * k, 'idle']]], [2, [[0n, s * k, 'read']]]];
      if (what === 'tree')
        return done({ headers: [{ name: 'Name', tooltip: '' }],
          entries: [{ id: 0, parentId: -1, labels: ['server'], start: 0n, end: 4n * s * k, hasData: false },
            ...rows.map(([id_]) => ({ id: id_, parentId: 0, labels: [String(id_)], start: 0n, end: 4n * s * k }))] });
      if (what === 'states')
        return done({ rows: rows.map(([entryId, states]) => ({ entryId,
          states: states.map(([start, end, label]) => ({ start, end, label, style: { parentKey: label } })) })) });
      return done(what === 'arrows' ? [] : { Calls: '7' });
    }
    const list = id === CPUS ? world.cpuEntries : world.entries.slice(0, now.version === 1 ? -1 : undefined);
    // Busy threads, known only by threads: those whose number is even, and those above them.
    const above = e => e.parentId < 0 ? [e.id] : [e.id, ...above(world.byId.get(e.parentId))];
    if (what === 'tree' && id === THREADS && p.isFiltered === true) {
      const busy = new Set(list.filter(e => e.tid % 2 === 0).flatMap(above));
      return done({ headers: ['Thread', 'TID', 'PID', 'PTID'].map(name => ({ name, tooltip: '' })),
        entries: list.filter(e => busy.has(e.id)).map(({ tid, ...e }) => e) });
    }
    if (what === 'tree')
      return done({ headers: (id === CPUS ? ['Name'] : ['Thread', 'TID', 'PID', 'PTID'])
        .map(name => ({ name, tooltip: '' })), entries: list.map(({ tid, ...e }) => e) });
    if (what === 'states') {
      const a = rel(range.start), b = rel(range.end);
      return done({ rows: p.requested_items.filter(i => world.byId.has(i))
        .map(i => ({ entryId: i, states: world.sample(i, a, b, range.nbTimes ?? 2).map(s => {
        const hit = matches(p.filter_query_parameters, s), idle = id === CPUS && s[2] !== 'Usermode';
        return { start: abs(s[0]), end: abs(s[1]), label: s[3] || undefined, style: idle ? { parentKey: 'Idle' }
          : { parentKey: s[2] }, tags: hit ? undefined : 1 };
      }) })) });
    }
    if (what === 'arrows') return done([]);
    return done({ CPU: '1', Source: 'sched_switch' });
  }
  function xy(id, what, p) {
    if (what === 'tree') {
      if (id === HISTOGRAM)
        return done({ headers: [], entries: [{ id: 1, parentId: -1, labels: ['three-tier'], hasData: false },
          { id: 2, parentId: 1, labels: ['Total'], isDefault: true },
          { id: 3, parentId: 1, labels: ['Lost'], isDefault: true }] });
      if (id === DISK) return done({ headers: [], entries: [] });
      return done({ headers: ['Process', 'TID', '%', 'Time'].map(name => ({ name, tooltip: '' })),
        entries: HOSTS.flatMap((h, k) => [{ id: 10 + k * 100, parentId: -1,
          labels: [h, 'Total', `${40 + k * 10}.000 %`, '4.2 s'] },
        ...Array.from({ length: 8 }, (_, i) => ({ id: 11 + k * 100 + i, parentId: 10 + k * 100,
          labels: ['nginx', String(1000 + i), `${i}.125 %`, `${i}00 ms`] }))]) });
    }
    const ts = times(p.requested_timerange);
    return done({ title: '', series: p.requested_items.map(i =>
      ({ seriesId: i, seriesName: id === HISTOGRAM ? (i === 2 ? 'Total' : 'Lost') : `total:${i}`,
        style: { values: { 'series-type': id === HISTOGRAM ? 'bar' : id === SCATTER ? 'scatter' : 'area' } },
      xValues: ts.map(abs), yValues: ts.map(t => id === HISTOGRAM
        ? (i === 2 ? Math.round(400 + 300 * Math.sin(t / 6e8) + 900 * (Math.sin(t / 1.3e9) > 0.96))
          : t > 0.71 * world.length && t < 0.72 * world.length ? 40 : 0)
          : id === SCATTER ? Math.round(10 ** (5 + 3 * Math.sin(t / 7e8 + i)))
          : 60 + 50 * Math.sin(t / 7e8 + i) + 10 * Math.sin(t / 3e7)),
      yValuesDescription: id === HISTOGRAM ? { label: 'Events', unit: '' } : id === SCATTER
        ? { label: 'Latency', unit: 'ns' } : { label: 'CPU', unit: '%' } })) });
  }
  function table(id, what, p) {
    if (id === 'weft.clocks') {
      const names = ['host', 'reference', 'drift', 'offset', 'worst error'];
      if (what === 'columns') return done(names.map((name, i) => ({ id: i, name, description: '', type: 'STRING' })));
      const rows = [['web', '★', '–', '–', '–'], ['client', 'web', '+1.371 ppm', '−45.206 697 ms', '±0.21 ms'],
        ['db', 'web', '−0.000 ppm', '+125.468 272 ms', '±0.20 ms']];
      return done({ lowIndex: 0, size: 3, columnIds: [0, 1, 2, 3, 4],
        lines: rows.map((r, index) => ({ index, cells: r.map(content => ({ content })) })) });
    }
    if (what === 'columns') return done(now.stated ? STATED : COLUMNS);
    let low = p.requested_times ? Math.max(0, Math.min(eventsNow() - 1,
      Math.ceil(rel(p.requested_times[0]) / full * EVENTS_N))) : p.requested_table_index;
    const search = Object.entries(p.table_search_expressions ?? {}).map(([c, e]) => [Number(c), new RegExp(e)]),
      hit = i => search.every(([c, e]) => e.test(eventLine(i).cells[c].content));
    if (p.table_search_direction) {
      const step = p.table_search_direction === 'NEXT' ? 1 : -1;
      while (low >= 0 && low < eventsNow() && !hit(low)) low += step;
      if (low < 0 || low >= eventsNow()) return done({ lowIndex: 0, size: eventsNow(), columnIds: [], lines: [] });
    }
    const lines = [];
    for (let i = low; i < Math.min(eventsNow(), low + p.requested_table_count); i++) {
      const l = eventLine(i);
      if (search.length && hit(i)) l.tags = 8;
      lines.push(l);
    }
    return done({ lowIndex: low, size: eventsNow(), columnIds: COLUMNS.map(c => c.id), lines });
  }
  /** Latencies mostly near 9 µs; in ranges of 1 µs, or by ratio up to a second. */
  function density(p) {
    const log = p.x_scale === 'logarithmic', begin = i => BigInt(log ? Math.round(100 * 1.25 ** i) : i * 1000),
      ranges = Array.from({ length: log ? 73 : 60 }, (_, i) => ({ start: begin(i), end: begin(i + 1) }));
    return done({ title: '', series: [{ seriesId: 1, seriesName: 'read', xRanges: ranges, yValues: ranges.map((r, i) =>
      Math.round(log ? 900 * Math.exp(-(((i - 20) / 12) ** 2)) : 900 * Math.exp(-i / 9))),
    xValuesDescription: { unit: 'ns', dataType: 'DURATION' }, yValuesDescription: { unit: '' } }] });
  }
  function data(p) {
    const row = (id, parentId, name, k) => ({ id, parentId, labels: [name, `${k} µs`, `${k * 9} ms`, `${k * 2} µs`,
      String(k * 1000)] });
    return done({ headers: ['Label', 'Minimum', 'Maximum', 'Average', 'Count'].map(name => ({ name, tooltip: '' })),
      entries: [row(1, -1, 'Total', 3), row(2, 1, 'openat', 4), row(3, 1, 'read', 2),
        ...(p.requested_timerange ? [row(4, -1, 'Selection', 1)] : [])] });
  }
  /** Number of comparisons: half of one is known until the paths are requested to their ends. */
  let compared = 0;
  function compare({ a, b }) {
    if (!a || !b) return done(null);
    const begin = side => side.begin ? rel(side.begin) : 2e9, all = changes(begin(a), begin(b)),
      full = ++compared % 2 === 0,
      said = `${full ? 'made up' : 'half'}: ${all[0][0]} ${all[0][3]} ${all[0][6] - all[0][5]} ms`;
    const entries = all.slice(0, full ? undefined : 1).map(([host, tid, name, key, label, x, y], id) =>
      ({ id, parentId: -1, labels: [host, `${name} ${tid}`, key, label, `${x} ms`, `${y} ms`, `${y - x} ms`],
        metadata: { host: [host], comm: [name], state: [key.toLowerCase().replace('_', '-')], a: [x * 1e6],
          b: [y * 1e6], ...(id ? {} : { sentence: [said] }) } }));
    return done({ headers: [], entries }, full ? 'Completed' : 'half of it', full ? 'COMPLETED' : 'RUNNING');
  }
  const fail = (status, title) => Object.assign(new Error(title), { status });

  function answer(method, url, body) {
    const parts = url.pathname.replace(/^\/tsp\/api/, '').split('/').filter(Boolean).map(decodeURIComponent),
      p = body?.parameters ?? {};
    if (parts[0] === 'health') return { status: 'UP' };
    if (parts[0] === 'identifier')
      return { version: '0', os: 'mock', productId: 'mock', tspVersion: '0.6.0', opens, cluster: Boolean(cluster) };
    if (parts[0] === 'cluster' && cluster) return cluster();
    if (parts[0] === 'traces' && parts[1] === 'below') return belowOf(url.searchParams.get('path'));
    if (parts[0] === 'traces') {
      if (method === 'POST' && !/three-tier/.test(p.uri ?? '')) throw fail(404, 'No trace there');
      return method === 'POST' ? experiment().traces[0] : experiment().traces;
    }
    if (parts[0] === 'upload') return experiment().traces[0];
    if (parts[0] !== 'experiments') throw fail(404, 'Unknown path');
    if (parts.length === 1) return method === 'POST' ? experiment() : [experiment()];
    if (parts[1] !== UUID) throw fail(404, 'No such experiment');
    if (parts.length === 2) return experiment();
    if (parts[2] === 'bookmarks') {
      if (method === 'POST') {
        const b = { uuid: `b${++serial}`, name: p.name, start: p.start, end: p.end };
        bookmarks.push(b);
        return b;
      }
      if (method === 'DELETE') {
        const b = bookmarks.find(x => x.uuid === parts[3]);
        bookmarks = bookmarks.filter(x => x !== b);
        return b;
      }
      if (method === 'PUT') return Object.assign(bookmarks.find(x => x.uuid === parts[3]), p);
      return bookmarks;
    }
    if (parts.length === 3) return [...outputs, ...home?.outputs ?? [], ...[...derived.values()].map(d => d.output)];
    if (parts[3] === 'markerSets') return done([{ id: 'releases', name: 'Releases' }]);
    if (parts[4] === 'configTypes')
      return parts[3] === CRIT ? [{ id: 'weft.critical-path', name: 'Critical path of a thread', schema: {} }] : [];
    if (parts.length === 4 && method === 'POST' && parts[3] === CRIT) {
      if (!Number.isInteger(body.parameters?.thread)) throw fail(400, 'Missing parameter: thread');
      const id = `${CRIT}:${++serial}`, output = { id, parentId: CRIT, name: body.name, description: body.description,
        type: 'TIME_GRAPH', capabilities: { canDelete: true },
        configuration: { id: String(serial), name: body.name, sourceTypeId: body.sourceTypeId,
          parameters: body.parameters } };
      derived.set(id, { output, polls: 0, begin: body.parameters.begin ? rel(body.parameters.begin) : 2e9 });
      return output;
    }
    if (parts.length === 5 && method === 'DELETE') {
      const d = derived.get(parts[4]);
      derived.delete(parts[4]);
      return d?.output ?? {};
    }
    if (parts[4] === 'style') return done({ styles: STYLES[parts[3]] ?? PATH_STYLES });
    if (parts[4] === 'annotations')
      return method === 'GET' ? done({ annotationCategories: parts[3] === THREADS ? ['Lost Events'] : [] })
      : done({ annotations: { 'Lost Events': [{ time: abs(world.length * 0.71), duration: BigInt(world.length / 100),
        entryId: -1, type: 'CHART', label: '3 200 events lost',
        style: { parentKey: 'lost', values: { 'background-color': '#d02f2f' } } }] } });
    const [, , , kind, id, what] = parts, told = home?.answer(id, what, p);
    if (now.indexingStatus === 'CLOSED') return done(null, now.why, 'FAILED');
    if (told) return told;
    if (kind === 'timeGraph') return timeGraph(id, what, p);
    if (kind === 'XY') return xy(id, what, p);
    if (kind === 'table') return table(id, what, p);
    if (kind === 'data') return id === COMPARE ? compare(p) : data(p);
    if (kind === 'genericXY')
      return what === 'tree' ? done({ headers: [], entries: [{ id: 1, parentId: -1, labels: ['read'] }] }) : density(p);
    throw fail(404, 'Unknown operation');
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://localhost'), chunks = [];
    const headers =
      { 'Content-Security-Policy': "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: "
        + "blob:; connect-src 'self'; base-uri 'none'; form-action 'none'", 'Cache-Control': 'no-store' };
    request.on('data', c => chunks.push(c));
    request.on('end', () => {
      if (!url.pathname.startsWith('/tsp/')) {
        const name = url.pathname === '/' ? 'index.html' : url.pathname.slice(1), file = join(dist, name);
        if (!/^[\w.]+$/.test(name) || !existsSync(file)) { response.writeHead(404, headers).end(); return; }
        response.writeHead(200, { ...headers, 'Content-Type': { html: 'text/html', js: 'text/javascript',
          css: 'text/css' }[name.split('.').pop()] + ';charset=utf-8' }).end(readFileSync(file));
        return;
      }
      try {
        const text = Buffer.concat(chunks).toString(), body = text && /json/.test(request.headers['content-type'] ?? '')
          ? read(text) : null;
        log.push({ method: request.method, path: url.pathname, body });
        const value = write(answer(request.method, url, body));
        response.writeHead(200, { ...headers, 'Content-Type': 'application/json' });
        if (stalls && url.pathname.endsWith(`${THREADS}/tree`)) {
          response.write(value.slice(0, value.length / 2));
          void released.then(() => response.end(value.slice(value.length / 2)));
        } else response.end(value);
      } catch (e) {
        response.writeHead(e.status ?? 500, { ...headers, 'Content-Type': 'application/json' })
          .end(write({ title: e.message }));
      }
    });
  });
  return {
    world, log, release, now, paths, uuid: UUID,
    grow: () => { cut(world.length / full * 5 + 1); now.version++; },
    listen: (port = 0) => new Promise(ready => server.listen(port, '127.0.0.1',
      () => ready(`http://127.0.0.1:${server.address().port}`))),
    close: () => new Promise(closed => { server.close(closed); server.closeAllConnections(); }),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (name, value) => {
    const i = process.argv.indexOf(`--${name}`);
    return i < 0 ? value : Number(process.argv[i + 1]);
  };
  console.log(await createMock({ threads: option('threads', 600) }).listen(option('port', 8080)));
}
