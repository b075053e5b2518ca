// SPDX-License-Identifier: MIT
// The outputs that the page itself has a use for, by their ids: names and descriptions are for people, and derived ones
// are named by people.
import type { Output } from './tsp';

const TC = 'org.eclipse.tracecompass.', LINUX = `${TC}internal.analysis.os.linux.core.`;
export const ID = {
  threads: `${LINUX}threadstatus.ThreadStatusDataProvider`,
  cpus: `${LINUX}threadstatus.ResourcesStatusDataProvider`,
  cpuUsage: `${TC}analysis.os.linux.core.cpuusage.CpuUsageDataProvider`,
  events: `${TC}internal.provisional.tmf.core.model.events.TmfEventTableDataProvider`,
  histogram: `${TC}internal.tmf.core.histogram.HistogramDataProvider`,
  criticalPath: `${TC}analysis.graph.core.dataprovider.CriticalPathDataProvider`,
  inAndOut: `${TC}incubator.inandout.core.analysis.inAndOutdataProviderFactory`,
  /** One for each kind of latency, told apart by what follows a colon. */
  latencies: `${TC}internal.analysis.timing.core.segmentstore.scatter.dataprovider`,
  densities: `${TC}internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider`,
  disks: `${TC}analysis.os.linux.core.inputoutput.DisksIODataProvider`,
  memory: `${TC}analysis.os.linux.core.kernelmemoryusage`,
  network: 'weft.network.io', machines: 'weft.machines', notes: 'weft.notes',
  clocks: 'weft.clocks', clockMaps: 'weft.clocks.maps', threadTimes: 'weft.selection.threads',
  requests: 'weft.requests', requestGroups: 'weft.requests.groups', requestDurations: 'weft.requests.durations',
  comparison: 'weft.critical-path-comparison',
} as const;
/** Shown at first, where the server has them. */
export const FIRST: string[] = [ID.threads, ID.cpus, ID.cpuUsage];

export const outputOf = (outputs: Output[], id: string): Output | null => outputs.find(o => o.id === id) ?? null;
/** Whether it is that output, or one of those that share the id up to a colon. */
export const isOf = (o: Output, id: string): boolean => o.id === id || o.id.startsWith(`${id}:`);

const RECORD: Record<string, string> = {
  [ID.disks]: 'Record the block_rq_* events.', [ID.network]: 'Record net_dev_queue and net_if_receive_skb.',
  [ID.memory]: 'Record kmem_mm_page_alloc and kmem_mm_page_free.', [ID.cpuUsage]: 'Record sched_switch.',
};
/** What to do about an output that has nothing to show. */
export const emptyHint = (o: Output): string => RECORD[o.id]
  ?? 'See the page on recording for the events that each view needs.';
