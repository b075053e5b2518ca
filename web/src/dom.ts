// SPDX-License-Identifier: MIT
// Small helpers over the DOM.
type Child = Node | string | null | undefined | false;
type Props = Record<string, unknown>;

/** Element with properties (`class`, `aria-…`, `data-…` as attributes, `on…` as listeners) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {},
  ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value as EventListener);
    else if (key === 'class') e.className = String(value);
    else if (key in e && !key.includes('-') && key !== 'list') (e as any)[key] = value;
    else e.setAttribute(key, String(value));
  }
  e.append(...children.filter((c): c is Node | string => c !== null && c !== undefined && c !== false));
  return e;
}

/** Its name, for who hears or says it, has the label in it. */
export function button(label: string | Node, title: string, onclick: (e: MouseEvent) => void,
  props: Props = {}): HTMLButtonElement {
  const text = typeof label === 'string' ? label : label.textContent ?? '',
    name = title.toLowerCase().includes(text.toLowerCase()) ? title : `${text}: ${title}`;
  return h('button', { type: 'button', title, 'aria-label': name, onclick, ...props }, label);
}

export function setText(e: Element, text: string): void { if (e.textContent !== text) e.textContent = text; }
export function toggle(e: Element, name: string, on: boolean): void {
  if (e.classList.contains(name) !== on) e.classList.toggle(name, on);
}

let spoken: HTMLElement | null = null;
/** Tells screen readers. */
export function announce(text: string): void {
  if (!spoken) document.body.append(spoken = h('div', { class: 'unseen', role: 'status', 'aria-live': 'polite' }));
  spoken.textContent = text;
}

export const reducedMotion = (): boolean => matchMedia('(prefers-reduced-motion: reduce)').matches;

/** Drags from a pointerdown: `move` gets the distance; the pointer is captured, Escape ends it. */
export function drag(e: PointerEvent, move: (dx: number, dy: number, e: PointerEvent) => void,
  end: (moved: boolean) => void = () => {}): void {
  const target = e.currentTarget as HTMLElement, x = e.clientX, y = e.clientY;
  let moved = false;
  try { target.setPointerCapture(e.pointerId); } catch { /* the pointer is gone already */ }
  const onMove = (m: PointerEvent): void => {
    if (!moved && Math.hypot(m.clientX - x, m.clientY - y) < 3) return;
    moved = true;
    move(m.clientX - x, m.clientY - y, m);
  };
  const onEnd = (): void => {
    target.removeEventListener('pointermove', onMove);
    target.removeEventListener('pointerup', onEnd);
    target.removeEventListener('pointercancel', onEnd);
    removeEventListener('keydown', onKey, true);
    end(moved);
  };
  const onKey = (k: KeyboardEvent): void => {
    if (k.key === 'Escape') { k.preventDefault(); k.stopPropagation(); onEnd(); }
  };
  addEventListener('keydown', onKey, true);
  target.addEventListener('pointermove', onMove);
  target.addEventListener('pointerup', onEnd);
  target.addEventListener('pointercancel', onEnd);
}

export function download(name: string, data: Blob | string, type = 'text/plain'): void {
  const url = URL.createObjectURL(typeof data === 'string' ? new Blob([data], { type }) : data);
  const a = h('a', { href: url, download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Width of a vertical scroll bar here; overlay ones take none. */
export function scrollBarWidth(): number {
  const outer = h('div', { class: 'probe' }, h('div'));
  document.body.append(outer);
  const w = outer.offsetWidth - outer.clientWidth;
  outer.remove();
  return w;
}
