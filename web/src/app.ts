// SPDX-License-Identifier: MIT
// The page: puts the parts together, opens experiments and views, keeps the link, says when the server is gone.
import { Axis } from './axis';
import { clockMap } from './clock';
import type { Side } from './compare';
import { Comparer, type Stage } from './comparer';
import { DataTreeView, GenericXyView } from './dataview';
import { announce, button, h, reducedMotion, scrollBarWidth } from './dom';
import { Bookmarks, detailPane, Drawer, isTab, legend } from './drawer';
import { perFrame, settle } from './emitter';
import { save } from './exports';
import { Follower } from './follow';
import { Front, type Floor } from './front';
import { GraphView } from './graphview';
import { showHelp } from './help';
import { share } from './layout';
import { bindKeys } from './keys';
import { readLink, retimed, saysWhat, writeLink, type LinkState } from './link';
import type { MenuItem } from './menu';
import { Notice } from './notice';
import { brokenSheet, Opening } from './opening';
import { FIRST, ID, outputOf } from './outputs';
import { Overview } from './overview';
import { failureWords, Panel, PATIENCE, setTreeWidth, treeWidthNow } from './panel';
import { createPath, PathPane, pathOutput, specOf, type PathSpec } from './pathpane';
import { openPairsForm, ownerOf } from './pairsform';
import { Picker } from './picker';
import { keep, keepLayout, kept, keptLayout, type KeptLayout } from './remember';
import { SelectionPane } from './selection';
import { Session, sessionAlong } from './session';
import type { Start } from './start';
import { TablePanel } from './tablepanel';
import { TimeAxis } from './timeaxis';
import { TopBar } from './topbar';
import { isAbort, sleep, TspClient, TspError, type Experiment, type Output } from './tsp';
import { viewItems } from './viewsmenu';
import { VirtualTable } from './vtable';
import { keepWatch } from './watch';
import { rowsButton } from './wanted';
import { XyView } from './xyview';

export class App implements Stage, Floor {
  readonly session: Session;
  panels: Panel[] = [];
  readonly stack = h('main', { class: 'stack', tabIndex: -1 });
  private readonly notice = new Notice();
  readonly frame = h('div', { class: 'frame' });
  private readonly top: TopBar;
  private readonly overview: Overview;
  private readonly times: TimeAxis;
  readonly follower: Follower;
  readonly drawer: Drawer;
  private readonly bookmarks: Bookmarks;
  private readonly selection: SelectionPane;
  events: VirtualTable | null = null;
  path: { spec: PathSpec; view: GraphView; pane: PathPane } | null = null;
  private readonly entrance: Front;
  readonly comparer: Comparer;
  private markerSets: { id: string; name: string }[] = [];
  private picker: Picker | null = null;
  private opening = new AbortController();
  private readonly measure = perFrame(() => this.layout());
  readonly relink = settle(() => this.writeLink(), 250, 1000);
  private wroteHash = '';
  private readonly bar = scrollBarWidth();

  constructor(client: TspClient) {
    const session = this.session = new Session(client);
    this.comparer = new Comparer(session, this);
    this.entrance = new Front(session, this);
    this.drawer = new Drawer(() => { this.resized(); this.relink(); this.arranged(); });
    this.overview = new Overview(session);
    this.times = new TimeAxis(session);
    this.follower = new Follower(session, { take: x => this.takeVersion(x),
      reopen: x => this.reopen(x), chosen: () => this.relink() });
    this.top = new TopBar(session, {
      openPicker: () => this.showPicker(true), start: () => this.entrance.show(), viewsMenu: () => this.viewsMenu(),
      reveal: o => this.reveal(o),
      save: kind => void save(kind, session, this.panels, this.events), help: showHelp,
      copyLink: () => {
        this.writeLink();
        void navigator.clipboard?.writeText(location.href);
        announce('link copied');
      }, searchStep: d => this.step(d, true), leaveSearch: () => this.focusViews(), following: this.follower.root,
      timesOf: host => void this.timesOf(host),
      rows: rowsButton(session, () => this.panels),
    });
    this.bookmarks = new Bookmarks(session, this.drawer.page('bookmarks'), () => this.marks());
    detailPane(session, this.drawer.page('details'));
    this.selection = new SelectionPane(session, this.drawer.page('selection'), o => {
      this.reveal(o);
      const flame = this.panels.find(p => p.output.id === o.id);
      if (flame instanceof GraphView) flame.showSelection(true);
    });
    this.drawer.tool('selection', this.selection.bar);
    this.overview.lostTotal.on(n => this.top.showLost(n));
    this.noPath();
    this.frame.append(this.top.root, this.notice.root,
      h('nav', { class: 'strip', 'aria-label': 'Whole trace' }, this.overview.root), this.times.root, this.stack,
      this.drawer.root);
    document.body.append(this.frame);
    document.documentElement.style.setProperty('--bar', `${this.bar}px`);
    session.compact = kept('compact') === '1';
    this.drawer.setHeight(Math.min(240, innerHeight * 0.24));
    setTreeWidth(Number(kept('tree')) || Math.min(340, Math.max(270, innerWidth * 0.2)));
    session.setTheme((kept('theme') ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark'
      : 'light')) === 'dark');
    const mode = kept('time');
    if (mode === 'utc' || mode === 'relative') session.timeMode = mode;
    new ResizeObserver(this.measure).observe(this.stack);
    this.stack.addEventListener('scroll', () => { for (const p of this.panels) p.resize(); }, { passive: true });
    session.axis.moved.on(this.relink);
    session.axis.selected.on(() => { this.drawer.showDelta(session); this.relink(); });
    session.timeModeChanged.on(() => {
      this.drawer.showDelta(session);
      this.bookmarks.render('');
      keep('time', session.timeMode);
      this.relink();
    });
    session.searchChanged.on(this.relink);
    session.pickedChanged.on(this.relink);
    session.rowsChanged.on(this.relink);
    session.groupingChanged.on(this.relink);
    session.pathWanted.on(spec => void this.openPath(spec));
    session.themeChanged.on(() => { this.marks(); this.arranged(); });
    session.relayout.on(() => { this.rows(); this.arranged(); });
    addEventListener('pagehide', () => this.rememberLayout());
    this.rows();
    client.onLacks = (path, lacks, words) => {
      if (session.experiment && path.includes(session.uuid)) this.top.machines.answered(path, lacks);
      this.tellLack(words);
    };
    keepWatch(session, { notice: this.notice, retry: () => this.retry(), reopen: x => this.reopen(x),
      grown: x => this.follower.found(x) });
    bindKeys(session, {
      graph: () => this.graph(), start: () => this.entrance.show(),
      views: () => this.entrance.leave(), step: d => this.step(d, false), search: () => {
        this.top.search.focus();
        this.top.search.select();
      }, along: d => (this.comparer.now ?? this.path?.pane.walk)?.step(d),
      compare: () => this.comparer.toggle(), goTo: () => this.top.goto.focus(),
      bookmark: () => {
        this.drawer.select('bookmarks');
        void this.bookmarks.add();
      }, events: () => this.drawer.select('events'), details: () => this.details(),
    });
    addEventListener('hashchange', () => { if (location.hash !== this.wroteHash) void this.start(); });
    void this.start();
  }

  /** What the link names, else the only experiment, else the picker. */
  async start(): Promise<void> {
    const { client } = this.session, link = readLink(location.hash);
    try {
      if (link && link.experiment === this.session.uuid) {
        const own = await this.byOurClock(link);
        if (link.experiment !== this.session.uuid) return;
        if (saysWhat(link)) this.entrance.leave();
        this.restore(own);
        return;
      }
      if (link) { await this.open(await client.experiment(link.experiment), link); return; }
      const all = await client.experiments();
      if (all.length === 1) await this.open(all[0]); else this.showPicker(false);
    } catch (e) {
      if (isAbort(e)) return;
      this.showPicker(false);
      if (e instanceof TspError && e.status === 401) return; // the picker asks for the token
      this.say(e instanceof TspError && e.status === 404
        ? 'The link names an experiment that this server does not know.' : failureWords(e));
    }
  }

  private showPicker(back: boolean): void {
    this.closePicker();
    this.picker = new Picker(this.session, x => {
      this.closePicker();
      void this.open(x);
    }, back ? () => this.closePicker() : null);
    this.frame.classList.add('picking');
    document.body.append(this.picker.root);
    this.picker.root.focus();
  }
  private closePicker(): void {
    this.frame.classList.remove('picking');
    if (this.picker) this.top.name.focus(); // where it was opened
    this.picker?.root.remove();
    this.picker = null;
  }

  // ---- experiment ---------------------------------------------------------------------------------------------------
  async open(x: Experiment, link: LinkState | null = null): Promise<void> {
    const { session } = this, { client, axis } = session;
    this.closeAll();
    this.opening.abort();
    const { signal } = this.opening = new AbortController();
    this.notice.clear();
    this.closePicker();
    session.experiment = x;
    this.top.opened();
    const wait = new Opening(x.name);
    this.stack.replaceChildren(wait.root);
    try {
      // A GET of what is closed opens it; then it is read until it no longer grows.
      let now = x.indexingStatus === 'COMPLETED' ? x : await client.experiment(x.UUID, signal), shown = false;
      for (let ms = 200; ; ms = Math.min(2000, ms * 1.5)) {
        session.experiment = now;
        if (now.end > now.start) {
          axis.setExtent(now.start, now.end);
          if (!shown) { axis.show(now.start, now.end, false); shown = true; }
        }
        if (now.indexingStatus !== 'RUNNING' || now.version) break;
        wait.show(now);
        await sleep(ms, signal);
        now = await client.experiment(x.UUID, signal);
      }
      if (now.indexingStatus === 'CLOSED') { await this.tellBroken(now, link, signal); return; }
      session.outputs = await client.outputs(x.UUID, signal);
      wait.root.remove();
      if (!now.nbEvents) this.say(`${now.name} has no events.`);
      const kept = keptLayout(x.UUID);
      this.arrange(kept, !!link);
      this.layout();
      this.entrance.opened();
      if (this.home && !saysWhat(link)) this.entrance.show(); else this.openFirst(link, kept);
      this.arranging = false;
      session.markerSet = null;
      this.follower.opened();
      const own = link && await this.byOurClock(link);
      if (signal.aborted) return;
      if (own) this.restore(own);
      await this.front;
      if (signal.aborted) return;
      this.top.opened();
      this.openEvents();
      this.selection.opened();
      void this.overview.load();
      void this.bookmarks.load();
      client.markerSets(x.UUID).then(sets => { this.markerSets = sets; }, () => { this.markerSets = []; });
      this.writeLink();
    } catch (e) {
      if (!isAbort(e)) this.showBroken(x, link, failureWords(e));
    }
  }
  private showBroken(x: Experiment, link: LinkState | null, why: string): void {
    this.stack.replaceChildren(brokenSheet(x.name, why, () => void this.open(x, link), () => this.showPicker(true)));
  }
  /** What it asks for then is refused with the reason. */
  private async tellBroken(x: Experiment, link: LinkState | null, signal: AbortSignal): Promise<void> {
    const a = await this.session.client.tree(x.UUID, 'timeGraph', ID.machines, null, signal);
    this.showBroken(x, link, a.statusMessage);
  }
  private tellLack(words: string): void {
    const notes = outputOf(this.session.outputs, ID.notes);
    this.notice.lacks(words, notes ? button('Notes', 'What is wrong, and what to do about it',
      () => this.reveal(notes)) : undefined);
  }
  /** What was recorded since, without anything being shut or moved away. */
  private async takeVersion(now: Experiment): Promise<void> {
    const { session } = this, { axis, client } = session;
    // All that is shown counts from the begin, and is by one clock.
    if (now.start < axis.min || now.reference !== session.experiment?.reference) {
      this.writeLink();
      await this.open(now, readLink(location.hash));
      return;
    }
    session.outputs = await client.outputs(now.UUID);
    if (session.uuid !== now.UUID) return;
    session.experiment = now;
    axis.grow(now.end, this.follower.on);
    if (session.clock) void this.timesOf(session.clock.host);
    for (const p of this.panels) p.reload();
    this.home?.refresh();
    this.selection.opened();
    void this.events?.reload();
    void this.path?.pane.load(false);
    this.comparer.again();
    void this.overview.load(true);
    this.top.grown();
  }
  private closeAll(): void {
    this.rememberLayout();
    this.arranging = true;
    this.follower.closed();
    this.entrance.closed();
    this.comparer.close();
    for (const p of [...this.panels]) p.dispose();
    this.panels = [];
    this.path?.pane.dispose();
    this.path = null;
    this.noPath();
    this.events?.dispose();
    this.events = null;
    this.selection.closed();
    this.session.hosts.clear();
    this.session.hasPods = false;
    this.session.machines = null;
    this.session.setPinned([]);
    this.session.picked = null;
    this.session.stepper = null;
    this.session.clock = null;
    this.session.axis.anchor = this.session.axis.cursor = null;
  }

  front = Promise.resolve();
  /** The link says which views, else what was there last; heights are those of then. */
  private openFirst(link: LinkState | null, kept: KeptLayout | null): void {
    const { outputs } = this.session;
    this.front = Promise.resolve();
    for (const id of link?.outputs ?? kept?.views.map(v => v.id) ?? []) {
      const o = outputOf(outputs, id), view = kept?.views.find(v => v.id === id), p = o && this.add(o, view?.height);
      if (p && view?.folded) p.fold(true);
    }
    const none = (): boolean => !this.panels.some(p => p !== this.path?.view);
    if (!none()) return;
    for (const id of FIRST) { const o = outputOf(outputs, id); if (o) this.add(o); }
    for (const type of ['TIME_GRAPH', 'TREE_TIME_XY'])
      if (none())
        for (const o of outputs.filter(x => x.type === type && !x.capabilities?.canCreate).slice(0, 2)) this.add(o);
    if (none())
      this.stack.append(h('div', { class: 'opening' },
        'This experiment has no view over time. The Views menu lists what there is.'));
  }
  private openEvents(): void {
    const page = this.drawer.page('events'), output = outputOf(this.session.outputs, ID.events);
    page.replaceChildren();
    if (!output) { page.append(h('p', { class: 'words' }, 'This server offers no table of events.')); return; }
    this.events = new VirtualTable(this.session, output, true);
    page.append(this.events.root);
    this.drawer.tool('events', this.events.bar);
  }

  get home(): Start | null { return this.entrance.home; }
  get signal(): AbortSignal { return this.opening.signal; }
  furnish(): void {
    if (!this.panels.some(p => p !== this.path?.view)) this.openFirst(null, keptLayout(this.session.uuid));
  }

  // ---- whose clock -------------------------------------------------------------------------------------------------
  private clocksAsked = 0;
  /** Shows times by the clock of that machine, or of the experiment. */
  private async timesOf(host?: string): Promise<void> {
    const { session } = this, { experiment, client, outputs, uuid } = session, mine = ++this.clocksAsked;
    if (!experiment || (!host && !session.clock)) return;
    try {
      const clock = host ? await clockMap(client, experiment, outputs, host) : null;
      if (session.uuid === uuid && mine === this.clocksAsked) session.setClock(clock);
    } catch (e) { if (!isAbort(e)) this.say(`Times stay as they are: ${failureWords(e)}`); }
  }
  /** A link's times may be by another clock than the server tells them by now. */
  private async byOurClock(link: LinkState): Promise<LinkState> {
    const { experiment, client, outputs } = this.session;
    const clock = link.reference && experiment?.reference
      ? await clockMap(client, experiment, outputs, link.reference) : null;
    return clock ? retimed(link, t => clock.meant(t)) : link;
  }

  // ---- views --------------------------------------------------------------------------------------------------------
  private make(o: Output, height?: number): Panel | null {
    switch (o.type) {
      case 'TIME_GRAPH': return new GraphView(this.session, o, this, height);
      case 'GANTT_CHART': return this.gantt(o, height);
      case 'TREE_TIME_XY': return new XyView(this.session, o, this, height);
      case 'DATA_TREE': return new DataTreeView(this.session, o, this, height);
      case 'TREE_GENERIC_XY': return new GenericXyView(this.session, o, this, height);
      case 'TABLE': return new TablePanel(this.session, o, this, height);
      default: return null;
    }
  }
  /** Its x axis is not the experiment's time: a session apart, with an axis of its own. */
  private gantt(o: Output, height?: number): Panel {
    const axis = new Axis(), apart = sessionAlong(this.session, axis);
    axis.width = this.session.axis.width;
    Object.defineProperty(apart, 'timeMode', { value: 'relative' });
    Object.defineProperty(apart, 'clock', { value: null });
    axis.setExtent(0n, 1_000_000_000n);
    const view = new GraphView(apart, o, this, height);
    view.model.changed.on(() => {
      let last = 0;
      for (const n of view.model.nodes.values()) last = Math.max(last, n.entry.end ?? 0);
      // Its extent is what there is now: the selection's, or the whole trace's.
      const end = BigInt(Math.trunc(last));
      if (end > 0n && end !== axis.max) { axis.setExtent(0n, end); axis.whole(); }
    });
    view.offerSelection(this.session.axis);
    return view;
  }
  add(o: Output, height?: number): Panel | null {
    const spec = specOf(o);
    if (spec) { this.showPath(o, spec); return this.path?.view ?? null; }
    const p = this.make(o, height);
    if (!p) return null;
    if (!this.panels.length && p instanceof GraphView) this.front = Promise.race([p.pictured, sleep(PATIENCE)]);
    this.panels.push(p);
    this.stack.querySelector('.opening')?.remove();
    this.stack.append(p.root);
    this.resized();
    if (p instanceof GraphView) p.model.changed.on(settle(() => this.legend(), 300, 1000));
    const owner = ownerOf(this.session.outputs, o);
    if (owner && p instanceof GraphView) p.offerRemoval(() => void this.forget(owner));
    this.relink();
    this.arranged();
    return p;
  }
  /** Opens the view unless it is open, and brings it into sight. */
  reveal(o: Output): void {
    (this.panels.find(p => p.output.id === o.id) ?? this.add(o))?.root.scrollIntoView({ block: 'nearest',
      behavior: reducedMotion() ? 'auto' : 'smooth' });
  }
  private viewsMenu(): MenuItem[] {
    const { session } = this, panel = (o: Output): Panel | undefined => this.panels.find(p => p.output.id === o.id);
    return viewItems(session, { isOpen: o => !!panel(o), open: o => this.reveal(o), close: o => panel(o)?.close(),
      path: spec => session.pathWanted.emit(spec), events: this.events?.output ?? null, markerSets: this.markerSets,
      newPairs: template => openPairsForm(session, template, this.events?.output ?? null, d => this.showDerived(d)) });
  }
  /** A new output that others show: its chart and figures, to begin with. */
  private async showDerived(derived: Output): Promise<void> {
    const { session } = this;
    session.outputs = await session.client.outputs(session.uuid);
    for (const o of session.outputs)
      if (o.parentId === derived.id && (o.type === 'TIME_GRAPH' || o.type === 'DATA_TREE')) this.reveal(o);
  }
  private legend(): void {
    legend(this.drawer.page('legend'), this.panels.filter((p): p is GraphView => p instanceof GraphView
      && !this.comparer.now?.has(p)));
  }

  /** What is there is being shut or opened: not what somebody chose. */
  private arranging = true;
  private readonly arrangedSoon = settle(() => this.rememberLayout(), 300, 1000);
  private rememberLayout(): void {
    const { session, drawer } = this;
    if (this.arranging || !session.experiment) return;
    const shown = this.panels.filter(p => p !== this.path?.view && !this.comparer.now?.has(p));
    // While Start is shown the views are those of before.
    keepLayout(session.uuid, { views: this.entrance.isShown && !shown.length ? keptLayout(session.uuid)?.views ?? []
      : shown.map(p => ({ id: p.output.id, height: p.fixed ? p.height : undefined, folded: p.folded || undefined })),
    drawer: drawer.height,
      shut: !drawer.open || undefined, tab: drawer.now, dark: session.theme.dark, compact: session.compact });
  }
  /** As it was when the experiment was last open. `linked`: a link says what is seen. */
  private arrange(kept: KeptLayout | null, linked: boolean): void {
    const { session, drawer } = this;
    if (!kept) return;
    if (kept.dark !== undefined && kept.dark !== session.theme.dark) session.setTheme(kept.dark);
    if (kept.compact !== undefined && kept.compact !== session.compact) {
      session.compact = kept.compact;
      session.relayout.emit();
    }
    if (kept.drawer) drawer.setHeight(kept.drawer);
    if (!linked && isTab(kept.tab) && kept.tab !== 'path') drawer.select(kept.tab);
    if (kept.shut) drawer.toggle(false);
  }

  // PanelHost
  arranged(): void { this.arrangedSoon?.(); }
  closed(panel: Panel): void {
    this.comparer.closed(panel);
    this.panels = this.panels.filter(p => p !== panel);
    this.resized();
    if (this.path?.view === panel) {
      const { pane } = this.path;
      this.path = null;
      pane.dispose();
      this.noPath();
    }
    this.legend();
    this.relink();
    this.arranged();
  }
  resized(): void { this.measure?.(); }
  columnsMoved(): void { keep('tree', String(treeWidthNow())); this.layout(); }

  private rows(): void {
    document.documentElement.style.setProperty('--row', `${this.session.rowHeight}px`);
    this.frame.classList.toggle('compact', this.session.compact);
  }

  private layout(): void {
    const width = Math.max(120, this.stack.clientWidth - treeWidthNow() - 6 - this.bar);
    const { axis } = this.session;
    document.documentElement.style.setProperty('--graph', `${width}px`);
    if (axis.width !== width) {
      axis.width = width;
      for (const p of this.panels) if (p instanceof GraphView && p.axis !== axis) {
        p.axis.width = width;
        p.axis.moved.emit();
      }
      axis.moved.emit();
    }
    this.times.show(this.panels.some(p => (p instanceof GraphView && p.axis === axis) || p instanceof XyView));
    this.shareHeight();
    for (const p of this.panels) p.resize();
  }
  private shareHeight(): void {
    const sharing = this.panels.filter(p => !p.fixed && !p.folded);
    let room = this.stack.clientHeight;
    for (const p of this.panels) room -= p.root.offsetHeight - (sharing.includes(p) ? p.height : 0);
    const heights = share(room, sharing.map(p => p.want()));
    sharing.forEach((p, i) => p.place(heights[i]));
  }

  // ---- critical path ------------------------------------------------------------------------------------------------
  private noPath(): void {
    this.drawer?.page('path').replaceChildren(h('p', { class: 'words' },
      'Right click on a thread (or press Menu on its row) and choose “Critical path”: what it waited for, machine by '
        + 'machine, is summed up here.'));
  }
  /** The last path that was asked for is the one that is shown. */
  private asked = 0;
  async openPath(spec: PathSpec, placed = false, head: HTMLElement | null = null): Promise<void> {
    if (this.comparer.takes(spec)) return;
    const { session } = this, page = this.drawer.page('path'), mine = ++this.asked;
    this.path?.view.close();
    this.drawer.select('path');
    page.replaceChildren(h('p',
      { class: 'words', role: 'status' }, `Asking for the critical path of ${spec.thread.name} ${spec.thread.tid}…`));
    try {
      if (!pathOutput(session.outputs)) session.outputs = await session.client.outputs(session.uuid);
      const { derived } = await createPath(session, spec);
      if (mine === this.asked) this.showPath(derived, spec, placed, head);
    } catch (e) {
      if (mine !== this.asked) return;
      page.replaceChildren(h('p', { class: 'words', role: 'alert' }, `No critical path: ${failureWords(e)} `,
        button('Try again', 'Ask the server again', () => void this.openPath(spec, placed, head))));
    }
  }

  /** `head` stands above it. */
  private showPath(output: Output, spec: PathSpec, placed = false, head: HTMLElement | null = null): void {
    const { session } = this;
    this.path?.view.close();
    const view = new GraphView(session, output, this, undefined, true);
    this.panels.unshift(view);
    this.stack.querySelector('.opening')?.remove();
    this.stack.prepend(view.root);
    this.stack.scrollTop = 0;
    if (head) view.above(head);
    this.resized();
    const pane = new PathPane(session, view, spec, placed);
    this.drawer.select('path');
    this.drawer.page('path').replaceChildren(pane.root);
    this.path = { spec, view, pane };
    this.comparer.offer(view);
    if (output.capabilities?.canDelete) view.offerRemoval(() => void this.forget(output));
    if (!session.outputs.some(o => o.id === output.id)) session.outputs.push(output);
    view.model.changed.on(settle(() => this.legend(), 300, 1000));
    // Its thread is seen in the other views, at the heights that they have now.
    if (spec.thread.tid >= 0 && !placed) session.pick(spec.thread);
    setTimeout(() => { for (const p of this.panels) if (p instanceof GraphView && !p.path) p.reveal(); }, 400);
    this.relink();
  }
  openSide({ output, spec }: Side): void { this.showPath(output, spec); }
  beside(views: GraphView[]): void {
    const after = this.path!.view;
    this.panels.splice(this.panels.indexOf(after) + 1, 0, ...views);
    after.root.after(...views.map(v => v.root));
    this.resized();
  }
  fill(content: HTMLElement | null): void {
    const shown = content ?? this.path?.pane.root;
    if (shown) this.drawer.page('path').replaceChildren(shown);
    if (content) this.drawer.select('path');
  }
  /** The server keeps derived outputs for everybody until somebody removes them. */
  private async forget(output: Output): Promise<void> {
    const { session } = this, gone = (o: Output): boolean => o.id === output.id || o.parentId === output.id;
    for (const p of this.panels.filter(p => gone(p.output))) p.close();
    session.outputs = session.outputs.filter(o => !gone(o));
    try {
      await session.client.removeDerived(session.uuid, output.parentId ?? pathOutput(session.outputs)?.id ?? '',
        output.id);
    } catch (e) { if (!isAbort(e)) this.say(`${output.name} stays on the server: ${failureWords(e)}`); }
  }

  // ---- stepping, details, marks -------------------------------------------------------------------------------------
  graph(): GraphView | null {
    const graphs = this.panels.filter((p): p is GraphView => p instanceof GraphView && !p.folded);
    return graphs.find(g => g.root.contains(document.activeElement))
      ?? graphs.find(g => g.tree.picked !== null && !g.path) ?? graphs.find(g => !g.path) ?? graphs[0] ?? null;
  }
  private step(direction: 1 | -1, searching: boolean): void {
    const { session } = this, graph = this.graph();
    if (searching) session.stepper = null;
    const found = session.stepper ? session.stepper.step(direction)
      : session.search.states.length || !session.search.rows ? graph?.stepKind(direction) ?? Promise.resolve(false)
      : Promise.resolve(graph?.stepRow(direction) ?? false);
    void found.then(ok => {
      if (ok && searching) this.focusViews(); // n and p go on from there
      if (!ok) {
        announce('no more');
        graph?.status(direction > 0 ? 'nothing further after the cursor' : 'nothing further before the cursor');
      }
    });
  }
  private focusViews(): void { const g = this.graph(); if (g) g.focus(); else this.stack.focus(); }
  private details(): void {
    this.drawer.select('details');
    const graph = this.graph(), hit = graph?.current();
    if (graph && hit) void graph.details(hit, this.session.axis.cursor!);
  }
  private marks(): void {
    const { theme } = this.session;
    this.overview.marks = this.bookmarks.list.map(b => ({ start: b.start, end: b.end, colour: theme.accent }));
    this.overview.redraw();
  }

  // ---- link ---------------------------------------------------------------------------------------------------------
  private writeLink(): void {
    const { session, path } = this, { axis } = session;
    if (!session.experiment) return;
    this.wroteHash = writeLink(this.entrance.isShown ? { experiment: session.uuid, mode: session.timeMode,
      clock: session.clock?.host, follow: this.follower.on || undefined } : {
      experiment: session.uuid, reference: session.experiment.reference, clock: session.clock?.host,
      view: axis.begin === axis.min && axis.end === axis.max ? undefined
        : [axis.begin, axis.end],
      selection: axis.anchor !== null && axis.cursor !== null ? [axis.anchor, axis.cursor] : undefined,
      outputs: this.panels.filter(p => p !== path?.view && !this.comparer.now?.has(p)).map(p => p.output.id),
      search: session.search.text.trim() || undefined, exclude: session.exclude, mode: session.timeMode,
      picked: session.picked ?? undefined,
      path: path ? flat(path.spec) : undefined,
      compared: this.comparer.now ? flat(this.comparer.now.b.spec) : undefined,
      pinned: [...session.pinned], machines: session.machines ? [...session.machines] : undefined,
      busyOnly: session.busyOnly || undefined, byPod: session.byPod || undefined,
      tab: this.drawer.now === 'events' ? undefined : this.drawer.now, follow: this.follower.on || undefined,
    });
    history.replaceState(null, '', this.wroteHash);
    this.wroteHash = location.hash;
  }
  private restore(s: LinkState): void {
    const { session } = this, { axis } = session;
    if (s.mode && s.mode !== session.timeMode) session.setTimeMode(s.mode);
    void this.timesOf(s.clock);
    if (s.view) axis.show(s.view[0], s.view[1], false); else axis.whole();
    axis.select(s.selection?.[0] ?? null, s.selection?.[1] ?? null);
    if (s.search !== undefined || session.search.text) {
      session.setSearch(s.search ?? '', s.exclude);
      this.top.search.value = s.search ?? '';
    }
    session.machines = s.machines ? new Set(s.machines) : null;
    session.busyOnly = !!s.busyOnly;
    if (session.byPod !== !!s.byPod) session.setByPod(!!s.byPod);
    session.setPinned(s.pinned ?? []);
    if (s.picked) session.pick(s.picked);
    this.follower.set(!!s.follow);
    if (s.path) void this.restorePath(s);
    if (isTab(s.tab)) this.drawer.select(s.tab);
  }

  private async restorePath({ path, compared }: LinkState): Promise<void> {
    await this.openPath({ thread: path!, begin: path!.begin, end: path!.end, request: path!.request }, true);
    if (compared && this.path)
      await this.comparer.ask({ thread: compared, begin: compared.begin, end: compared.end,
        request: compared.request });
  }

  private async reopen(now: Experiment): Promise<void> {
    this.writeLink();
    const link = readLink(location.hash), opened = this.open(now, link);
    this.say('The trace changed on the server’s disk while it was open. It was opened again: this is what is there '
      + 'now.');
    await opened;
  }
  /** What failed while the server was away is asked for now. */
  private retry(): void {
    for (const p of this.panels) (p as unknown as { retry?: () => void }).retry?.();
    this.home?.refresh();
    this.events?.retry();
  }
  say(text: string, action?: HTMLElement): void { this.notice.say(text, action); }
  tell(text: string): void { this.notice.tell(text); }
}

const flat = ({ thread, begin, end, request }: PathSpec): NonNullable<LinkState['path']> =>
  ({ ...thread, begin, end, request });
