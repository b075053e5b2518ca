// SPDX-License-Identifier: MIT
// Small pictures on buttons, drawn with the text's colour. Screen readers hear the button's name, not them.
const SHAPES = {
  close: 'M4 4l8 8M12 4l-8 8',
  open: 'M3.5 6l4.5 4.5L12.5 6',
  shut: 'M6 3.5l4.5 4.5L6 12.5',
  more: 'M3 8h.01M8 8h.01M13 8h.01',
  out: 'M3 8h10',
  in: 'M3 8h10M8 3v10',
  whole: 'M2.5 3v10M13.5 3v10M4.5 8h7M6.5 6l-2 2 2 2M9.5 6l2 2-2 2',
  arrows: 'M3 3l9 9M12 6.5V12H6.5',
  columns: 'M2.5 3.5h11v9h-11zM6.2 3.5v9M9.8 3.5v9',
  remove: 'M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9M6.8 7v4M9.2 7v4',
  follow: 'M2 8h8M7 5l3 3-3 3M13 3v10',
  tick: 'M3 8.5l3.5 3.5L13 4.5',
};
export type IconName = keyof typeof SHAPES;

export function icon(name: IconName): SVGSVGElement {
  const ns = 'http://www.w3.org/2000/svg', svg = document.createElementNS(ns, 'svg'),
    path = document.createElementNS(ns, 'path');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('class', `icon icon-${name}`);
  svg.setAttribute('aria-hidden', 'true');
  path.setAttribute('d', SHAPES[name]);
  svg.append(path);
  return svg;
}
/** Text and what stands after it. */
export function withIcon(text: string, name: IconName): HTMLElement {
  const span = document.createElement('span');
  span.className = 'with-icon';
  span.append(text, icon(name));
  return span;
}
