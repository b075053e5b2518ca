// SPDX-License-Identifier: MIT
// Start: the first picture of an experiment, when nobody asked for another one. Its requests, machines and threads side
// by side, the slowest, busiest and most waiting first; every line leads to where more is told.
import { button, h, setText } from './dom';
import { LineList } from './lines';
import { ID } from './outputs';
import { failureWords } from './panel';
import { partyText, RequestList, type ServedRequest } from './requests';
import type { Picked, Session } from './session';
import { formatCount, formatDuration, formatTick, formatValue } from './time';
import {
  isAbort, poll, type Answer, type Entry, type Lack, type Output, type Series, type Tree, type TreeKind,
} from './tsp';

const LINES = 100;  // of a card; all there are have a view
const EACH = 40;    // threads that are asked for, of each state those that were in it longest
const HIGHEST = 58; // px of a bar

export interface StartTargets {
  request(list: RequestList, r: ServedRequest): void;
  thread(thread: Picked): void;
  machine(host: string): void;
  /** The view of all lines of a card. */
  view(output: Output): void;
  /** What goes wrong with a line that was opened. */
  say(words: string): void;
}

/** Number that an entry tells beside its label. */
function figure(e: Entry, key: string): number | null {
  const v = e.metadata[key]?.[0];
  return v === undefined ? null : Number(v);
}
const threadOf = (e: Entry): Picked => ({ host: e.hostId ?? '', tid: Number(e.metadata.TID?.[0] ?? e.labels[1]),
  name: e.labels[0] ?? '', id: e.id });
const duration = (e: Entry, key: string): string => {
  const v = figure(e, key);
  return v ? formatDuration(v) : '';
};
const count = (n: number): string => formatCount(String(n), '');

/** One of the things side by side: its head, words while there is nothing else, its content. */
class Card {
  readonly title = h('h2');
  private readonly more = h('span', { class: 'dim' });
  private readonly words = h('p', { class: 'words', role: 'status' });
  private readonly tools = h('span', { class: 'card-tools' });
  readonly body = h('div', { class: 'card-body', hidden: true });
  readonly root: HTMLElement;
  constructor(readonly name: string, ...content: HTMLElement[]) {
    this.title.textContent = name;
    this.body.append(...content);
    this.root = h('section', { class: 'card', 'aria-label': name }, h('header', {}, this.title, this.more, this.tools),
      this.words, this.body);
  }
  /** How much there is in all, and the way to it. */
  of(text: string, all: HTMLElement | null = null): void {
    setText(this.more, text);
    this.tools.replaceChildren(...(all ? [all] : []));
  }
  /** While there is no content yet. */
  wait(words: string): void { if (this.body.hidden) this.say(words); }
  /** Instead of the content. */
  say(words: string, retry?: () => void): void {
    this.words.replaceChildren(words, retry ? ' ' : '', retry ? button('Try again', 'Ask the server again', retry)
      : '');
    this.words.hidden = !words;
    this.body.hidden = !!words;
  }
}

/** How many took how long: bars over ranges that each begin where the one before ends. */
function histogram(series: Series | undefined): HTMLElement[] {
  const ranges = series?.xRanges ?? [], counts = series?.yValues.map(Number) ?? [],
    most = counts.reduce((m, n) => Math.max(m, n), 1), log = most >= 100;
  const height = (n: number): number => n ? (log ? (Math.log10(n) + 0.4) / (Math.log10(most) + 0.4) : n / most) : 0;
  const round = (ns: number): string => formatTick(Number(ns.toPrecision(2)), 'ns');
  return ranges.map((r, i) => {
    const begin = Number(r.start), end = Number(r.end), bar = h('i'), isDecade = Math.abs(Math.log10(begin) % 1) < 1e-6,
      isLast = i && i === ranges.length - 1;
    bar.style.height = `${height(counts[i]) * HIGHEST}px`;
    return h('div', { title: `${formatDuration(begin)} … ${formatDuration(end)}: ${count(counts[i])} request`
      + `${counts[i] === 1 ? '' : 's'}` }, bar,
    h('span', {}, isDecade || !i ? round(begin) : isLast ? round(end) : ''));
  });
}

/** gone: why nothing is shown of it. */
interface Machine extends Entry { gone?: string; away?: boolean }
const goneMachine = (l: Lack, away: boolean): Machine => ({ id: -1, parentId: -1, labels: [l.host], hasData: false,
  isDefault: false, metadata: {}, gone: l.why || 'nothing is shown of it', away });

export class Start {
  readonly root: HTMLElement;
  private readonly requests: Card;
  private readonly machines: Card;
  private readonly threads: Card;
  private readonly bars = h('div', { class: 'histogram', role: 'img' });
  private readonly notes = h('p', { class: 'dim notes' });
  private readonly slowest: LineList<ServedRequest>;
  private readonly groups: LineList<Entry>;
  private readonly machineList: LineList<Machine>;
  private readonly threadList: LineList<Entry>;
  private list: RequestList | null = null;
  private longest = 1;
  private stopping = new AbortController();
  private readonly undo: () => void;
  isShown = false;
  /** The first lines are there. */
  filled: Promise<unknown> = Promise.resolve();

  /** Has the server any of it? */
  static isOffered(outputs: Output[]): boolean {
    return outputs.some(o => o.id === ID.requests || o.id === ID.machines);
  }

  constructor(private readonly session: Session, private readonly to: StartTargets) {
    this.slowest = new LineList<ServedRequest>('Slowest requests', [
      { name: 'Took', title: 'From the first byte in to the last byte out, at the server', number: true,
        text: r => formatDuration(r.end - r.begin), bar: r => Number(r.end - r.begin) / this.longest },
      { name: 'Client → server', title: 'Who asked, and who replied', wide: true,
        text: r => `${partyText(r.client)} → ${partyText(r.server)}` },
      { name: 'Machines', title: 'That its critical path visits', text: r => r.machines },
      { name: 'Group', title: 'Requests like it, below', number: true, text: r => r.group },
      { name: 'Begin', title: 'First byte in', number: true, text: r => session.time(r.begin, 3) }],
    LINES, r => this.list && to.request(this.list, r));
    this.groups = new LineList<Entry>('Groups of like requests', [
      { name: 'Group', title: 'The largest first', number: true, text: e => e.labels[0] ?? '' },
      { name: 'Server', title: 'Who served them', text: e => e.labels[1] ?? '' },
      { name: 'Count', title: 'How many', number: true, text: e => count(figure(e, 'count') ?? 0) },
      { name: 'p50', title: 'Half of them took so long at most', number: true, text: e => duration(e, 'p50') },
      { name: 'p99', title: '99 of 100 took so long at most', number: true, text: e => duration(e, 'p99') },
      { name: 'Grew in the slow ones, else path', title: 'What took longer than in the faster half, and by how much; '
        + 'where there are no slow ones, what takes most of the time', wide: true,
      text: e => e.labels[8] || e.labels[7] || '' }],
    LINES, e => void this.openGroup(e));
    this.machineList = new LineList<Machine>('Machines', [
      { name: 'Machine', title: 'Name', text: e => e.labels[0] ?? '' },
      { name: 'Busy', title: 'Share of the time of its CPUs', number: true, by: e => figure(e, 'busy') ?? 0,
        text: e => e.gone ? e.away ? 'away' : 'missing' : figure(e, 'busy') === null ? ''
          : `${(figure(e, 'busy')! * 100).toFixed(1)} %`,
        bar: e => figure(e, 'busy') ?? 0 },
      { name: 'Waiting', title: 'Time that woken threads waited for a CPU', number: true,
        by: e => figure(e, 'waited') ?? 0, text: e => duration(e, 'waited') },
      { name: 'Network', title: 'Payload sent and received', number: true, by: e => figure(e, 'moved') ?? 0,
        text: e => figure(e, 'moved') ? formatValue(figure(e, 'moved')!, 'B') : '' },
      { name: 'Lost', title: 'Events that were lost', number: true, by: e => figure(e, 'lost') ?? 0,
        text: e => figure(e, 'lost') ? count(figure(e, 'lost')!) : '' },
      { name: 'Clock', title: 'How far its clock may be off', number: true, by: e => figure(e, 'clockError') ?? 0,
        text: e => figure(e, 'clockError') === null ? '' : `±${formatDuration(figure(e, 'clockError')!)}` }],
    LINES, e => e.gone ? to.say(`${e.labels[0]}: ${e.gone}`) : to.machine(e.labels[0] ?? ''), 1, e => e.gone ?? '');
    const longest = (key: string): ((e: Entry) => number) => e => figure(e, key) || -1,
      ran = (e: Entry): number => figure(e, 'running') || figure(e, 'time') || -1,
      state = (name: string, title: string, key: string): { name: string; title: string; number: boolean;
        by: (e: Entry) => number; text: (e: Entry) => string } =>
        ({ name, title, number: true, by: longest(key), text: e => duration(e, key) });
    this.threadList = new LineList<Entry>('Threads', [
      { name: 'Thread', title: 'Machine, number and name', wide: true, text: e => partyText(threadOf(e)) },
      { ...state('Ran', 'Time on a CPU', ''), by: ran, text: e => ran(e) > 0 ? formatDuration(ran(e)) : '' },
      state('For a CPU', 'Was ready, without a CPU', 'preempted'),
      state('Disk', 'Waited for a disk', 'block-device'), state('Network', 'Waited for a message', 'network'),
      state('Blocked', 'Waited for another thread', 'blocked'), state('Timer', 'Slept until a time', 'timer')],
    EACH * 2, e => to.thread(threadOf(e)), 1);
    this.undo = session.timeModeChanged.on(() => this.slowest.draw());
    this.requests = new Card('Requests', this.bars, this.slowest.root, h('h3', {}, 'Groups of like ones'),
      this.groups.root, this.notes);
    this.machines = new Card('Machines', this.machineList.root);
    this.threads = new Card('Threads', this.threadList.root);
    this.root = h('section', { class: 'start', 'aria-label': 'Start', tabIndex: -1, hidden: true }, this.requests.root,
      this.machines.root, this.threads.root);
  }
  dispose(): void {
    this.stopping.abort();
    this.undo();
    this.root.remove();
  }

  show(): void {
    this.isShown = true;
    this.root.hidden = false;
    if (!this.asked) this.reload();
    this.focus(true);
  }
  hide(): void {
    this.isShown = false;
    this.root.hidden = true;
  }
  /** At the first line of the first card that has some; unless it is wanted, only where nothing else has the focus. */
  private focus(wanted = false): void {
    const now = document.activeElement;
    if (!this.isShown || !(wanted || now === document.body || now === this.root)) return;
    if (!this.slowest.focus() && !this.threadList.focus()) this.root.focus({ preventScroll: true });
  }
  private asked = false;
  /** The server has other data, or answers again. */
  refresh(): void { if (this.isShown) this.reload(); else this.asked = false; }
  private reload(): void {
    this.stopping.abort();
    const { signal } = this.stopping = new AbortController();
    this.asked = true;
    const requests = this.loadRequests(signal), threads = this.loadThreads(signal);
    void this.loadMachines(signal);
    this.filled = Promise.all([requests, threads]);
    void requests.then(() => this.focus());
    void threads.then(() => requests).then(() => this.focus());
  }

  private output(id: string): Output | null { return this.session.outputs.find(o => o.id === id) ?? null; }
  private all(output: Output, text: string): HTMLElement {
    return button(text, `${output.name}: a view of all of them`, () => this.to.view(output), { class: 'small' });
  }
  /** Words of a card that could not be filled. */
  private failed(card: Card, e: unknown, retry: () => void): void {
    if (!isAbort(e)) card.say(failureWords(e), retry);
  }
  private async goneOf(lacks: Lack[]): Promise<Machine[]> {
    const missing = lacks.filter(l => l.status === 'FAILED'),
      servers = missing.length ? await this.session.client.servers() : [];
    return missing.map(l => goneMachine(l, servers.some(s => s.name === l.host && s.status === 'AWAY')));
  }
  private async tree(kind: TreeKind, output: Output, card: Card, extra: object,
    signal: AbortSignal): Promise<Tree | null> {
    return (await this.answer(kind, output, card, extra, signal)).model;
  }
  private async answer(kind: TreeKind, output: Output, card: Card, extra: object,
    signal: AbortSignal): Promise<Answer<Tree>> {
    const { client, uuid, axis } = this.session, a: Answer<Tree> = await poll(() => client.tree(uuid, kind, output.id,
      { start: axis.min, end: axis.max }, signal, extra), x => {
      if (x.status === 'RUNNING') card.wait(`${x.statusMessage}…`);
    }, signal);
    if (a.status === 'FAILED') throw new Error(a.statusMessage);
    return a;
  }

  // ---- requests -----------------------------------------------------------------------------------------------------
  private async loadRequests(signal: AbortSignal): Promise<void> {
    const output = this.output(ID.requests);
    if (!output) { this.requests.root.hidden = true; return; }
    const list = new RequestList(this.session, output);
    this.requests.wait('Finding the requests…');
    try {
      const found = await list.first(LINES, signal);
      this.list = list;
      this.requests.root.hidden = !list.size;
      this.without = list.size ? '' : 'no requests were found in these traces';
      this.tellThreads();
      this.longest = Number(found[0] ? found[0].end - found[0].begin : 1n) || 1;
      this.slowest.set(found);
      this.requests.of(`${count(list.size)}, median ${list.median === null ? '?' : formatDuration(list.median)}`,
        list.size > LINES ? this.all(output, `all ${count(list.size)}`) : null);
      setText(this.notes, list.notes);
      this.requests.say('');
      await Promise.all([this.loadBars(signal), this.loadGroups(signal)]);
    } catch (e) { this.failed(this.requests, e, () => this.reload()); }
  }
  private async loadBars(signal: AbortSignal): Promise<void> {
    const { client, uuid, axis } = this.session, output = this.output(ID.requestDurations);
    this.bars.hidden = !output;
    if (!output) return;
    const range = { start: axis.min, end: axis.max },
      tree = await client.tree(uuid, 'genericXY', output.id, range, signal),
      items = (tree.model?.entries ?? []).map(e => e.id),
      a = await poll(() => client.xy(uuid, 'genericXY', output.id, { ...range, nbTimes: 2 }, items, signal),
        () => { /* the last one counts */ }, signal);
    const bars = histogram(a.model?.series[0]);
    this.bars.replaceChildren(...bars);
    this.bars.setAttribute('aria-label', `How many requests took how long: ${bars.map(b => b.title).join('; ')}`);
  }
  private async loadGroups(signal: AbortSignal): Promise<void> {
    const output = this.output(ID.requestGroups);
    this.groups.root.hidden = !output;
    if (output) this.groups.set((await this.tree('data', output, this.requests, {}, signal))?.entries ?? []);
    this.requests.say('');
  }
  private async openGroup(e: Entry): Promise<void> {
    try {
      const r = await this.list?.slowestOf(e.labels[0] ?? '', this.stopping.signal);
      if (r) this.to.request(this.list!, r); else this.to.say('No request of this group was found.');
    } catch (error) { if (!isAbort(error)) this.to.say(failureWords(error)); }
  }

  // ---- machines and threads -----------------------------------------------------------------------------------------
  private async loadMachines(signal: AbortSignal): Promise<void> {
    const output = this.output(ID.machines);
    this.machines.root.hidden = !output;
    if (!output) return;
    this.machines.wait('Asking for the machines…');
    try {
      const { model, lacks } = await this.answer('timeGraph', output, this.machines, {}, signal),
        entries = model?.entries ?? [], gone = await this.goneOf(lacks);
      this.machineList.set([...gone, ...entries]);
      this.machines.of(`${count(entries.length)}${gone.length ? `, and ${count(gone.length)} of which nothing is there`
        : ''}`, entries.length > LINES ? this.all(output, `all ${count(entries.length)}`)
        : null);
      this.machines.say('');
    } catch (e) { this.failed(this.machines, e, () => void this.loadMachines(signal)); }
  }
  /** Beside their head, also why they are all there is. */
  private without = '';
  private tellThreads(): void {
    const output = this.threadOutput;
    this.threads.of(this.without, output && this.all(output, 'all threads'));
    this.root.classList.toggle('without', this.requests.root.hidden);
  }
  private get threadOutput(): Output | null { return this.output(ID.threadTimes) ?? this.output(ID.cpuUsage); }
  private async loadThreads(signal: AbortSignal): Promise<void> {
    const output = this.threadOutput;
    this.threads.root.hidden = !output;
    if (!output) return;
    this.threads.wait('Asking for the threads…');
    try {
      const tree = await this.tree(output.type === 'DATA_TREE' ? 'data' : 'XY', output, this.threads, { most: EACH },
        signal);
      this.threadList.set((tree?.entries ?? []).filter(e => e.parentId >= 0));
      this.threads.say(tree?.entries.length ? '' : 'No thread did anything that was recorded.');
      this.tellThreads();
    } catch (e) { this.failed(this.threads, e, () => void this.loadThreads(signal)); }
  }
}
