// SPDX-License-Identifier: MIT
// Along a critical path, segment by segment, from machine to machine: the bar below its picture, the frame around the
// segment that one is at, and what the server knows of it in Details.
import { announce, button, h, setText } from './dom';
import { Emitter } from './emitter';
import type { GraphView } from './graphview';
import type { Segment } from './pathdata';
import type { Session } from './session';
import { formatDuration, formatExact } from './time';
import { isAbort, type Time } from './tsp';

const LEAST = 1;     // px that a segment must have to be seen
const NEAR = 10;     // what is shorter gets a part of so many of the width

export class PathWalk {
  private readonly line = h('p', { role: 'status' });
  private readonly back = button('[ previous', 'Previous segment of the path ( [ )', () => this.step(-1));
  private readonly on = button('next ]', 'Next segment of the path ( ] )', () => this.step(1));
  private readonly only = button('only its threads', 'only its threads: in the other views those of the path', () => {
    this.session.setOnlyPath(!this.session.onlyPath);
    this.only.setAttribute('aria-pressed', String(this.session.onlyPath));
  }, { 'aria-pressed': 'false' });
  readonly root = h('div', { class: 'walk', role: 'group', 'aria-label': 'Along the path', hidden: true }, this.back,
    this.line, this.only, this.on);
  /** One goes to a segment. */
  readonly moved = new Emitter();
  segments: Segment[] = [];
  /** Where one is; -1: nowhere yet. */
  at = -1;
  private asking = new AbortController();
  /** What was in view before a short segment was zoomed to, and what is since then. */
  private before: [Time, Time] | null = null;
  private near: [Time, Time] | null = null;

  /** `alone`: the other views can show its threads alone. */
  constructor(private readonly session: Session, private readonly view: GraphView, alone = true) {
    this.only.hidden = !alone;
    view.walker = (entry, t) => {
      const i = this.segments.findIndex(s => s.entry === entry && s.begin <= t && t < s.end);
      if (i >= 0) this.go(i);
      return i >= 0;
    };
  }
  /** The path is known better; one stays where one was. */
  set(segments: Segment[]): void {
    const was = this.segments[this.at];
    this.segments = segments;
    this.root.hidden = !segments.length;
    this.at = was ? segments.findIndex(s => s.begin <= was.begin && was.begin < s.end) : -1;
    this.mark();
    this.tell('');
  }
  dispose(): void { this.asking.abort(); }

  step(direction: 1 | -1): void {
    const { segments: all } = this, { axis } = this.session;
    if (!all.length) return;
    if (this.at >= 0) { this.go(Math.max(0, Math.min(all.length - 1, this.at + direction))); return; }
    // The first step leads to what the cursor is at, where that is on the path.
    const t = axis.cursor === null ? NaN : axis.rel(axis.cursor), under = all.findIndex(s => s.begin <= t && t < s.end);
    this.go(direction < 0 ? all.length - 1 : Math.max(0, under));
  }
  go(i: number): void {
    const s = this.segments[i], { session, view } = this;
    this.at = i;
    this.follow(s);
    this.mark();
    view.showEntry(s.entry);
    if (s.tid !== null) session.pick({ host: s.host, tid: s.tid, name: s.name, id: s.entry });
    this.tell('');
    announce(this.line.textContent ?? '');
    this.moved.emit();
    void this.ask(s);
  }

  /** It comes into view; what is in view stays there where that is possible. */
  private follow(s: Segment): void {
    const { axis } = this.session, begin = axis.abs(s.begin), end = axis.abs(s.end);
    if (this.near && this.before && this.near[0] === axis.begin && this.near[1] === axis.end)
      axis.show(...this.before, false); // nobody else has moved since
    this.before = this.near = null;
    if (begin < axis.begin || end > axis.end) axis.reveal(begin, end);
    if ((s.end - s.begin) / axis.nsPerPx >= LEAST) return;
    const middle = (s.begin + s.end) / 2, half = Math.max(100, (s.end - s.begin) * NEAR / 2);
    this.before = [axis.begin, axis.end];
    axis.show(axis.abs(middle - half), axis.abs(middle + half));
    this.near = [axis.begin, axis.end];
  }
  private mark(): void {
    const s = this.segments[this.at];
    this.view.part.frame = s ? { entry: s.entry, begin: s.begin, end: s.end } : null;
    this.view.redraw();
  }
  /** "7/30 db 204 tier running 17.7 ms — why": where one is. */
  private tell(why: string): void {
    const { segments: all, at } = this, s = all[at];
    this.back.disabled = at === 0;
    this.on.disabled = at === all.length - 1;
    setText(this.line, s ? `${at + 1}/${all.length}  ${[s.host, s.tid, s.name, s.kind].filter(x => x ?? '').join(' ')} `
      + `${formatDuration(s.end - s.begin)}${why && ` — ${why}`}`
      : `${all.length} segments: [ and ] go along the path`);
  }
  private async ask(s: Segment): Promise<void> {
    const { session, view } = this, { axis } = session, { begin, end } = { begin: axis.abs(s.begin),
      end: axis.abs(s.end) };
    this.asking.abort();
    const { signal } = this.asking = new AbortController();
    const what: [string, string][] = [['State', s.kind], ...(s.label ? [['What', s.label] as [string, string]] : []),
      ['Duration', `${formatDuration(end - begin)} (${formatExact(end - begin)})`]];
    const when: [string, string][] = [['Begin', session.time(begin)], ['End', session.time(end)]];
    const detail = { title: `${s.name} ${s.tid ?? ''} · ${s.host}`, begin, end };
    session.detail.emit({ ...detail, lines: [...what, ...when] });
    try {
      const { model } = await session.client.tooltip(session.uuid, view.output.id, begin, s.entry,
        { elementType: 'state', time: begin, duration: end - begin, entryId: s.entry }, signal);
      if (!model || signal.aborted) return;
      this.tell(String(model.Began ?? ''));
      session.detail.emit({ ...detail, lines: [...what, ...why(model), ...when, ...besides(model)],
        go: { Before: () => this.step(-1), After: () => this.step(1) } });
    } catch (e) { if (!isAbort(e)) this.tell('the server does not say why'); }
  }
}

const WHY = ['Segment', 'Began', 'Ended', 'Before', 'After'];
const KNOWN = new Set([...WHY, 'Host', 'Process', 'TID', 'State', 'Detail', 'Start', 'End', 'Duration']);
/** The server's lines about why the segment is there. */
function why(model: Record<string, string>): [string, string][] {
  return WHY.filter(k => k in model).map(k => [k, String(model[k])]);
}
/** And those that the page does not know by itself. */
function besides(model: Record<string, string>): [string, string][] {
  return Object.entries(model).filter(([k]) => !KNOWN.has(k)).map(([k, v]) => [k, String(v)]);
}
