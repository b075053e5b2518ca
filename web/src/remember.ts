// SPDX-License-Identifier: MIT
// What outlives the page in this browser: small choices, and how each experiment was laid out when it was last looked
// at. Whatever is stored may be of another version, or cut, or missing: what cannot be used is as if it were not there.
/** Small choices that outlive the page. */
export function keep(key: string, value: string): void {
  try { localStorage.setItem(`weft.${key}`, value); } catch { /* no storage: the choice ends with the page */ }
}
export function kept(key: string): string | null {
  try { return localStorage.getItem(`weft.${key}`); } catch { return null; }
}

export interface KeptView { id: string; height?: number; folded?: boolean }
export interface KeptLayout { views: KeptView[]; drawer?: number; shut?: boolean; tab?: string; dark?: boolean;
  compact?: boolean }

const KEY = 'layouts', EXPERIMENTS = 40, VIEWS = 60, LONGEST = 100_000; // characters of all

const number = (v: unknown): number | undefined => typeof v === 'number' && v > 0 && v < 10_000 ? v : undefined;
const flag = (v: unknown): boolean | undefined => typeof v === 'boolean' ? v : undefined;

function layoutOf(x: any): KeptLayout | null {
  if (!x || typeof x !== 'object' || !Array.isArray(x.views)) return null;
  const views = (x.views as any[]).slice(0, VIEWS).filter(v => typeof v?.id === 'string')
    .map(v => ({ id: v.id as string, height: number(v.height), folded: flag(v.folded) }));
  return { views, drawer: number(x.drawer), shut: flag(x.shut), tab: typeof x.tab === 'string' ? x.tab : undefined,
    dark: flag(x.dark), compact: flag(x.compact) };
}
/** [experiment, layout], the last one first. */
function all(): [string, unknown][] {
  const text = kept(KEY) ?? '';
  if (text.length > LONGEST) return [];
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? list.filter(e => Array.isArray(e) && typeof e[0] === 'string') : [];
  } catch { return []; }
}

export function keptLayout(experiment: string): KeptLayout | null {
  return layoutOf(all().find(e => e[0] === experiment)?.[1]);
}
export function keepLayout(experiment: string, layout: KeptLayout): void {
  const list = [[experiment, { ...layout, views: layout.views.slice(0, VIEWS) }],
    ...all().filter(e => e[0] !== experiment)].slice(0, EXPERIMENTS);
  for (; list.length; list.pop()) {
    const text = JSON.stringify(list);
    if (text.length <= LONGEST) { keep(KEY, text); return; }
  }
}
