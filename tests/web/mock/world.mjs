// SPDX-License-Identifier: MIT
// A made-up experiment: every value is a function of the row and the time, so that any range of any size costs only
// what is answered.
export const BEGIN = 1_700_000_000_000_000_000n;

function hash(a, b) {
  let x = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b + 0x7f4a7c15, 0xc2b2ae35);
  x ^= x >>> 15; x = Math.imul(x, 0x27d4eb2f); x ^= x >>> 13;
  return (x >>> 0) / 2 ** 32;
}
const CALLS = ['openat', 'read', 'write', 'epoll_wait', 'futex', 'sendto', 'recvfrom', 'nanosleep', 'close', 'poll'];
const NAMES = ['nginx', 'postgres', 'tier', 'kworker/0:2', 'rcu_sched', 'sshd', 'java', 'node', 'redis-server',
  'systemd-journald', 'lttng-consumerd', 'python3'];
export const HOSTS = ['client', 'web', 'db'];

export class World {
  constructor({ threads = 600, seconds = 20 } = {}) {
    this.length = seconds * 1e9;
    this.end = BEGIN + BigInt(this.length);
    this.entries = [];
    this.byId = new Map();
    let id = 1;
    const add = (parentId, labels, more = {}) => {
      const e = { id: id++, parentId, labels, start: BEGIN, end: this.end, hasData: true, ...more };
      this.entries.push(e);
      this.byId.set(e.id, e);
      return e;
    };
    for (const host of HOSTS) {
      const root = add(-1, [host, '', '', ''], { hasData: false, hostId: host });
      const n = Math.ceil(threads / HOSTS.length);
      let parent = root, left = 0;
      for (let i = 0; i < n; i++) {
        const tid = i === 0 ? 204 : 1000 + i, name = i === 0 ? 'tier' : NAMES[Math.floor(hash(i, 3) * NAMES.length)];
        const leader = left === 0;
        const e = add(leader ? root.id : parent.id, [name, String(tid), String(leader ? tid : parent.tid), ''],
          { hostId: host, tid, metadata: { TID: [tid], PID: [leader ? tid : parent.tid], hostId: [host] } });
        if (leader) { parent = e; left = Math.floor(hash(i, 5) * 12); } else left--;
      }
    }
    this.cpus = [];
    this.cpuEntries = [];
    for (const host of HOSTS) {
      const root = { id: id++, parentId: -1, labels: [host], start: BEGIN, end: this.end, hasData: false,
        hostId: host };
      this.cpuEntries.push(root);
      for (let c = 0; c < 2; c++)
        this.cpuEntries.push({ id: id++, parentId: root.id, labels: [`CPU ${c}`], start: BEGIN, end: this.end,
          hasData: true, hostId: host });
    }
    for (const e of this.cpuEntries) this.byId.set(e.id, e);
  }
  period(id) { return 120_000 + Math.floor(hash(id, 1) ** 3 * 40_000_000); }
  /** Returns the states of cell k of a row: [begin, end, key, label]. */
  cell(id, k) {
    const p = this.period(id), t = k * p, run = Math.floor(p * (0.05 + 0.5 * hash(id, k * 4 + 1))),
      call = Math.floor(p * 0.35 * hash(id, k * 4 + 2)), wait = Math.floor(p * 0.12 * hash(id, k * 4 + 3));
    return [[t, t + run, 'Usermode', ''], [t + run, t + run + call, 'System call',
      CALLS[Math.floor(hash(id, k) * CALLS.length)]],
      [t + run + call, t + p - wait, 'Wait blocked', ''], [t + p - wait, t + p, 'Wait for CPU', '']];
  }
  at(id, t) {
    if (t < 0 || t >= this.length) return null;
    const k = Math.floor(t / this.period(id));
    return this.cell(id, k).find(s => t >= s[0] && t < s[1]) ?? null;
  }
  /** Returns the states in force at the times, each once. */
  sample(id, from, to, n) {
    const out = [], step = Math.max(1, Math.floor((to - from) / Math.max(1, n - 1)));
    for (let t = Math.max(0, from); t <= to && t < this.length;) {
      const s = this.at(id, t);
      if (!s) break;
      out.push(s);
      t = s[1] > t + step ? from + Math.ceil((s[1] - from) / step) * step : t + step;
      if (out.length > 70000) break;
    }
    return out;
  }
}

/** Sentences of a server about the path below, before and when it is complete. */
export const LOCAL_SENTENCE = '88.49 ms: 95 % still being asked for: web · 5 % client computed (204 tier, 4.394 ms)';
export const SENTENCE = '88.49 ms: 56 % db, of which 1002 postgres computed 40.00 ms · 31 % web, of which 1001 nginx '
  + 'computed 14.50 ms · 8 % rest';

/** First begin of slow paths. */
export const SLOW = 3e9;
/** Returns the critical path of a thread on `client`: local work, the request to web, web to db, and back. [host, tid,
 * name, begin, end, key, label]. In a slow one the disk takes 24 ms more, and web is not preempted for 2 ms. */
export function path(begin) {
  const late = t => begin < SLOW ? t : t <= 19 ? t : t <= 60 ? Math.max(19, t - 2) : t + 22;
  const ms = 1e6, s = (host, tid, name, a, b, key, label = '') =>
    ({ host, tid, name, begin: begin + late(a) * ms, end: begin + late(b) * ms, key, label });
  return {
    states: [
      s('client', 204, 'tier', 0, 0.9, 'RUNNING'), s('web', 1001, 'nginx', 1.5, 9, 'RUNNING'),
      s('web', 1001, 'nginx', 9, 19, 'TIMER', 'nanosleep'), s('web', 1001, 'nginx', 19, 21, 'PREEMPTED',
        'by 31 kworker/0:2'),
      s('web', 1001, 'nginx', 21, 24, 'RUNNING'), s('db', 1002, 'postgres', 25, 60, 'RUNNING'),
      s('db', 1002, 'postgres', 60, 70, 'BLOCK_DEVICE', 'vda'), s('db', 1002, 'postgres', 70, 75, 'RUNNING'),
      s('web', 1001, 'nginx', 76, 80, 'RUNNING'), s('web', 1001, 'nginx', 80, 84, 'UNTRACED_PEER',
        'untraced-peer: 10.0.0.9'), s('client', 204, 'tier', 85, 88.494, 'RUNNING'),
    ].filter(x => x.end > x.begin),
    arrows: [[0, 1, 0.9, 1.5], [1, 2, 24, 25], [2, 1, 75, 76],
      [1, 0, 84, 85]].map(([a, b, t, u]) => ({ from: a, to: b, begin: begin + late(t) * ms,
        end: begin + late(u) * ms })),
    workers: [['client', 204, 'tier'], ['web', 1001, 'nginx'], ['db', 1002, 'postgres']],
  };
}

/** Returns the differences of two of them: [host, tid, name, key, label, a, b] in ms, largest difference first. */
export function changes(a, b) {
  const parts = new Map();
  [a, b].forEach((begin, side) => {
    for (const x of path(begin).states) {
      const id = `${x.host} ${x.name} ${x.key}`, part = parts.get(id) ?? [x.host, x.tid, x.name, x.key, x.label, 0, 0];
      part[5 + side] += (x.end - x.begin) / 1e6;
      parts.set(id, part);
    }
  });
  const size = p => Math.abs(p[6] - p[5]);
  return [...parts.values()].sort((p, q) => size(q) - size(p));
}
