// SPDX-License-Identifier: MIT
// Draws rows of states on a canvas. States wider than some pixels are rectangles; where several states share a pixel,
// the pixel's colour is their mix by
// share of time. Times are floats: ns since the experiment's begin.
import { fromOklab } from './oklab';
import type { Look, Looks, Pattern } from './style';
import type { State } from './tsp';

export const TAG_DIM = 1, TAG_BORDER = 2, TAG_EXCLUDE = 4, TAG_HIGHLIGHT = 8;
const WIDE = 3;      // px from which a state gets a rectangle
const SPREAD = 6;    // px to each side whose unaccounted time a state found by sampling may stand for
const GROW = 1024;

export interface RowStates {
  n: number;
  start: Float64Array; end: Float64Array; style: Uint16Array; tags: Uint8Array; label: (string | undefined)[];
  /** What was asked for. */
  from: number; to: number; nsPerPx: number;
  /** No gaps between states: nothing was left out by sampling, any zoom inside [from, to] may use it. */
  complete: boolean;
}

export function packRow(states: State[], min: bigint, looks: Looks, from: number, to: number,
  nsPerPx: number): RowStates {
  const n = states.length;
  const row: RowStates = {
    n, start: new Float64Array(n), end: new Float64Array(n), style: new Uint16Array(n), tags: new Uint8Array(n),
    label: new Array(n), from, to, nsPerPx, complete: n > 0,
  };
  // Below 2^53 ns numbers arrive as numbers.
  const rel = (t: unknown): number => typeof t === 'bigint' ? Number(t - min) : Number(BigInt(t as number) - min);
  let last = NaN;
  for (let i = 0; i < n; i++) {
    const s = states[i];
    row.start[i] = rel(s.start);
    row.end[i] = rel(s.end);
    row.style[i] = looks.index(s.style);
    row.tags[i] = s.tags ?? 0;
    row.label[i] = s.label || undefined;
    if (i > 0 && row.start[i] !== last) row.complete = false;
    last = row.end[i];
  }
  if (row.complete && (row.start[0] > from || last < to)) row.complete = false;
  return row;
}

/** First state that ends after t; n when there is none. */
export function firstAfter(row: RowStates, t: number): number {
  let low = 0, high = row.n;
  while (low < high) { const mid = (low + high) >> 1; if (row.end[mid] > t) high = mid; else low = mid + 1; }
  return low;
}
/** State in force at t, or -1. */
export function stateAt(row: RowStates, t: number): number {
  const i = firstAfter(row, t);
  return i < row.n && row.start[i] <= t ? i : -1;
}

/** Rectangles of one look, gathered over all rows, so that the canvas changes its colour once. */
class Batch {
  v = new Float32Array(GROW * 4);
  n = 0;
  add(x: number, y: number, w: number, h: number): void {
    if (this.n + 4 > this.v.length) { const v = new Float32Array(this.v.length * 2); v.set(this.v); this.v = v; }
    this.v[this.n++] = x; this.v[this.n++] = y; this.v[this.n++] = w; this.v[this.n++] = h;
  }
}

/** `texts`: the first that fits is written. `beside`: px free to the right of the state, where the first goes when none
 * fits inside; 0 for none. */
export interface PaintedLabel { texts: string[]; x: number; y: number; ink: string; room: number; beside: number }
/** Where the label is written, or null. */
export function placed(l: PaintedLabel, width: (text: string) => number): { text: string; x: number; within: boolean }
  | null {
  const text = l.texts.find(t => width(t) + 6 <= l.room);
  if (text !== undefined) return { text, x: l.x + 4, within: true };
  return width(l.texts[0]) + 8 <= l.beside ? { text: l.texts[0], x: l.x + l.room + 4, within: false } : null;
}
/** How states are labelled otherwise than by their label: `words`, the longest first, in states of WORDY px or more;
 * `spill`: colour of words beside hatched states, that say why nothing is known. */
export interface Wording { words: (states: RowStates, i: number) => string[]; spill: () => string }
const WORDY = 44;

/** Receives what is drawn: the canvas, or an exported picture. */
export interface Sink { rect(x: number, y: number, w: number, h: number, look: Look, alpha: number): void }

export class RowPainter {
  private batches: Batch[] = [];
  private dims: Batch[] = [];
  private image: ImageData | null = null;
  private strip: HTMLCanvasElement = document.createElement('canvas');
  private sums = new Float32Array(0);
  private lack = new Float32Array(0);
  /** +1 where the pixels that a wide state covers whole begin, −1 where they end. */
  private inside = new Int16Array(0);
  private smallX = new Int32Array(GROW);
  private smallAlpha = new Float32Array(GROW);
  private smallLook: Look[] = [];
  private nSmall = 0;
  private patterns = new Map<string, CanvasPattern>();
  private denseRows: { row: number; y: number; h: number }[] = [];
  private labels: PaintedLabel[] = [];
  private outlines: number[] = [];
  private widths = new Map<string, number>();
  private scale = 1; private width = 0; private font = ''; private fontOf = '';

  constructor(private readonly looks: Looks, private readonly wording: Wording | null = null) {}

  /** A frame: `width` in CSS px, `rows` at most. */
  begin(width: number, rows: number, scale: number, font: string): void {
    this.scale = scale;
    this.width = Math.max(1, Math.round(width * scale));
    this.font = font;
    for (const b of this.batches) b.n = 0;
    for (const b of this.dims) b.n = 0;
    this.labels = [];
    this.denseRows = [];
    this.outlines = [];
    if (!this.image || this.image.width !== this.width || this.image.height < rows) {
      this.image = new ImageData(this.width, Math.max(rows, 8));
      this.strip.width = this.width;
      this.strip.height = this.image.height;
    } else this.image.data.fill(0);
    if (this.sums.length < this.width * 10) {
      this.sums = new Float32Array(this.width * 10);
      this.lack = new Float32Array(this.width + 1);
      this.inside = new Int16Array(this.width + 1);
    }
  }

  private batch(list: Batch[], i: number): Batch {
    while (list.length <= i) list.push(new Batch());
    return list[i];
  }

  /** One row at y (CSS px), h high; the view begins at `v0` (ns) and a CSS pixel holds nsPerPx. */
  row(states: RowStates, y: number, h: number, v0: number, nsPerPx: number): void {
    const { width: W, scale, looks } = this;
    const px = scale / nsPerPx, all = looks.all;
    const step = states.complete ? 0 : states.nsPerPx * px; // device px between samples
    let touched = false;
    this.inside.fill(0);
    for (let i = firstAfter(states, v0); i < states.n; i++) {
      const a = (states.start[i] - v0) * px;
      if (a >= W) break;
      const tags = states.tags[i];
      const b = (states.end[i] - v0) * px, look = all[states.style[i]], w = b - a;
      if (tags & TAG_EXCLUDE) continue;
      const alpha = tags & TAG_DIM ? 0.18 : 1;
      if (w < step && w < WIDE) {
        this.found((a + b) / 2, look, alpha);
        touched = true;
        continue;
      }
      const x0 = Math.max(0, a), x1 = Math.min(W, b);
      let l = Math.ceil(x0), r = Math.floor(x1);
      if (w >= WIDE && r > l) {
        this.inside[l]++;
        this.inside[r]--;
        if (!look.blank) {
          const next = i + 1 < states.n && states.style[i + 1] === states.style[i] && w > 6 && r < W ? 1 : 0;
          const hh = Math.max(2, Math.round(h * look.height)), yy = y + Math.round((h - hh) / 2);
          (alpha < 1 ? this.batch(this.dims, states.style[i]) : this.batch(this.batches, states.style[i]))
            .add(l / scale, yy, (r - l - next) / scale, hh);
          if (tags & (TAG_HIGHLIGHT | TAG_BORDER)) this.outlines.push(l / scale, yy, (r - l) / scale, hh);
          if (alpha === 1 && hh >= 9) this.label(states, i, look, l, r, yy + hh / 2, v0, px);
        }
        if (l > x0) { this.cover(l - 1, l - x0, look, alpha); touched = true; }
        if (r < x1 && r < W) { this.cover(r, x1 - r, look, alpha); touched = true; }
        continue;
      }
      // Narrow: exact share of each pixel.
      touched = true;
      l = Math.floor(x0);
      for (; l < x1 && l < W; l++) this.cover(l, Math.min(x1, l + 1) - Math.max(x0, l), look, alpha);
    }
    if (touched) {
      this.share();
      this.mix(this.denseRows.length);
      this.denseRows.push({ row: this.denseRows.length, y, h });
    }
  }

  /** Of a state that is drawn from l to r, in device px. */
  private label(states: RowStates, i: number, look: Look, l: number, r: number, y: number, v0: number,
    px: number): void {
    const { wording, scale } = this, text = states.label[i], x = l / scale, room = (r - l) / scale,
      spills = wording && look.pattern && text;
    if (!wording && text && room > 18) this.labels.push({ texts: [text], x, y, ink: look.ink, room, beside: 0 });
    else if (wording && (room >= WORDY || spills))
      this.labels.push({ texts: room >= WORDY ? wording.words(states, i) : [text!], x, y, ink: look.ink, room,
        beside: spills ? (this.freeUntil(states, i, v0, px) - r) / scale : 0 });
  }
  /** Where the next state after i that is not blank begins, in device px. */
  private freeUntil(states: RowStates, i: number, v0: number, px: number): number {
    for (let k = i + 1; k < states.n; k++)
      if (!this.looks.all[states.style[k]].blank) return Math.min(this.width, (states.start[k] - v0) * px);
    return this.width;
  }
  private cover(x: number, share: number, look: Look, alpha: number): void {
    const s = this.sums, o = x * 10, a = share * look.opacity * alpha;
    s[o] += a * look.labL;
    s[o + 1] += a * look.labA;
    s[o + 2] += a * look.labB;
    s[o + 3] += a;
    s[o + 4] += share;
  }
  private found(at: number, look: Look, alpha: number): void {
    if (this.nSmall === this.smallX.length) {
      const x = new Int32Array(this.nSmall * 2), a = new Float32Array(this.nSmall * 2);
      x.set(this.smallX);
      a.set(this.smallAlpha);
      this.smallX = x;
      this.smallAlpha = a;
    }
    this.smallX[this.nSmall] = Math.max(0, Math.min(this.width - 1, Math.floor(at)));
    this.smallLook[this.nSmall] = look;
    this.smallAlpha[this.nSmall++] = alpha;
  }
  /** What sampling found stands for the time around it that no state accounts for: each is spread over those pixels by
   * what they lack. */
  private share(): void {
    const { sums: s, width: W, lack } = this;
    if (this.nSmall) {
      lack[0] = 0;
      for (let x = 0, within = 0; x < W; x++) {
        within += this.inside[x];
        lack[x + 1] = lack[x] + Math.max(0, 1 - within - s[x * 10 + 4]);
      }
    }
    for (let i = 0; i < this.nSmall; i++) {
      const c = this.smallX[i], look = this.smallLook[i], from = Math.max(0, c - SPREAD),
        to = Math.min(W, c + SPREAD + 1), all = lack[to] - lack[from];
      if (all < 1e-4) continue;
      const k = 1 / all, opacity = look.opacity * this.smallAlpha[i], { labL, labA, labB } = look;
      for (let x = from; x < to; x++) {
        const share = (lack[x + 1] - lack[x]) * k, a = share * opacity, o = x * 10 + 5;
        s[o] += a * labL; s[o + 1] += a * labA; s[o + 2] += a * labB; s[o + 3] += a; s[o + 4] += share;
      }
    }
    this.nSmall = 0;
  }
  /** Turns the sums into one line of the image, and clears them. */
  private mix(line: number): void {
    const { sums: s, image, width: W } = this;
    const d = image!.data;
    let p = line * W * 4;
    for (let x = 0, o = 0; x < W; x++, o += 10, p += 4) {
      const exact = s[o + 4], sampled = s[o + 9];
      if (exact === 0 && sampled === 0) continue;
      const k = sampled > 0 ? Math.max(0, 1 - exact) / sampled : 0;
      const a = s[o + 3] + k * s[o + 8];
      if (a > 0.004) {
        fromOklab((s[o] + k * s[o + 5]) / a, (s[o + 1] + k * s[o + 6]) / a, (s[o + 2] + k * s[o + 7]) / a, d, p);
        d[p + 3] = Math.min(1, a) * 255;
      }
      s.fill(0, o, o + 10);
    }
  }

  /** Draws what the rows left. */
  end(ctx: CanvasRenderingContext2D): void {
    const { looks } = this;
    if (this.denseRows.length) {
      this.strip.getContext('2d')!.putImageData(this.image!, 0, 0, 0, 0, this.width, this.denseRows.length);
      ctx.imageSmoothingEnabled = false;
      for (const d of this.denseRows)
        ctx.drawImage(this.strip, 0, d.row, this.width, 1, 0, d.y, this.width / this.scale, d.h);
    }
    for (const [list, alpha] of [[this.batches, 1], [this.dims, 0.18]] as const) {
      for (let i = 0; i < list.length; i++) {
        const { v, n } = list[i];
        if (!n) continue;
        const look = looks.all[i];
        ctx.globalAlpha = look.opacity * alpha;
        ctx.fillStyle = look.css;
        for (let j = 0; j < n; j += 4) ctx.fillRect(v[j], v[j + 1], v[j + 2], v[j + 3]);
        if (look.pattern) {
          ctx.fillStyle = this.pattern(ctx, look);
          for (let j = 0; j < n; j += 4) ctx.fillRect(v[j], v[j + 1], v[j + 2], v[j + 3]);
        }
      }
    }
    ctx.globalAlpha = 1;
    ctx.font = this.font;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    for (const l of this.labels) {
      const at = placed(l, text => this.textWidth(ctx, text));
      if (!at) continue;
      ctx.fillStyle = at.within ? l.ink : this.wording!.spill();
      ctx.fillText(at.text, at.x, l.y + 0.5);
    }
    if (this.outlines.length) {
      ctx.strokeStyle = '#ffffff';
      ctx.lineWidth = 1;
      for (let i = 0; i < this.outlines.length; i += 4)
        ctx.strokeRect(this.outlines[i] + 0.5, this.outlines[i + 1] + 0.5, this.outlines[i + 2] - 1,
          this.outlines[i + 3] - 1);
    }
  }

  /** The same drawing as rectangles, for a picture file. */
  into(sink: Sink): PaintedLabel[] {
    const { width: W, image } = this;
    for (const d of this.denseRows) {
      const data = image!.data;
      for (let x = 0; x < W;) {
        const p = (d.row * W + x) * 4;
        let end = x + 1;
        while (end < W && data[(d.row * W + end) * 4] === data[p] && data[(d.row * W + end) * 4 + 1] === data[p + 1]
          && data[(d.row * W + end) * 4 + 2] === data[p + 2]
          && data[(d.row * W + end) * 4 + 3] === data[p + 3]) end++;
        if (data[p + 3] > 0) {
          const look = { ...this.looks.all[0], css: `rgb(${data[p]},${data[p + 1]},${data[p + 2]})`,
            pattern: '' as const };
          sink.rect(x / this.scale, d.y, (end - x) / this.scale, d.h, look, data[p + 3] / 255);
        }
        x = end;
      }
    }
    for (const [list, alpha] of [[this.batches, 1], [this.dims, 0.18]] as const)
      list.forEach((b, i) => {
        for (let j = 0; j < b.n; j += 4)
          sink.rect(b.v[j], b.v[j + 1], b.v[j + 2], b.v[j + 3], this.looks.all[i], alpha * this.looks.all[i].opacity);
      });
    return this.labels;
  }

  private textWidth(ctx: CanvasRenderingContext2D, text: string): number {
    if (this.fontOf !== this.font) { this.widths.clear(); this.fontOf = this.font; }
    let w = this.widths.get(text);
    if (w === undefined) {
      w = ctx.measureText(text).width;
      if (this.widths.size > 5000) this.widths.clear();
      this.widths.set(text, w);
    }
    return w;
  }

  pattern(ctx: CanvasRenderingContext2D, look: Look): CanvasPattern | string {
    const id = look.pattern + look.ink;
    let p = this.patterns.get(id);
    if (!p) { p = makePattern(ctx, look.pattern, look.ink) ?? undefined; if (p) this.patterns.set(id, p); }
    return p ?? look.css;
  }
}

function makePattern(ctx: CanvasRenderingContext2D, kind: Pattern, ink: string): CanvasPattern | null {
  const size = kind === 'dots' ? 4 : 6, tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const c = tile.getContext('2d')!;
  c.globalAlpha = 0.5;
  if (kind === 'dots') {
    c.fillStyle = ink;
    c.fillRect(1, 1, 1, 1);
    c.fillRect(3, 3, 1, 1);
  } else {
    c.strokeStyle = ink;
    c.lineWidth = 1.2;
    c.beginPath();
    for (const d of [-size, 0, size]) { c.moveTo(d - 1, size + 1); c.lineTo(d + size + 1, -1); }
    c.stroke();
  }
  return ctx.createPattern(tile, 'repeat');
}
