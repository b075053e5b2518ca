// The tooltip by the mouse.
import { h } from './dom';

let box: HTMLElement | null = null;

export function showTip(title: string, lines: [string, string][], colour: string, x: number, y: number): void {
  if (!box) document.body.append(box = h('div', { class: 'tip', role: 'tooltip' }));
  const swatch = h('span', { class: 'swatch' });
  swatch.style.background = colour;
  box.replaceChildren(h('div', { class: 'tip-title' }, swatch, title), table(lines));
  box.hidden = false;
  const b = box.getBoundingClientRect();
  box.style.left = `${x + 16 + b.width > innerWidth ? Math.max(4, x - b.width - 12) : x + 16}px`;
  box.style.top = `${y + 18 + b.height > innerHeight ? Math.max(4, y - b.height - 10) : y + 18}px`;
}
export function hideTip(): void { if (box) box.hidden = true; }

export function table(lines: [string, string][]): HTMLElement {
  return h('table', { class: 'pairs' }, h('tbody', {}, ...lines.map(([k, v]) => h('tr', {}, h('th', { scope: 'row' }, k), h('td', {}, v)))));
}
