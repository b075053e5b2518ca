// Curves over the shared time axis (uPlot), with a tree of check boxes that chooses them.
import uPlot from 'uplot';
import { drawCursors, drawRuler, drawSelection, SMALL, Surface, timeMouse } from './canvas';
import { drag, h } from './dom';
import { perFrame, settle } from './emitter';
import { HEAD, Panel, setTreeWidth, shareOf, treeWidthNow, type PanelHost } from './panel';
import type { Session } from './session';
import { rgbOf, SERIES } from './style';
import { formatValue } from './time';
import { hideTip, showTip } from './tip';
import { TreeModel, type Node } from './tree';
import { TreePane } from './treepane';
import { isAbort, poll, type Output, type Series } from './tsp';

export const GUTTER = 58; // px of the y axis, taken from the tree's side so that the plots begin where the graphs do

/** Steps of an axis of bytes. */
const POWERS = Array.from({ length: 50 }, (_, i) => 2 ** i);

export interface Curve { id: number; name: string; colour: string; kind: string; unit: string; type: string; y: (number | null)[] }

export class XyView extends Panel {
  readonly model = new TreeModel();
  readonly tree: TreePane;
  /** x of all curves: ns since the experiment's begin. */
  x: number[] = [];
  curves: Curve[] = [];
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

  constructor(session: Session, output: Output, host: PanelHost, height: number) {
    super(session, output, host, height);
    this.tree = new TreePane(this.model, {
      label: output.name, checkbox: true,
      onPick: (_n, row) => { this.showRow(row); this.redraw(); },
      onCheck: (node, on) => this.check(node, on),
      isChecked: node => this.isChecked(node),
      swatch: node => this.checked.has(node.entry.id) ? this.colour(node.entry.id) : null,
    });
    const splitter = h('div', { class: 'splitter', 'aria-hidden': 'true' });
    splitter.addEventListener('pointerdown', e => {
      e.preventDefault();
      const before = treeWidthNow();
      drag(e, dx => { setTreeWidth(before + dx); this.host.columnsMoved(); });
    });
    this.area.append(this.under.canvas, this.back.canvas, this.plotBox, this.lines.canvas);
    this.stage = h('div', { class: 'stage xy' }, this.tree.root, splitter, this.area);
    this.tall = h('div', { class: 'tall' }, this.stage);
    this.scroller = h('div', { class: 'scroller', tabIndex: -1 }, this.tall);
    this.main.append(this.scroller);
    this.scroller.addEventListener('scroll', this.redraw, { passive: true });
    timeMouse(this.area, session.axis, {});
    this.area.addEventListener('pointermove', e => this.hover(e));
    this.area.addEventListener('pointerleave', hideTip);
    const { axis } = session;
    this.undo.push(axis.moved.on(() => { this.redraw(); this.ask(); }), axis.selected.on(this.recursor), axis.hovered.on(this.recursor),
      session.themeChanged.on(() => { this.shape = ''; this.redraw(); }), session.timeModeChanged.on(this.redraw), session.relayout.on(() => this.resize()),
      session.searchChanged.on(() => this.model.filter(session.search.rows, session.search.ofThreads)), this.model.changed.on(() => this.resize()));
    void this.load();
  }

  async load(): Promise<void> {
    const { session, output } = this, { axis } = session;
    this.say('loading', 'Asking for the series…');
    try {
      await poll(() => session.client.tree(session.uuid, 'XY', output.id, { start: axis.min, end: axis.max, nbTimes: 2 }, this.signal), a => {
        if (a.model?.entries.length) { this.say(''); this.model.set(a.model); if (!this.loaded) this.choose(); this.ask(); }
        if (a.status === 'RUNNING') this.working(true, a.statusMessage, shareOf(a.statusMessage)); else { this.working(false); this.status(''); }
        if (a.status === 'FAILED') this.say('failed', a.statusMessage || 'The server could not compute this view.', () => void this.load());
        else if (!this.model.nodes.size && a.status !== 'RUNNING') this.say('empty', `${output.name} has no series in this trace. ${emptyHint(output.name)}`);
      }, this.signal);
    } catch (e) { this.failed(e, () => void this.load()); }
  }
  retry(): void { if (this.loaded) { this.got = null; this.ask(); } else void this.load(); }
  override dispose(): void { this.stop?.abort(); this.plot?.destroy(); hideTip(); super.dispose(); }

  /** At first: the default series; where the server names none, the totals, so that the view is not blank. */
  private choose(): void {
    this.loaded = true;
    const nodes = [...this.model.nodes.values()].filter(n => n.entry.hasData);
    let first = nodes.filter(n => n.entry.isDefault);
    if (!first.length) first = nodes.filter(n => /total|^cpu usage/i.test(n.entry.labels.join(' ')));
    if (!first.length) first = nodes.filter(n => !n.children.length);
    for (const n of first.slice(0, 6)) this.checked.add(n.entry.id);
    this.tree.fitColumns(36, 84);
    this.tree.hideColumns(this.model.headers.flatMap((x, i) => i > 0 && /^(time|pid|ptid)$/i.test(x.name) ? [i] : []));
  }
  private isChecked(node: Node): boolean { return node.entry.hasData ? this.checked.has(node.entry.id) : node.children.length > 0 && node.children.every(c => this.isChecked(c)); }
  private check(node: Node, on: boolean): void {
    const set = (n: Node): void => {
      if (n.entry.hasData) { if (on && this.checked.size < 60) this.checked.add(n.entry.id); else this.checked.delete(n.entry.id); }
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
      c = rgb ? `rgb(${rgb.join()})` : /lost/i.test(this.model.nodes.get(id)?.entry.labels[0] ?? '') ? this.session.theme.lost : SERIES[this.colours.size % SERIES.length];
      this.colours.set(id, c);
    }
    return c;
  }

  private async fetch(): Promise<void> {
    const { session } = this, { axis } = session, items = [...this.checked];
    if (this.folded || !this.loaded) return;
    if (!items.length) { this.x = []; this.curves = []; this.redraw(); this.status('tick series at the left'); return; }
    const key = items.join(), from0 = axis.offset, to0 = axis.rel(axis.end), g = this.got;
    if (g && g.items === key && g.from <= from0 && g.to >= to0 && Math.abs(g.nsPerPx / axis.nsPerPx - 1) < 0.02) return;
    this.stop?.abort();
    const stop = this.stop = new AbortController(), pad = (to0 - from0) / 4;
    const from = Math.max(0, Math.floor(from0 - pad)), to = Math.min(axis.rel(axis.max), Math.ceil(to0 + pad));
    const nbTimes = Math.max(2, Math.min(4000, Math.ceil((to - from) / axis.nsPerPx / 2) + 1));
    try {
      const a = await session.client.xy(session.uuid, 'XY', this.output.id, { start: axis.abs(from), end: axis.abs(to), nbTimes }, items, stop.signal);
      if (this.stop !== stop) return;
      this.got = { from, to, nsPerPx: axis.nsPerPx, items: key };
      this.take(a.model?.series ?? []);
      this.say('');
      if (a.status === 'RUNNING') { this.working(true, a.statusMessage, shareOf(a.statusMessage)); this.got = null; setTimeout(() => this.ask(), 800); } else { this.working(false); this.status(''); }
      if (a.status === 'FAILED') this.say('failed', a.statusMessage, () => { this.got = null; this.ask(); });
    } catch (e) {
      if (isAbort(e)) return;
      if (this.curves.length) this.status('shown is what was loaded: the server does not answer'); else this.failed(e, () => { this.got = null; this.ask(); });
    }
  }

  private take(series: Series[]): void {
    const min = this.session.axis.min, rel = (t: unknown): number => Number(BigInt(t as bigint) - min);
    const xs = series.map(s => (s.xValues ?? []).map(rel));
    // Series have the same times as a rule; where they have not, all times are used and the others are bridged.
    const same = xs.every(x => x.length === xs[0].length && x[0] === xs[0][0] && x[x.length - 1] === xs[0][x.length - 1]);
    this.x = same ? xs[0] ?? [] : [...new Set(xs.flat())].sort((a, b) => a - b);
    const place = same ? null : new Map(this.x.map((v, i) => [v, i]));
    const scatterId = /scatter/i.test(this.output.id);
    this.curves = series.map((s, k) => {
      let y: (number | null)[] = s.yValues.map(Number);
      if (place) { const all: (number | null)[] = new Array(this.x.length).fill(null); xs[k].forEach((v, i) => { all[place.get(v)!] = y[i]; }); y = all; }
      const kind = scatterId ? 'scatter' : String(s.style?.values?.['series-type'] ?? 'line');
      return { id: s.seriesId, name: s.seriesName, colour: this.colour(s.seriesId), kind, unit: s.yValuesDescription?.unit ?? '', type: s.yValuesDescription?.dataType ?? '', y };
    });
    this.redraw();
  }

  resize(): void {
    if (!this.model || this.folded) return;
    this.tree.rowHeight = this.session.rowHeight;
    const view = this.main.clientHeight;
    this.stage.style.height = `${view}px`;
    this.tall.style.height = `${Math.max(view, HEAD + this.model.rows.length * this.session.rowHeight + 12)}px`;
    this.redraw();
    this.ask();
  }
  private showRow(row: number): void {
    const rh = this.session.rowHeight, view = this.main.clientHeight - HEAD, top = this.scroller.scrollTop;
    if (row * rh < top) this.scroller.scrollTop = row * rh;
    else if ((row + 1) * rh > top + view) this.scroller.scrollTop = (row + 1) * rh - view + 4;
  }

  private makePlot(width: number, height: number): void {
    const { theme } = this.session, one = this.curves[0];
    const shape = JSON.stringify([this.curves.map(c => [c.id, c.kind, c.colour]), one?.unit, theme.dark]);
    if (this.plot && shape === this.shape) {
      if (this.plot.width !== width + GUTTER || this.plot.height !== height) this.plot.setSize({ width: width + GUTTER, height });
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    const { axis } = this.session;
    this.plot = new uPlot({
      width: width + GUTTER, height, padding: [6, 0, 4, 0], legend: { show: false }, cursor: { show: false }, select: { show: false } as uPlot.Select,
      scales: { x: { time: false, range: () => [axis.offset, axis.rel(axis.end)] }, y: { range: (_u, low, high) => [Math.min(0, low ?? 0), high && high > 0 ? high * 1.06 : 1] } },
      axes: [{ show: false }, {
        size: GUTTER, ...(one?.type === 'BINARY_NUMBER' || /^B(\/s)?$/.test(one?.unit ?? '') ? { incrs: POWERS } : {}), font: SMALL, stroke: theme.dim, gap: 3, space: 26, grid: { stroke: theme.faint, width: 1 }, ticks: { stroke: theme.line, size: 4, width: 1 },
        values: (_u, v) => v.map(y => formatValue(y, one?.unit, one?.type)),
      }],
      series: [{}, ...this.curves.map((c): uPlot.Series => ({
        label: c.name, stroke: c.colour, width: c.kind === 'scatter' ? 0 : 1.2, spanGaps: true, fill: c.kind === 'area' ? withAlpha(c.colour, 0.35) : c.kind === 'bar' ? c.colour : undefined,
        paths: c.kind === 'scatter' ? () => null : c.kind === 'bar' ? uPlot.paths.bars!({ size: [1, 12] }) : undefined,
        points: c.kind === 'scatter' ? { show: true, size: 4, fill: c.colour, width: 0 } : { show: false },
      }))],
    }, this.plotData(), this.plotBox);
  }
  private plotData(): uPlot.AlignedData { return [this.x, ...this.curves.map(c => c.y)] as uPlot.AlignedData; }

  draw(): void {
    if (this.folded) return;
    const { session } = this, width = session.axis.width, height = this.main.clientHeight;
    drawRuler(this.back.start(width, height), session, width, HEAD, height);

    this.makePlot(width, height - HEAD);
    this.plot?.setData(this.plotData());
    this.tree.draw(this.scroller.scrollTop, height - HEAD);
    this.drawLines();
  }
  private drawLines(): void {
    const { session } = this, { width } = session.axis, height = this.main.clientHeight;
    drawSelection(this.under.start(width, height), session, width, HEAD, height);
    drawCursors(this.lines.start(width, height), session, width, HEAD, height);
  }

  private hover(e: PointerEvent): void {
    if (!this.curves.length || e.buttons) { hideTip(); return; }
    const { axis } = this.session, t = axis.offset + e.offsetX * axis.nsPerPx;
    let i = this.x.findIndex(x => x >= t);
    if (i < 0) i = this.x.length - 1;
    const lines = this.curves.filter(c => c.y[i] !== null && c.y[i] !== undefined).slice(0, 14).map((c): [string, string] => [c.name.split(':').pop() || c.name, formatValue(c.y[i]!, c.unit, c.type)]);
    if (lines.length) showTip(this.session.time(axis.abs(this.x[i])), lines, this.curves[0].colour, e.clientX, e.clientY);
  }
}

function withAlpha(css: string, a: number): string { const c = rgbOf(css); return c ? `rgba(${c.join()},${a})` : css; }

export function emptyHint(name: string): string {
  if (/disk/i.test(name)) return 'Record the block_rq_* events.';
  if (/net/i.test(name)) return 'Record net_dev_queue and netif_receive_skb.';
  if (/memory/i.test(name)) return 'Record kmem_mm_page_alloc and kmem_mm_page_free.';
  if (/cpu/i.test(name)) return 'Record sched_switch.';
  return 'See the page on recording for the events that each view needs.';
}
