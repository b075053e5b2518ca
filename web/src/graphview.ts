// SPDX-License-Identifier: MIT
// A time graph view: tree to the left, states to the right, both virtual; mouse, keys, tooltip, stepping.
import type { Axis } from './axis';
import { drawCursors, drawRuler, drawSelection, Surface, timeMouse } from './canvas';
import { announce, button, h } from './dom';
import { perFrame, settle } from './emitter';
import { GraphData, type Wanted } from './graphdata';
import { arrowLines, BUSY, distance, paintRows, type ArrowLine, type GraphPart } from './graphdraw';
import { icon } from './icons';
import { openMenu, type MenuItem } from './menu';
import { firstAfter, packRow, RowPainter, stateAt, TAG_DIM, TAG_EXCLUDE, type RowStates } from './paint';
import type { Want } from './layout';
import { ID } from './outputs';
import { HEAD, Panel, PATIENCE, treeSplitter, treeWidthNow, type PanelHost } from './panel';
import { filterParameters } from './query';
import { tidOf, type Detail, type Picked, type Session } from './session';
import { nameOf, pathName, visited } from './pathdata';
import { Looks } from './style';
import { formatDuration, formatExact } from './time';
import { hideTip, showTip } from './tip';
import { TreeModel, type Node } from './tree';
import { TreePane } from './treepane';
import { Busy } from './wanted';
import { poll, type Output, isAbort, sleep, type Time, type Tree } from './tsp';

const GROUP = 64;             // rows of one request of a search
const MOST_SEARCHED = 512;

export interface Hit { node: Node; row: RowStates; index: number }

export class GraphView extends Panel {
  readonly model = new TreeModel();
  readonly looks: Looks;
  readonly data: GraphData;
  readonly tree: TreePane;
  readonly surface: Surface;
  readonly part: GraphPart;
  private picture = (): void => {};
  /** States of its rows were drawn, or it is known that there will be none. */
  readonly pictured = new Promise<void>(done => {
    this.picture = () => {
      this.picture = () => {};
      setTimeout(done); /* when they are on the screen: what waited for them takes the page */
    };
  });
  /** Told after each drawing, for tests and the title bar: ms that it took. */
  frameMs = 0;
  loaded = false;
  private hasPods = false;
  /** Trees that are being asked for. */
  private asking = 0;
  private readonly busy = new Busy(this.session, this, () => this.filter());
  private readonly under = new Surface();
  private readonly lines = new Surface();
  private readonly area = h('div', { class: 'area' });
  private readonly stage: HTMLElement;
  private readonly tall: HTMLElement;
  readonly scroller: HTMLElement;
  private tipTimer = 0;
  private arrowButton: HTMLButtonElement;
  readonly redraw = perFrame(() => this.draw());
  private readonly recursor = perFrame(() => this.drawLines());

  constructor(session: Session, output: Output, host: PanelHost, height: number | undefined, readonly path = false) {
    super(session, output, host, height);
    this.looks = new Looks(path);
    this.data = new GraphData(session, output.id, this.looks, () => this.wanted(), () => {
      this.redraw();
      setTimeout(() => this.picture(), 100); /* drawn by then, or the page is hidden */
    }, e => { this.picture(); this.trouble(e); }, a => this.told(a, this.rowsWords()), () => this.extra());
    this.surface = new Surface(`${output.name}: states of the rows over time`);
    this.tree = new TreePane(this.model, {
      label: output.name, title: this.oneLine ? output.name : undefined,
      onPick: (node, row) => this.picked(node, row),
      onOpen: node => { if (node.children.length) this.model.fold(node, !this.model.isFolded(node)); },
      onMenu: (node, x, y) => this.menu(node, x, y),
      text: path ? (node, column) => column || node.depth === 0 ? undefined : pathName(node.entry.labels[0] ?? '')
        : undefined,
    });
    this.part = { model: this.model, data: this.data, looks: this.looks,
      painter: new RowPainter(this.looks, path ? { words: this.words, spill: () => session.theme.text } : null),
      picked: null, arrows: true, path, frame: null };
    this.area.append(this.under.canvas, this.surface.canvas, this.lines.canvas);
    this.stage = h('div', { class: 'stage' }, this.tree.root, treeSplitter(host), this.area);
    this.tall = h('div', { class: 'tall' }, this.stage);
    this.scroller = h('div', { class: 'scroller', tabIndex: -1 }, this.tall);
    this.main.append(this.scroller);
    this.scroller.addEventListener('scroll', () => { this.redraw(); this.data.ask(); hideTip(); }, { passive: true });
    this.arrowButton = button(icon('arrows'), 'Arrows', () => this.setArrows(!this.part.arrows),
      { class: 'plain', 'aria-pressed': 'true' });
    this.tools.append(this.arrowButton,
      button(icon('columns'), 'Columns', () => this.tree.chooseColumns(), { class: 'plain' }));
    timeMouse(this.area, session.axis, { click: (x, y) => this.clicked(x, y),
      menu: (_x, y, e) => this.areaMenu(y, e) });
    this.area.addEventListener('pointermove', e => this.hover(e));
    this.area.addEventListener('pointerleave', () => { clearTimeout(this.tipTimer); hideTip(); });
    this.area.addEventListener('dblclick', e => {
      const hit = this.hit(e.offsetX, e.offsetY);
      if (hit)
        session.axis.select(session.axis.abs(hit.row.start[hit.index]), session.axis.abs(hit.row.end[hit.index]));
    });
    const { axis } = session;
    this.undo.push(
      axis.moved.on(() => {
        this.redraw();
        this.data.ask();
        if (session.busyOnly) this.busy.changed();
      }), axis.selected.on(this.recursor), axis.hovered.on(this.recursor),
      session.themeChanged.on(this.redraw), session.timeModeChanged.on(this.redraw),
      session.glowChanged.on(this.redraw),
      session.relayout.on(() => this.resize()), session.rowsChanged.on(() => {
        this.busy.changed();
        this.filter();
      }),
      session.groupingChanged.on(() => { if (this.hasPods || this.asking) void this.load(); }),
      session.pickedChanged.on(() => this.followPick()), session.markersChanged.on(() => this.findMarks()),
      this.model.changed.on(() => { this.resize(); this.host.resized(); }));
    void this.load();
  }

  get axis(): Axis { return this.session.axis; }

  async load(): Promise<void> {
    const { session, output } = this, { client, uuid } = session;
    if (!this.loaded) this.say('loading', 'Asking for the rows…');
    await this.host.front;
    if (this.signal.aborted) return;
    const { byPod } = session, isStale = (): boolean => byPod !== session.byPod;
    this.asking++;
    try {
      client.styles(uuid, output.id, this.signal).then(a => {
        if (a.model) { this.looks.setServer(a.model); this.redraw(); }
      }, () => { /* our own colours */ });
      void this.pictured.then(() => this.findMarks());
      const early = (t: Tree): Promise<void> | void => {
        if (this.loaded || isStale()) return;
        this.take(t, true);
        return Promise.race([this.pictured, sleep(PATIENCE, this.signal)]);
      };
      let growing = this.loaded;
      await poll(() => client.tree(uuid, 'timeGraph', output.id, null, this.signal, this.treeExtra(), early), a => {
        if (isStale()) return; // the other tree was asked for since
        if (a.model?.entries.length) this.take(a.model, false);
        if (a.status === 'RUNNING') growing = true;
        if (growing) this.data.forget();
        this.told(a, this.rowsWords());
        if (a.status === 'FAILED')
          this.say('failed', a.statusMessage || 'The server could not compute this view.', () => void this.load());
        else if (!this.model.nodes.size && a.status !== 'RUNNING') this.say('empty', this.emptyWords(a.note));
        if (!this.model.nodes.size) this.picture();
      }, this.signal);
      this.data.hasArrows = true;
      this.data.ask();
    } catch (e) { this.picture(); this.failed(e, () => void this.load()); } finally { this.asking--; }
  }
  /** What an analysis over amounts of time wants besides: the part of the experiment that it is about. */
  private selection: (() => [Time, Time] | null) | null = null;
  private extra(): object { const s = this.selection?.(); return s ? { selection_range: s } : {}; }
  private treeExtra(): object {
    return this.session.byPod ? { ...this.extra(), group_by: 'container' } : this.extra();
  }
  showSelection: (on: boolean) => void = () => {};
  /** A button that chooses between the whole trace and the selection of `axis`. */
  offerSelection(axis: Axis): void {
    const choose = button('whole trace', 'Of the whole trace, or of the selection',
      () => this.showSelection(!this.selection), { class: 'small' });
    this.showSelection = on => {
      this.selection = on ? () => axis.selection : null;
      choose.textContent = on ? 'selection' : 'whole trace';
      void this.load();
    };
    this.tools.prepend(choose);
    const again = settle(() => { if (this.selection) void this.load(); }, 200, 1000);
    this.undo.push(axis.selected.on(again));
  }
  private findMarks(): void {
    const { session } = this;
    session.client.annotationCategories(session.uuid, this.output.id, session.markerSet, this.signal)
      .then(c => { this.data.setCategories(c); }, () => { /* none */ });
  }
  protected emptyWords(note: string): string {
    return note || `${this.output.name} has no rows in this trace. `
      + 'Record sched_switch, sched_wakeup and system calls for thread and CPU states; irq and softirq events for '
        + 'interrupts.';
  }
  /** `partial`: what is seen first of a tree that is still arriving. */
  private take(tree: Tree, partial: boolean): void {
    this.say('');
    this.model.set(this.path ? visited(tree) : tree, partial);
    for (const e of tree.entries) {
      if (e.hostId) this.session.hosts.add(e.hostId);
      if (e.metadata.Container) this.session.hasPods = this.hasPods = true;
    }
    this.busy.changed();
    if (this.loaded) { this.data.ask(); return; }
    this.firstTree();
    void this.data.fetch(); // at once: there is nothing on screen yet
  }
  private firstTree(): void {
    this.loaded = true;
    const names = this.model.headers.map(x => x.name);
    if (names.length > 2) this.tree.hideColumns(names.flatMap((n, i) => /^(PTID|PID|Host)$/.test(n) ? [i] : []));
    this.tree.fitColumns(36, 110, treeWidthNow());
    this.filter();
    this.followPick();
  }
  /** Of a path's state, most first: what it was, by what cause, how long. */
  private readonly words = (row: RowStates, i: number): string[] => {
    const { name } = this.looks.all[row.style[i]], what = row.label[i],
      time = formatDuration(row.end[i] - row.start[i]);
    return [...(what ? [`${name} ${what} ${time}`, `${what} ${time}`] : []), `${name} ${time}`, time];
  };
  private rowsWords(): string {
    const n = this.model.rows.length, { found } = this.model;
    const { test, always } = this.session.rows,
      rows = (test || always || this.busy.test) && found ? `${found} found` : '';
    if (this.session.search.states.length && n && !this.path)
      return [rows, this.matchWords()].filter(Boolean).join(' · ');
    return rows || (n ? `${n} rows` : '');
  }
  /** What a search of states found here. */
  private matchWords(): string {
    const shown = this.model.rows.slice(...this.visible()).flatMap(n => this.data.rows.get(n.entry.id) ?? []);
    const found = shown.filter(row => row.tags.some((t, i) => !(t & (TAG_DIM | TAG_EXCLUDE))
      && !this.looks.all[row.style[i]].blank)).length;
    return found ? `${found} of ${shown.length} rows on screen have it`
      : 'no state on screen matches · n looks further';
  }
  private trouble(e: unknown): void {
    if (!this.model.nodes.size) this.failed(e, () => this.data.ask());
    else this.status(e instanceof Error ? `shown is what was loaded: ${e.message}` : 'failed');
  }
  override reload(): void { void this.load().then(() => this.followPick()); }
  /** After the server came back. */
  retry(): void { if (this.loaded) { this.data.hasArrows = true; this.data.forget(); } else void this.load(); }
  override dispose(): void { this.busy.stop(); this.picture(); this.data.stop(); hideTip(); super.dispose(); }

  private filter(): void {
    const { search, rows: wish } = this.session, busy = this.busy.test, { always } = wish;
    if (!this.path) {
      this.model.pinned = this.session.pinned;
      this.model.filter({ ...wish, always: always && busy ? (e, path) => always(e, path) && busy(e, path)
        : always ?? busy });
    }
    const test = this.path ? null : wish.test ?? always ?? busy;
    if (this.model.nodes.size) this.status(this.rowsWords());
    this.data.forget();
    if (this.loaded && test && !this.model.rows.length)
      this.say('empty', `No row of ${this.output.name} ${search.rows ? `matches “${search.text.trim()}”`
        : wish.test ? 'is a thread of the path' : busy ? 'has something in view' : 'is of the chosen machines'}.`);
    else if (this.loaded) this.say('');
  }
  offerRemoval(remove: () => void): void {
    this.tools.append(button(icon('remove'), 'Remove it from the server', remove, { class: 'plain' }));
  }
  setArrows(on: boolean): void {
    this.part.arrows = on;
    this.arrowButton.setAttribute('aria-pressed', String(on));
    this.redraw();
  }

  // ---- geometry -----------------------------------------------------------------------------------------------------
  /** Of the window's height, what a path takes at most. */
  room = 0.42;
  override want(): Want {
    const rh = this.session.rowHeight, all = HEAD + this.model.nodes.size * rh + 10;
    if (this.path) {
      // A row shown has another one below it.
      const most = Math.max(HEAD + 3 * rh, Math.min(all + rh - 8, innerHeight * this.room));
      return { weight: 40, least: most, most };
    }
    const main = this.output.id === ID.threads;
    return { weight: main ? 5 : 2.5, least: HEAD + Math.min(main ? 6 : 4, Math.max(3, this.model.nodes.size)) * rh,
      most: this.loaded ? all : Infinity };
  }
  resize(): void {
    if (!this.model || this.folded) return;
    this.tree.rowHeight = this.session.rowHeight;
    const view = this.inner, row = this.tree.pickedRow, below = (): number =>
      this.model.yOf(row, this.scroller.scrollTop, this.session.rowHeight) + this.session.rowHeight + HEAD;
    const cut = row >= 0 && view < this.seen && below() <= this.seen && below() > view;
    this.seen = view;
    this.stage.style.height = `${view}px`;
    this.tall.style.height = `${Math.max(view, HEAD + this.model.rows.length * this.session.rowHeight + 12)}px`;
    if (cut) this.reveal(); // what somebody picked stays on screen
    this.redraw();
    this.data.ask();
  }
  private seen = 0;
  private visible(): [number, number] {
    return this.model.within(this.scroller.scrollTop, this.inner - HEAD, this.session.rowHeight);
  }
  private wanted(): Wanted | null {
    if (this.folded || !this.model.rows.length || !this.onScreen()) return null;
    const [first, last] = this.visible(), { axis } = this.session, ahead = Math.max(2, Math.floor((last - first) / 4)),
      items: number[] = [];
    const add = (i: number): void => { const n = this.model.rows[i]; if (n?.entry.hasData) items.push(n.entry.id); };
    for (let i = 0; i < this.model.pins; i++) add(i);
    for (let i = first; i < last; i++) add(i);
    for (let k = 1; k <= ahead; k++) {
      if (last - 1 + k < this.model.rows.length) add(last - 1 + k);
      if (first - k >= this.model.pins) add(first - k);
    }
    return { items, from: axis.offset, to: axis.rel(axis.end), nsPerPx: axis.nsPerPx };
  }
  private onScreen(): boolean {
    const b = this.root.getBoundingClientRect();
    return b.bottom > 0 && b.top < innerHeight && b.height > 0;
  }
  private rowAt(y: number): number {
    return y < HEAD ? -1 : this.model.rowAt(y - HEAD, this.scroller.scrollTop, this.session.rowHeight);
  }
  hit(x: number, y: number): Hit | null {
    const node = this.model.rows[this.rowAt(y)];
    const row = node && this.data.rows.get(node.entry.id);
    if (!row) return null;
    const index = stateAt(row, this.session.axis.offset + x * this.session.axis.nsPerPx);
    return index < 0 ? null : { node, row, index };
  }

  // ---- drawing ------------------------------------------------------------------------------------------------------
  draw(): void {
    if (this.folded || !this.onScreen()) return;
    const began = performance.now();
    const { session } = this, { axis } = session, height = this.inner, top = this.scroller.scrollTop;
    const ctx = this.surface.start(axis.width, height);
    drawRuler(ctx, session, axis.width, HEAD, height, !this.oneLine);
    this.part.picked = this.tree.picked;
    paintRows(ctx, session, this.part, axis.width, height, top, this.surface.scale);
    this.frameMs = performance.now() - began;
    this.tree.draw(top, height - HEAD);
    this.drawLines();
    if (this.data.rows.size) this.picture();
  }
  private linesDrawn = '';
  private drawLines(): void {
    const { session } = this, { width, begin, end, anchor, cursor, hover } = session.axis, height = this.inner;
    // Scrolling rows leaves them as they are.
    const key = `${begin} ${end} ${anchor} ${cursor} ${hover} ${width} ${height} ${session.theme.select}`;
    if (key === this.linesDrawn) return;
    this.linesDrawn = key;
    drawSelection(this.under.start(width, height), session, width, HEAD, height);
    drawCursors(this.lines.start(width, height), session, width, HEAD, height, !this.oneLine);
  }

  // ---- picking ------------------------------------------------------------------------------------------------------
  private picked(node: Node, row: number): void {
    this.showRow(row);
    const tid = tidOf(node.entry, this.model.headers);
    if (tid !== null) this.session.pick(this.threadOf(node, tid));
    announce(node.entry.labels.join(' '));
    this.redraw();
  }
  private threadOf(node: Node, tid: number): Picked {
    return { host: this.hostOf(node), tid, name: nameOf(node.entry.labels[0] ?? ''), id: node.entry.id };
  }
  hostOf(node: Node): string {
    for (let n: Node | null = node; n; n = n.parent) {
      if (n.entry.hostId) return n.entry.hostId;
      if (!n.parent) return n.entry.labels[0] ?? '';
    }
    return '';
  }
  showRow(row: number): void {
    const { scroller, model } = this;
    scroller.scrollTop = model.scrolledTo(row, scroller.scrollTop, this.inner - HEAD, this.session.rowHeight, 1);
  }
  showEntry(id: number): void {
    const row = this.model.rowOf.get(id);
    this.tree.picked = id;
    if (row !== undefined) this.showRow(row);
    this.redraw();
  }
  /** Another view picked a thread: the same one is picked here. */
  private followPick(): void {
    const p = this.session.picked;
    if (!p || !this.model.nodes.size) return;
    const now = this.tree.picked === null ? null : this.model.nodes.get(this.tree.picked),
      itself = p.id === undefined ? undefined : this.model.nodes.get(p.id), // else: its numbers must do
      is = (n: Node): boolean => itself ? n === itself
        : tidOf(n.entry, this.model.headers) === p.tid && this.hostOf(n) === p.host;
    if (now && is(now)) return;
    for (const node of itself ? [itself] : this.model.nodes.values()) {
      if (!is(node)) continue;
      this.showEntry(node.entry.id);
      return;
    }
  }
  /** The picked row comes on screen, with what is around it. */
  reveal(): void {
    const row = this.tree.pickedRow, rh = this.session.rowHeight, view = this.inner - HEAD,
      y = this.model.yOf(row, this.scroller.scrollTop, rh);
    if (row < this.model.pins || (y >= this.model.pins * rh && y + 2 * rh <= view)) return;
    this.scroller.scrollTop = row * rh - view / 2;
    this.redraw();
  }
  private clicked(x: number, y: number): void {
    const row = this.rowAt(y);
    if (row >= 0 && row < this.model.rows.length) this.tree.pick(row);
    const hit = this.hit(x, y);
    if (hit) void this.details(hit, this.session.axis.timeAt(x));
  }
  /** The state under the cursor in the picked row. */
  current(): Hit | null {
    const { axis } = this.session, node = this.tree.picked === null ? undefined
      : this.model.nodes.get(this.tree.picked);
    if (!node || axis.cursor === null) return null;
    // What a search went to may be too short to be among the sampled states.
    const { last } = this, now = axis.rel(axis.cursor);
    if (last && last.node.entry.id === node.entry.id && last.row.start[last.index] <= now
      && now < last.row.end[last.index])
      return last;
    const row = this.data.rows.get(node.entry.id);
    if (!row) return null;
    const index = stateAt(row, now);
    return index < 0 ? null : { node, row, index };
  }
  /** Of a path: what is told of the state that an entry has at a time; false: it is told as in other views. */
  walker: ((entry: number, t: number) => boolean) | null = null;
  async details(hit: Hit, at: Time): Promise<void> {
    if (this.walker?.(hit.node.entry.id, hit.row.start[hit.index])) return;
    const { session } = this, lines = this.lineup(hit);
    const begin = session.axis.abs(hit.row.start[hit.index]), end = session.axis.abs(hit.row.end[hit.index]);
    const detail: Detail = { title: this.title(hit.node), lines, begin, end };
    session.detail.emit(detail);
    const more = await this.serverTip(hit, at, this.signal);
    if (more.length) session.detail.emit({ ...detail, lines: merge(lines, more) });
  }
  private title(node: Node): string {
    return (this.path ? [pathName(node.entry.labels[0] ?? ''), this.hostOf(node)] : node.entry.labels.slice(0, 2))
      .filter(Boolean).join(' · ');
  }
  private lineup(hit: Hit): [string, string][] {
    const { axis } = this.session, { row, index } = hit, look = this.looks.all[row.style[index]];
    const begin = axis.abs(row.start[index]), end = axis.abs(row.end[index]);
    return [['State', look.blank && !look.key ? (this.path ? 'the path is elsewhere' : 'nothing known') : look.name],
      ...(row.label[index] ? [['Label', row.label[index]!] as [string, string]] : []),
      ['Begin', this.session.time(begin)], ['End', this.session.time(end)],
      ['Duration', `${formatDuration(end - begin)} (${formatExact(end - begin)})`]];
  }
  private serverTip(hit: Hit, at: Time, signal: AbortSignal): Promise<[string, string][]> {
    const { row, index } = hit, { axis } = this.session, { id } = hit.node.entry, begin = axis.abs(row.start[index]);
    return this.askTip(at, id, { elementType: 'state', time: begin, duration: axis.abs(row.end[index]) - begin,
      entryId: id }, signal);
  }
  private async askTip(at: Time, id: number, element: object, signal: AbortSignal): Promise<[string, string][]> {
    const { session } = this;
    try {
      const a = await session.client.tooltip(session.uuid, this.output.id, at, id, element, signal, this.extra());
      return Object.entries(a.model ?? {}).map(([k, v]) => [k, String(v)]);
    } catch { return []; }
  }
  private tipStop: AbortController | null = null;
  private hover(e: PointerEvent): void {
    clearTimeout(this.tipTimer);
    this.tipStop?.abort();
    if (e.buttons) { hideTip(); return; }
    const hit = this.hit(e.offsetX, e.offsetY), { clientX: x, clientY: y } = e;
    if (!hit || (!this.looks.all[hit.row.style[hit.index]].key && !hit.row.label[hit.index])) {
      const near = this.arrowAt(e.offsetX, e.offsetY);
      if (near) this.tipTimer = window.setTimeout(() => this.arrowTip(near, x, y), 120); else hideTip();
      return;
    }
    const at = this.session.axis.timeAt(e.offsetX);
    this.tipTimer = window.setTimeout(() => {
      const lines = this.lineup(hit), title = this.title(hit.node);
      showTip(title, lines, this.looks.all[hit.row.style[hit.index]].css, x, y);
      const stop = this.tipStop = new AbortController();
      void this.serverTip(hit, at, stop.signal).then(more => {
        const news = more.filter(l => !hit.node.entry.labels.includes(l[1]));
        if (!stop.signal.aborted && news.length)
          showTip(title, merge(lines, news), this.looks.all[hit.row.style[hit.index]].css, x, y);
      });
    }, 180);
  }

  /** The arrow below the mouse. */
  private arrowAt(x: number, y: number): ArrowLine | null {
    if (!this.part.arrows || this.data.arrows.length > BUSY) return null;
    const [first, last] = this.visible();
    let best: ArrowLine | null = null, least = 5;
    for (const l of arrowLines(this.session, this.part, this.axis.width, this.scroller.scrollTop, first, last)) {
      const d = distance(l, x, y);
      if (d < least) { least = d; best = l; }
    }
    return best;
  }
  private arrowTip({ arrow, css }: ArrowLine, x: number, y: number): void {
    const { session, axis } = this, name = (id: number): string => {
      const n = this.model.nodes.get(id);
      return n ? `${this.path ? pathName(n.entry.labels[0] ?? '') : n.entry.labels.slice(0, 2).join(' ')}`
        + `${this.model.roots.length > 1 ? ` on ${this.hostOf(n)}` : ''}` : '';
    };
    const begin = axis.abs(arrow.start), end = axis.abs(arrow.end), title = this.looks.all[arrow.style].name,
      lines: [string, string][] = [['From', name(arrow.source)], ['To', name(arrow.target)],
        ['Begin', session.time(begin)], ['End', session.time(end)],
        ['Duration', `${formatDuration(end - begin)} (${formatExact(end - begin)})`]];
    showTip(title, lines, css, x, y);
    const stop = this.tipStop = new AbortController();
    void this.askTip(begin, arrow.source, { elementType: 'arrow', time: begin, duration: end - begin,
      entryId: arrow.source, destinationId: arrow.target }, stop.signal).then(more => {
      if (!stop.signal.aborted && more.length) showTip(title, merge(lines, more), css, x, y);
    });
  }

  // ---- menus --------------------------------------------------------------------------------------------------------
  private menu(node: Node, x: number, y: number): void { openMenu(this.menuItems(node), x, y); }
  private menuItems(node: Node): MenuItem[] {
    const { session } = this, tid = tidOf(node.entry, this.model.headers), host = this.hostOf(node),
      items: MenuItem[] = [];
    if (tid !== null) {
      const thread = this.threadOf(node, tid), selection = session.axis.selection;
      items.push({ label: `${thread.name} ${tid} on ${host || 'this machine'}`, heading: true },
        { label: 'Critical path: selection', hint: selection ? formatDuration(selection[1] - selection[0])
          : 'select an interval first', disabled: !selection,
          run: () => session.pathWanted.emit({ thread, begin: selection![0], end: selection![1] }) },
        { label: 'Critical path: whole life', run: () => session.pathWanted.emit({ thread }) },
        { label: 'Show only this thread',
          run: () => session.setSearch(`tid:${tid}${host ? ` host:${/\s/.test(host) ? `"${host}"` : host}` : ''}`) });
    }
    if (node.children.length)
      items.push({ label: this.model.isFolded(node) ? 'Unfold' : 'Fold', hint: 'space',
        run: () => this.model.fold(node, !this.model.isFolded(node)) },
      { label: 'Unfold everything below', hint: '+', run: () => this.model.fold(node, false, true) });
    if (!this.path)
      items.push({ label: session.pinned.has(node.entry.id) ? 'Let go from the top' : 'Pin on top',
        run: () => session.pin(node.entry.id) });
    items.push({ label: 'Copy name', run: () => void navigator.clipboard?.writeText(node.entry.labels.join(' ')) });
    return items;
  }
  private areaMenu(y: number, e: MouseEvent): void {
    const row = this.rowAt(y), node = this.model.rows[row], { axis } = this.session;
    if (node) this.tree.pick(row);
    openMenu([...(node ? this.menuItems(node) : []), { label: 'Zoom to the selection', hint: 'f',
      disabled: !axis.selection, run: () => axis.fitSelection() },
      { label: 'Whole trace', hint: 'Home', run: () => axis.whole() },
      { label: 'Zoom back', hint: 'Backspace', run: () => axis.back() }], e.clientX, e.clientY);
  }

  // ---- stepping -----------------------------------------------------------------------------------------------------
  /** Cursor to the previous or next state change of the picked row. */
  stepState(direction: 1 | -1, extend: boolean): boolean {
    const { axis } = this.session, node = this.tree.picked === null ? undefined
      : this.model.nodes.get(this.tree.picked);
    const row = node && this.data.rows.get(node.entry.id);
    if (!row || !row.n) return false;
    const now = axis.cursor === null ? axis.offset : axis.rel(axis.cursor);
    let to = NaN;
    const i = firstAfter(row, now);
    if (direction > 0) { if (i < row.n) to = row.start[i] > now ? row.start[i] : row.end[i]; }
    else if (i < row.n && row.start[i] < now) to = row.start[i];
    else if (i > 0) to = row.end[i - 1] < now ? row.end[i - 1] : row.start[i - 1];
    if (Number.isNaN(to)) return false;
    const t = axis.abs(to);
    if (extend) axis.extend(t); else axis.select(t);
    axis.reveal(t);
    const hit = this.current();
    if (hit) void this.details(hit, t);
    return true;
  }
  /** To the next state that the search found in any of its rows, or, in the picked row, that is of the kind under the
   * cursor. */
  async stepKind(direction: 1 | -1): Promise<boolean> {
    const { session } = this, { axis } = session, searched = session.search.states.length > 0, here = this.current();
    const nodes = searched ? this.searchRows() : here ? [here.node] : [];
    if (!nodes.length) return false;
    const look = here ? here.row.style[here.index] : -1, now = axis.cursor === null ? axis.offset
      : axis.rel(axis.cursor), most = axis.rel(axis.max);
    const fits = (row: RowStates, i: number): boolean => (direction > 0 ? row.start[i] > now : row.start[i] < now)
      && (searched ? !(row.tags[i] & (TAG_DIM | TAG_EXCLUDE)) && !this.looks.all[row.style[i]].blank
        : row.style[i] === look);
    const nearest = async (a: number, b: number): Promise<Hit | null> => {
      let best: Hit | null = null;
      const groups = Array.from({ length: Math.ceil(nodes.length / GROUP) }, (_, i) =>
        nodes.slice(i * GROUP, (i + 1) * GROUP));
      const answers = await Promise.all(groups.map(g => session.client.states(session.uuid, this.output.id,
        { start: axis.abs(a), end: axis.abs(b), nbTimes: Math.max(500, Math.floor(20000 / g.length)) },
        g.map(n => n.entry.id), filterParameters(session.search, session.exclude), this.signal)));
      for (const r of answers.flatMap(x => x.model ?? [])) {
        const node = this.model.nodes.get(r.entryId), row = packRow(r.states, axis.min, this.looks, a, b, 0);
        for (let k = 0; node && k < row.n; k++)
          if (fits(row, k) && (!best || direction * (row.start[k] - best.row.start[best.index]) < 0))
            best = { node, row, index: k };
      }
      return best;
    };
    try {
      // Wider and wider: near ones are found at once, far ones without asking for everything.
      for (let width = axis.rel(axis.end) - axis.offset, from = now; ; width *= 4) {
        const a = direction > 0 ? from : Math.max(0, from - width), b = direction > 0 ? Math.min(most, from + width)
          : from;
        let best = await nearest(a, b);
        // Sampling may have passed by nearer ones: between here and there, until there is none.
        for (let i = 0; best && i < 12; i++) {
          const at: number = best.row.start[best.index], nearer = await nearest(Math.min(now, at), Math.max(now, at));
          if (!nearer || direction * (nearer.row.start[nearer.index] - at) >= 0) break;
          best = nearer;
        }
        if (best) { this.goTo(best); return true; }
        if ((direction > 0 && b >= most) || (direction < 0 && a <= 0)) return false;
        from = direction > 0 ? b : a;
      }
    } catch (e) {
      if (!isAbort(e)) this.status(`cannot look further: ${(e as Error).message}`);
      return false;
    }
  }
  /** Rows that a search of states looks through: those on screen, and where it says which rows, all of these. */
  private searchRows(): Node[] {
    const { rows } = this.model, [first, last] = this.visible(), seen = rows.slice(first, last),
      found = this.session.search.rows ? [...new Set([...seen, ...rows])].filter(n => n.match) : seen;
    return found.filter(n => n.entry.hasData).slice(0, MOST_SEARCHED);
  }
  private last: Hit | null = null;
  private goTo(hit: Hit): void {
    this.last = hit;
    const { axis } = this.session, begin = axis.abs(hit.row.start[hit.index]);
    axis.select(begin);
    axis.reveal(begin, axis.abs(hit.row.end[hit.index]));
    this.showEntry(hit.node.entry.id);
    void this.details(hit, begin);
  }
  /** Next row that the search found. */
  stepRow(direction: 1 | -1): boolean {
    const { rows } = this.model, n = rows.length;
    for (let k = 1, at = Math.max(-1, this.tree.pickedRow); k <= n; k++) {
      const i = (at + direction * k + 2 * n) % n;
      if (rows[i].match) { this.tree.pick(i); return true; }
    }
    return false;
  }
  focus(): void { this.tree.root.focus({ preventScroll: true }); }
}

/** The server's lines after ours, without saying the same twice. */
function merge(ours: [string, string][], more: [string, string][]): [string, string][] {
  const have = new Set(['start', ...ours.map(l => l[0].toLowerCase())]);
  return [...ours, ...more.filter(l => !have.has(l[0].toLowerCase()))];
}
