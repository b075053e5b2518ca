// Menus and small panels that open at a place, are left by Escape or a click elsewhere, and give the focus back.
import { h } from './dom';

export interface MenuItem { label: string; hint?: string; run?: () => void; checked?: boolean; disabled?: boolean;
  heading?: boolean }

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

export function openMenu(items: MenuItem[], x: number, y: number): void {
  const menu = h('div', { class: 'menu', role: 'menu', tabIndex: -1 });
  for (const item of items) {
    if (item.heading) { menu.append(h('div', { class: 'menu-heading' }, item.label)); continue; }
    const role = item.checked === undefined ? 'menuitem' : 'menuitemcheckbox';
    menu.append(h('button', {
      type: 'button', role, 'aria-checked': item.checked, disabled: item.disabled,
      onclick: () => { closePopup(); item.run?.(); },
    }, h('span', { class: 'menu-mark' }, item.checked ? '✓' : ''), h('span', {}, item.label),
    item.hint && h('span', { class: 'menu-hint' }, item.hint)));
  }
  menu.addEventListener('keydown', e => {
    const buttons = [...menu.querySelectorAll<HTMLButtonElement>('button:not(:disabled)')];
    const i = buttons.indexOf(document.activeElement as HTMLButtonElement),
      label = (b: Element): string => b.children[1].textContent!.toLowerCase();
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      e.preventDefault();
      buttons[(i + (e.key === 'ArrowDown' ? 1 : -1) + buttons.length) % buttons.length]?.focus();
    } else if (e.key === 'Home' || e.key === 'End') {
      e.preventDefault();
      buttons.at(e.key === 'Home' ? 0 : -1)?.focus();
    } else if (e.key.length === 1 && e.key !== ' ') {
      buttons.slice(i + 1).concat(buttons).find(b => label(b).startsWith(e.key.toLowerCase()))?.focus();
    }
  });
  menu.classList.toggle('long', items.length > 22);
  openPopup(menu, x, y);
  // Escape is heard there
  (menu.querySelector<HTMLButtonElement>('button:not(:disabled)') ?? menu).focus({ preventScroll: true });
}

/** Menu under a button. */
export function menuBelow(anchor: Element, items: MenuItem[]): void {
  const box = anchor.getBoundingClientRect();
  openMenu(items, box.left, box.bottom + 2);
}
