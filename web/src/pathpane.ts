// SPDX-License-Identifier: MIT
// The critical path: made on the server as a derived output, drawn by a GraphView; here its segments, totals and
// stepping.
import { announce, button, h } from './dom';
import { GraphView } from './graphview';
import { ID, outputOf } from './outputs';
import { failureWords } from './panel';
import { countOf, readings, sentenceOf, type Segment } from './pathdata';
import { PathWalk } from './pathwalk';
import { SegmentList } from './seglist';
import { Sentence } from './sentence';
import { glowKey, type Interval, type Picked, type Session } from './session';
import { formatDuration } from './time';
import { isAbort, type Entry, type Output, type Time } from './tsp';

interface Total { key: string; ns: number; host: string; tid: number | null; name: string; kind: string;
  labels: Set<string>; colour: string; hatched: boolean; segments: Segment[] }

const SMALL = 0.4;     // of the view's width: a path that has less of it is zoomed to

/** `request`: the interval is that of a request, of which the work of its threads for others is no part. */
export interface PathSpec { thread: Picked; begin?: Time; end?: Time; request?: boolean }

/** Whose path a derived output is. */
export function specOf(output: Output): PathSpec | null {
  const p = output.configuration?.parameters;
  if (!p || output.parentId !== ID.criticalPath) return null;
  const named = /^(.*):(\d+)$/.exec(String(p.thread ?? '')),
    time = (v: unknown): Time | undefined => typeof v === 'bigint' ? v : typeof v === 'number' ? BigInt(v) : undefined;
  return { thread: { host: String(p.host ?? named?.[1] ?? ''), tid: Number(named?.[2] ?? p.thread ?? -1), name: '',
    ...(p.id === undefined ? {} : { id: Number(p.id) }) },
    begin: time(p.begin), end: time(p.end), ...(p.request === true ? { request: true } : {}) };
}

/** The server's way to make critical paths, or null. */
export function pathOutput(outputs: Output[]): Output | null {
  const o = outputOf(outputs, ID.criticalPath);
  return o?.capabilities?.canCreate ? o : null;
}

export async function createPath(session: Session, spec: PathSpec): Promise<{ parent: Output; derived: Output }> {
  const { client, uuid } = session, parent = pathOutput(session.outputs);
  if (!parent) throw new Error('This server offers no critical path.');
  const types = await client.configTypes(uuid, parent.id);
  if (!types.length) throw new Error('The critical path cannot be configured on this server.');
  const { thread, begin, end, request } = spec;
  const derived = await client.derive(uuid, parent.id, {
    name: `Critical path of ${thread.name || 'thread'} ${thread.tid}${thread.host ? ` on ${thread.host}` : ''}`,
    description: begin === undefined ? 'Its whole life' : request ? 'A request' : 'An interval of it',
    sourceTypeId: types[0].id,
    parameters: { thread: thread.tid, ...(thread.host ? { host: thread.host } : {}),
      ...(thread.id === undefined ? {} : { id: thread.id }),
      ...(begin !== undefined && end !== undefined ? { begin, end } : {}), ...(request ? { request } : {}) },
  });
  return { parent, derived };
}

export class PathPane {
  private readonly sums = h('div', { class: 'path-sums' });
  readonly root = h('div', { class: 'path-pane' }, this.sums);
  private readonly sentence = new Sentence();
  readonly walk: PathWalk;
  private readonly list: SegmentList;
  segments: Segment[] = [];
  /** Of segments; there may be more than a page has room for. */
  private count = 0;
  /** The server has told all it will. */
  done = false;
  private totals: Total[] = [];
  private chosen: Total | null = null;
  private at = -1;
  private readonly stopping = new AbortController();
  private undo: () => void;
  private spread = false;

  /** `placed`: the view's interval is settled already (a link), the path must not move it. */
  constructor(private readonly session: Session, readonly view: GraphView, readonly spec: PathSpec,
    private readonly placed = false) {
    this.undo = session.timeModeChanged.on(() => this.render());
    this.walk = new PathWalk(session, view);
    this.list = new SegmentList(this.walk);
    this.root.append(this.list.root);
    view.above(this.sentence.root);
    view.below(this.walk.root);
    this.words('The local part comes first; other machines are asked…');
    void this.load();
  }
  dispose(): void {
    this.stopping.abort();
    this.walk.dispose();
    this.undo();
    this.root.remove();
    if (this.session.onlyPath) this.session.setOnlyPath(false);
    this.session.glow.clear();
    this.session.glowChanged.emit();
    if (this.session.stepper?.label === 'path') this.session.stepper = null;
  }
  private words(text: string): void { this.sums.replaceChildren(h('p', { class: 'words', role: 'status' }, text)); }

  /** All segments, again and again while the server is RUNNING. `first`: they are brought into view. */
  async load(first = true): Promise<void> {
    const { session, view } = this, { axis } = session, { signal } = this.stopping;
    try {
      for await (const r of readings(session, view, this.spec.begin, this.spec.end, signal)) {
        const soFar = r.status === 'RUNNING';
        if (r.tree) {
          this.segments = r.segments;
          this.count = Math.max(countOf(r.tree) ?? 0, r.segments.length);
          this.say(sentenceOf(r.tree), soFar ? 'so far' : '');
          this.sum(new Map(r.workers.map(e => [e.id, e.metadata])));
          this.light();
          this.walk.set(r.segments);
          this.list.set(r.segments);
          this.render(r.running ? r.message || 'asking other machines…' : r.note);
          if (first && r.segments.length) {
            first = false;
            const a = r.segments[0].begin, b = r.segments[r.segments.length - 1].end, pad = (b - a) * 0.04,
              small = (b - a) / axis.nsPerPx < axis.width * SMALL;
            if (!this.placed && (this.spec.begin === undefined || small))
              axis.show(axis.abs(a - pad), axis.abs(b + pad));
          }
          view.data.forget();
        } else if (!soFar)
          this.words(r.note || 'There is no path: the thread does not run in this interval.');
        if (r.status === 'FAILED') this.words(r.message || 'The path could not be computed.');
      }
      this.done = true;
    } catch (e) {
      if (isAbort(e)) return;
      this.sums.replaceChildren(h('p', { class: 'words', role: 'alert' }, failureWords(e), ' ',
        button('Try again', 'Ask the server again', () => void this.load())));
    }
  }

  private say(sentence: string, more: string): void {
    if (this.sentence.say(sentence, more)) this.view.relayout();
  }

  /** Totals by thread and state. Where the server tells exact sums they count: states shorter than the sampling may be
   * missing among the segments. */
  private sum(exact: Map<number, Entry['metadata']>): void {
    const totals = new Map<string, Total>(), plain = (s: string): string => s.toLowerCase().replace(/[ _-]/g, '');
    for (const s of this.segments) {
      const key = [s.host, s.tid, s.name, s.kind].join('\u0001');
      let t = totals.get(key);
      if (!t) totals.set(key, t = { key, ns: 0, host: s.host, tid: s.tid, name: s.name, kind: s.kind, labels: new Set(),
        colour: s.colour, hatched: s.hatched, segments: [] });
      t.ns += s.end - s.begin;
      if (s.label) t.labels.add(s.label);
      t.segments.push(s);
    }
    for (const t of totals.values()) {
      const entry = t.segments[0].entry, told = t.host === '–' ? undefined
        : Object.entries(exact.get(entry) ?? {}).find(([k]) => plain(k) === plain(t.kind));
      if (told && t.segments.every(s => s.entry === entry)) t.ns = Number(told[1][0]);
    }
    this.totals = [...totals.values()].sort((a, b) => b.ns - a.ns);
    if (this.chosen) this.chosen = totals.get(this.chosen.key) ?? null;
  }
  private light(): void {
    const glow = new Map<string, Interval[]>();
    for (const s of this.segments) {
      if (s.tid === null) continue;
      const key = glowKey(s.host, s.tid), list = glow.get(key);
      if (list) list.push(s); else glow.set(key, [s]);
    }
    this.session.glow = glow;
    this.session.glowChanged.emit();
    if (this.session.onlyPath) this.session.setOnlyPath(true); // they may be others now
  }

  private status = '';
  private render(status: string = this.status): void {
    this.status = status;
    if (!this.segments.length) return;
    const { session, segments } = this, { axis } = session, first = segments[0].begin,
      last = segments.reduce((m, s) => Math.max(m, s.end), 0), whole = Math.max(1, last - first);
    const machines = new Set(segments.map(s => s.host).filter(x => x && x !== '–')).size, { thread } = this.spec;
    // A path that somebody else asked for says only the number.
    const name = thread.name || segments.find(s => s.tid === thread.tid
      && (!thread.host || s.host === thread.host))?.name || '';
    const bar = h('div', { class: 'path-bar', 'aria-hidden': 'true' });
    for (const t of this.totals) {
      const part = h('span', { class: t.hatched ? 'hatch' : '', title: `${t.kind} ${t.name}` });
      part.style.width = `${t.ns / whole * 100}%`;
      part.style.background = t.colour;
      bar.append(part);
    }
    const shown = this.spread ? this.totals : this.totals.slice(0, 40);
    const body = h('tbody', {}, ...shown.map(t => {
      const swatch = h('span', { class: `swatch${t.hatched ? ' hatch' : ''}` });
      swatch.style.background = t.colour;
      const labels = [...t.labels].slice(0, 3).join(', ');
      return h('tr', {
        class: t === this.chosen ? 'picked' : '', tabIndex: 0,
        'aria-label': `${(t.ns / whole * 100).toFixed(1)} percent ${t.kind} ${t.host} ${t.name}`,
        onclick: () => this.choose(t), onkeydown: (e: KeyboardEvent) => {
          if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); e.stopPropagation(); this.choose(t); }
        },
      }, h('td', { class: 'number' }, `${(t.ns / whole * 100).toFixed(1)} %`),
      h('td', { class: 'number' }, formatDuration(t.ns)), h('td', {}, t.host),
      h('td', { class: 'number' }, t.tid === null ? '' : String(t.tid)),
      h('td', {}, t.name), h('td', {}, swatch, t.kind), h('td', { class: 'what', title: labels }, labels),
      h('td', { class: 'number' }, String(t.segments.length)));
    }));
    this.sums.replaceChildren(
      h('p', { class: 'path-title' },
        h('strong', {}, `${thread.host}${thread.host ? ':' : ''}${thread.tid} ${name}`),
        `  ${session.time(axis.abs(first), 6)} → +${formatDuration(last - first)} · ${machines} `
          + `machine${machines === 1 ? '' : 's'}, ${this.count} segments`
          + `${this.count > segments.length ? `, ${segments.length} of them here` : ''}`,
        status && h('em', {}, ` · ${status}`),
        this.chosen && ` · ${this.at + 1} of ${this.chosen.segments.length}: n next, p previous`),
      bar,
      h('table', { class: 'grid' }, h('thead', {}, h('tr', {},
        ...['Share', 'Time', 'Machine', 'TID', 'Thread', 'State', 'What',
          'Segments'].map((x, i) => h('th', { scope: 'col', class: i < 2 || i === 3 || i === 7 ? 'number' : '' }, x)))),
          body));
    if (this.totals.length > 40)
      this.sums.append(button(this.spread ? 'Fewer' : `All ${this.totals.length}`, 'Show all totals', () => {
      this.spread = !this.spread;
      this.render();
    }));
  }

  private choose(t: Total): void {
    this.chosen = t;
    this.at = -1;
    this.session.stepper = { label: 'path', step: d => Promise.resolve(this.step(d)) };
    this.step(1);
    this.sums.querySelector<HTMLElement>('tr.picked')?.focus();
  }
  private step(direction: 1 | -1): boolean {
    const list = this.chosen?.segments;
    if (!list?.length) return false;
    this.at = (this.at + direction + list.length) % list.length;
    const s = list[this.at], { axis } = this.session;
    axis.select(axis.abs(s.begin), axis.abs(s.end));
    // Too short to be seen: nearer, so that it takes a tenth of the width.
    if ((s.end - s.begin) / axis.nsPerPx < 5) {
      const mid = (s.begin + s.end) / 2, half = Math.max(100, (s.end - s.begin) * 5);
      axis.show(axis.abs(mid - half), axis.abs(mid + half));
    }
    axis.reveal(axis.abs(s.begin), axis.abs(s.end));
    this.walk.go(this.segments.indexOf(s));
    this.render();
    announce(`${s.kind} ${formatDuration(s.end - s.begin)}, ${this.at + 1} of ${list.length}`);
    return true;
  }
}
