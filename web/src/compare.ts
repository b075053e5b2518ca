// SPDX-License-Identifier: MIT
// Two critical paths beside each other: two waterfalls that both start at 0 on one scale, what is longer and shorter as
// a strip, in words, and part by part in the drawer. The numbers and the words are the server's.
import { Axis } from './axis';
import { FONT, Surface } from './canvas';
import { announce, button, h } from './dom';
import { icon } from './icons';
import { perFrame } from './emitter';
import { GraphView } from './graphview';
import { ID, outputOf } from './outputs';
import { failureWords, treeWidthNow, type PanelHost } from './panel';
import { readings, sentenceOf, type Segment } from './pathdata';
import type { PathSpec } from './pathpane';
import { PathWalk } from './pathwalk';
import { Sentence } from './sentence';
import { sessionAlong, type Session } from './session';
import { Looks } from './style';
import { formatDuration } from './time';
import { isAbort, poll, type Entry, type Output } from './tsp';

const ROOM = 0.26;      // of the window's height that one of the two may take
const STRIP = 30;       // px
const GAP = 4;          // px between words and edges

/** What the server compares paths with, or null. */
export function comparisonOutput(outputs: Output[]): Output | null {
  return outputOf(outputs, ID.comparison);
}

/** A path and what it is of. */
export interface Side { output: Output; spec: PathSpec }

/** What threads of one name on one machine did in one state, in both. */
interface Part { host: string; thread: string; name: string; state: string; what: string; a: number; b: number }

const text = (e: Entry, key: string): string => String(e.metadata[key]?.[0] ?? '');
function partOf(e: Entry): Part {
  return { host: e.labels[0] ?? '', thread: e.labels[1] ?? '', name: text(e, 'comm'), state: text(e, 'state'),
    what: e.labels[3] ?? '', a: Number(text(e, 'a')), b: Number(text(e, 'b')) };
}
const plain = (state: string): string => state.toLowerCase().replace(/[ _-]/g, '');
function has(p: Part, s: Segment): boolean {
  return s.host === p.host && plain(s.kind) === plain(p.state) && (plain(p.state) === 'network' || s.name === p.name);
}
function signed(ns: number): string {
  return `${ns < 0 ? '−' : ns > 0 ? '+' : ''}${formatDuration(Math.abs(ns))}`;
}

/** One of the two waterfalls. */
class Waterfall {
  readonly axis = new Axis();
  view: GraphView | null = null;
  walk: PathWalk | null = null;
  segments: Segment[] = [];
  length = 0;
  private readonly sentence = new Sentence();
  private readonly looks = new Looks(true);

  constructor(private readonly session: Session, readonly letter: 'a' | 'b', readonly side: Side) {
    this.axis.width = session.axis.width;
  }
  /** Reads the path; `known`: told whenever there is more of it. Its begin is the 0 of its axis, and stays. */
  async read(signal: AbortSignal, known: () => void): Promise<string> {
    const { session, side: { output, spec } } = this;
    let trouble = '';
    for await (const r of readings(session, { output, looks: this.looks }, spec.begin, spec.end, signal)) {
      trouble = r.segments.length && r.status !== 'FAILED' ? '' : r.message || 'there is no path in this interval';
      const [first] = r.segments;
      if (!first) continue;
      if (!this.view) this.axis.min = session.axis.abs(first.begin);
      const shift = session.axis.rel(this.axis.min);
      this.segments = r.segments.map(s => ({ ...s, begin: s.begin - shift, end: s.end - shift }));
      this.length = this.segments.reduce((m, s) => Math.max(m, s.end), 0);
      this.sentence.say(sentenceOf(r.tree!), r.status === 'RUNNING' ? 'so far'
        : `from ${session.time(this.axis.min, 6)}, ${formatDuration(this.length)}`);
      known();
      this.walk?.set(this.segments);
      this.view?.data.forget();
    }
    return trouble;
  }
  draw(host: PanelHost, chosen: () => void): GraphView {
    const { output } = this.side, along = sessionAlong(this.session, this.axis),
      name = output.name.replace(/^Critical path of/, `${this.letter} ·`),
      view = this.view = new GraphView(along, { ...output, name }, host, undefined, true);
    view.room = ROOM;
    view.root.classList.add('side');
    const walk = this.walk = new PathWalk(along, view, false);
    walk.set(this.segments);
    view.entitle(this.sentence.root);
    view.below(walk.root);
    walk.moved.on(() => {
      const { axis } = this.session, s = walk.segments[walk.at]; // the other views see it, too
      axis.reveal(this.axis.abs(s.begin), this.axis.abs(s.end));
      chosen();
    });
    return view;
  }
  dispose(): void { this.walk?.dispose(); }
}

export class Comparison {
  private readonly stopping = new AbortController();
  private readonly sides: [Waterfall, Waterfall];
  private at: Waterfall;
  private readonly sentence = new Sentence();
  private readonly surface = new Surface('What is longer and what is shorter in b');
  private readonly head: HTMLElement;
  private readonly strip = h('div', { class: 'difference' }, h('span', { class: 'difference-name' },
    'b − a'), this.surface.canvas);
  /** Part by part, for the drawer. */
  readonly table = h('div', { class: 'path-pane compared' });
  private parts: Part[] = [];
  private chosen: Part | null = null;
  private undo: (() => void)[];
  private readonly redraw = perFrame(() => this.draw());
  views: GraphView[] = [];
  /** The server has told all it will. */
  done = false;

  constructor(private readonly session: Session, private readonly host: PanelHost, private readonly output: Output,
    private readonly a: Side, readonly b: Side, private readonly on: { views: (views: GraphView[]) => void;
      swap: () => void; close: () => void }) {
    this.sides = [new Waterfall(session, 'a', a), new Waterfall(session, 'b', b)];
    [this.at] = this.sides;
    this.head = h('div', { role: 'group', 'aria-label': 'Comparison' }, h('div', { class: 'comparison' },
      this.sentence.root,
      button('swap', 'Swap the two paths: what was b is what the other is compared with', on.swap, { class: 'small' }),
      button(icon('close'), 'Close the comparison ( c )', on.close, { class: 'plain' })), this.strip);
    this.undo = [session.themeChanged.on(this.redraw), session.axis.moved.on(this.redraw)];
    this.words('Asking for both paths…');
    void this.load();
  }
  dispose(): void {
    this.stopping.abort();
    for (const f of this.undo) f();
    for (const w of this.sides) w.dispose();
    this.table.remove();
    this.head.remove();
  }
  has(view: unknown): boolean { return this.views.includes(view as GraphView); }
  step(direction: 1 | -1): void { this.at.walk?.step(direction); }
  private words(t: string): void { this.table.replaceChildren(h('p', { class: 'words', role: 'status' }, t)); }

  private async load(): Promise<void> {
    const { session, sides } = this, { signal } = this.stopping, [a, b] = [this.a, this.b].map(s =>
      s.output.configuration?.parameters ?? {});
    try {
      const read = Promise.all(sides.map(w => w.read(signal, () => this.known())));
      await poll(() => session.client.tree(session.uuid, 'data', this.output.id, null, signal, { a, b }), t => {
        if (t.status === 'FAILED') throw new Error(t.statusMessage || 'The paths could not be compared.');
        if (!t.model?.entries.length) return;
        this.parts = t.model.entries.map(partOf);
        const more = t.status === 'RUNNING' ? 'so far' : t.note;
        if (this.sentence.say(sentenceOf(t.model), more)) this.host.resized();
        this.render();
      }, signal);
      const trouble = (await read).map((t, i) => t && `${'ab'[i]}: ${t}`).filter(Boolean).join(' · ');
      if (trouble) this.words(trouble);
      this.render();
      this.done = true;
    } catch (e) {
      if (isAbort(e)) return;
      this.table.replaceChildren(h('p', { class: 'words', role: 'alert' }, failureWords(e), ' ',
        button('Try again', 'Ask the server again', () => void this.load())));
    }
  }
  /** Both are drawn once both are known: then their scale is. */
  private known(): void {
    const { sides } = this;
    if (sides.some(w => !w.segments.length)) return;
    this.scale();
    if (this.views.length) return;
    for (const { axis } of sides) axis.show(axis.min, axis.max, false);
    this.views = sides.map(w => w.draw(this.host, () => this.choose(w)));
    const [a, b] = sides;
    for (const [w, other] of [[a, b], [b, a]]) this.undo.push(w.axis.moved.on(() => {
      const { axis } = w, { min } = other.axis;
      other.axis.show(min + axis.begin - axis.min, min + axis.end - axis.min, false);
      this.redraw();
    }));
    this.views[0].root.prepend(this.head);
    this.choose(a);
    this.on.views(this.views);
    this.render();
  }
  /** Of both, as long as whatever is drawn along it, and a little more, so that its end is seen. */
  private scale(): void {
    const changed = this.parts.reduce((sum, p) => sum + Math.abs(p.b - p.a), 0),
      longest = Math.max(changed, ...this.sides.map(w => w.length));
    for (const { axis } of this.sides) axis.setExtent(axis.min, axis.min + BigInt(Math.ceil(longest * 1.02)));
  }
  /** [ and ] go along this one. */
  private choose(w: Waterfall): void {
    this.at = w;
    for (const s of this.sides) s.view?.root.classList.toggle('walked', s === w);
    this.host.resized();
  }

  // ---- what is longer, what is shorter ------------------------------------------------------------------------------
  /** In the order in which they first come in b, then in a. */
  private inOrder(): Part[] {
    const [a, b] = this.sides, first = (p: Part): number => {
      const inB = b.segments.find(s => has(p, s)), inA = a.segments.find(s => has(p, s));
      return inB?.begin ?? inA?.begin ?? Infinity;
    };
    return this.parts.filter(p => p.a !== p.b).map(p => ({ p, at: first(p) })).sort((x, y) => x.at - y.at)
      .map(x => x.p);
  }
  private render(): void {
    this.redraw();
    if (!this.parts.length || !this.views.length) return;
    this.scale();
    const longest = this.parts.reduce((m, p) => Math.max(m, p.a, p.b), 1), percent = (ns: number): string =>
      `${ns / longest * 100}%`;
    const body = this.parts.map(p => {
      const both = h('span', { class: 'both' }), more = h('span', { class: p.b > p.a ? 'longer' : 'shorter' });
      both.style.width = percent(Math.min(p.a, p.b));
      more.style.width = percent(Math.abs(p.b - p.a));
      const row = h('tr', { tabIndex: 0, class: p === this.chosen ? 'picked' : '',
        'aria-label': `${p.host} ${p.thread} ${p.state} ${signed(p.b - p.a)}`, onclick: () => this.goTo(p, row),
        onkeydown: (e: KeyboardEvent) => {
          if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); e.stopPropagation(); this.goTo(p, row); }
        } }, h('td', { class: 'number' }, p.a ? formatDuration(p.a) : '–'),
      h('td', { class: 'number' }, p.b ? formatDuration(p.b) : '–'),
      h('td', { class: `number ${p.b > p.a ? 'longer-text' : p.b < p.a ? 'shorter-text' : ''}` }, signed(p.b - p.a)),
      h('td', {}, h('div', { class: 'aligned', 'aria-hidden': 'true' }, both, more)), h('td', {}, p.host),
      h('td', {}, p.thread), h('td', {}, p.state.replace(/-/g, ' ')),
      h('td', { class: 'what', title: p.what }, p.what));
      return row;
    });
    this.table.replaceChildren(h('table', { class: 'grid' }, h('thead', {}, h('tr', {},
      ...['a', 'b', 'b − a', '', 'Machine', 'Thread', 'State', 'What'].map((x, i) =>
        h('th', { scope: 'col', class: i < 3 ? 'number' : '' }, x)))), h('tbody', {}, ...body)));
  }
  /** To its longest piece in both. */
  private goTo(p: Part, row: HTMLElement): void {
    this.chosen = p;
    for (const w of this.sides) {
      const pieces = w.segments.filter(s => has(p, s)).sort((x, y) => y.end - y.begin - (x.end - x.begin));
      if (pieces.length) w.walk?.go(w.segments.indexOf(pieces[0]));
    }
    for (const r of this.table.querySelectorAll('tr')) r.classList.toggle('picked', r === row);
    announce(`${p.host} ${p.thread} ${p.state} ${signed(p.b - p.a)}`);
  }

  /** Longer in red, shorter in green with a pattern, each as long as it is on the scale of the waterfalls. */
  private draw(): void {
    const { axis } = this.sides[0], { theme } = this.session, width = this.session.axis.width;
    if (!this.views.length) return;
    this.strip.style.setProperty('--names', `${treeWidthNow() + 6}px`);
    const ctx = this.surface.start(width, STRIP), scale = axis.nsPerPx;
    ctx.font = FONT;
    ctx.textBaseline = 'middle';
    let at = 0;
    for (const p of this.inOrder()) {
      const ns = p.b - p.a, x = (at - axis.offset) / scale, w = Math.abs(ns) / scale;
      at += Math.abs(ns);
      if (x > width || x + w < 0) continue;
      const l = Math.max(0, x), r = Math.min(width, x + w), longer = ns > 0;
      ctx.fillStyle = longer ? theme.longer : theme.shorter;
      ctx.fillRect(l, 4, Math.max(1, r - l - 1), STRIP - 8);
      if (!longer) hatch(ctx, l, 4, Math.max(1, r - l - 1), STRIP - 8);
      const word = [`${p.host} ${p.name} ${p.state.replace(/-/g, ' ')} ${signed(ns)}`,
        `${p.host} ${p.state.replace(/-/g, ' ')} ${signed(ns)}`, signed(ns)]
        .find(t => ctx.measureText(t).width + 2 * GAP < r - l - 1);
      if (!word) continue;
      const ink = ctx.measureText(word).width;
      if (!longer) { // words on a pattern need a ground
        ctx.fillStyle = theme.shorter;
        ctx.fillRect(l + 2, 7, ink + 2 * GAP - 2, STRIP - 14);
      }
      ctx.fillStyle = '#ffffff';
      ctx.fillText(word, l + GAP, STRIP / 2);
    }
    this.strip.dataset.ns = String(at);
  }
}

function hatch(ctx: CanvasRenderingContext2D, x: number, y: number, w: number, height: number): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, height);
  ctx.clip();
  ctx.strokeStyle = 'rgb(255 255 255 / 55%)';
  ctx.lineWidth = 2;
  ctx.beginPath();
  for (let d = -height; d < w; d += 7) { ctx.moveTo(x + d, y + height); ctx.lineTo(x + d + height, y); }
  ctx.stroke();
  ctx.restore();
}
