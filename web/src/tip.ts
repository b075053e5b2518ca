// SPDX-License-Identifier: MIT
// The tooltip by the mouse.
import { button, h } from './dom';

let box: HTMLElement | null = null;

/** A third text of a line is the colour of its mark; `colour`: that of the title's, '' for none. */
export function showTip(title: string, lines: [string, string, string?][], colour: string, x: number, y: number): void {
  if (document.querySelector('.popup')) return; // who reads a menu does not ask what lies below it
  if (!box) document.body.append(box = h('div', { class: 'tip', role: 'tooltip' }));
  box.replaceChildren(h('div', { class: 'tip-title' }, colour ? mark(colour) : '', title), table(lines));
  box.hidden = false;
  const b = box.getBoundingClientRect();
  box.style.left = `${x + 16 + b.width > innerWidth ? Math.max(4, x - b.width - 12) : x + 16}px`;
  box.style.top = `${y + 18 + b.height > innerHeight ? Math.max(4, y - b.height - 10) : y + 18}px`;
}
export function hideTip(): void { if (box) box.hidden = true; }

function mark(colour: string): HTMLElement {
  const swatch = h('span', { class: 'swatch' });
  swatch.style.background = colour;
  return swatch;
}
export function table(lines: [string, string, string?][], go: Record<string, () => void> = {}): HTMLElement {
  return h('table', { class: 'pairs' }, h('tbody', {}, ...lines.map(([k, v, colour]) =>
    h('tr', {}, h('th', { scope: 'row' }, colour ? mark(colour) : '', k),
      h('td', { class: colour ? 'number' : '' }, go[k] ? button(v, `${k}: ${v}`, go[k], { class: 'link' }) : v)))));
}
