// SPDX-License-Identifier: MIT
// Logarithmic axes, of durations above all: from nanoseconds to seconds everything is seen.
import type uPlot from 'uplot';
import { button } from './dom';
import { Emitter } from './emitter';
import { keep, kept } from './remember';

const KEY = 'linear';
let linear = kept(KEY) === '1';
const changed = new Emitter();
/** Whether latencies are drawn on logarithmic axes: one choice for all views. */
export const isLog = (): boolean => !linear;

/** The switch of a view; `redraw` is called when any is switched, until `undo`. */
export function scaleSwitch(redraw: () => void): { button: HTMLButtonElement; undo: () => void } {
  const b = button('log', 'Logarithmic axes', () => {
    linear = !linear;
    keep(KEY, linear ? '1' : '');
    changed.emit();
  }, { class: 'plain small' }), show = (): void => b.setAttribute('aria-pressed', String(!linear));
  show();
  return { button: b, undo: changed.on(() => { show(); redraw(); }) };
}

/** Round numbers within [low, high], at most so many: 1, 2 and 5 of each decade, or 1, or of some decades. */
export function decades(low: number, high: number, most: number): number[] {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), within = (digits: number[],
    step: number): number[] => {
    const all: number[] = [];
    for (let e = Math.ceil(first / step) * step; e <= last; e += step)
      for (const d of digits) all.push(e < 0 ? d / 10 ** -e : d * 10 ** e);
    return all.filter(v => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9));
  };
  for (const [digits, step] of [[[1, 2, 5], 1], [[1], 1], [[1], 2], [[1], 3], [[1], 6]] as const) {
    const ticks = within([...digits], step);
    if (ticks.length <= most) return ticks;
  }
  return within([1], 6).slice(0, Math.max(1, most));
}
/** An axis with those, so many px apart. */
export const logTicks = (apart: number, side: 'width' | 'height'): Partial<uPlot.Axis> => ({
  splits: (u, _i, low, high) => decades(low, high, Math.max(2, u[side] / apart)), filter: (_u, splits) => splits });
