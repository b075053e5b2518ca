// SPDX-License-Identifier: MIT
// What a critical path is made of, read from its time graph: all segments in time order, however short.
import { packRow } from './paint';
import { tidOf, type Session } from './session';
import type { Looks } from './style';
import { sleep, type Arrow, type Entry, type Output, type Range, type Time, type Tree } from './tsp';

export interface Segment { begin: number; end: number; entry: number; host: string; tid: number | null; name: string;
  kind: string; label: string; colour: string; hatched: boolean }

const SAMPLES = 65536;      // most that the protocol gives at once
const CELLS = 8e6;          // rows · samples of one request
const IN_HOLES = 16384;     // more of them, where states were missed
const ROUNDS = 40;
const ENOUGH = 400_000;     // segments that a page has room for

/** "[name,tid]", as clients of Trace Compass know it, or the plain name. */
export function nameOf(label: string): string { return /^\[(.*),\s*-?\d+\]$/.exec(label)?.[1] ?? label; }

/** The same with the number: "name 204". */
export function pathName(label: string): string {
  return label.replace(/^\[(.*),\s*(-?\d+)\]$/, (_, name: string, tid: string) => Number(tid) < 0 ? name
    : `${name} ${tid}`).replace(/^\[(.*)\]$/, '$1');
}

/** The answer in words: the server gives it along with the first row. */
export function sentenceOf(tree: Tree): string { return String(tree.entries[0]?.metadata.sentence?.[0] ?? ''); }

/** How many segments there are, where the server says it. */
export function countOf(tree: Tree): number | null {
  const n = tree.entries[0]?.metadata.segments?.[0];
  return n === undefined ? null : Number(n);
}

/** A path's tree without the rows that only signals pass through: no time was spent there. */
export function visited(tree: Tree): Tree {
  const has = (e: Entry): boolean => e.metadata.sum === undefined || Number(e.metadata.sum[0]) > 0;
  return { ...tree, entries: tree.entries.filter(has) };
}

/** A path that is drawn somewhere, or will be. */
export interface PathSource { output: Output; looks: Looks }
/** What is known of a path now: nothing may be. `status` as the server tells it. */
export interface Reading { tree: Tree | null; workers: Entry[]; segments: Segment[]; status: string; message: string;
  note: string; running: boolean }

/** Again and again while the server is RUNNING; the last one is all that it tells. */
export async function* readings(session: Session, source: PathSource, begin: Time | undefined, end: Time | undefined,
  signal: AbortSignal): AsyncGenerator<Reading> {
  for (let wait = 250; ; wait = Math.min(2000, wait * 1.5)) {
    const { model, status, statusMessage, note } = await session.client.tree(session.uuid, 'timeGraph',
      source.output.id, null, signal), known = model?.entries.length ? model : null;
    const none: Reading = { tree: known, workers: [], segments: [], status, message: statusMessage, note,
      running: false };
    if (known) {
      const reader = new PathReader(session, source, known, signal),
        { segments, running, message, note: more } = await reader.read(begin, end, status !== 'RUNNING');
      yield { ...none, workers: reader.workers, segments, message: statusMessage || message, note: note || more,
        running: status === 'RUNNING' || running };
    } else yield { ...none, running: status === 'RUNNING' };
    if (status !== 'RUNNING') return;
    await sleep(wait, signal);
  }
}

export class PathReader {
  private readonly found = new Map<string, Segment>();
  private readonly byId: Map<number, Entry>;
  readonly workers: Entry[];
  constructor(private readonly session: Session, private readonly view: PathSource, private readonly tree: Tree,
    private readonly signal: AbortSignal) {
    this.byId = new Map(tree.entries.map(e => [e.id, e]));
    this.workers = tree.entries.filter(e => e.hasData);
  }

  /** `whole`: also what sampling left out. `running`: the server is not through yet. */
  async read(begin: Time | undefined, end: Time | undefined, whole: boolean): Promise<{ segments: Segment[];
    running: boolean; message: string; note: string }> {
    const { axis } = this.session, range = { start: begin ?? axis.min, end: end ?? axis.max };
    const [states, arrows] = await Promise.all([this.ask(range),
      this.session.client.arrows(this.session.uuid, this.view.output.id, range, this.signal)]);
    if (whole && begin === undefined && this.found.size) {
      // The thread may have lived a small part of the experiment.
      const all = this.sorted();
      await this.ask({ start: axis.abs(all[0].begin), end: axis.abs(all[all.length - 1].end) });
    }
    if (whole) await this.fill();
    this.addArrows(arrows.model ?? []);
    return { segments: this.sorted(), running: states.status === 'RUNNING', message: states.statusMessage,
      note: states.note };
  }

  private sorted(): Segment[] { return [...this.found.values()].sort((a, b) => a.begin - b.begin || a.end - b.end); }
  private hostOf(id: number): string {
    const e = this.byId.get(id);
    return e?.hostId ?? (e && e.parentId >= 0 ? this.byId.get(e.parentId)?.labels[0] ?? '' : '');
  }

  private most(samples: number): number { return Math.max(2, Math.min(samples, Math.floor(CELLS
    / Math.max(1, this.workers.length)))); }
  private async ask(when: Range | Time[]): Promise<{ status: string; statusMessage: string; note: string }> {
    const { session, view, workers } = this;
    const answer = await session.client.states(session.uuid, view.output.id, Array.isArray(when) ? when
      : { ...when, nbTimes: this.most(SAMPLES) }, workers.map(e => e.id), null, this.signal);
    for (const row of answer.model ?? []) {
      const packed = packRow(row.states, session.axis.min, view.looks, 0, 0, 0), e = this.byId.get(row.entryId);
      for (let i = 0; e && i < packed.n; i++) {
        const look = view.looks.all[packed.style[i]];
        if (!look.blank)
          this.found.set(`${row.entryId} ${packed.start[i]}`,
            { begin: packed.start[i], end: packed.end[i], entry: row.entryId, host: this.hostOf(row.entryId),
              tid: tidOf(e, this.tree.headers), name: nameOf(e.labels[0] ?? ''),
          kind: look.name, label: packed.label[i] ?? '', colour: look.css, hatched: look.pattern === 'hatch' });
      }
    }
    return answer;
  }
  /** A path has no holes: where there are some, states were too short for the samples. Each hole's begin leads to what
   * is there, and more samples within to what is longer. */
  private async fill(): Promise<void> {
    const { axis } = this.session, asked = new Set<number>();
    for (let round = 0; round < ROUNDS && this.found.size < ENOUGH; round++) {
      const holes: [number, number][] = [], times: Time[] = [];
      let until = NaN;
      for (const s of this.sorted()) {
        if (s.begin > until && !asked.has(until)) holes.push([until, s.begin]);
        until = Number.isNaN(until) ? s.end : Math.max(until, s.end);
      }
      if (!holes.length) return;
      const each = Math.max(1, Math.floor(this.most(IN_HOLES) / holes.length));
      for (const [a, b] of holes.slice(0, this.most(IN_HOLES))) {
        const n = Math.min(each, b - a);
        asked.add(a);
        for (let k = 0; k < n; k++) times.push(axis.abs(a + Math.floor((b - a) * k / n)));
      }
      await this.ask(times);
    }
  }
  /** Servers that give the network no state: time between the rows that no row accounts for was spent there. */
  private addArrows(arrows: Arrow[]): void {
    const { axis } = this.session, { looks } = this.view, taken = this.sorted();
    const covered = (t: number): boolean => {
      let low = 0, high = taken.length;
      while (low < high) { const mid = (low + high) >> 1; if (taken[mid].begin <= t) low = mid + 1; else high = mid; }
      return low > 0 && t < taken[low - 1].end;
    };
    for (const a of arrows) {
      if (a.end <= a.start || covered((axis.rel(a.start) + axis.rel(a.end)) / 2)) continue;
      const look = looks.all[looks.index(a.style ?? { parentKey: 'NETWORK' })], from = this.hostOf(a.sourceId),
        to = this.hostOf(a.targetId), begin = axis.rel(a.start);
      this.found.set(`arrow ${begin} ${a.targetId}`, { begin, end: axis.rel(a.end), entry: a.targetId, host: '–',
        tid: null, name: from === to ? '' : `${from} → ${to}`, kind: look.name || 'network', label: '',
        colour: look.css, hatched: false });
    }
  }
}
