// SPDX-License-Identifier: MIT
// A list of listeners. `on` returns what undoes it.
export class Emitter<T = void> {
  private readonly listeners = new Set<(value: T) => void>();
  on(f: (value: T) => void): () => void {
    this.listeners.add(f);
    return () => { this.listeners.delete(f); };
  }
  emit(value: T): void { for (const f of [...this.listeners]) f(value); }
}

/** Coalesces redraws: however often it is asked for, `f` runs once in the next frame. */
export function perFrame(f: () => void): () => void {
  let asked = 0;
  return () => {
    if (asked) return;
    asked = requestAnimationFrame(() => { asked = 0; f(); });
  };
}

/** Runs `f` when no more calls came for `quiet` ms, or `most` ms after the first. */
export function settle(f: () => void, quiet: number, most: number): () => void {
  let timer = 0, first = 0;
  return () => {
    const now = performance.now();
    if (!timer) first = now;
    clearTimeout(timer);
    timer = window.setTimeout(() => { timer = 0; f(); }, Math.max(0, Math.min(quiet, first + most - now)));
  };
}
