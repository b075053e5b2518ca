// SPDX-License-Identifier: MIT
// The shared time axis: which part of the experiment all views show, the selection (two cursors), and how times are
// pixels.
import { Emitter } from './emitter';
import { clampTime, maxTime, minTime } from './time';
import type { Time } from './tsp';

const LEAST = 20n; // ns that a view shows at least

export class Axis {
  /** Whole experiment. Views' floats are ns since `min`: exact up to 104 days. */
  min: Time = 0n;
  max: Time = 1n;
  begin: Time = 0n;
  end: Time = 1n;
  /** Pixels of the graphs' drawing area. */
  width = 1000;
  /** The two cursors; equal after a click. */
  anchor: Time | null = null;
  cursor: Time | null = null;
  /** Time under the mouse. */
  hover: Time | null = null;
  readonly moved = new Emitter();
  readonly selected = new Emitter();
  readonly hovered = new Emitter();
  private past: [Time, Time][] = [];

  setExtent(min: Time, max: Time): void {
    const whole = this.begin === this.min && this.end === this.max;
    this.min = min;
    this.max = maxTime(max, min + LEAST);
    if (whole || this.begin < min || this.end > this.max) this.show(this.min, this.max, false);
    else this.moved.emit();
  }
  /** The experiment goes on: what is seen stays, or stays at the end where it was there. Times that were told as ns
   * since `min` hold: it never changes so. */
  grow(max: Time, follow: boolean): void {
    const whole = this.begin === this.min && this.end === this.max, atEnd = this.isAtEnd;
    this.max = maxTime(max, this.min + LEAST);
    if (whole) this.show(this.min, this.max, false);
    else if (follow && atEnd) this.toEnd();
    else this.show(this.begin, this.end, false);
    this.moved.emit();
  }
  /** Whoever moved away from the end wants to see something else. */
  private get isAtEnd(): boolean { return this.max - this.end <= this.span / 50n; }
  toEnd(): void { this.show(this.max - this.span, this.max, false); }
  get span(): Time { return this.end - this.begin; }
  get nsPerPx(): number { return Number(this.span) / Math.max(1, this.width); }
  /** View's begin as ns since `min`. */
  get offset(): number { return Number(this.begin - this.min); }
  rel(t: Time): number { return Number(t - this.min); }
  abs(rel: number): Time { return this.min + BigInt(Math.round(rel)); }
  px(t: Time): number { return Number(t - this.begin) / this.nsPerPx; }
  timeAt(px: number): Time { return this.begin + BigInt(Math.round(px * this.nsPerPx)); }

  show(begin: Time, end: Time, remember = true): void {
    let b = begin, e = end;
    if (e < b) [b, e] = [e, b];
    if (e - b < LEAST) { const mid = (b + e) / 2n; b = mid - LEAST / 2n; e = b + LEAST; }
    const span = minTime(e - b, this.max - this.min);
    b = clampTime(b, this.min, this.max - span);
    e = b + span;
    if (b === this.begin && e === this.end) return;
    if (remember) this.remember();
    this.begin = b;
    this.end = e;
    this.moved.emit();
  }
  private remember(): void {
    this.past.push([this.begin, this.end]);
    if (this.past.length > 200) this.past.shift();
  }
  back(): void {
    const last = this.past.pop();
    if (last) this.show(last[0], last[1], false);
  }
  whole(): void { this.show(this.min, this.max); }
  /** factor < 1 zooms in; the time at `px` stays where it is. */
  zoom(factor: number, px: number, remember = false): void {
    const at = this.timeAt(px), span = Math.max(Number(LEAST),
      Math.min(Number(this.span) * factor, Number(this.max - this.min)));
    const begin = at - BigInt(Math.round(px / Math.max(1, this.width) * span));
    this.show(begin, begin + BigInt(Math.round(span)), remember);
  }
  pan(px: number): void {
    const by = BigInt(Math.round(px * this.nsPerPx)), span = this.span;
    const begin = clampTime(this.begin + by, this.min, this.max - span);
    this.show(begin, begin + span, false);
  }
  /** Moves the view, keeping its width, so that t is seen (with some room). */
  reveal(t: Time, until: Time = t): void {
    const room = this.span / 20n;
    if (t >= this.begin + room && until <= this.end - room) return;
    if (until - t > this.span - 2n * room) { const pad = (until - t) / 10n; this.show(t - pad, until + pad); return; }
    const begin = (t + until) / 2n - this.span / 2n;
    this.show(begin, begin + this.span);
  }
  select(anchor: Time | null, cursor: Time | null = anchor): void {
    this.anchor = anchor === null ? null : clampTime(anchor, this.min, this.max);
    this.cursor = cursor === null ? null : clampTime(cursor, this.min, this.max);
    this.selected.emit();
  }
  extend(cursor: Time): void { this.select(this.anchor ?? cursor, cursor); }
  /** Ordered, or null when there is none or it is a point. */
  get selection(): [Time, Time] | null {
    if (this.anchor === null || this.cursor === null || this.anchor === this.cursor) return null;
    return this.anchor < this.cursor ? [this.anchor, this.cursor] : [this.cursor, this.anchor];
  }
  fitSelection(): void {
    const s = this.selection;
    if (s) this.show(s[0], s[1]);
  }
  setHover(t: Time | null): void {
    if (t === this.hover) return;
    this.hover = t;
    this.hovered.emit();
  }
}
