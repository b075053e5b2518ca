// SPDX-License-Identifier: MIT
// What states look like: the styles that a server gives, resolved, and weft's colours for those it leaves open.
import { oklab } from './oklab';
import type { Style } from './tsp';

export type Pattern = '' | 'hatch' | 'dots';
export interface Look {
  key: string; name: string; group: string;
  r: number; g: number; b: number; css: string;
  /** The same in the space that colours are mixed in. */
  labL: number; labA: number; labB: number;
  height: number; opacity: number; pattern: Pattern;
  /** Text on it. */
  ink: string;
  blank: boolean;
}

/** Colours by meaning, for styles without one of their own. The first match of the key counts. */
const KNOWN: [RegExp, string, Pattern?][] = [
  [/stolen/i, '#c2453d', 'hatch'], [/hypervisor|\bvmm?\b|overhead/i, '#8b5a2b', 'hatch'],
  [/offline|untraced|asking|pending|lost|unexplained|missing/i, '#8a5f66', 'hatch'],
  [/^idle$/i, 'none'], [/user_?input/i, '#8c3b5e'], [/user_?mode|^running$|^active$|^run$/i, '#2e9e5b'],
  [/syscall|system call/i, '#3a6ea5'],
  [/preempt|wait for cpu|wait_for_cpu/i, '#d98e04'], [/network/i, '#b45cc4'], [/block_?device|disk/i, '#6a4fb3'],
  [/timer/i, '#5f8aa8'],
  [/raised/i, '#efe0a0'], [/soft_?irq/i, '#c9a227'], [/interrupt|\birq/i, '#e0c341'], [/ipi/i, '#7f86c9'],
  [/block|wait/i, '#b5524a'],
  [/unknown/i, '#5c6066', 'dots'], [/^link$|transition/i, '#8b93a1'],
];
/** Series and entries without a colour. The first eight are far apart also for those who do not tell red from green (ΔE
 * > 13, simulated). */
export const SERIES = ['#2f6db3', '#e08a00', '#c8475a', '#74b3e8', '#8a6d1f', '#a8327d', '#d16ba5', '#9bbf3a',
  '#7b2d8e', '#1f9e89'];

export function rgbOf(css: string): [number, number, number] | null {
  let m = /^#?([0-9a-f]{6})/i.exec(css.trim());
  if (m) { const n = parseInt(m[1], 16); return [n >> 16, (n >> 8) & 255, n & 255]; }
  m = /^#?([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(css.trim());
  if (m) return [1, 2, 3].map(i => parseInt(m![i] + m![i], 16)) as [number, number, number];
  const rgb = /^rgba?\((\d+)[ ,]+(\d+)[ ,]+(\d+)/.exec(css.trim());
  return rgb ? [Number(rgb[1]), Number(rgb[2]), Number(rgb[3])] : null;
}

function luminance(r: number, g: number, b: number): number {
  const f = (v: number): number => {
    const s = v / 255;
    return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
}
/** Black or white, whichever has more contrast on the colour. */
export function inkOn(r: number, g: number, b: number): string {
  const l = luminance(r, g, b);
  return (l + 0.05) / 0.05 > 1.05 / (l + 0.05) ? '#101418' : '#ffffff';
}

/** All styles of one view; states refer to them by index. 0 is the blank. */
const WAITS = /block|timer|network|disk|user_?input|unknown/i;

export class Looks {
  /** `flat`: waiting is drawn lower than working, so that colour alone does not carry it. */
  constructor(private readonly flat = false) {}
  readonly all: Look[] = [{ key: '', name: 'nothing', group: '', r: 0, g: 0, b: 0, labL: 0, labA: 0, labB: 0,
    css: 'transparent', height: 1,
    opacity: 0, pattern: '', ink: '#000', blank: true }];
  private readonly indices = new Map<string, number>();
  private server: Record<string, Style> = {};

  setServer(styles: Record<string, Style>): void {
    this.server = styles;
    // Known indices stay; what they look like is settled again.
    for (const [id, i] of this.indices) this.all[i] = this.make(JSON.parse(id) as Style);
  }
  get keys(): string[] { return Object.keys(this.server); }
  ofKey(key: string): Look { return this.all[this.index({ parentKey: key })]; }

  index(style: Style | undefined | null): number {
    if (!style || (!style.parentKey && !style.values)) return 0;
    const id = style.values ? JSON.stringify({ parentKey: style.parentKey, values: style.values })
      : `{"parentKey":${JSON.stringify(style.parentKey)}}`;
    let i = this.indices.get(id);
    if (i === undefined) {
      i = this.all.length;
      this.all.push(this.make(style));
      this.indices.set(id, i);
    }
    return i;
  }

  private values(style: Style, seen: number): Record<string, string | number> {
    let result: Record<string, string | number> = {};
    if (seen < 8) for (const key of (style.parentKey ?? '').split(',')) {
      const parent = this.server[key.trim()];
      if (parent) result = { ...result, ...this.values(parent, seen + 1) };
    }
    return { ...result, ...style.values };
  }

  private make(style: Style): Look {
    const values = this.values(style, 0);
    const key = (style.parentKey ?? '').split(',').pop()!.trim() || String(values['style-name'] ?? '');
    const known = KNOWN.find(k => k[0].test(key) || k[0].test(String(values['style-name'] ?? '')));
    const given = String(values['background-color'] ?? values['color'] ?? '');
    const css = given || known?.[1] || SERIES[hash(key) % SERIES.length];
    const rgb = rgbOf(css), blank = !rgb || css === 'none' || Number(values['opacity'] ?? 1) === 0
      || (!given && known?.[1] === 'none');
    const [r, g, b] = rgb ?? [0, 0, 0], [labL, labA, labB] = oklab(r, g, b);
    return {
      key, name: niceName(String(values['style-name'] ?? key)), group: String(values['style-group'] ?? ''), r, g, b,
      labL, labA, labB,
      css: blank ? 'transparent' : `rgb(${r},${g},${b})`,
      height: Math.min(this.flat && WAITS.test(key) ? 0.75 : 1, Math.max(0.1, Number(values['height'] ?? 1))),
      opacity: blank ? 0 : Math.min(1, Number(values['opacity'] ?? 1)),
      pattern: known?.[2] ?? '', ink: inkOn(r, g, b), blank,
    };
  }
}

function hash(s: string): number {
  let x = 7;
  for (let i = 0; i < s.length; i++) x = (x * 31 + s.charCodeAt(i)) >>> 0;
  return x;
}
/** Keys of servers as words; short ones are abbreviations (IRQ). */
function niceName(key: string): string { return /^[A-Z_]{4,}$/.test(key) ? key.toLowerCase().replace(/_/g, ' ') : key; }

/** Colours of the page that canvases need, read from the style sheet so that both themes have one source. */
export interface Theme { dark: boolean; back: string; raised: string; text: string; dim: string; line: string;
  faint: string; accent: string; select: string; lost: string; glow: string; longer: string;
  shorter: string }
export function readTheme(): Theme {
  const s = getComputedStyle(document.documentElement), v = (n: string): string => s.getPropertyValue(n).trim();
  return {
    dark: document.documentElement.dataset.theme === 'dark', back: v('--back'), raised: v('--raised'),
    text: v('--text'), dim: v('--dim'), line: v('--line'),
    faint: v('--faint'), accent: v('--accent'), select: v('--select'), lost: v('--lost'), glow: v('--glow'),
    longer: v('--longer'), shorter: v('--shorter'),
  };
}
