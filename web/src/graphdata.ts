// SPDX-License-Identifier: MIT
// States and arrows of a time graph: keeps what was fetched, asks for what is on screen and not there, drops requests
// that were left behind.
import { settle } from './emitter';
import { packRow, type RowStates } from './paint';
import { filterParameters } from './query';
import type { Session } from './session';
import type { Looks } from './style';
import { isAbort, type Annotation, type Answer, type Arrow, type Row } from './tsp';

const AT_ONCE = 64;   // rows per request
const KEPT = 1500;    // rows kept

export interface FlatArrow { start: number; end: number; source: number; target: number; style: number }
export interface FlatMark { start: number; end: number; entry: number; label: string; style: number; wide: boolean }

/** What the view shows now. */
export interface Wanted { items: number[]; from: number; to: number; nsPerPx: number }

export class GraphData {
  readonly rows = new Map<number, RowStates>();
  arrows: FlatArrow[] = [];
  marks: FlatMark[] = [];
  hasArrows = false;
  categories: string[] = [];
  private running: { stop: AbortController; from: number; to: number; nsPerPx: number;
    items: Set<number> } | null = null;
  private arrowRun: { stop: AbortController; key: string } | null = null;
  private arrowsFor: { from: number; to: number; nsPerPx: number } | null = null;
  private marksFor: { from: number; to: number; key: string } | null = null;
  private again = 0;
  requests = 0;
  constructor(private readonly session: Session, private readonly id: string, private readonly looks: Looks,
    private readonly wanted: () => Wanted | null,
    private readonly arrived: () => void, private readonly trouble: (e: unknown) => void,
    private readonly told: (a: Answer<Row[]>) => void,
    private readonly extra: () => object = () => ({})) {}

  readonly ask = settle(() => { void this.fetch(); }, 35, 110);

  /** Everything again (other data, other filter). What is shown stays until new data are there. */
  forget(): void {
    this.running?.stop.abort();
    this.running = null;
    for (const r of this.rows.values()) { r.from = NaN; r.complete = false; }
    this.arrowsFor = this.marksFor = null;
    this.ask();
  }
  setCategories(categories: string[]): void {
    this.categories = categories;
    this.marks = [];
    this.marksFor = null;
    this.ask();
    this.arrived();
  }
  clear(): void { this.rows.clear(); this.arrows = []; this.marks = []; this.forget(); }
  stop(): void {
    this.running?.stop.abort();
    this.arrowRun?.stop.abort();
    clearTimeout(this.again);
  }

  /** The row's data serve this view as finely as data can. */
  private fine(row: RowStates | undefined, w: Wanted): boolean {
    if (!row || !(row.from <= w.from && row.to >= w.to)) return false;
    return row.complete || row.nsPerPx <= w.nsPerPx * 1.05;
  }

  async fetch(): Promise<void> {
    const w = this.wanted();
    if (!w) return;
    const missing = w.items.filter(i => !this.fine(this.rows.get(i), w));
    const run = this.running;
    if (run) {
      const serves = run.from <= w.from && run.to >= w.to && run.nsPerPx <= w.nsPerPx * 1.05
        && missing.some(i => run.items.has(i));
      if (serves) return; // asks again when that one is through
      run.stop.abort();
      this.running = null;
    }
    // The first states come before everything else.
    if (this.rows.size || !missing.length) { void this.fetchArrows(w); void this.fetchMarks(w); }
    if (!missing.length) return;
    const { session } = this, { axis } = session, pad = (w.to - w.from) / 4;
    const from = Math.max(0, Math.floor(w.from - pad)), to = Math.min(Number(axis.max - axis.min),
      Math.ceil(w.to + pad));
    const stop = new AbortController(), mine = { stop, from, to, nsPerPx: w.nsPerPx,
      items: new Set(missing.slice(0, AT_ONCE)) };
    this.running = mine;
    const range = { start: axis.abs(from), end: axis.abs(to),
      nbTimes: Math.min(65536, Math.max(2, Math.ceil((to - from) / w.nsPerPx) + 1)) };
    try {
      this.requests++;
      const answer = await session.client.states(session.uuid, this.id, range, [...mine.items],
        filterParameters(session.search, session.exclude), stop.signal, this.extra());
      if (this.running !== mine) return;
      this.running = null;
      this.take(answer, mine);
      this.told(answer);
      this.arrived();
      if (answer.status === 'RUNNING') {
        for (const i of mine.items) { const r = this.rows.get(i); if (r) { r.from = NaN; r.complete = false; } }
        clearTimeout(this.again);
        this.again = window.setTimeout(() => this.ask(), 700);
      } else this.ask();
    } catch (e) {
      if (this.running === mine) this.running = null;
      if (!isAbort(e)) this.trouble(e);
    }
  }

  private take(answer: Answer<Row[]>, run: { from: number; to: number; nsPerPx: number; items: Set<number> }): void {
    const got = new Set<number>(), min = this.session.axis.min;
    for (const row of answer.model ?? []) {
      got.add(row.entryId);
      this.rows.delete(row.entryId);
      this.rows.set(row.entryId, packRow(row.states, min, this.looks, run.from, run.to, run.nsPerPx));
    }
    for (const i of run.items)
      if (!got.has(i)) this.rows.set(i, packRow([], min, this.looks, run.from, run.to, run.nsPerPx));
    for (const key of this.rows.keys()) {
      if (this.rows.size <= KEPT) break;
      if (!run.items.has(key)) this.rows.delete(key);
    }
  }

  private async fetchArrows(w: Wanted): Promise<void> {
    if (!this.hasArrows) return;
    const a = this.arrowsFor;
    if (a && a.from <= w.from && a.to >= w.to && a.nsPerPx <= w.nsPerPx * 1.05) return;
    const { session } = this, { axis } = session, pad = (w.to - w.from) / 4;
    const from = Math.max(0, Math.floor(w.from - pad)), to = Math.min(Number(axis.max - axis.min),
      Math.ceil(w.to + pad));
    const key = `${w.from} ${w.to}`;
    if (this.arrowRun?.key === key) return;
    this.arrowRun?.stop.abort();
    const run = { stop: new AbortController(), key };
    this.arrowRun = run;
    try {
      const nbTimes = Math.min(65536, Math.ceil((to - from) / w.nsPerPx) + 1);
      const answer = await session.client.arrows(session.uuid, this.id,
        { start: axis.abs(from), end: axis.abs(to), nbTimes }, run.stop.signal);
      if (this.arrowRun !== run) return;
      this.arrows = (answer.model ?? []).map(x => this.flat(x));
      this.arrowsFor = answer.status === 'RUNNING' ? null : { from, to, nsPerPx: w.nsPerPx };
      this.arrived();
    } catch (e) { if (!isAbort(e)) this.hasArrows = false; } finally {
      if (this.arrowRun === run) this.arrowRun = null;
    }
  }
  private flat(a: Arrow): FlatArrow {
    const { axis } = this.session;
    const style = a.style ?? { parentKey: 'LINK' };
    return { start: axis.rel(a.start), end: axis.rel(a.end), source: a.sourceId, target: a.targetId,
      style: this.looks.index(style) };
  }

  private async fetchMarks(w: Wanted): Promise<void> {
    if (!this.categories.length) return;
    const key = w.items.join() + this.categories.join(), m = this.marksFor;
    if (m && m.from <= w.from && m.to >= w.to && m.key === key) return;
    const { session } = this, { axis } = session, pad = (w.to - w.from) / 4;
    const from = Math.max(0, Math.floor(w.from - pad)), to = Math.min(Number(axis.max - axis.min),
      Math.ceil(w.to + pad));
    this.marksFor = { from, to, key };
    try {
      const range = { start: axis.abs(from), end: axis.abs(to),
        nbTimes: Math.max(2, Math.ceil((to - from) / w.nsPerPx) + 1) };
      const answer = await session.client.annotations(session.uuid, this.id, range, w.items, this.categories,
        session.markerSet);
      this.marks = (answer.model ?? []).map((x: Annotation): FlatMark => {
        const start = axis.rel(x.time);
        return { start, end: start + Number(x.duration), entry: x.entryId, label: x.label ?? '',
          style: this.looks.index(x.style ?? { parentKey: 'lost' }), wide: x.duration > 0n };
      });
      this.arrived();
    } catch (e) { if (!isAbort(e)) this.categories = []; }
  }
}
