// SPDX-License-Identifier: MIT
// Curves over the shared time axis (uPlot), with a tree of check boxes that chooses them.
import uPlot from 'uplot';
import { drawCursors, drawRuler, drawSelection, Surface, timeMouse } from './canvas';
import { h } from './dom';
import { perFrame, settle } from './emitter';
import type { Want } from './layout';
import { emptyHint, ID, isOf } from './outputs';
import { HEAD, Panel, treeSplitter, treeWidthNow, type PanelHost } from './panel';
import type { Session } from './session';
import { isLog, logTicks, scaleSwitch } from './scale';
import { rgbOf, SERIES, type Theme } from './style';
import { formatTick, formatValue } from './time';
import { hideTip, showTip } from './tip';
import { TreeModel, type Node } from './tree';
import { TreePane } from './treepane';
import { isAbort, keyOf, poll, type Output, type Series, type Tree } from './tsp';

/** Steps of an axis of counts. */
const WHOLE = Array.from({ length: 40 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));
/** Steps of an axis of bytes. */
const POWERS = Array.from({ length: 50 }, (_, i) => 2 ** i);

export interface Curve { id: number; name: string; colour: string; kind: string; unit: string; type: string;
  y: (number | null)[] }

export class XyView extends Panel {
  readonly model = new TreeModel();
  readonly tree: TreePane;
  /** x of all curves: ns since the experiment's begin. */
  x: number[] = [];
  private fetched: Curve[] = [];
  checked = new Set<number>();
  readonly back = new Surface();
  private readonly under = new Surface();
  private readonly lines = new Surface();
  private readonly area = h('div', { class: 'area' });
  private readonly plotBox = h('div', { class: 'plot' });
  private readonly stage: HTMLElement;
  private readonly tall: HTMLElement;
  private readonly scroller: HTMLElement;
  plot: uPlot | null = null;
  private stop: AbortController | null = null;
  private got: { from: number; to: number; nsPerPx: number; items: string } | null = null;
  private shape = '';
  private colours = new Map<number, string>();
  private loaded = false;
  readonly redraw = perFrame(() => this.draw());
  private readonly recursor = perFrame(() => this.drawLines());
  private readonly ask = settle(() => void this.fetch(), 50, 140);

  constructor(session: Session, output: Output, host: PanelHost, height?: number) {
    super(session, output, host, height);
    this.tree = new TreePane(this.model, {
      label: output.name, title: output.name, checkbox: true,
      onPick: (_n, row) => { this.showRow(row); this.redraw(); },
      onCheck: (node, on) => this.check(node, on),
      isChecked: node => this.isChecked(node),
      swatch: node => this.checked.has(node.entry.id) ? this.colour(node.entry.id) : null,
    });
    this.area.append(this.under.canvas, this.back.canvas, this.plotBox, this.lines.canvas);
    this.stage = h('div', { class: 'stage xy' }, this.tree.root, treeSplitter(host), this.area);
    this.tall = h('div', { class: 'tall' }, this.stage);
    this.scroller = h('div', { class: 'scroller', tabIndex: -1 }, this.tall);
    this.main.append(this.scroller);
    this.scroller.addEventListener('scroll', this.redraw, { passive: true });
    if (isOf(output, ID.latencies)) {
      const scale = scaleSwitch(() => { this.shape = ''; this.redraw(); });
      this.tools.append(scale.button);
      this.undo.push(scale.undo);
    }
    timeMouse(this.area, session.axis, {});
    this.area.addEventListener('pointermove', e => this.hover(e));
    this.area.addEventListener('pointerleave', hideTip);
    const { axis } = session;
    this.undo.push(axis.moved.on(() => { this.redraw(); this.ask(); }), axis.selected.on(this.recursor),
      axis.hovered.on(this.recursor),
      session.themeChanged.on(() => {
        this.shape = '';
        this.redraw();
      }), session.timeModeChanged.on(this.redraw), session.relayout.on(() => this.resize()),
      session.rowsChanged.on(() => this.model.filter(session.rows)),
      this.model.changed.on(() => this.resize()));
    void this.load();
  }

  async load(): Promise<void> {
    const { session, output } = this, { axis } = session;
    if (!this.loaded) this.say('loading', 'Asking for the series…');
    await this.host.front;
    if (this.signal.aborted) return;
    try {
      const take = (tree: Tree, partial: boolean): void => {
        this.say('');
        this.model.set(tree, partial);
        if (session.machines) this.model.filter(session.rows); // which says more with its columns known
        if (!this.loaded) this.choose();
        this.ask();
      };
      // The first entries are enough when the server named what to show at first, and named it there.
      const early = (t: Tree): void => { if (!this.loaded && t.entries.some(e => e.isDefault)) take(t, true); };
      await poll(() => session.client.tree(session.uuid, 'XY', output.id,
        { start: axis.min, end: axis.max, nbTimes: 2 }, this.signal, {}, early), a => {
        if (a.model?.entries.length) take(a.model, false);
        this.told(a);
        if (a.status === 'FAILED')
          this.say('failed', a.statusMessage || 'The server could not compute this view.', () => void this.load());
        else if (!this.model.nodes.size && a.status !== 'RUNNING')
          this.say('empty', `${output.name} has no series in this trace. ${emptyHint(output)}`);
      }, this.signal);
    } catch (e) { this.failed(e, () => void this.load()); }
  }
  /** Those whose rows a search left. */
  get curves(): Curve[] { return this.fetched.filter(c => !this.model.nodes.get(c.id)?.hidden); }
  override reload(): void { this.got = null; void this.load(); }
  retry(): void { if (this.loaded) { this.got = null; this.ask(); } else void this.load(); }
  override dispose(): void { this.stop?.abort(); this.plot?.destroy(); hideTip(); super.dispose(); }

  /** At first: the default series; where the server names none, the totals, so that the view is not blank. */
  private choose(): void {
    this.loaded = true;
    const nodes = [...this.model.nodes.values()].filter(n => n.entry.hasData);
    let first = nodes.filter(n => n.entry.isDefault);
    const keyed = nodes.some(n => n.entry.key !== undefined);
    if (!first.length) first = nodes.filter(n => keyed ? n.entry.key === 'total'
      : /total|^cpu usage/i.test(n.entry.labels.join(' ')));
    if (!first.length) first = nodes.filter(n => !n.children.length);
    for (const n of first.slice(0, 6)) this.checked.add(n.entry.id);
    this.tree.hideColumns(this.model.headers.flatMap((x, i) => i > 0 && /^(time|pid|ptid)$/.test(keyOf(x)) ? [i] : []));
    this.tree.fitColumns(36, 84, treeWidthNow());
  }
  private isChecked(node: Node): boolean {
    return node.entry.hasData ? this.checked.has(node.entry.id)
      : node.children.length > 0 && node.children.every(c => this.isChecked(c));
  }
  private check(node: Node, on: boolean): void {
    const set = (n: Node): void => {
      if (n.entry.hasData) {
        if (on && this.checked.size < 60) this.checked.add(n.entry.id); else this.checked.delete(n.entry.id);
      }
      if (!node.entry.hasData) n.children.forEach(set);
    };
    set(node);
    this.redraw();
    this.ask();
  }
  private colour(id: number): string {
    let c = this.colours.get(id);
    if (!c) {
      const style = this.model.nodes.get(id)?.entry.style?.values?.['color'];
      const rgb = typeof style === 'string' ? rgbOf(style) : null;
      c = rgb ? `rgb(${rgb.join()})` : /lost/i.test(this.model.nodes.get(id)?.entry.labels[0] ?? '')
        ? this.session.theme.lost : SERIES[this.colours.size % SERIES.length];
      this.colours.set(id, c);
    }
    return c;
  }

  private async fetch(): Promise<void> {
    const { session } = this, { axis } = session, items = [...this.checked];
    if (this.folded || !this.loaded) return;
    if (!items.length) {
      this.x = [];
      this.fetched = [];
      this.redraw();
      this.status('tick series at the left');
      return;
    }
    const key = items.join(), from0 = axis.offset, to0 = axis.rel(axis.end), g = this.got;
    if (g && g.items === key && g.from <= from0 && g.to >= to0 && Math.abs(g.nsPerPx / axis.nsPerPx - 1) < 0.02) return;
    this.stop?.abort();
    const stop = this.stop = new AbortController(), pad = (to0 - from0) / 4;
    const from = Math.max(0, Math.floor(from0 - pad)), to = Math.min(axis.rel(axis.max), Math.ceil(to0 + pad));
    const nbTimes = Math.max(2, Math.min(4000, Math.ceil((to - from) / axis.nsPerPx / 2) + 1));
    try {
      const a = await session.client.xy(session.uuid, 'XY', this.output.id,
        { start: axis.abs(from), end: axis.abs(to), nbTimes }, items, stop.signal);
      if (this.stop !== stop) return;
      this.got = { from, to, nsPerPx: axis.nsPerPx, items: key };
      this.take(a.model?.series ?? []);
      this.say('');
      this.told(a);
      if (a.status === 'RUNNING') {
        this.got = null;
        setTimeout(() => this.ask(), 800);
      }
      if (a.status === 'FAILED') this.say('failed', a.statusMessage, () => { this.got = null; this.ask(); });
    } catch (e) {
      if (isAbort(e)) return;
      if (this.fetched.length) this.status('shown is what was loaded: the server does not answer');
      else this.failed(e, () => { this.got = null; this.ask(); });
    }
  }

  private take(series: Series[]): void {
    const min = this.session.axis.min, rel = (t: unknown): number => Number(BigInt(t as bigint) - min);
    const xs = series.map(s => (s.xValues ?? []).map(rel));
    // Series have the same times as a rule; where they have not, all times are used and the others are bridged.
    const same = xs.every(x => x.length === xs[0].length && x[0] === xs[0][0]
      && x[x.length - 1] === xs[0][x.length - 1]);
    this.x = same ? xs[0] ?? [] : [...new Set(xs.flat())].sort((a, b) => a - b);
    const place = same ? null : new Map(this.x.map((v, i) => [v, i]));
    const scatterId = isOf(this.output, ID.latencies);
    this.fetched = series.map((s, k) => {
      let y: (number | null)[] = s.yValues.map(Number);
      if (place) {
        const all: (number | null)[] = new Array(this.x.length).fill(null);
        xs[k].forEach((v, i) => { all[place.get(v)!] = y[i]; });
        y = all;
      }
      const kind = scatterId ? 'scatter' : String(s.style?.values?.['series-type'] ?? 'line');
      return { id: s.seriesId, name: s.seriesName, colour: this.colour(s.seriesId), kind,
        unit: s.yValuesDescription?.unit ?? '', type: s.yValuesDescription?.dataType ?? '', y };
    });
    this.redraw();
  }

  override want(): Want { return { weight: 1.8, least: 76, most: Infinity }; }
  resize(): void {
    if (!this.model || this.folded) return;
    this.tree.rowHeight = this.session.rowHeight;
    const view = this.inner;
    this.stage.style.height = `${view}px`;
    this.tall.style.height = `${Math.max(view, HEAD + this.model.rows.length * this.session.rowHeight + 12)}px`;
    this.redraw();
    this.ask();
  }
  private showRow(row: number): void {
    const { scroller, model } = this;
    scroller.scrollTop = model.scrolledTo(row, scroller.scrollTop, this.inner - HEAD, this.session.rowHeight);
  }

  private makePlot(width: number, height: number): void {
    const { theme } = this.session, one = this.curves[0];
    const { log } = this,
      shape = JSON.stringify([this.curves.map(c => [c.id, c.kind, c.colour]), one?.unit, theme.dark, log]);
    if (this.plot && shape === this.shape) {
      if (this.plot.width !== width || this.plot.height !== height) this.plot.setSize({ width, height });
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    const { axis } = this.session;
    let splits: number[] = [];
    this.plot = new uPlot({
      width, height, padding: [8, 0, 3, 0], legend: { show: false }, cursor: { show: false },
      select: { show: false } as uPlot.Select,
      scales: { x: { time: false, range: () => [axis.offset, axis.rel(axis.end)] },
        y: log ? { distr: 3, range: (_u, low, high) => [(low || 1) / 1.3, (high || 1) * 1.3] }
          : { range: (_u, low, high) => [Math.min(0, low ?? 0), high && high > 0 ? high * 1.06 : 1] } },
      axes: [{ show: false }, {
        // The words stand in the plot, so that it begins where the graphs do.
        size: 0, ...(one?.type === 'BINARY_NUMBER' || /^B(\/s)?$/.test(one?.unit ?? '') ? { incrs: POWERS }
          : !one?.unit && this.curves.every(c => c.y.every(v => v === null || Number.isInteger(v))) ? { incrs: WHOLE }
          : {}), ...(log ? logTicks(24, 'height') : {}), space: (_u, _i, _low, _high, dim) => Math.max(32, dim / 7),
          grid: { stroke: theme.line, width: 1, dash: [2, 3] }, ticks: { show: false },
        values: (_u, v) => { splits = v; return v.map(() => ''); },
      }],
      hooks: { draw: [u => yLabels(u, splits, y => formatTick(y, one?.unit, one?.type), theme)] },
      series: [{}, ...this.curves.map((c): uPlot.Series => ({
        label: c.name, stroke: c.colour, width: c.kind === 'scatter' ? 0 : 1.2, spanGaps: true, fill: c.kind === 'area'
          ? withAlpha(c.colour, 0.35) : c.kind === 'bar' ? c.colour : undefined,
        paths: c.kind === 'scatter' ? () => null : c.kind === 'bar' ? uPlot.paths.bars!({ size: [1, 12] }) : undefined,
        points: c.kind === 'scatter' ? { show: true, size: 4, fill: c.colour, width: 0 } : { show: false },
      }))],
    }, this.plotData(), this.plotBox);
  }
  /** Latencies, whatever else is drawn over time, span many sizes. */
  private get log(): boolean { return isLog() && isOf(this.output, ID.latencies); }
  /** As they are drawn: a logarithmic axis has no 0, and no time is shorter than a nanosecond. */
  drawn(c: Curve): (number | null)[] { return this.log ? c.y.map(v => v === null ? v : Math.max(1, v)) : c.y; }
  private plotData(): uPlot.AlignedData {
    return [this.x, ...this.curves.map(c => this.drawn(c))] as uPlot.AlignedData;
  }

  draw(): void {
    if (this.folded) return;
    const { session } = this, width = session.axis.width, height = this.inner;
    drawRuler(this.back.start(width, height), session, width, HEAD, height, false);

    this.makePlot(width, height - HEAD);
    this.plot?.setData(this.plotData());
    this.tree.draw(this.scroller.scrollTop, height - HEAD);
    this.drawLines();
  }
  private drawLines(): void {
    const { session } = this, { width } = session.axis, height = this.inner;
    drawSelection(this.under.start(width, height), session, width, HEAD, height);
    drawCursors(this.lines.start(width, height), session, width, HEAD, height);
  }

  /** As the tree calls it, below its machine. */
  nameOf(c: Curve): string {
    const parts: string[] = [];
    for (let n: Node | null = this.model.nodes.get(c.id) ?? null; n; n = n.parent)
      parts.unshift(n.entry.labels[0] ?? '');
    return parts.join(' · ') || c.name;
  }
  private hover(e: PointerEvent): void {
    if (!this.curves.length || e.buttons) { hideTip(); return; }
    const { axis } = this.session, t = axis.offset + e.offsetX * axis.nsPerPx;
    let i = this.x.findIndex(x => x >= t);
    if (i < 0) i = this.x.length - 1;
    if (i < 0) return;
    // Largest first.
    const known = this.curves.filter(c => c.y[i] !== null && c.y[i] !== undefined).sort((a, b) => b.y[i]! - a.y[i]!)
      .slice(0, 14);
    const lines = known.map((c): [string, string, string] =>
      [this.nameOf(c), formatValue(c.y[i]!, c.unit, c.type), c.colour]);
    if (lines.length)
      showTip(this.session.time(axis.abs(this.x[i]), axis.nsPerPx > 1e3 ? 6 : 9), lines, '', e.clientX, e.clientY);
    else hideTip();
  }
}

/** Values of the lines, over the curves at the left. */
function yLabels(u: uPlot, values: number[], text: (y: number) => string, theme: Theme): void {
  const { ctx } = u, k = devicePixelRatio || 1;
  ctx.save();
  ctx.font = `${10 * k}px system-ui, "Segoe UI", "DejaVu Sans", sans-serif`;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'left';
  let free = Infinity;
  for (const v of values) {
    const y = u.valToPos(v, 'y', true), words = text(v), w = ctx.measureText(words).width;
    const at = Math.max(6 * k, Math.min(y, ctx.canvas.height - 7 * k));
    if (Math.abs(free - at) < 11 * k || (v === 0 && values.length > 1)) continue;
    free = at;
    ctx.globalAlpha = 0.8;
    ctx.fillStyle = theme.back;
    ctx.fillRect(2 * k, at - 6 * k, w + 6 * k, 12 * k);
    ctx.globalAlpha = 1;
    ctx.fillStyle = theme.dim;
    ctx.fillText(words, 5 * k, at);
  }
  ctx.restore();
}

function withAlpha(css: string, a: number): string { const c = rgbOf(css); return c ? `rgba(${c.join()},${a})` : css; }
