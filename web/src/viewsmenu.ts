// SPDX-License-Identifier: MIT
// What the menu of views lists: critical paths first, then the views by what they show, analyses, markers.
import type { MenuItem } from './menu';
import { pathOutput, specOf, type PathSpec } from './pathpane';
import { pairsOutput } from './pairsform';
import type { Session } from './session';
import { formatDuration } from './time';
import type { Output } from './tsp';

export interface ViewsActions {
  isOpen(output: Output): boolean;
  open(output: Output): void;
  close(output: Output): void;
  path(spec: PathSpec): void;
  newPairs(template: Output): void;
  /** The events have a place of their own. */
  events: Output | null;
  markerSets: { id: string; name: string }[];
}

const GROUPS: [string, string][] = [['TIME_GRAPH', 'States over time'], ['GANTT_CHART', 'Charts'],
  ['TREE_TIME_XY', 'Curves over time'], ['TREE_GENERIC_XY', 'Distributions'], ['DATA_TREE', 'Figures'],
  ['TABLE', 'Tables']];

export function viewItems(session: Session, on: ViewsActions): MenuItem[] {
  const { outputs } = session, item = (o: Output): MenuItem => ({ label: o.name, line: o.description || undefined,
    checked: on.isOpen(o), run: () => { if (on.isOpen(o)) on.close(o); else on.open(o); } });
  const items = [...paths(session, on), ...outputs.filter(o => specOf(o)).map(item)];
  for (const [type, label] of GROUPS) {
    const list = outputs.filter(o => o.type === type && !o.capabilities?.canCreate && o.id !== on.events?.id
      && !specOf(o));
    if (list.length) items.push({ label, heading: true }, ...list.map(item));
  }
  const template = pairsOutput(outputs);
  if (template)
    items.push({ label: 'In-and-out analyses', heading: true }, { label: 'New analysis…',
      line: 'Time between events that open and events that close, found by expressions of your own',
      run: () => on.newPairs(template) });
  if (on.markerSets.length) items.push({ label: 'Markers', heading: true }, ...on.markerSets.map(m => ({
    label: m.name, checked: session.markerSet === m.id, run: () => {
      session.markerSet = session.markerSet === m.id ? null : m.id;
      session.markersChanged.emit();
    },
  })));
  return items.length ? items : [{ label: 'no views', disabled: true }];
}

/** New paths, of the thread that is picked. */
function paths(session: Session, on: ViewsActions): MenuItem[] {
  const { picked, axis } = session, selection = axis.selection;
  if (!pathOutput(session.outputs)) return [];
  const heading = { label: 'Critical paths', heading: true };
  if (!picked)
    return [heading, { label: 'Critical path of a thread', disabled: true,
      line: 'Where its time went, across all machines: pick its row first' }];
  const who = `${picked.name} ${picked.tid}${picked.host ? ` on ${picked.host}` : ''}`;
  return [heading, ...(selection ? [{ label: `Critical path of ${who}: selection`,
    line: `Where its ${formatDuration(selection[1] - selection[0])} went, across all machines`,
    run: () => on.path({ thread: picked, begin: selection[0], end: selection[1] }) }] : []),
  { label: `Critical path of ${who}: whole life`, line: 'Where its time went, across all machines',
    run: () => on.path({ thread: picked }) }];
}
