/* SPDX-License-Identifier: MIT */
/* Private to views: list of views, each a `const struct view view_NAME`. A new view needs its file, a line here and a
 * line in meson.build. A view that uses another's cache stands behind it: views are closed from the end. */
#ifndef WEFT_VIEWS_LIST_H
#define WEFT_VIEWS_LIST_H

#include "views/view.h"

#define VIEWS(X) \
    X(thread_status) \
    X(resources) \
    X(cpu_usage) \
    X(disk_io) \
    X(io_per_process) \
    X(kvm_exits) \
    X(disk_requests) \
    X(file_access) \
    X(io_access) \
    X(memory_usage) \
    X(counters) \
    X(state_system) \
    X(priority_statistics) \
    X(priority_name_statistics) \
    X(network_io) \
    X(latency_table) \
    X(latency_scatter) \
    X(latency_statistics) \
    X(latency_density) \
    X(wait_queue) \
    X(exec_queue) \
    X(futexes) \
    X(futex_scenarios) \
    X(irq_scenarios) \
    X(flows) \
    X(stacks) \
    X(flame_chart) \
    X(spans_graph) \
    X(function_statistics) \
    X(function_density) \
    X(call_table) \
    X(call_scatter) \
    X(call_statistics) \
    X(call_density) \
    X(user_memory) \
    X(flame_graph) \
    X(clock_table) \
    X(clock_maps) \
    X(clock_error) \
    X(machines) \
    X(summary) \
    X(summary_usage) \
    X(critical_path) \
    X(served_requests) \
    X(served_groups) \
    X(served_paths) \
    X(served_durations) \
    X(critical_compare) \
    X(inout) \
    X(event_statistics) \
    X(selection_threads) \
    X(selection_containers) \
    X(selection_cpus) \
    X(selection_devices) \
    X(events) \
    X(trace_notes) \
    X(histogram)

#define VIEW_DECLARED(name) extern const struct view view_##name;
VIEWS(VIEW_DECLARED)
#undef VIEW_DECLARED

#endif
