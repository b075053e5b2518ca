// SPDX-License-Identifier: MIT
// The address's fragment holds what a view shows, so that a link restores it.
import type { TimeMode } from './time';

type Who = { host: string; tid: number; name: string };
type PathLink = Who & { id?: number; begin?: bigint; end?: bigint; request?: boolean };
export interface LinkState {
  experiment: string;
  /** The machine whose clock the times below are by, as far as known, and the one by whose clock they are shown. */
  reference?: string; clock?: string;
  view?: [bigint, bigint]; selection?: [bigint, bigint]; outputs?: string[]; search?: string;
  exclude?: boolean; mode?: TimeMode;
  picked?: Who & { id?: number };
  /** The critical path, and the one that it is compared with. */
  path?: PathLink; compared?: PathLink;
  /** Rows: those that stay on top, machines, only those with something in view, below their containers. */
  pinned?: number[]; machines?: string[]; busyOnly?: boolean; byPod?: boolean; tab?: string; follow?: boolean;
}

function pair(text: string | null): [bigint, bigint] | undefined {
  const m = /^(-?\d+),(-?\d+)$/.exec(text ?? '');
  return m ? [BigInt(m[1]), BigInt(m[2])] : undefined;
}
/** Links are typed and cut by people: what is no encoding stands for itself. */
function decoded(text: string): string { try { return decodeURIComponent(text); } catch { return text; } }
function thread(text: string | null): Who | undefined {
  const p = text?.split('/');
  return p && p.length >= 3 && Number.isInteger(Number(p[1]))
    ? { host: decoded(p[0]), tid: Number(p[1]), name: decoded(p[2]) } : undefined;
}

const who = (t: Who): string => `${encodeURIComponent(t.host)}/${t.tid}/${encodeURIComponent(t.name)}`;

function pathOf(text: string | null): PathLink | undefined {
  const p = thread(text), [, , , range = '', id, request] = text?.split('/') ?? [], interval = pair(range);
  return p && { ...p, ...(Number(id) > 0 ? { id: Number(id) } : {}),
    ...(interval ? { begin: interval[0], end: interval[1] } : {}), ...(request ? { request: true } : {}) };
}
function pathText(p: PathLink): string {
  const range = p.begin !== undefined ? `${p.begin},${p.end}` : '';
  return who(p) + ['', range, p.id ?? '', p.request ? 'request' : ''].join('/').replace(/\/+$/, '');
}

export function readLink(hash: string): LinkState | null {
  const q = new URLSearchParams(hash.replace(/^#/, '')), experiment = q.get('x');
  if (!experiment) return null;
  const mode = q.get('t'), r = thread(q.get('r')), id = Number(q.get('r')?.split('/')[3] ?? 0);
  return {
    experiment, reference: q.get('ref') ?? undefined, clock: q.get('clock') ?? undefined,
    view: pair(q.get('v')), selection: pair(q.get('s')), outputs: q.get('o')?.split('|').filter(Boolean),
    search: q.get('q') ?? undefined, exclude: q.get('hide') === '1',
    mode: mode === 'utc' || mode === 'relative' || mode === 'local' ? mode : undefined, picked: r && id > 0
      ? { ...r, id } : r,
    path: pathOf(q.get('cp')), compared: pathOf(q.get('cmp')),
    pinned: q.get('pin')?.split(',').map(Number).filter(id => Number.isSafeInteger(id) && id > 0),
    machines: q.get('m')?.split('|').filter(Boolean).map(decoded), busyOnly: q.get('idle') === '0' || undefined,
    byPod: q.get('by') === 'pod' || undefined, tab: q.get('tab') ?? undefined, follow: q.get('f') === '1' || undefined,
  };
}

/** Does it name something to be looked at, beside the experiment? */
export function saysWhat(s: LinkState | null): boolean {
  return !!s && !!(s.outputs?.length || s.view || s.selection || s.search || s.picked || s.path || s.tab);
}

/** The same link with its times by another clock. */
export function retimed(s: LinkState, by: (t: bigint) => bigint): LinkState {
  const both = (r?: [bigint, bigint]): [bigint, bigint] | undefined => r && [by(r[0]), by(r[1])];
  const path = (p?: PathLink): PathLink | undefined => p && (p.begin !== undefined && p.end !== undefined
    ? { ...p, begin: by(p.begin), end: by(p.end) } : p);
  return { ...s, view: both(s.view), selection: both(s.selection), path: path(s.path), compared: path(s.compared) };
}

export function writeLink(s: LinkState): string {
  const q = new URLSearchParams();
  q.set('x', s.experiment);
  if (s.reference) q.set('ref', s.reference);
  if (s.clock) q.set('clock', s.clock);
  if (s.view) q.set('v', s.view.join());
  if (s.selection) q.set('s', s.selection.join());
  if (s.outputs) q.set('o', s.outputs.join('|'));
  if (s.search) q.set('q', s.search);
  if (s.exclude) q.set('hide', '1');
  if (s.mode) q.set('t', s.mode);
  if (s.picked) q.set('r', who(s.picked) + (s.picked.id === undefined ? '' : `/${s.picked.id}`));
  if (s.path) q.set('cp', pathText(s.path));
  if (s.compared) q.set('cmp', pathText(s.compared));
  if (s.pinned?.length) q.set('pin', s.pinned.join());
  if (s.machines) q.set('m', s.machines.map(encodeURIComponent).join('|'));
  if (s.busyOnly) q.set('idle', '0');
  if (s.byPod) q.set('by', 'pod');
  if (s.tab) q.set('tab', s.tab);
  if (s.follow) q.set('f', '1');
  return '#' + q.toString();
}
