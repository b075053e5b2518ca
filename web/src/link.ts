// The address's fragment holds what a view shows, so that a link restores it.
import type { TimeMode } from './time';

export interface LinkState {
  experiment: string; view?: [bigint, bigint]; selection?: [bigint, bigint]; outputs?: string[]; search?: string;
  exclude?: boolean; mode?: TimeMode;
  picked?: { host: string; tid: number; name: string; id?: number }; path?: { host: string; tid: number; name: string;
    id?: number; begin?: bigint; end?: bigint }; tab?: string; follow?: boolean;
}

function pair(text: string | null): [bigint, bigint] | undefined {
  const m = /^(-?\d+),(-?\d+)$/.exec(text ?? '');
  return m ? [BigInt(m[1]), BigInt(m[2])] : undefined;
}
/** Links are typed and cut by people: what is no encoding stands for itself. */
function decoded(text: string): string { try { return decodeURIComponent(text); } catch { return text; } }
function thread(text: string | null): { host: string; tid: number; name: string } | undefined {
  const p = text?.split('/');
  return p && p.length >= 3 && Number.isInteger(Number(p[1]))
    ? { host: decoded(p[0]), tid: Number(p[1]), name: decoded(p[2]) } : undefined;
}

export function readLink(hash: string): LinkState | null {
  const q = new URLSearchParams(hash.replace(/^#/, '')), experiment = q.get('x');
  if (!experiment) return null;
  const mode = q.get('t'), path = q.get('cp'), p = thread(path), [, , , range, pathId] = path?.split('/') ?? [],
    r = thread(q.get('r')), id = Number(q.get('r')?.split('/')[3] ?? 0);
  return {
    experiment, view: pair(q.get('v')), selection: pair(q.get('s')), outputs: q.get('o')?.split('|').filter(Boolean),
    search: q.get('q') ?? undefined, exclude: q.get('hide') === '1',
    mode: mode === 'utc' || mode === 'relative' || mode === 'local' ? mode : undefined, picked: r && id > 0
      ? { ...r, id } : r,
    path: p ? { ...p, ...(Number(pathId) > 0 ? { id: Number(pathId) } : {}),
      ...(pair(range ?? null) ? { begin: pair(range!)![0], end: pair(range!)![1] } : {}) } : undefined,
    tab: q.get('tab') ?? undefined, follow: q.get('f') === '1' || undefined,
  };
}

/** Does it name something to be looked at, beside the experiment? */
export function saysWhat(s: LinkState | null): boolean {
  return !!s && !!(s.outputs?.length || s.view || s.selection || s.search || s.picked || s.path || s.tab);
}

export function writeLink(s: LinkState): string {
  const q = new URLSearchParams();
  const who = (t: { host: string; tid: number;
    name: string }): string => `${encodeURIComponent(t.host)}/${t.tid}/${encodeURIComponent(t.name)}`;
  q.set('x', s.experiment);
  if (s.view) q.set('v', s.view.join());
  if (s.selection) q.set('s', s.selection.join());
  if (s.outputs) q.set('o', s.outputs.join('|'));
  if (s.search) q.set('q', s.search);
  if (s.exclude) q.set('hide', '1');
  if (s.mode) q.set('t', s.mode);
  if (s.picked) q.set('r', who(s.picked) + (s.picked.id === undefined ? '' : `/${s.picked.id}`));
  if (s.path) {
    const range = s.path.begin !== undefined ? `${s.path.begin},${s.path.end}` : '';
    q.set('cp', who(s.path) + (s.path.id !== undefined ? `/${range}/${s.path.id}` : range && `/${range}`));
  }
  if (s.tab) q.set('tab', s.tab);
  if (s.follow) q.set('f', '1');
  return '#' + q.toString();
}
