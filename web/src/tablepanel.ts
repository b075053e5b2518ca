// SPDX-License-Identifier: MIT
// A table among the views.
import { button } from './dom';
import { icon } from './icons';
import { Panel, type PanelHost } from './panel';
import type { Session } from './session';
import type { Output } from './tsp';
import { VirtualTable } from './vtable';

export class TablePanel extends Panel {
  private readonly table: VirtualTable;
  constructor(session: Session, output: Output, host: PanelHost, height?: number) {
    super(session, output, host, height);
    this.table = new VirtualTable(session, output, false);
    this.main.append(this.table.root);
    const columns = button(icon('columns'), 'Columns', () => this.table.chooseColumns(columns), { class: 'plain' });
    this.tools.append(this.table.bar, columns);
  }
  override reload(): void { void this.table.reload(); }
  retry(): void { this.table.retry(); }
  override resize(): void { /* it watches its size itself */ }
  override draw(): void { this.table?.draw(); }
  override dispose(): void { this.table.dispose(); super.dispose(); }
}
