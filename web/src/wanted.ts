// SPDX-License-Identifier: MIT
// Which rows are wanted: those of chosen machines, those that have something in view, and those that stay on top.
import { button } from './dom';
import { settle } from './emitter';
import type { GraphView } from './graphview';
import { withIcon } from './icons';
import { menuBelow, type MenuItem } from './menu';
import type { Panel } from './panel';
import type { Session } from './session';
import type { RowTest, TreeModel } from './tree';
import { isAbort, type Row } from './tsp';

const FEW = 2000;      // rows whose states can all be asked for to see whether there are any
const TITLE = 'Rows: which of them the views show';
const AT_ONCE = 256;   // of them in a request

/** The entries of a view of states that have something in view. A server that knows leaves the others out of the tree;
 * of one that does not all states are asked for. */
export class Busy {
  private asking = new AbortController();
  private of: ReadonlySet<number> | null = null;
  private readonly ask = settle(() => void this.find(), 150, 600);
  constructor(private readonly session: Session, private readonly view: GraphView,
    private readonly known: () => void) {}
  stop(): void { this.asking.abort(); }
  /** Other rows, another interval, or wanted (not) at all. */
  changed(): void {
    if (this.session.busyOnly) { this.ask(); return; }
    this.stop();
    if (!this.of) return;
    this.of = null;
    this.known();
  }
  get test(): RowTest | null {
    const { of } = this;
    return of && this.session.busyOnly ? e => of.has(e.id) : null;
  }
  private async find(): Promise<void> {
    const { session, view } = this, { axis } = session, range = { start: axis.begin, end: axis.end };
    this.asking.abort();
    const { signal } = this.asking = new AbortController(), all = [...view.model.nodes.values()].map(n => n.entry)
      .filter(e => e.hasData).map(e => e.id);
    if (!session.busyOnly || !all.length) return;
    try {
      const { model } = await session.client.tree(session.uuid, 'timeGraph', view.output.id, range, signal,
        { isFiltered: true }), there = new Set(model?.entries.filter(e => e.hasData).map(e => e.id));
      const left = all.filter(id => there.has(id)), of = left.length === all.length && left.length <= FEW
        ? await this.shown(left, signal) : new Set(left);
      if (signal.aborted || !session.busyOnly) return;
      this.of = of;
      this.known();
    } catch (e) { if (!isAbort(e)) view.status(`rows are not left out: ${(e as Error).message}`); }
  }
  private async shown(ids: number[], signal: AbortSignal): Promise<Set<number>> {
    const { session, view } = this, { axis } = session, found = new Set<number>(),
      range = { start: axis.begin, end: axis.end, nbTimes: Math.max(2, Math.round(axis.width)) };
    const any = (r: Row): boolean => r.states.some(s => s.style && !view.looks.all[view.looks.index(s.style)].blank);
    for (let i = 0; i < ids.length; i += AT_ONCE) {
      const { model } = await session.client.states(session.uuid, view.output.id, range, ids.slice(i, i + AT_ONCE),
        null, signal);
      for (const r of model ?? []) if (any(r)) found.add(r.entryId);
    }
    return found;
  }
}

/** The button that chooses, and says when some are left out. */
export function rowsButton(session: Session, panels: () => Panel[]): HTMLButtonElement {
  const choose = button(withIcon('Rows', 'open'), TITLE, () => menuBelow(choose, items(session, panels())));
  const tell = (): void => {
    const n = session.machines?.size, what = [n !== undefined ? `${n} machine${n === 1 ? '' : 's'}` : '',
      session.busyOnly ? 'in view' : '', session.pinned.size ? `${session.pinned.size} pinned` : ''].filter(Boolean);
    choose.setAttribute('aria-label', choose.title = what.length ? `Rows: ${what.join(', ')}` : TITLE);
    choose.classList.toggle('chosen', n !== undefined || session.busyOnly);
  };
  session.rowsChanged.on(tell);
  return choose;
}
function items(session: Session, panels: Panel[]): MenuItem[] {
  const hosts = [...session.hosts].sort((a, b) => a.localeCompare(b, undefined, { numeric: true })),
    { machines, pinned } = session, list: MenuItem[] = [{ label: 'only those with something in view',
      checked: session.busyOnly, run: () => session.setBusyOnly(!session.busyOnly) }];
  if (hosts.length > 1) {
    list.push({ label: 'Machines', heading: true }, { label: 'all', checked: !machines,
      run: () => session.setMachines(null) });
    for (const host of hosts) list.push({ label: host, checked: !machines || machines.has(host), run: () => {
      // The first choice is of this one alone, later ones add and take away.
      const now = new Set(machines ?? []);
      if (!now.delete(host)) now.add(host);
      session.setMachines(now.size && now.size < hosts.length ? now : null);
    } });
  }
  if (session.hasPods)
    list.push({ label: 'Threads', heading: true }, { label: 'below their containers (pods)', checked: session.byPod,
      run: () => session.setByPod(!session.byPod) });
  if (pinned.size) {
    list.push({ label: 'Pinned: choose to let go', heading: true });
    for (const id of pinned) list.push({ label: nameIn(panels, id), checked: true, run: () => session.pin(id) });
    list.push({ label: 'let all go', run: () => session.setPinned([]) });
  }
  return list;
}
function nameIn(panels: Panel[], id: number): string {
  for (const p of panels) {
    const node = (p as { model?: TreeModel }).model?.nodes?.get(id);
    if (node) return `${node.entry.hostId ?? ''} ${node.entry.labels.slice(0, 2).join(' ')}`.trim();
  }
  return 'a row that no open view has';
}
