// SPDX-License-Identifier: MIT
// The ruler of all views that share the time axis: above them, it stays where it is while they scroll.
import { drawCursors, drawRuler, Surface, timeMouse } from './canvas';
import { h, setText } from './dom';
import { perFrame } from './emitter';
import { HEAD } from './panel';
import type { Session } from './session';
import { formatDate } from './time';

export class TimeAxis {
  private readonly surface = new Surface('Times of the views below');
  private readonly day = h('span', { class: 'time-day' });
  readonly root = h('section', { class: 'time-axis', 'aria-label': 'Time axis', hidden: true }, this.day,
    h('div', { class: 'time-area' }, this.surface.canvas));
  readonly redraw = perFrame(() => this.draw());

  constructor(private readonly session: Session) {
    const { axis } = session;
    timeMouse(this.root.lastElementChild as HTMLElement, axis, {});
    for (const changed of [axis.moved, axis.selected, axis.hovered, session.themeChanged, session.timeModeChanged])
      changed.on(this.redraw);
  }
  show(on: boolean): void {
    this.root.hidden = !on;
    this.redraw();
  }
  private draw(): void {
    if (this.root.hidden) return;
    const { session } = this, { width, begin } = session.axis, ctx = this.surface.start(width, HEAD);
    setText(this.day, formatDate(session.shown(begin), session.timeMode));
    drawRuler(ctx, session, width, HEAD, HEAD);
    drawCursors(ctx, session, width, HEAD, HEAD, true);
  }
}
