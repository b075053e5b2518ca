// SPDX-License-Identifier: MIT
// How the views share the height between the strip and the drawer.

/** `least` and `most`: px between which a view is of use; `weight`: its part of what is there. */
export interface Want { weight: number; least: number; most: number }

/** Heights that together fill `room`, each within its bounds where that is possible: beyond `least` (then the views
 * scroll), or beyond `most` where nobody needs more. */
export function share(room: number, wants: Want[]): number[] {
  const heights = wants.map(w => w.least);
  let rest = room - heights.reduce((a, b) => a + b, 0);
  if (rest <= 0) return heights;
  // What a view leaves over goes to those that still want some; in the end to all.
  for (const bounded of [true, false]) {
    for (let takers = wants.map((_, i) => i); rest >= 1 && takers.length;) {
      const weight = takers.reduce((sum, i) => sum + wants[i].weight, 0), round = rest,
        most = (i: number): number => bounded ? wants[i].most : Infinity;
      for (const i of takers) {
        const add = Math.min(round * wants[i].weight / weight, Math.max(0, most(i) - heights[i]));
        heights[i] += add;
        rest -= add;
      }
      takers = takers.filter(i => heights[i] < most(i) - 0.5);
    }
  }
  const whole = heights.map(Math.floor);
  if (whole.length) whole[0] += Math.max(0, Math.floor(room - whole.reduce((a, b) => a + b, 0)));
  return whole;
}
