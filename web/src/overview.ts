// SPDX-License-Identifier: MIT
// The strip over everything: event density of the whole experiment, lost events in red, the part in view; drag to zoom.
import { Surface, SMALL } from './canvas';
import { drag, h } from './dom';
import { Emitter, perFrame } from './emitter';
import { ID, outputOf } from './outputs';
import type { Session } from './session';
import { formatDuration, formatTickTime, ticks } from './time';
import { isAbort, poll, sleep, type Entry, type Time } from './tsp';

const HEIGHT = 44;

export class Overview {
  readonly root = h('div', { class: 'overview', role: 'slider', tabIndex: 0, 'aria-label': 'Part of the trace in view',
    title: 'Drag to zoom · drag the frame to move · double click: whole trace' });
  private readonly surface = new Surface();
  private x: number[] = [];
  private events: number[] = [];
  private lost: number[] = [];
  private words = '';
  private stop: AbortController | null = null;
  /** Bookmarks and the like, drawn as ticks. */
  marks: { start: Time; end: Time; colour: string }[] = [];
  /** Events that were lost. */
  readonly lostTotal = new Emitter<number>();
  readonly redraw = perFrame(() => this.draw());

  constructor(private readonly session: Session) {
    this.root.append(this.surface.canvas);
    const { axis } = session;
    axis.moved.on(this.redraw);
    axis.selected.on(this.redraw);
    session.themeChanged.on(this.redraw);
    session.timeModeChanged.on(this.redraw);
    new ResizeObserver(this.redraw).observe(this.root);
    this.root.addEventListener('pointerdown', e => this.press(e));
    this.root.addEventListener('pointermove', e => {
      this.root.style.cursor = { move: 'grab', begin: 'ew-resize', end: 'ew-resize',
        zoom: 'crosshair' }[this.grabs(e.offsetX)];
    });
    this.root.addEventListener('dblclick', () => axis.whole());
    this.root.addEventListener('keydown', e => {
      const pan = { ArrowLeft: -0.1, ArrowRight: 0.1, PageUp: -1, PageDown: 1 }[e.key],
        zoom = { ArrowUp: 1 / 1.5, ArrowDown: 1.5 }[e.key];
      if (pan === undefined && zoom === undefined) return;
      e.preventDefault();
      e.stopPropagation();
      if (pan !== undefined) axis.pan(axis.width * pan); else axis.zoom(zoom!, axis.width / 2);
    });
    this.root.addEventListener('wheel', e => {
      e.preventDefault();
      const px = Number(this.timeAt(e.offsetX) - axis.begin) / axis.nsPerPx;
      axis.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * 0.0022))), Math.max(0, Math.min(axis.width, px)));
    }, { passive: false });
  }

  /** `again`: what is there stays until more has come. */
  async load(again = false): Promise<void> {
    this.stop?.abort();
    const stop = this.stop = new AbortController(), { session } = this, { axis, client, uuid } = session;
    if (!again) {
      this.x = []; this.events = []; this.lost = [];
      this.lostTotal.emit(0);
    }
    const output = outputOf(session.outputs, ID.histogram);
    this.words = output ? 'counting events…' : 'no event histogram in this trace';
    this.redraw();
    if (!output) return;
    try {
      const range = { start: axis.min, end: axis.max, nbTimes: Math.max(2,
        Math.min(1200, Math.round((this.root.clientWidth || 1200) / 2))) };
      const tree = await client.tree(uuid, 'XY', output.id, range, stop.signal);
      // Of the whole experiment where the server sums it up, else of all there is.
      const all = tree.model?.entries ?? [], whole = all.find(e => e.parentId < 0
        && e.labels[0] === session.experiment?.name);
      const entries = all.filter(e => e.hasData && (!whole || e.parentId === whole.id)), items = entries.map(e => e.id);
      const is = (e: Entry, key: string, words: RegExp): boolean => e.key === undefined
        ? words.test(e.labels[0] ?? '') : e.key === key;
      const lostIds = new Set(entries.filter(e => is(e, 'lost', /lost/i)).map(e => e.id));
      const totals = new Set(entries.filter(e => is(e, 'total', /total|event/i) && !lostIds.has(e.id)).map(e => e.id));
      await poll(() => client.xy(uuid, 'XY', output.id, range, items, stop.signal), a => {
        const series = a.model?.series ?? [];
        this.x = (series[0]?.xValues ?? []).map(t => Number(BigInt(t) - axis.min));
        const add = (want: (id: number) => boolean): number[] =>
          this.x.map((_, i) => series.reduce((sum, s) => sum + (want(s.seriesId) ? Number(s.yValues[i] ?? 0) : 0), 0));
        this.events = add(id => !lostIds.has(id) && (!totals.size || totals.has(id)));
        this.lost = add(id => lostIds.has(id));
        this.lostTotal.emit(this.lost.reduce((a1, b) => a1 + b, 0));
        this.words = '';
        this.redraw();
      }, stop.signal);
    } catch (e) {
      if (isAbort(e)) return;
      this.words = 'the histogram did not arrive';
      this.redraw();
      await sleep(5000, stop.signal).then(() => this.load(), () => { /* another experiment */ });
    }
  }

  private get width(): number { return Math.max(1, this.root.clientWidth); }
  private px(t: Time): number {
    const { axis } = this.session;
    return Number(t - axis.min) / Number(axis.max - axis.min) * this.width;
  }
  private timeAt(px: number): Time {
    const { axis } = this.session;
    return axis.abs(Math.max(0, Math.min(1, px / this.width)) * Number(axis.max - axis.min));
  }
  private grabs(x: number): 'begin' | 'end' | 'move' | 'zoom' {
    const { axis } = this.session, a = this.px(axis.begin), b = this.px(axis.end);
    if (b - a > 12 && Math.abs(x - a) < 5) return 'begin';
    if (b - a > 12 && Math.abs(x - b) < 5) return 'end';
    return x > a && x < b && b - a < this.width - 4 ? 'move' : 'zoom';
  }

  private press(e: PointerEvent): void {
    if (e.button !== 0) return;
    const { axis } = this.session, kind = this.grabs(e.offsetX), from = e.offsetX, { begin, end } = axis;
    drag(e, dx => {
      const t = this.timeAt(from + dx);
      if (kind === 'begin') axis.show(t, end, false);
      else if (kind === 'end') axis.show(begin, t, false);
      else if (kind === 'move') {
        const by = axis.abs(axis.rel(begin) + dx / this.width * Number(axis.max - axis.min));
        axis.show(by, by + (end - begin), false);
      }
      else axis.show(this.timeAt(from), t, false);
    }, moved => {
      if (moved) return;
      const t = this.timeAt(from), half = axis.span / 2n;
      axis.show(t - half, t + half);
    });
  }

  private draw(): void {
    const { session } = this, { theme, axis } = session, width = this.width, ctx = this.surface.start(width, HEIGHT);
    const { x, events } = this, floor = HEIGHT - 12;
    ctx.font = SMALL;
    if (x.length > 1) {
      const most = Math.max(1, ...events), whole = Number(axis.max - axis.min), w = width / (x.length - 1);
      ctx.fillStyle = theme.dim;
      ctx.globalAlpha = 0.55;
      ctx.beginPath();
      ctx.moveTo(0, floor);
      for (let i = 0; i < x.length; i++) {
        const y = floor - (events[i] > 0 ? Math.max(1, Math.sqrt(events[i] / most) * (floor - 4)) : 0),
          end = x[i] / whole * width;
        ctx.lineTo(Math.max(0, end - w), y);
        ctx.lineTo(end, y);
      }
      ctx.lineTo(width, floor);
      ctx.fill();
      ctx.globalAlpha = 1;
      ctx.fillStyle = theme.lost;
      for (let i = 0; i < x.length; i++)
        if (this.lost[i] > 0) ctx.fillRect(x[i] / whole * width - w, 0, Math.max(2, w), floor);
    } else if (this.words) {
      ctx.fillStyle = theme.dim;
      ctx.textBaseline = 'middle';
      ctx.fillText(this.words, 8, floor / 2);
    }
    ctx.fillStyle = theme.dim;
    ctx.textBaseline = 'alphabetic';
    const t = ticks(session.origin, session.shown(axis.max), 110 / width, session.timeMode, session.origin);
    for (const at of t.times) {
      const px = Math.round(this.px(session.meant(at)));
      if (px > width - 60) continue;
      ctx.fillRect(px, floor, 1, 4);
      ctx.fillText(formatTickTime(at, session.timeMode, session.origin, t), px + 3, HEIGHT - 2);
    }
    for (const m of this.marks) {
      ctx.fillStyle = m.colour;
      ctx.fillRect(Math.round(this.px(m.start)), 0, Math.max(2, this.px(m.end) - this.px(m.start)), 4);
    }
    const a = this.px(axis.begin), b = Math.max(a + 2, this.px(axis.end));
    ctx.fillStyle = theme.back;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(0, 0, a, floor);
    ctx.fillRect(b, 0, width - b, floor);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = theme.accent;
    ctx.strokeRect(Math.max(0.5, a + 0.5), 0.5, Math.min(width - 1, b) - Math.max(0, a) - 0.5, floor - 1);
    if (axis.cursor !== null) {
      ctx.fillStyle = theme.select;
      ctx.fillRect(Math.round(this.px(axis.cursor)), 0, 1, floor);
    }
    this.root.setAttribute('aria-valuenow', String(Math.round(axis.offset / Number(axis.max - axis.min) * 100)));
    this.root.setAttribute('aria-valuetext', `${session.time(axis.begin, 6)} to ${session.time(axis.end, 6)}, `
      + `${formatDuration(axis.span)}`);
  }
}
