// SPDX-License-Identifier: MIT
// Keys of the whole page, as users of Trace Compass know them.
import { showHelp } from './help';
import { closePopup } from './menu';
import type { Session } from './session';
import type { GraphView } from './graphview';

export interface KeyTargets {
  /** The graph that has the focus, else the first. */
  graph(): GraphView | null;
  step(direction: 1 | -1): void;
  /** To the next or previous segment of the critical path. */
  along(direction: 1 | -1): void;
  start(): void; views(): void; search(): void; goTo(): void; bookmark(): void; events(): void; details(): void;
  compare(): void;
}

export function bindKeys(session: Session, to: KeyTargets): void {
  addEventListener('keydown', e => {
    const target = e.target as HTMLElement;
    // Where brackets need a third key that is told as ctrl+alt.
    const bracket = e.key === '[' || e.key === ']';
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || (!bracket && (e.ctrlKey || e.altKey)) || e.metaKey) return;
    if (!session.experiment || document.querySelector('.picker')) return;
    const starting = !!document.querySelector('.starting'); // nothing else is seen then
    if (starting && e.key !== '?' && e.key !== 'Escape') return;
    const graph = to.graph(), axis = graph?.root.contains(document.activeElement) ? graph.axis : session.axis;
    const at = (): number => {
      const c = axis.hover ?? axis.cursor;
      return c !== null && c >= axis.begin && c <= axis.end ? axis.px(c) : axis.width / 2;
    };
    const control = target.tagName === 'BUTTON' || target.tagName === 'TR';
    switch (e.key) {
      case 'w': axis.zoom(1 / 1.5, at(), true); break;
      case 's': axis.zoom(1.5, at(), true); break;
      case 'a': axis.pan(-axis.width / 8); break;
      case 'd': axis.pan(axis.width / 8); break;
      case 'W': axis.zoom(1 / 4, at(), true); break;
      case 'S': axis.zoom(4, at(), true); break;
      case 'ArrowLeft': case 'ArrowRight': {
        const direction = e.key === 'ArrowRight' ? 1 : -1;
        if (!graph?.stepState(direction, e.shiftKey)) axis.pan(direction * axis.width / 20);
        break;
      }
      case 'ArrowUp': case 'ArrowDown':
        if (control || !graph) return;
        graph.focus();
        graph.tree.pick(graph.tree.pickedRow + (e.key === 'ArrowDown' ? 1 : -1));
        break;
      case 'f': axis.fitSelection(); break;
      case 'Home': axis.whole(); break;
      case 'Backspace': axis.back(); break;
      case 'Enter': if (control) return; to.details(); break;
      case 'h': to.start(); break;
      case '/': to.search(); break;
      case 'n': to.step(1); break;
      case 'p': to.step(-1); break;
      case '[': to.along(-1); break;
      case ']': to.along(1); break;
      case 'g': to.goTo(); break;
      case 'b': to.bookmark(); break;
      case 'e': to.events(); break;
      case 'c': to.compare(); break;
      case '?': showHelp(); break;
      case 'Escape':
        closePopup();
        if (starting) { to.views(); break; }
        axis.select(null);
        session.detail.emit(null);
        break;
      default: return;
    }
    e.preventDefault();
  });
}
