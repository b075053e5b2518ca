// SPDX-License-Identifier: MIT
// Menus and small panels that open at a place, are left by Escape or a click elsewhere, and give the focus back.
import { h, setText } from './dom';
import { icon } from './icons';
import { hideTip } from './tip';

export interface MenuItem { label: string; hint?: string; run?: () => void; checked?: boolean; disabled?: boolean;
  heading?: boolean;
  /** What it is, below its label. */
  line?: string }

let current: { element: HTMLElement; back: Element | null } | null = null;

export function closePopup(): void {
  if (!current) return;
  const { element, back } = current;
  current = null;
  const held = element.contains(document.activeElement);
  element.remove();
  if (held && back instanceof HTMLElement) back.focus({ preventScroll: true });
}

/** Shows `element` with its corner at (x, y), inside the window. */
export function openPopup(element: HTMLElement, x: number, y: number): void {
  closePopup();
  hideTip();
  current = { element, back: document.activeElement };
  element.classList.add('popup');
  document.body.append(element);
  const box = element.getBoundingClientRect();
  element.style.left = `${Math.max(4, Math.min(x, innerWidth - box.width - 4))}px`;
  element.style.top = `${Math.max(4, Math.min(y, innerHeight - box.height - 4))}px`;
  element.addEventListener('keydown', e => {
    e.stopPropagation();
    if (e.key === 'Escape') { e.preventDefault(); closePopup(); }
  });
}

addEventListener('pointerdown', e => {
  if (current && !current.element.contains(e.target as Node)) closePopup();
}, true);

interface Shown { item: MenuItem; button: HTMLButtonElement; group: HTMLElement }

/** The items, each group under its heading. */
function build(items: MenuItem[]): { list: HTMLElement; shown: Shown[] } {
  const list = h('div', { class: 'menu-items', role: 'menu' }), shown: Shown[] = [];
  let group = list;
  for (const item of items) {
    if (item.heading) {
      list.append(group = h('div', { role: 'group', 'aria-label': item.label },
        h('div', { class: 'menu-heading', 'aria-hidden': true }, item.label)));
      continue;
    }
    const role = item.checked === undefined ? 'menuitem' : 'menuitemcheckbox', b = h('button', {
      type: 'button', role, 'aria-checked': item.checked === undefined ? undefined
        : String(item.checked), disabled: item.disabled,
      'data-label': item.label,
      title: item.line, onclick: () => { closePopup(); item.run?.(); },
    }, h('span', { class: 'menu-mark' }, item.checked ? icon('tick') : ''),
    h('span', {}, item.label, item.line && h('span', { class: 'menu-line' }, item.line)),
    item.hint && h('span', { class: 'menu-hint' }, item.hint));
    group.append(b);
    shown.push({ item, button: b, group });
  }
  return { list, shown };
}

/** Leaves the items that have all words somewhere in heading, label and line. */
function narrow(shown: Shown[], text: string): number {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean), full = new Set<HTMLElement>();
  let found = 0;
  for (const { item, button, group } of shown) {
    const all = `${group.getAttribute('aria-label') ?? ''} ${item.label} ${item.line ?? ''}`.toLowerCase(),
      fits = words.every(w => all.includes(w));
    button.hidden = !fits;
    if (fits) { found++; full.add(group); }
  }
  for (const { group } of shown) group.hidden = !full.has(group);
  return found;
}

/** `find`: what a field above the items says that narrows them down; none without. */
export function openMenu(items: MenuItem[], x: number, y: number, find = ''): void {
  const { list, shown } = build(items), none = h('p', { class: 'menu-none', role: 'status', hidden: true }),
    field = h('input', { type: 'search', class: 'menu-filter', placeholder: find, 'aria-label': find,
      spellcheck: false }),
    menu = find ? h('div', { role: 'dialog', 'aria-label': find }, field, list, none) : list;
  menu.classList.add('menu');
  menu.classList.toggle('filtered', !!find);
  menu.tabIndex = -1;
  const buttons = (): HTMLButtonElement[] => shown.map(s => s.button).filter(b => !b.hidden && !b.disabled);
  field.addEventListener('input', () => {
    const found = narrow(shown, field.value);
    none.hidden = found > 0;
    setText(none, found ? '' : `Nothing here has “${field.value.trim()}”.`);
  });
  menu.addEventListener('keydown', e => {
    const all = buttons(), i = all.indexOf(document.activeElement as HTMLButtonElement), typing = e.target === field;
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      e.preventDefault();
      if (find && i === 0 && e.key === 'ArrowUp') { field.focus(); return; }
      all[(i + (e.key === 'ArrowDown' ? 1 : i < 0 ? 0 : -1) + all.length) % all.length]?.focus();
    } else if (e.key === 'Enter' && typing) {
      e.preventDefault();
      all[0]?.click();
    } else if (!typing && (e.key === 'Home' || e.key === 'End')) {
      e.preventDefault();
      all.at(e.key === 'Home' ? 0 : -1)?.focus();
    } else if (!typing && e.key.length === 1 && e.key !== ' ' && !e.ctrlKey && !e.metaKey && !e.altKey) {
      if (find) { field.focus(); return; } // what is typed arrives there
      all.slice(i + 1).concat(all).find(b => b.dataset.label!.toLowerCase()
        .startsWith(e.key.toLowerCase()))?.focus();
    }
  });
  menu.classList.toggle('long', !find && items.length > 22);
  openPopup(menu, x, y);
  // Escape is heard there
  (find ? field : buttons()[0] ?? menu).focus({ preventScroll: true });
}

/** Menu under a button. */
export function menuBelow(anchor: Element, items: MenuItem[], find = ''): void {
  const box = anchor.getBoundingClientRect();
  openMenu(items, box.left, box.bottom + 2, find);
}
