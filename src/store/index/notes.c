/* SPDX-License-Identifier: MIT */
/* Notes: findings about an experiment, for users. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/order.h"
#include "base/text.h"
#include "graph/graph.h"
#include "index/experiment.h"
#include "kernel/kernel.h"

const char *index_note_advice(int kind)
{
    static const char *const advice[] = {
        [INDEX_NOTE_LEFT_OUT] = "Repair it or copy it again from where it was recorded; everything else is shown",
        [INDEX_NOTE_TWICE] = "Nothing; to see copies or pieces apart give them names: a=DIR b=COPY",
        [INDEX_NOTE_INPUT] = "Copy the trace again from where it was recorded; what could be read of it is shown",
        [INDEX_NOTE_ODD] = "Nothing; all events are shown",
        [INDEX_NOTE_STORE] = "Nothing; if it happens again, check the disk that holds the stores",
        [INDEX_NOTE_CALLS] =
            ("Record entries and exits of all functions and all of malloc's events from the program's start; "
             "what was recorded is shown"),
        [INDEX_NOTE_LOST] =
            "Record fewer events, or with more or larger sub-buffers; what follows a loss may be unknown for a while",
        [INDEX_NOTE_CLOCK] =
            ("Record net_dev_queue and net_if_receive_skb on hosts that exchange packets; do not compare its times "
             "with others'"),
        [INDEX_NOTE_REFERENCE] = "Nothing; or name a host of these traces with --reference",
    };
    return advice[kind];
}

/* The length of the name of a file that the text begins with, as "FILE: …"; 0: it begins with none. */
static size_t file_in(const char *text)
{
    char path[4096];
    const char *end = strchr(text, '/') ? strstr(text, ": ") : NULL;
    size_t n = end ? (size_t)(end - text) : 0;
    if (!n || n >= sizeof path)
        return 0;
    memcpy(path, text, n);
    path[n] = '\0';
    return access(path, F_OK) ? 0 : n;
}

void index_experiment_note(struct experiment *x, int kind, const char *host, const char *text, uint64_t count)
{
    size_t n = file_in(text);
    pthread_mutex_lock(&x->lock);
    struct index_note note = {.kind = (uint8_t)kind, .host = arena_strdup(&x->arena, host), .count = count};
    note.text = arena_printf(&x->arena, "%s: %s", host, text);
    note.what = note.text + strlen(host) + 2;
    if (n) {
        note.file = arena_strndup(&x->arena, text, n);
        note.what += n + 2;
    }
    vec_push(&x->notes, note);
    pthread_mutex_unlock(&x->lock);
}

size_t index_experiment_notes(const struct experiment *x, const struct index_note **out)
{
    *out = x->notes.v;
    return x->notes.n;
}

bool index_experiment_partial(const struct experiment *x)
{
    for (size_t i = 0; i < x->notes.n; i++)
        if (x->notes.v[i].kind == INDEX_NOTE_LEFT_OUT || x->notes.v[i].kind == INDEX_NOTE_INPUT)
            return true;
    return false;
}

static int by_kind(const void *a, const void *b)
{
    const struct index_note *p = a, *q = b;
    int order = strcmp(p->host, q->host);
    return p->kind != q->kind ? p->kind - q->kind : order ? order : strcmp(p->text, q->text);
}

void index_experiment_sort_notes(struct experiment *x)
{
    if (x->notes.n)
        qsort(x->notes.v, x->notes.n, sizeof *x->notes.v, by_kind);
}

/* ---- losses ---- */

static int by_number(const void *a, const void *b)
{
    return order_of(*(const int32_t *)a, *(const int32_t *)b);
}

static void note_loss(struct experiment *x, const struct index_trace *t, const char *what, uint64_t count)
{
    char text[8192];
    if (!count)
        return;
    snprintf(text, sizeof text, "%s: %llu %s%s lost while it was recorded", ctf_trace_path(t->trace),
        (unsigned long long)count, what, count == 1 ? " was" : "s were");
    index_experiment_note(x, INDEX_NOTE_LOST, x->hosts.v[t->host].name, text, count);
}

/* CPUs that only events name; what the files show is among the trace's problems. */
static void note_absent(struct experiment *x, const struct index_trace *t)
{
    const struct index_host *h = &x->hosts.v[t->host];
    const struct graph_loss *l;
    size_t n = t->is_kernel && h->graph ? graph_losses(h->graph, &l) : 0;
    VEC(int32_t) cpus = {0};
    for (size_t i = 0; i < n; i++)
        if (l[i].absent == GRAPH_ABSENT_BY_TARGET && !kernel_missing_is_told(t->trace, l[i].cpu))
            vec_push(&cpus, (int32_t)l[i].cpu);
    if (cpus.n) {
        struct text words = {.fd = -1};
        qsort(cpus.v, cpus.n, sizeof *cpus.v, by_number);
        kernel_missing_words(&words, t->trace, cpus.v, cpus.n);
        index_experiment_note(x, INDEX_NOTE_INPUT, h->name, text_cstr(&words), 1);
        text_fini(&words);
    }
    vec_free(&cpus);
}

static void note_stacks(struct experiment *x, const struct index_trace *t)
{
    const struct index_host *h = &x->hosts.v[t->host];
    uint64_t cut = 0, left_out = 0;
    char text[256];
    if (t->is_kernel && h->graph)
        graph_stack_totals(h->graph, &cut, &left_out);
    snprintf(text, sizeof text,
        "call stacks without their outer frames, of which only %d were recorded, or are kept: "
        "%llu",
        KERNEL_MOST_FRAMES, (unsigned long long)cut);
    if (cut)
        index_experiment_note(x, INDEX_NOTE_ODD, h->name, text, cut);
    snprintf(text, sizeof text,
        "events whose call stacks are not kept, because there are too many different ones: "
        "%llu",
        (unsigned long long)left_out);
    if (left_out)
        index_experiment_note(x, INDEX_NOTE_ODD, h->name, text, left_out);
}

void index_experiment_note_losses(struct experiment *x)
{
    for (size_t i = 0; i < x->traces.n; i++) {
        uint64_t events = 0, packets = 0;
        for (size_t k = 0; k < ctf_trace_streams(x->traces.v[i].trace); k++) {
            struct ctf_stream_info s;
            ctf_trace_stream(x->traces.v[i].trace, k, &s);
            events += s.lost_events;
            packets += s.lost_packets;
        }
        note_loss(x, &x->traces.v[i], "event", events);
        note_loss(x, &x->traces.v[i], "packet", packets);
        note_absent(x, &x->traces.v[i]);
        note_stacks(x, &x->traces.v[i]);
    }
}

/* ---- user space ---- */

static void note_calls(struct experiment *x, const struct index_trace *t, uint64_t count, const char *what)
{
    char text[8192];
    if (!count)
        return;
    snprintf(text, sizeof text, "%s: %s: %llu", ctf_trace_path(t->trace), what, (unsigned long long)count);
    index_experiment_note(x, INDEX_NOTE_CALLS, x->hosts.v[t->host].name, text, 1);
}

/* Processes that hold memory at the recording's end. */
static uint64_t holding_memory(const struct stack_store *s)
{
    uint64_t n = 0;
    int64_t end = stack_totals(s)->end, sum = 0, bytes;
    for (size_t i = 0, threads = stack_threads(s); i < threads; i++) {
        struct stack_thread t, next;
        stack_thread(s, i, &t);
        if (t.has_memory) {
            stack_memory(s, i, &end, 1, &bytes);
            sum = __builtin_add_overflow(sum, bytes, &sum) ? INT64_MAX : sum;
        }
        if (i + 1 < threads && (stack_thread(s, i + 1, &next), next.process == t.process))
            continue;
        n += sum > 0;
        sum = 0;
    }
    return n;
}

void index_experiment_note_calls(struct experiment *x)
{
    char deep[128];
    snprintf(deep, sizeof deep, "calls deeper than %d levels, which are neither shown nor in the figures of functions",
        STACK_MOST_LEVELS);
    for (size_t i = 0; i < x->traces.n; i++) {
        const struct index_trace *t = &x->traces.v[i];
        if (!t->stacks)
            continue;
        const struct stack_totals *s = stack_totals(t->stacks);
        note_calls(x, t, s->too_deep, deep);
        note_calls(x, t, s->strange_exits, "exits of functions whose entry was not recorded, or was lost");
        note_calls(x, t, s->missing_exits,
            "calls without a recorded exit (longjmp, exceptions, lost events), which end with the call around them; "
            "calls after such a one may be shown one level too deep until then");
        note_calls(x, t, s->strange_frees,
            "frees of memory whose allocation was not recorded, which the memory held does not count");
        if (!x->hosts.v[t->host].graph)
            note_calls(x, t, holding_memory(t->stacks),
                "processes that held memory to the recording's end, or were killed before, which only a kernel trace "
                "of the host shows");
    }
}

/* ---- clocks ---- */

static void forget_clocks(struct experiment *x)
{
    size_t n = 0;
    for (size_t i = 0; i < x->notes.n; i++)
        if (x->notes.v[i].kind != INDEX_NOTE_CLOCK)
            x->notes.v[n++] = x->notes.v[i];
    x->notes.n = n;
}

static void note_conflicts(struct experiment *x)
{
    const struct clock_conflict *c;
    enum { MOST_TOLD = 20 };
    size_t n = clock_net_conflicts(x->clocks, &c);
    for (size_t i = 0; i < n && i < MOST_TOLD; i++) {
        struct text t = {.fd = -1};
        clock_conflict_words(x->clocks, &c[i], &t);
        index_experiment_note(x, INDEX_NOTE_CLOCK, x->hosts.v[c[i].b].name, text_cstr(&t), 1);
        text_fini(&t);
    }
    if (n > MOST_TOLD)
        index_experiment_note(x, INDEX_NOTE_CLOCK, x->hosts.v[c[MOST_TOLD].b].name,
            "its messages contradict what is trusted, and those of others do, too", n - MOST_TOLD);
}

void index_experiment_note_clocks(struct experiment *x, const char *failed)
{
    char text[2048];
    forget_clocks(x);
    for (size_t i = 0; i < x->hosts.n && x->hosts.n > 1; i++) {
        const struct clock_map *m = failed ? NULL : clock_net_map(x->clocks, i);
        if (m && m->n)
            continue;
        if (failed)
            snprintf(text, sizeof text, "not on the clock of the others: %s", failed);
        else if (m->predecessor >= 0 || m->category == CLOCK_REFERENCE)
            snprintf(text, sizeof text,
                "not on the clock of the others: packets tie it to %s, but none that tie both to the others were "
                "recorded",
                clock_net_name(x->clocks, m->predecessor >= 0 ? (size_t)m->predecessor : i));
        else
            snprintf(text, sizeof text, "not on the clock of the others: no packets that tie it to them were recorded");
        index_experiment_note(x, INDEX_NOTE_CLOCK, x->hosts.v[i].clock_name, text, 1);
    }
    if (!failed)
        note_conflicts(x);
}

void index_experiment_note_reference(struct experiment *x, const char *wanted, const char *used)
{
    char text[2048];
    bool is_there = false;
    if (!strcmp(wanted, used))
        return;
    for (size_t i = 0; i < x->hosts.n; i++)
        is_there |= !strcmp(x->hosts.v[i].clock_name, wanted);
    snprintf(text, sizeof text, "times are by the clock of %s: %s", used,
        is_there ? "no message relates that of the reference that was named to another host"
                 : "the reference that was named is not among these hosts");
    index_experiment_note(x, INDEX_NOTE_REFERENCE, wanted, text, 1);
}
