/* Private to views: the list of providers, each a `const struct tsp_provider` of that name. Who uses another's cache
 * stands behind it: they are closed from the end. */
#ifndef WEFT_VIEWS_PROVIDERS_H
#define WEFT_VIEWS_PROVIDERS_H

#include "tsp/provider.h"

#define TSP_PROVIDERS(X) \
    X(tsp_provider_thread_status) \
    X(tsp_provider_resources) \
    X(tsp_cpu_usage) \
    X(tsp_disk_io) \
    X(tsp_io_per_process) \
    X(tsp_kvm_exits) \
    X(tsp_disk_requests) \
    X(tsp_file_access) \
    X(tsp_io_access) \
    X(tsp_memory_usage) \
    X(tsp_counters) \
    X(tsp_state_system) \
    X(tsp_priority_statistics) \
    X(tsp_priority_name_statistics) \
    X(tsp_network_io) \
    X(tsp_latency_table) \
    X(tsp_latency_scatter) \
    X(tsp_latency_statistics) \
    X(tsp_latency_density) \
    X(tsp_wait_queue) \
    X(tsp_exec_queue) \
    X(tsp_futexes) \
    X(tsp_futex_scenarios) \
    X(tsp_irq_scenarios) \
    X(tsp_flows) \
    X(tsp_stack_places) \
    X(tsp_flame_chart) \
    X(tsp_function_statistics) \
    X(tsp_function_density) \
    X(tsp_call_table) \
    X(tsp_call_scatter) \
    X(tsp_call_statistics) \
    X(tsp_call_density) \
    X(tsp_user_memory) \
    X(tsp_flame_graph) \
    X(tsp_clock_table) \
    X(tsp_clock_error) \
    X(tsp_provider_machines) \
    X(tsp_provider_critical_path) \
    X(tsp_provider_inout) \
    X(tsp_event_statistics) \
    X(tsp_provider_events) \
    X(tsp_trace_notes) \
    X(tsp_provider_histogram)

#define PROVIDER_DECLARED(name) extern const struct tsp_provider name;
TSP_PROVIDERS(PROVIDER_DECLARED)
#undef PROVIDER_DECLARED

#endif
