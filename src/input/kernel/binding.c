/* SPDX-License-Identifier: MIT */
/* Names and fields of a trace's event classes, bound once. One table has the variants of all tracers. */
#include "kernel/binding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kernel/spaces.h"

/* Fields in the order of kernel_fields; "a|b" are alternatives, the first existing one counts. */
struct spec {
    /* LTTng's from 2.7 on; other tracers' names have their own lines. Perf's subsystem ("sched:") is removed before the
     * look-up. */
    const char *name;
    uint8_t kind;
    const char *fields[KERNEL_FIELDS];
    const char *texts[2];
};

#define TID "tid|pid"
#define WAKE_FIELDS \
    {TID, "target_cpu", "prio"}, \
    { \
        "comm" \
    }
#define PACKET_FIELDS \
    {"skbaddr", "len"}, \
    { \
        "name" \
    }
#define SOCKET_FIELDS \
    {"sk", "seq", "ack_seq", "flags"}, \
    { \
        NULL \
    }

static const struct spec specs[] = {
    {"sched_switch", KERNEL_SWITCH, {"prev_tid|prev_pid", "prev_state", "next_tid|next_pid", "prev_prio", "next_prio"},
        {"prev_comm", "next_comm"}},
    {"sched_waking", KERNEL_WAKE, WAKE_FIELDS},
    {"sched_wakeup", KERNEL_WAKEUP, WAKE_FIELDS},
    {"sched_wakeup_new", KERNEL_WAKE_NEW, WAKE_FIELDS},
    /* perf and ftrace call the children's tids pids and have no process */
    {"sched_process_fork", KERNEL_FORK,
        {"parent_tid|parent_pid", "child_tid|child_pid", "child_pid", "child_ns_inum", "parent_ns_inum"},
        {"child_comm", "vtids"}},
    {"sched_process_exec", KERNEL_EXEC, {TID, "old_tid|old_pid"}, {"filename"}},
    {"sched_process_exit", KERNEL_EXIT, {TID}, {"comm"}},
    {"sched_process_free", KERNEL_FREE, {TID}, {"comm"}},
    {"sched_migrate_task", KERNEL_MIGRATE, {TID, "orig_cpu", "dest_cpu"}, {"comm"}},
    {"irq_handler_entry", KERNEL_IRQ_ENTRY, {"irq"}, {"name"}},
    {"irq_handler_exit", KERNEL_IRQ_EXIT, {"irq", "ret"}, {NULL}},
    {"irq_softirq_raise", KERNEL_SOFTIRQ_RAISE, {"vec"}, {NULL}},
    {"irq_softirq_entry", KERNEL_SOFTIRQ_ENTRY, {"vec"}, {NULL}},
    {"irq_softirq_exit", KERNEL_SOFTIRQ_EXIT, {"vec"}, {NULL}},
    {"softirq_raise", KERNEL_SOFTIRQ_RAISE, {"vec"}, {NULL}},
    {"softirq_entry", KERNEL_SOFTIRQ_ENTRY, {"vec"}, {NULL}},
    {"softirq_exit", KERNEL_SOFTIRQ_EXIT, {"vec"}, {NULL}},
    {"timer_hrtimer_expire_entry", KERNEL_HRTIMER_ENTRY, {"hrtimer", "function"}, {NULL}},
    {"timer_hrtimer_expire_exit", KERNEL_HRTIMER_EXIT, {"hrtimer"}, {NULL}},
    {"hrtimer_expire_entry", KERNEL_HRTIMER_ENTRY, {"hrtimer", "function"}, {NULL}},
    {"hrtimer_expire_exit", KERNEL_HRTIMER_EXIT, {"hrtimer"}, {NULL}},
    {"ipi_entry", KERNEL_IPI_ENTRY, {NULL}, {"reason"}},
    {"ipi_exit", KERNEL_IPI_EXIT, {NULL}, {"reason"}},
    /* probes defined by hand by users of Trace Compass */
    {"do_IRQ_entry", KERNEL_IRQ_ENTRY, {NULL}, {NULL}},
    {"do_IRQ_return", KERNEL_IRQ_EXIT, {NULL}, {NULL}},
    {"netif_receive_skb_internal_entry", KERNEL_NET_ENTRY, {NULL}, {NULL}},
    {"netif_receive_skb_internal_return", KERNEL_NET_EXIT, {NULL}, {NULL}},
    {"net_dev_queue", KERNEL_PACKET_SEND, PACKET_FIELDS},
    {"net_if_receive_skb", KERNEL_PACKET_RECEIVE, PACKET_FIELDS},
    {"netif_receive_skb", KERNEL_PACKET_RECEIVE, PACKET_FIELDS},
    {"inet_sock_local_out", KERNEL_PACKET_SEND, SOCKET_FIELDS},
    {"inet_sock_local_in", KERNEL_PACKET_RECEIVE, SOCKET_FIELDS},
    {"block_rq_insert", KERNEL_BLOCK_INSERT, {"dev", "sector", "nr_sector", "rwbs"}, {"rwbs"}},
    {"block_rq_issue", KERNEL_BLOCK_ISSUE, {"dev", "sector", "nr_sector", "rwbs"}, {"rwbs"}},
    {"block_rq_requeue", KERNEL_BLOCK_REQUEUE, {"dev", "sector", "nr_sector", "rwbs"}, {"rwbs"}},
    {"block_rq_complete", KERNEL_BLOCK_COMPLETE, {"dev", "sector", "nr_sector", "rwbs", "error|errors"}, {"rwbs"}},
    {"workqueue_queue_work", KERNEL_WORK_QUEUE, {"work", "function"}, {NULL}},
    {"workqueue_execute_start", KERNEL_WORK_START, {"work", "function"}, {NULL}},
    {"workqueue_execute_end", KERNEL_WORK_END, {"work", "function"}, {NULL}},
    {"kvm_x86_entry", KERNEL_KVM_ENTRY, {"vcpu_id"}, {NULL}},
    {"kvm_x86_exit", KERNEL_KVM_EXIT, {"vcpu_id", "exit_reason", "isa"}, {NULL}},
    {"kvm_entry", KERNEL_KVM_ENTRY, {"vcpu_id"}, {NULL}},
    {"kvm_exit", KERNEL_KVM_EXIT, {"vcpu_id", "exit_reason|exit_code", "isa"}, {NULL}},
    {"kmem_mm_page_alloc", KERNEL_PAGE_ALLOC, {"order", "page|pfn"}, {NULL}},
    {"kmem_mm_page_free", KERNEL_PAGE_FREE, {"order"}, {NULL}},
    {"mm_page_alloc", KERNEL_PAGE_ALLOC, {"order", "page|pfn"}, {NULL}},
    {"power_cpu_frequency", KERNEL_FREQUENCY, {"state|frequency", "cpu_id"}, {NULL}},
    {"cpu_frequency", KERNEL_FREQUENCY, {"state|frequency", "cpu_id"}, {NULL}},
    {"mm_page_free", KERNEL_PAGE_FREE, {"order"}, {NULL}},
    {"lttng_statedump_process_state", KERNEL_STATEDUMP_THREAD, {TID, "pid", "ppid", "status", "vtid", "ns_inum"},
        {"name"}},
    {"lttng_statedump_process_pid_ns", KERNEL_STATEDUMP_NS, {TID, "vtid", "ns_level", "ns_inum"}, {NULL}},
    {"lttng_statedump_process_net_ns", KERNEL_STATEDUMP_SPACE, {TID, "ns_inum"}, {NULL}},
    {"lttng_statedump_process_uts_ns", KERNEL_STATEDUMP_SPACE, {TID, "ns_inum"}, {NULL}},
    {"lttng_statedump_process_cgroup_ns", KERNEL_STATEDUMP_SPACE, {TID, "ns_inum"}, {NULL}},
    {"lttng_statedump_block_device", KERNEL_STATEDUMP_DISK, {"dev"}, {"diskname"}},
    {"lttng_statedump_network_interface", KERNEL_STATEDUMP_NETIF, {NULL}, {"name"}},
    {"lttng_statedump_interrupt", KERNEL_STATEDUMP_IRQ, {"irq"}, {"action", "name"}},
    {"lttng_statedump_file_descriptor", KERNEL_STATEDUMP_FD, {TID, "fd", "flags", "file_table_address"}, {"filename"}},
    {"lttng_logger", KERNEL_SPAN_MARK, {NULL}, {"msg"}},
    {"lttng_statedump_end", KERNEL_STATEDUMP_END, {NULL}, {NULL}},
};
static const struct spec syscall_entry = {"", KERNEL_SYSCALL_ENTRY, {NULL}, {NULL}};
static const struct spec unknown_syscall_entry = {"", KERNEL_SYSCALL_ENTRY, {"id"}, {NULL}};
static const struct spec futex_entry = {"", KERNEL_SYSCALL_ENTRY, {NULL, "uaddr", "op"}, {NULL}};
static const struct spec syscall_exit = {"", KERNEL_SYSCALL_EXIT, {"ret"}, {NULL}};
static const struct spec ipi_entry = {"", KERNEL_IPI_ENTRY, {"vector"}, {NULL}};
static const struct spec ipi_exit = {"", KERNEL_IPI_EXIT, {"vector"}, {NULL}};
static const struct spec net_entry = {"", KERNEL_NET_ENTRY, {NULL}, {NULL}};
static const struct spec net_exit = {"", KERNEL_NET_EXIT, {NULL}, {NULL}};

static bool starts(const char *s, const char *prefix, const char **rest)
{
    size_t n = strlen(prefix);
    if (strncmp(s, prefix, n))
        return false;
    *rest = s + n;
    return true;
}

static bool ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n > m && !strcmp(s + n - m, suffix);
}

static bool is_vector(const char *name, size_t n)
{
    static const char *const vectors[] = {"local_timer", "spurious_apic", "error_apic", "x86_platform_ipi", "irq_work",
        "reschedule", "call_function", "call_function_single", "threshold_apic", "deferred_error_apic", "thermal_apic"};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if (strlen(vectors[i]) == n && !memcmp(vectors[i], name, n))
            return true;
    return false;
}

/* The kernel's own name of an event, as ftrace records it, with its subsystem, where that is needed to tell it from
 * LTTng's names; else NULL. */
static const char *ftrace_name(struct arena *a, const struct ctf_event_class *c)
{
    const char *name = c->name, *last = strrchr(name, '_'), *rest;
    bool bracket = last && (!strcmp(last, "_entry") || !strcmp(last, "_exit"));
    if (!strcmp(name, "sys_enter") || !strcmp(name, "sys_exit"))
        return arena_printf(a, "raw_syscalls:%s", name);
    if (starts(name, "sys_enter_", &rest) || starts(name, "sys_exit_", &rest))
        return arena_printf(a, "syscalls:%s", name);
    if (bracket && is_vector(name, (size_t)(last - name)))
        return arena_printf(a, "irq_vectors:%s", name);
    if (bracket && (starts(name, "napi_", &rest) || starts(name, "netif_", &rest)))
        return arena_printf(a, "net:%s", name);
    return NULL;
}

/* Does the class have the fields that ftrace gives to all events? */
static bool is_of_ftrace(const struct ctf_event_class *c)
{
    struct ctf_access a;
    return ctf_access_find(c, CTF_STREAM_EVENT_CONTEXT, "common_pid", &a) && a.mode;
}

/* Strips the subsystem from perf's "subsystem:event". */
static const char *event_name(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon && colon[1] ? colon + 1 : name;
}

static const struct spec *named_entry(const char *call)
{
    return !strcmp(call, "unknown") ? &unknown_syscall_entry : !strcmp(call, "futex") ? &futex_entry : &syscall_entry;
}

/* Finds a system call; *call: its name, or NULL if the event has only its number. */
static const struct spec *find_syscall(const char *full, const char *name, const char **call)
{
    starts(name, "compat_", &name);
    if (starts(name, "syscall_entry_", call))
        return named_entry(*call);
    if (starts(name, "syscall_exit_", call))
        return &syscall_exit;
    *call = NULL;
    if (!strcmp(name, "exit_syscall") || !strcmp(full, "raw_syscalls:sys_exit"))
        return &syscall_exit;
    if (!strcmp(full, "raw_syscalls:sys_enter"))
        return &unknown_syscall_entry;
    if (starts(full, "syscalls:sys_enter_", call))
        return named_entry(*call);
    if (starts(full, "syscalls:sys_exit_", call))
        return &syscall_exit;
    if (starts(name, "sys_", call))
        return named_entry(*call);
    return NULL;
}

/* Finds x86_irq_vectors_reschedule_entry (LTTng), irq_vectors:reschedule_entry (perf). */
static const struct spec *find_vector(struct arena *a, const char *full, const char **vector)
{
    const char *rest;
    if (!starts(full, "x86_irq_vectors_", &rest) && !starts(full, "irq_vectors:", &rest))
        return NULL;
    bool entry = ends(rest, "_entry");
    if (!entry && !ends(rest, "_exit"))
        return NULL;
    *vector = arena_strndup(a, rest, strlen(rest) - strlen(entry ? "_entry" : "_exit"));
    return entry ? &ipi_entry : &ipi_exit;
}

/* Finds the receive path's brackets: net_napi_gro_receive_entry, net_if_receive_skb_exit (perf: net:napi_…,
 * net:netif_…). */
static const struct spec *find_net(const char *full)
{
    const char *rest;
    if (!starts(full, "net_", &rest) && !starts(full, "net:", &rest))
        return NULL;
    return ends(rest, "_entry") ? &net_entry : ends(rest, "_exit") ? &net_exit : NULL;
}

static const struct spec *find_spec(struct arena *a, const char *full, const char **detail)
{
    *detail = NULL;
    const char *name = event_name(full);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        if (!strcmp(specs[i].name, name))
            return &specs[i];
    const struct spec *s = find_syscall(full, name, detail);
    if (!s)
        s = find_vector(a, full, detail);
    return s ? s : find_net(full);
}

/* ---- fields ---- */

/* Offset of a payload field in bytes if everything before it has a fixed size; else -1. */
static int32_t fixed_offset(const struct ctf_event_class *c, const char *name, const struct ctf_type **type)
{
    const struct ctf_type *payload = c->scope[CTF_PAYLOAD];
    uint64_t bits = 0;
    for (uint32_t i = 0; payload && i < payload->n; i++) {
        const struct ctf_field *f = &payload->u.fields[i];
        uint64_t align = f->type->align_bits ? f->type->align_bits : 1;
        bits = (bits + align - 1) & ~(align - 1);
        if (!strcmp(f->name, name) || (f->name[0] == '_' && !strcmp(f->name + 1, name))) {
            *type = f->type;
            return payload->align_bits >= 8 && !(bits & 7) && bits < (UINT32_C(1) << 20) ? (int32_t)(bits >> 3) : -1;
        }
        if (f->type->size_bits < 0)
            return -1;
        bits += (uint64_t)f->type->size_bits;
    }
    return -1;
}

static bool find_access(const struct ctf_event_class *c, const char *alternatives, struct ctf_access *out)
{
    char name[64];
    for (const char *s = alternatives; s;) {
        const char *bar = strchr(s, '|');
        size_t n = bar ? (size_t)(bar - s) : strlen(s);
        snprintf(name, sizeof name, "%.*s", (int)n, s);
        if (ctf_access_find(c, CTF_PAYLOAD, name, out) && out->mode &&
            (out->type->kind == CTF_INT || out->type->kind == CTF_ENUM))
            return true;
        s = bar ? bar + 1 : NULL;
    }
    return false;
}

static bool bind_field(
    struct kernel_plan *p, struct kernel_cold *cold, const struct ctf_event_class *c, int i, const char *names)
{
    struct ctf_access *a = &cold->access[i];
    if (!find_access(c, names, a)) {
        a->mode = 0;
        return true;
    }
    p->present |= (uint8_t)(1u << i);
    if (a->mode != 1)
        return false;
    unsigned bits = a->bytes * 8u;
    p->field[i] = (struct kernel_field){.offset = a->offset_bytes,
        .shift = (uint8_t)(64 - bits),
        .mask = a->is_signed || bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1};
    return true;
}

static void bind_text(struct kernel_text *t, const struct ctf_event_class *c, const char *name)
{
    const struct ctf_type *type = NULL;
    t->offset = -1;
    if (!name || !ctf_access_find(c, CTF_PAYLOAD, name, &t->access))
        return;
    int32_t offset = fixed_offset(c, name, &type);
    if (offset < 0 || !type)
        return;
    if (type->kind == CTF_STRING)
        t->offset = offset;
    else if (type->kind == CTF_ARRAY && type->u.list.element->kind == CTF_INT && type->u.list.element->size_bits == 8 &&
        type->n && type->n <= 4096) {
        t->offset = offset;
        t->array_bytes = (uint16_t)type->n;
    }
}

void kernel_fields_slow(const struct ctf_event *ev, const struct kernel_plan *p, int64_t values[KERNEL_FIELDS])
{
    for (int i = 0; i < KERNEL_FIELDS; i++)
        values[i] = p->cold && i < p->n && p->cold->access[i].mode ? ctf_read_int(ev, &p->cold->access[i]) : 0;
}

bool kernel_text_present(const struct kernel_plan *p, int i)
{
    return p->cold->text[i].access.mode != 0;
}

const char *kernel_text(const struct ctf_event *ev, const struct kernel_plan *p, int i, size_t *n)
{
    const struct kernel_text *t = &p->cold->text[i];
    *n = 0;
    if (t->offset >= 0) {
        const char *s = (const char *)ev->data + (ev->payload_bits >> 3) + t->offset;
        *n = t->array_bytes ? strnlen(s, t->array_bytes) : strlen(s);
        return s;
    }
    if (!t->access.mode)
        return "";
    const char *s = ctf_read_string(ev, &t->access, n);
    return s ? s : "";
}

static void on_number(void *arg, const struct ctf_value *v)
{
    struct kernel_list *l = arg;
    if (!l->inside || v->name)
        return;
    if (l->n < 2)
        l->first[l->n] = v->v.i;
    l->last = v->v.i;
    l->n++;
}

static void on_list(void *arg, const struct ctf_value *v)
{
    struct kernel_list *l = arg;
    l->inside = false;
    for (int i = 0; i < 2 && v->name && l->names[i]; i++)
        l->inside |= !strcmp(v->name, l->names[i]);
}

static void on_list_end(void *arg, const struct ctf_value *v)
{
    ((struct kernel_list *)arg)->inside = false;
}

void kernel_list_read(const struct ctf_event *ev, struct kernel_list *l)
{
    ctf_visit(
        ev, CTF_PAYLOAD, &(struct ctf_visitor){.leaf = on_number, .begin = on_list, .end = on_list_end, .arg = l});
}

/* ---- the trace ---- */

static bool find_context(
    const struct ctf_event_class *c, enum ctf_scope scope, const char *name, struct ctf_access *out)
{
    bool found = ctf_access_find(c, scope, name, out) && out->mode && out->type->kind == CTF_INT;
    out->mode = found ? out->mode : 0;
    return found;
}

static void bind_spaces(struct kernel_binding *b, struct kernel_plan *p, const struct ctf_event_class *c)
{
    static const char *const names[KERNEL_SPACE_KINDS] = {"pid_ns", "net_ns", "uts_ns", "cgroup_ns"};
    struct kernel_space_contexts found = {0};
    bool any = false;
    for (int kind = 0; kind < KERNEL_SPACE_KINDS; kind++)
        any |= find_context(c, CTF_STREAM_EVENT_CONTEXT, names[kind], &found.access[kind]) ||
            find_context(c, CTF_EVENT_CONTEXT, names[kind], &found.access[kind]);
    if (!any)
        return;
    struct kernel_space_contexts *kept = arena_new(&b->arena, struct kernel_space_contexts, 1);
    *kept = found;
    p->spaces = kept;
}

static void bind_class(struct kernel_binding *b, const struct ctf_event_class *c)
{
    struct kernel_plan *p = &b->plans[c->index];
    if (c->item != CTF_EVENT) {
        p->kind = KERNEL_LOST;
        return;
    }
    kernel_counters_bind(b, p, c);
    bind_spaces(b, p, c);
    p->stacks = kernel_stacks_bind(c);
    bool of_ftrace = is_of_ftrace(c);
    const char *detail, *full = of_ftrace ? ftrace_name(&b->arena, c) : NULL;
    const struct spec *s = find_spec(&b->arena, full ? full : c->name, &detail);
    if (!s)
        return;
    const struct kernel_io_call *io = s->kind == KERNEL_SYSCALL_ENTRY || s->kind == KERNEL_SYSCALL_EXIT
        ? kernel_io_call(detail)
        : NULL;
    struct spec of_io;
    p->io = io ? io->io : KERNEL_IO_NONE;
    if (io && s->kind == KERNEL_SYSCALL_ENTRY) {
        of_io = (struct spec){"", s->kind, {NULL, io->fields[0], io->fields[1], io->fields[2]}, {io->path}};
        s = &of_io;
    }
    struct spec of_spaces = {"", s->kind, {NULL, NULL, NULL}, {NULL}};
    p->space_call = s->kind == KERNEL_SYSCALL_ENTRY ? kernel_space_call(detail, of_spaces.fields + 1, of_spaces.texts)
                                                    : KERNEL_SPACE_NO_CALL;
    if (p->space_call)
        s = &of_spaces;
    p->futex = s == &futex_entry;
    for (p->n = KERNEL_FIELDS; p->n && !s->fields[p->n - 1]; p->n--)
        ;
    struct kernel_cold *cold = arena_alloc(&b->arena, sizeof *cold + p->n * sizeof *cold->access);
    p->kind = s->kind;
    p->fast = true;
    for (int i = 0; i < p->n; i++)
        p->fast &= bind_field(p, cold, c, i, s->fields[i]);
    for (int i = 0; i < 2; i++)
        bind_text(&cold->text[i], c, s->texts[i]);
    if (s->kind == KERNEL_FORK &&
        (of_ftrace || strchr(c->name, ':'))) { /* field 2 is the thread here, not its process */
        p->present &= (uint8_t)~4u;
        p->field[2].mask = 0;
        cold->access[2].mode = 0;
    }
    if (s->kind == KERNEL_STATEDUMP_THREAD) {
        ctf_access_find(c, CTF_PAYLOAD, "file_table_address", &cold->files);
        ctf_access_find(c, CTF_PAYLOAD, "ns_level", &cold->level);
    }
    if (s->kind == KERNEL_STATEDUMP_SPACE)
        p->space = (uint8_t)(strstr(s->name, "net_ns") ? KERNEL_SPACE_NET
                : strstr(s->name, "uts_ns")            ? KERNEL_SPACE_UTS
                                                       : KERNEL_SPACE_CGROUP);
    cold->name = detail;
    cold->has_cpu = ctf_access_find(c, CTF_PAYLOAD, "perf_cpu", &cold->cpu) && cold->cpu.mode;
    const char *name = event_name(c->name);
    if (s->kind == KERNEL_PACKET_SEND || s->kind == KERNEL_PACKET_RECEIVE) {
        p->socket = !strncmp(name, "inet_sock", 9);
        p->net_header_bytes = s->kind == KERNEL_PACKET_SEND && !p->socket ? 14 : 0;
        cold->header = p->socket ? NULL : kernel_header_bind(&b->arena, c);
    }
    p->timer = (s->kind == KERNEL_IPI_ENTRY || s->kind == KERNEL_IPI_EXIT) && detail && strstr(detail, "timer");
    p->cold = cold;
    p->declared = p->kind;
    b->declared[s->kind] = true;
    b->makes_spaces |= p->space_call == KERNEL_SPACE_CLONE;
    b->unshares |= p->space_call == KERNEL_SPACE_UNSHARE;
    b->tells_spaces = b->makes_spaces && b->unshares;
}

/* Chooses the event for wakes: sched_waking fires in the waker's context; without it, sched_wakeup is used (never
 * both). Brackets without their closing event would never end, so they are not bound. */
static void choose_events(struct kernel_binding *b)
{
    bool by_wakeup = b->declared[KERNEL_WAKEUP] && !b->declared[KERNEL_WAKE], net = b->declared[KERNEL_NET_EXIT];
    for (size_t i = 0; i < b->n; i++) {
        struct kernel_plan *p = &b->plans[i];
        if (p->declared == KERNEL_WAKEUP) {
            p->kind = by_wakeup ? KERNEL_WAKE : KERNEL_WAKEUP;
            p->by_wakeup = by_wakeup;
        }
        if (p->declared == KERNEL_NET_ENTRY)
            p->kind = net ? KERNEL_NET_ENTRY : KERNEL_OTHER;
    }
    memcpy(b->has, b->declared, sizeof b->has);
    b->has[KERNEL_WAKE] |= by_wakeup;
    b->has[KERNEL_WAKEUP] &= !by_wakeup;
    b->has[KERNEL_NET_ENTRY] &= net;
}

static bool has_switch(const struct ctf_trace *t)
{
    const struct ctf_event_class *const *classes;
    size_t n = ctf_trace_classes(t, &classes);
    for (size_t i = 0; i < n; i++)
        if (classes[i]->item == CTF_EVENT && !strcmp(event_name(classes[i]->name), "sched_switch"))
            return true;
    return false;
}

bool kernel_is_kernel_trace(const struct ctf_trace *t)
{
    const char *domain = ctf_trace_env_string(t, "domain");
    if (domain && strcmp(domain, "kernel"))
        return false;
    return domain || has_switch(t);
}

const char *kernel_host_name(const struct ctf_trace *t)
{
    const char *name = ctf_trace_env_string(t, "hostname");
    return name ? name : ctf_trace_env_string(t, "host");
}

/* Returns whether a version such as "3.10.92-…" is before 4.14. */
static bool is_before_4_14(const struct ctf_trace *t)
{
    const char *release = ctf_trace_env_string(t, "kernel_release");
    if (!release)
        release = ctf_trace_env_string(t, "release");
    int major, minor;
    return release && sscanf(release, "%d.%d", &major, &minor) == 2 && (major < 4 || (major == 4 && minor < 14));
}

bool kernel_binding_extend(struct kernel_binding *b)
{
    const struct ctf_event_class *const *classes;
    size_t n = ctf_trace_classes(b->trace, &classes), known = b->n;
    if (n <= known)
        return false;
    b->plans = mem_resize(b->plans, n * sizeof *b->plans);
    memset(b->plans + known, 0, (n - known) * sizeof *b->plans);
    b->n = n;
    for (size_t i = known; i < n; i++)
        bind_class(b, classes[i]);
    choose_events(b);
    return true;
}

int kernel_bind(const struct ctf_trace *t, struct kernel_binding **out, struct err *e)
{
    struct kernel_binding *b = mem_zalloc(sizeof *b);
    *out = NULL;
    b->trace = t;
    b->old_states = is_before_4_14(t);
    kernel_binding_extend(b);
    if (!b->has[KERNEL_SWITCH] && !b->has[KERNEL_PACKET_SEND] && !b->has[KERNEL_PACKET_RECEIVE]) {
        kernel_binding_free(b);
        return err_set(e, ERR_UNSUPPORTED,
            "%s: has neither sched_switch nor network events: record them, for clocks and paths both (with lttng: "
            "sched_*, irq_*, timer_hrtimer_expire_*, net_*)",
            ctf_trace_path(t));
    }
    *out = b;
    return 0;
}

bool kernel_has(const struct kernel_binding *b, int kind)
{
    return kind >= 0 && kind < KERNEL_KINDS && b->has[kind];
}

void kernel_binding_free(struct kernel_binding *b)
{
    if (!b)
        return;
    free(b->plans);
    arena_fini(&b->arena);
    free(b);
}
