// SPDX-License-Identifier: MIT
// Views without the time axis: data trees (statistics) and curves over something else than time.
import uPlot from 'uplot';
import { SMALL } from './canvas';
import { button, h } from './dom';
import { figureLines } from './csv';
import { perFrame, settle } from './emitter';
import { icon } from './icons';
import { emptyHint, ID, isOf } from './outputs';
import { HEAD, Panel, type PanelHost } from './panel';
import type { Session } from './session';
import { isLog, logTicks, scaleSwitch } from './scale';
import { SERIES } from './style';
import { formatCount, formatDuration, formatTick, formatValue } from './time';
import { hideTip, showTip } from './tip';
import { TreeModel } from './tree';
import { TreePane } from './treepane';
import { poll, type Output, type Range, type Series, type Tree } from './tsp';

export class DataTreeView extends Panel {
  readonly model = new TreeModel();
  readonly tree: TreePane;
  private readonly stage: HTMLElement;
  private readonly tall: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly whole: HTMLButtonElement;
  readonly redraw = perFrame(() => this.draw());

  constructor(session: Session, output: Output, host: PanelHost, height?: number, private ofSelection = false) {
    super(session, output, host, height);
    this.tree = new TreePane(this.model, {
      label: output.name, text: (node, column) => this.rangeText(node.entry.labels[column]),
      onPick: (_n, row) => { this.showRow(row); this.redraw(); },
      onOpen: node => this.jump(node.entry.labels),
    });
    this.stage = h('div', { class: 'stage wide' }, this.tree.root);
    this.tall = h('div', { class: 'tall' }, this.stage);
    this.scroller = h('div', { class: 'scroller', tabIndex: -1 }, this.tall);
    this.main.append(this.scroller);
    this.scroller.addEventListener('scroll', this.redraw, { passive: true });
    this.whole = button('whole trace', 'Of the whole trace, or of the selection', () => {
      this.ofSelection = !this.ofSelection;
      this.whole.textContent = this.ofSelection ? 'selection' : 'whole trace';
      void this.load();
    });
    this.whole.classList.add('small');
    this.tools.append(this.whole,
      button(icon('columns'), 'Columns', () => this.tree.chooseColumns(), { class: 'plain' }));
    this.undo.push(session.relayout.on(() => this.resize()), this.model.changed.on(() => this.resize()),
      session.rowsChanged.on(() => this.model.filter(session.rows)),
      session.axis.selected.on(this.again), session.timeModeChanged.on(this.redraw));
    void this.load();
  }
  private run = 0;
  private asleep = false;
  private missed = false;
  private readonly again = settle(() => { if (this.ofSelection) void this.load(); }, 200, 1000);
  /** Nobody sees it: what changes meanwhile is asked for once somebody does. */
  sleep(on: boolean): void {
    this.asleep = on;
    if (!on && this.missed) void this.load();
  }
  async load(): Promise<void> {
    const { session, output } = this, { axis } = session, mine = ++this.run;
    this.missed = this.asleep;
    if (this.asleep || this.signal.aborted) return;
    if (!this.model.nodes.size) this.say('loading', 'Asking for the figures…');
    const selection = this.ofSelection ? axis.selection : null;
    const range: Range = { start: selection?.[0] ?? axis.min, end: selection?.[1] ?? axis.max };
    try {
      await poll(() => session.client.tree(session.uuid, 'data', output.id, range, this.signal), a => {
        if (mine !== this.run) return;
        if (a.model?.entries.length) {
          this.say('');
          if (!this.model.nodes.size && this.ofSelection) this.sortMost(a.model);
          this.model.set(a.model);
          this.model.filter(session.rows); // which depends on what columns there are
          this.tree.fitColumns(70, 320);
          this.redraw();
        }
        this.told(a, this.ofSelection && !selection ? 'no selection: whole trace' : '');
        if (a.status === 'FAILED') this.say('failed', a.statusMessage, () => void this.load());
        else if (!a.model?.entries.length && a.status !== 'RUNNING')
          this.say('empty', `${output.name} has no figures here. ${emptyHint(output)}`);
      }, this.signal);
    } catch (e) { this.failed(e, () => void this.load()); }
  }
  /** Rows with most of the first amount first. */
  private sortMost({ headers }: Tree): void {
    this.model.sortBy = headers.findIndex(x => x.dataType === 'DURATION' || x.dataType === 'BINARY_NUMBER');
    this.model.descending = true;
  }
  override reload(): void { void this.load(); }
  retry(): void { void this.load(); }
  /** What is seen, as lines of a table; the first one says what it is. */
  csv(): string[] {
    const { axis } = this.session, [begin, end] = (this.ofSelection ? axis.selection : null) ?? [axis.min, axis.max];
    return [`# ${this.output.name}, ${this.session.shown(begin)} to ${this.session.shown(end)} ns`,
      ...figureLines(this.model)];
  }
  /** "[begin,end]" as people read it. */
  private rangeText(label: string | undefined): string | undefined {
    const m = /^\[(\d{16,}),\s*(\d{16,})\]$/.exec(label ?? '');
    return m ? `${this.session.time(BigInt(m[1]), 6)}  +${formatDuration(BigInt(m[2]) - BigInt(m[1]))}` : undefined;
  }
  /** A cell with a time range opens it. */
  private jump(labels: string[]): void {
    for (const l of labels) {
      const m = /^\[(\d+),\s*(\d+)\]$/.exec(l);
      if (m) {
        const { axis } = this.session;
        axis.select(BigInt(m[1]), BigInt(m[2]));
        axis.reveal(BigInt(m[1]), BigInt(m[2]));
        return;
      }
    }
  }
  private showRow(row: number): void {
    const { scroller, model } = this;
    scroller.scrollTop = model.scrolledTo(row, scroller.scrollTop, this.inner - HEAD, this.session.rowHeight);
  }
  resize(): void {
    if (!this.model || this.folded) return;
    this.tree.rowHeight = this.session.rowHeight;
    this.stage.style.height = `${this.inner}px`;
    this.tall.style.height = `${Math.max(this.inner, HEAD + this.model.rows.length * this.session.rowHeight + 12)}px`;
    this.redraw();
  }
  draw(): void { if (!this.folded) this.tree.draw(this.scroller.scrollTop, this.inner - HEAD); }
}

/** Steps of an axis of counts. */
const WHOLE = Array.from({ length: 15 }, (_, e) => [1, 2, 5].map(d => d * 10 ** e)).flat();

/** Bars from the begin to the end of what they count, 1 px apart. */
function onRanges(ends: number[]): uPlot.Series.PathBuilder {
  return (u, k, from, to) => {
    const path = new Path2D(), floor = u.bbox.top + u.bbox.height, px = devicePixelRatio || 1;
    for (let i = from; i <= to; i++) {
      const v = u.data[k][i];
      if (v === null || v === undefined) continue;
      const a = u.valToPos(u.data[0][i], 'x', true), b = u.valToPos(ends[i], 'x', true), y = u.valToPos(v, 'y', true);
      path.rect(a, y, Math.max(px, b - a - px), floor - y);
    }
    return { fill: path, stroke: path, flags: 3 };
  };
}

/** Curves and bars over durations, categories, …: own x axis. */
export class GenericXyView extends Panel {
  private readonly box = h('div', { class: 'plot generic' });
  private plot: uPlot | null = null;
  private series: Series[] = [];
  private of = '';
  private words = '';
  private readonly latencies: boolean;
  readonly redraw = perFrame(() => this.draw());
  constructor(session: Session, output: Output, host: PanelHost, height?: number) {
    super(session, output, host, height);
    this.main.append(this.box);
    this.latencies = isOf(output, ID.densities);
    if (this.latencies) {
      const scale = scaleSwitch(() => void this.load());
      this.tools.append(scale.button);
      this.undo.push(scale.undo);
    }
    this.box.addEventListener('pointermove', e => this.tip(e));
    this.box.addEventListener('pointerleave', hideTip);
    this.undo.push(session.themeChanged.on(() => this.make()), session.relayout.on(this.redraw),
      session.axis.selected.on(() => void this.load()));
    void this.load();
  }
  private run = 0;
  async load(): Promise<void> {
    const { session, output } = this, { axis, client, uuid } = session, mine = ++this.run;
    if (!this.plot) this.say('loading', 'Asking for the series…');
    try {
      const [start, end] = axis.selection ?? [axis.min, axis.max], range = { start, end };
      this.of = axis.selection ? 'of the selection' : 'of the whole trace';
      const tree = await client.tree(uuid, 'genericXY', output.id, range, this.signal);
      const items = (tree.model?.entries ?? []).filter(e => e.hasData).map(e => e.id);
      await poll(() => client.xy(uuid, 'genericXY', output.id, { ...range, nbTimes: 128 }, items, this.signal,
        this.latencies && isLog() ? { x_scale: 'logarithmic' } : {}), a => {
        if (mine !== this.run) return;
        this.series = a.model?.series ?? [];
        this.say(this.series.some(s => s.yValues.length) ? ''
          : 'empty', `${output.name} has nothing in this interval. ${emptyHint(output)}`);
        this.make();
        this.told(a, this.words);
      }, this.signal);
    } catch (e) { this.failed(e, () => void this.load()); }
  }
  override reload(): void { void this.load(); }
  retry(): void { void this.load(); }
  private make(): void {
    const { theme } = this.session, first = this.series[0];
    this.plot?.destroy();
    this.plot = null;
    if (!first) return;
    const rel = (t: unknown): number => Number(t);
    const x = first.xRanges ? first.xRanges.map(r => rel(r.start)) : first.xCategories
      ? first.xCategories.map((_, i) => i) : (first.xValues ?? []).map(rel);
    const ends = first.xRanges?.map(r => rel(r.end)); // bars stand on their ranges
    const unit = first.xValuesDescription?.unit ?? '', type = first.xValuesDescription?.dataType ?? '';
    // Counts of many sizes: one tall bar would hide the rest.
    const all = this.series.flatMap(s => s.yValues.map(Number)), most = all.reduce((m, v) => Math.max(m, v), 0),
      counts = !first.yValuesDescription?.unit && all.every(v => v >= 0 && Number.isInteger(v)),
      log = counts && most >= 100 && (!this.latencies || isLog()),
      // Ranges that grow; a server that knows none but equal ones is not asked for more.
      byRatio = !!ends && ends.length > 1 && ends[ends.length - 1] - x[x.length - 1] > 1.5 * (ends[0] - x[0]);
    if (byRatio) x[0] = Math.max(x[0], 0.5);
    this.words = this.of;
    const axis = { font: SMALL, stroke: theme.dim, grid: { stroke: theme.faint, width: 1 },
      ticks: { stroke: theme.line, size: 4, width: 1 } };
    this.plot = new uPlot({
      width: Math.max(200, this.main.clientWidth - 8), height: this.inner - 4, legend: { show: false },
      cursor: { show: false }, scales: { x: { time: false, ...(ends
        ? { range: (): uPlot.Range.MinMax => [x[0], ends[ends.length - 1]] } : {}), ...(byRatio ? { distr: 3 as const }
        : {}) },
        ...(log ? { y: { distr: 3 as const, range: (): uPlot.Range.MinMax => [0.6, most * 1.6] } } : {}) },
      axes: [{ ...axis, size: 30, ...(byRatio ? logTicks(72, 'width') : {}),
        values: (_u, v) => v.map(t => first.xCategories ? first.xCategories[t] ?? ''
        : unit === 'ns' || type === 'DURATION' ? formatTick(t, 'ns') : formatTick(t, unit, type)) },
        { ...axis, size: 58, ...(log ? logTicks(22, 'height') : counts ? { incrs: WHOLE } : {}),
          values: (_u, v) => v.map(t => t === null ? '' : formatTick(t, first.yValuesDescription?.unit,
            first.yValuesDescription?.dataType)) }],
      series: [{}, ...this.series.map((s, i): uPlot.Series =>
        ({ label: s.seriesName, stroke: SERIES[i % SERIES.length], fill: SERIES[i % SERIES.length] + '88',
          paths: ends ? onRanges(ends) : uPlot.paths.bars!({ size: [0.9, 60] }),
          points: { show: false } }))],
    }, [x, ...this.series.map(s => s.yValues.map(v => counts && !Number(v) ? null : Number(v)))] as uPlot.AlignedData,
    this.box);
  }
  /** What the bar by the mouse stands for. */
  private tip(e: PointerEvent): void {
    const { plot } = this, [first] = this.series;
    if (!plot || !first) return;
    const at = plot.over.getBoundingClientRect(), x = e.clientX - at.left,
      { xRanges, xCategories, xValuesDescription: what } = first;
    const i = xRanges ? xRanges.findIndex(r => Number(r.end) > plot.posToVal(x, 'x')) : plot.posToIdx(x);
    if (x < 0 || x > at.width || i < 0) { hideTip(); return; }
    const text = (v: unknown): string => formatValue(Number(v), what?.unit, what?.dataType);
    showTip(xRanges ? `${text(xRanges[i].start)} … ${text(xRanges[i].end)}`
      : xCategories?.[i] ?? text(first.xValues?.[i]), this.series.map((s, k): [string, string, string] => {
      const v = Number(s.yValues[i]), y = s.yValuesDescription;
      return [s.seriesName, !y?.unit && Number.isInteger(v) ? formatCount(String(v), '')
        : formatValue(v, y?.unit, y?.dataType), SERIES[k % SERIES.length]];
    }), '', e.clientX, e.clientY);
  }
  resize(): void { this.redraw?.(); }
  draw(): void {
    if (!this.folded) this.plot?.setSize({ width: Math.max(200, this.main.clientWidth - 8), height: this.inner - 4 });
  }
  override dispose(): void { this.plot?.destroy(); hideTip(); super.dispose(); }
}
