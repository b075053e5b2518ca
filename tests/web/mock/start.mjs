// SPDX-License-Identifier: MIT
// Data of Start, made up: `requests` of them, the slowest first, whose durations halve every hundred.
import { BEGIN } from './world.mjs';

const COLUMNS = ['Duration', 'Begin', 'Server', 'TID', 'Thread', 'Client', 'Client TID', 'Client thread',
  'Client begin', 'Client end', 'Bytes in', 'Bytes out', 'Group', 'Machines'];
/** Hostile name, as a trace may contain. */
export const HOSTILE = '<img src=x onerror=alert(1)>';

/** Returns the request at that place; every third has a client that was not recorded. */
export function requestAt(i) {
  const took = Math.max(1000, Math.round(2e9 * 0.5 ** (i / 100))), begin = BEGIN + BigInt(1e9 + i * 1000);
  return { begin, took, group: i % 7 + 1, recorded: i % 3 !== 2 };
}
function cells(i) {
  const { begin, took, group, recorded } = requestAt(i);
  return [took, begin, 'web', 1001, i === 1 ? HOSTILE : 'nginx', recorded ? 'client' : '192.0.2.7:4711', recorded ? 204
    : '', recorded ? 'tier' : '', recorded ? begin - 1000n : '', recorded ? begin + BigInt(took) + 1000n : '', 34, 6,
  group, 'web db'].map(String);
}

/** `busy`: number of answers RUNNING before the list is ready; `fails`: number of failures of the threads' list. */
export function createStart({ requests = 0, busy = 0, fails = 0 }) {
  const outputs = [['weft.requests', 'Requests', 'TABLE'], ['weft.requests.groups', 'Request Groups', 'DATA_TREE'],
    ['weft.requests.durations', 'Request Durations', 'TREE_GENERIC_XY'], ['weft.machines', 'Machines', 'TIME_GRAPH'],
    ['weft.selection.threads', 'Time by Thread', 'DATA_TREE']]
    .map(([id, name, type]) => ({ id, name, type, description: '' }));
  const tree = (names, entries) => ({ headers: names.map(name => ({ name, tooltip: '' })), entries });
  const lines = p => {
    const group = p.table_search_expressions?.[12];
    let low = p.requested_table_index;
    while (group && low < requests && !new RegExp(group).test(requestAt(low).group)) low++;
    const n = Math.max(0, Math.min(p.requested_table_count, requests - low));
    return { lowIndex: low, size: requests, columnIds: COLUMNS.map((_, i) => i),
      lines: Array.from({ length: n }, (_, k) => ({ index: low + k,
        cells: cells(low + k).map(content => ({ content })) })) };
  };
  const edge = i => BigInt(Math.round(1e6 * 10 ** (i / 8)));
  const answers = {
    'weft.requests': (what, p) => what === 'columns' ? COLUMNS.map((name, id) => ({ id, name, description: '',
      type: 'STRING' })) : lines(p),
    'weft.requests.groups': () => tree(['Group', 'Server', 'Count', 'p50', 'p90', 'p99', 'Maximum', 'Path', 'Grew'],
      requests ? Array.from({ length: 7 }, (_, i) => ({ id: i, parentId: -1, labels: [String(i + 1), 'web nginx', '9',
        '1 ms', '2 ms', '3 ms', '4 ms', 'web nginx running', '+3 ms db postgres block-device'],
      metadata: { count: [9], p50: [1e6], p90: [2e6], p99: [3e6], maximum: [4e6] } })) : []),
    'weft.requests.durations': what => what === 'tree' ? tree(['Name'], [{ id: 1, parentId: -1, labels: ['Total'] }])
      : { title: '', series: requests ? [{ seriesId: 1, seriesName: 'Total', xRanges: Array.from({ length: 20 },
        (_, i) => ({ start: edge(i), end: edge(i + 1) })),
      yValues: Array.from({ length: 20 }, (_, i) => i * i * 30) }] : [] },
    'weft.machines': () => tree(['Machine'], ['client', 'web', 'db'].map((host, i) => ({ id: i, parentId: -1,
      labels: [host], metadata: { hostId: [host], busy: [0.2 + i / 4], waited: [i * 1e8], moved: [i << 20],
        lost: [i * 9], ...(i ? { clockError: [i * 1e5] } : {}) } }))),
    'weft.selection.threads': () => {
      if (fails-- > 0) throw Object.assign(new Error('The disk is away'), { status: 500 });
      return tree(['Thread', 'TID'], [{ id: 900000, parentId: -1, labels: ['client', ''], metadata: {} },
        ...Array.from({ length: 30 }, (_, i) => ({ id: 2 + i, parentId: 900000,
          labels: [`worker-${i}`, String(1000 + i)],
          metadata: { hostId: ['client'], TID: [1000 + i], running: [(30 - i) * 1e7], ...(i % 2
            ? { 'block-device': [i * 1e7] } : {}) } }))]);
    },
  };
  return { outputs, answer(id, what, p) {
    if (!answers[id]) return null;
    const running = id === 'weft.requests' && what === 'lines' && busy-- > 0;
    return { model: running ? null : answers[id](what, p), status: running ? 'RUNNING' : 'COMPLETED',
      statusMessage: running ? 'Finding the requests' : id === 'weft.requests' ? '3 connections have no server'
        : 'Completed' };
  } };
}
