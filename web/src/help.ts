// SPDX-License-Identifier: MIT
// Keys and mouse, said once: for the help sheet.
import { button, h } from './dom';
import { icon } from './icons';
import { closePopup, openPopup } from './menu';

const KEYS: [string, string][] = [
  ['↑ ↓', 'row'], ['← →', 'previous / next state of the row (shift: extend the selection)'],
  ['w s', 'zoom in / out at the cursor'], ['a d', 'pan left / right'],
  ['f', 'fit the selection'], ['Home', 'whole trace'], ['Backspace', 'zoom back'],
  ['Enter', 'details of what is under the cursor'], ['/', 'search'],
  ['n p', 'next / previous of what was found, chosen, or is under the cursor'],
  ['[ ]', 'previous / next segment of the critical path'],
  ['c', 'compare the critical path with another one / end that'],
  ['g', 'go to a time, or to a range'],
  ['h', 'Start: requests, machines, threads (Escape: to the views)'],
  ['b', 'bookmark the selection'], ['+ −', 'unfold / fold everything below'],
  ['space', 'fold, tick'], ['Menu, Shift+F10', 'critical path and more for the row'], ['e', 'events drawer'],
  ['Escape', 'clear the selection'], ['?', 'this sheet'],
];
const MOUSE: [string, string][] = [
  ['click', 'cursor'], ['drag', 'select an interval'], ['shift+click', 'move the second cursor'],
  ['right drag', 'zoom to the interval'], ['right click', 'menu of the row'], ['middle or ctrl drag', 'pan'],
  ['wheel', 'scroll rows'], ['ctrl+wheel', 'zoom at the mouse'], ['shift+wheel', 'pan'],
  ['double click', 'select the state'],
];
const SEARCH: [string, string][] = [
  ['words', 'rows whose name, TID or machine holds them'],
  ['tid:204  host:web  pod:db', 'rows by thread id, machine, container'],
  ['state:openat', 'states with that label'], ['duration>10ms', 'states by expression; also &&, ||'],
  ['in tables', 'a regular expression per column: Enter goes to the next, “only matches” leaves the others out'],
];

export function showHelp(): void {
  const part = (title: string, lines: [string, string][]): HTMLElement =>
    h('section', {}, h('h3', {}, title), h('dl', {}, ...lines.flatMap(([k, v]) =>
      [h('dt', {}, ...k.split(' ').map((x, i) => h('kbd', {}, (i ? ' ' : '') + x))), h('dd', {}, v)])));
  const sheet = h('div', { class: 'help', role: 'dialog', 'aria-label': 'Keys and mouse', tabIndex: -1 },
    button(icon('close'), 'Close', closePopup, { class: 'plain close' }), part('Keys', KEYS),
    h('div', {}, part('Mouse in graphs', MOUSE), part('Search', SEARCH)));
  openPopup(sheet, innerWidth / 2 - 380, 60);
  sheet.focus();
}
