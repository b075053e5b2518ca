// SPDX-License-Identifier: MIT
// What all drawing areas share: a canvas at device resolution, the ruler, the cursors.
import type { Axis } from './axis';
import type { Session } from './session';
import { formatDuration, formatTickTime, ticks } from './time';

export const FONT = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
export const SMALL = '10px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';

export class Surface {
  readonly canvas = document.createElement('canvas');
  readonly ctx = this.canvas.getContext('2d')!;
  width = 0;
  height = 0;
  scale = 1;
  constructor(label = '') {
    if (label) {
      this.canvas.setAttribute('role', 'img');
      this.canvas.setAttribute('aria-label', label);
    } else this.canvas.setAttribute('aria-hidden', 'true');
  }
  /** Sets the size when it differs and clears; drawing is in CSS px afterwards. */
  start(width: number, height: number): CanvasRenderingContext2D {
    const scale = devicePixelRatio || 1, { canvas, ctx } = this;
    const w = Math.max(1, Math.round(width * scale)), hh = Math.max(1, Math.round(height * scale));
    if (canvas.width !== w || canvas.height !== hh) {
      canvas.width = w;
      canvas.height = hh;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    } else { ctx.setTransform(1, 0, 0, 1, 0, 0); ctx.clearRect(0, 0, w, hh); }
    this.width = width;
    this.height = height;
    this.scale = scale;
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    ctx.globalAlpha = 1;
    return ctx;
  }
}

export interface Tick { x: number; text: string }
export function axisTicks(session: Session, width: number): Tick[] {
  const { axis } = session;
  const t = ticks(session.shown(axis.begin), session.shown(axis.end), 110 / Math.max(110, width), session.timeMode,
    session.origin);
  return t.times.map(time => ({ x: axis.px(session.meant(time)),
    text: formatTickTime(time, session.timeMode, session.origin, t) }));
}

/** Ruler of `height` px with lines down to `depth`; without `words`: only the lines, another ruler says the times. */
export function drawRuler(ctx: CanvasRenderingContext2D, session: Session, width: number, height: number,
  depth: number, words = true): void {
  const { theme } = session;
  ctx.fillStyle = theme.raised;
  ctx.fillRect(0, 0, width, height);
  ctx.fillStyle = theme.line;
  ctx.fillRect(0, height - 1, width, 1);
  ctx.font = SMALL;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'left';
  let free = 0;
  for (const t of axisTicks(session, width)) {
    const x = Math.round(t.x);
    ctx.fillStyle = theme.faint;
    ctx.fillRect(x, height, 1, depth - height);
    if (!words) continue;
    ctx.fillStyle = theme.line;
    ctx.fillRect(x, height - 5, 1, 5);
    if (x < free - 2 || x + 5 + ctx.measureText(t.text).width > width) continue;
    ctx.fillStyle = theme.dim;
    ctx.fillText(t.text, x + 4, height / 2);
    free = x + 6 + ctx.measureText(t.text).width; // ticks are 110 px apart: where one fits, all do
  }
}

/** The selected interval, to lie under the states so that their colours stay what they are. */
export function drawSelection(ctx: CanvasRenderingContext2D, session: Session, width: number, top: number,
  height: number): void {
  const { axis, theme } = session, s = axis.selection;
  if (!s) return;
  const l = Math.max(0, axis.px(s[0])), r = Math.min(width, axis.px(s[1]));
  if (r <= l) return;
  ctx.globalAlpha = 0.15;
  ctx.fillStyle = theme.select;
  ctx.fillRect(l, top, r - l, height - top);
  ctx.globalAlpha = 1;
}

/** Both cursors and the mouse's time, from `top` down. */
export function drawCursors(ctx: CanvasRenderingContext2D, session: Session, width: number, top: number, height: number,
  label = false): void {
  const { axis, theme } = session;
  const { anchor, cursor } = axis;
  if (anchor !== null && cursor !== null) {
    const a = axis.px(anchor), b = axis.px(cursor), l = Math.max(0, Math.min(a, b)),
      r = Math.min(width, Math.max(a, b));
    ctx.fillStyle = theme.select;
    for (const x of anchor === cursor ? [b] : [a, b])
      if (x >= -1 && x <= width) ctx.fillRect(Math.round(x), Math.max(0, top - 6), 1, height);
    if (label && anchor !== cursor && r - l > 60) {
      const text = formatDuration(cursor > anchor ? cursor - anchor : anchor - cursor);
      ctx.font = SMALL;
      const w = ctx.measureText(text).width + 10, x = (l + r) / 2 - w / 2;
      if (r - l > w + 8) {
        ctx.fillStyle = theme.select;
        ctx.beginPath();
        ctx.roundRect(x, top - 17, w, 14, 3);
        ctx.fill();
        ctx.fillStyle = theme.dark ? '#101418' : '#ffffff';
        ctx.textBaseline = 'middle';
        ctx.textAlign = 'left';
        ctx.fillText(text, x + 5, top - 9.5);
      }
    }
  }
  if (axis.hover !== null) {
    const x = Math.round(axis.px(axis.hover));
    if (x >= 0 && x <= width) {
      ctx.globalAlpha = 0.45;
      ctx.fillStyle = theme.text;
      ctx.fillRect(x, top, 1, height - top);
      ctx.globalAlpha = 1;
    }
  }
}

/** Mouse on a drawing area: select by dragging, zoom by right or shift drag, pan by middle or ctrl drag, ctrl-wheel
 * zooms, shift-wheel pans. */
export function timeMouse(area: HTMLElement, axis: Axis, on: { click?: (x: number, y: number, e: PointerEvent) => void;
  menu?: (x: number, y: number, e: MouseEvent) => void }): void {
  const at = (e: MouseEvent): [number, number] => {
    const b = area.getBoundingClientRect();
    return [e.clientX - b.left, e.clientY - b.top];
  };
  area.addEventListener('pointerdown', e => {
    const [x, y] = at(e), t = axis.timeAt(x);
    area.closest<HTMLElement>('.panel')?.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
    const pan = e.button === 1 || (e.button === 0 && e.ctrlKey), zoom = e.button === 2;
    if (pan) e.preventDefault();
    let last = e.clientX;
    const before: [bigint | null, bigint | null] = [axis.anchor, axis.cursor];
    try { area.setPointerCapture(e.pointerId); } catch { /* gone */ }
    let moved = false;
    const onMove = (m: PointerEvent): void => {
      if (!moved && Math.abs(m.clientX - e.clientX) < 3) return;
      moved = true;
      if (pan) { axis.pan(last - m.clientX); last = m.clientX; return; }
      const u = axis.timeAt(at(m)[0]);
      if (e.shiftKey && !zoom && before[0] !== null) axis.extend(u); else axis.select(t, u);
    };
    const onEnd = (m: PointerEvent): void => {
      area.removeEventListener('pointermove', onMove);
      area.removeEventListener('pointerup', onEnd);
      area.removeEventListener('pointercancel', onEnd);
      if (zoom && moved) {
        axis.select(before[0], before[1]);
        const u = axis.timeAt(at(m)[0]);
        axis.show(t < u ? t : u, t < u ? u : t);
      } else if (zoom && m.type === 'pointerup') on.menu?.(x, y, m);
      else if (!moved && e.button === 0 && !e.ctrlKey) {
        if (e.shiftKey) axis.extend(t); else axis.select(t);
        on.click?.(x, y, e);
      }
    };
    area.addEventListener('pointermove', onMove);
    area.addEventListener('pointerup', onEnd);
    area.addEventListener('pointercancel', onEnd);
  });
  area.addEventListener('contextmenu', e => {
    // With the right button some systems tell it before a drag, some after it: that has its menu when it comes up.
    e.preventDefault();
    if (e.button === 2) return;
    const [x, y] = at(e);
    on.menu?.(x, y, e);
  });
  area.addEventListener('wheel', e => {
    const size = e.deltaMode === 1 ? 20 : 1;
    if (e.ctrlKey || e.metaKey) {
      e.preventDefault();
      axis.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * size * 0.0022))), at(e)[0]);
    } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      e.preventDefault();
      axis.pan((e.deltaX || e.deltaY) * size);
    }
  }, { passive: false });
  area.addEventListener('pointermove', e => axis.setHover(axis.timeAt(at(e)[0])));
  area.addEventListener('pointerleave', () => axis.setHover(null));
}
