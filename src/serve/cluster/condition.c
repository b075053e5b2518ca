/* SPDX-License-Identifier: MIT */
#include "cluster/condition.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/wire.h"

enum { VERSION = 1, MOST_TEXT = 500 /* bytes */ };
#define SUFFIX ".state"

/* ---- encoding ---- */

void cluster_condition_put_text(struct text *out, const char *s)
{
    char cut[MOST_TEXT + 1];
    snprintf(cut, sizeof cut, "%s", s ? s : "");
    wire_put_string(out, cut);
}

const char *cluster_condition_take_text(struct wire_in *w, struct arena *a)
{
    size_t n;
    const char *s = wire_string(w, &n);
    char *text = arena_strndup(a, s, strnlen(s, n < MOST_TEXT ? n : MOST_TEXT));
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    return text;
}

void cluster_condition_write(const struct condition *c, struct text *out)
{
    size_t n = c->n_problems < MOST_PROBLEMS ? c->n_problems : MOST_PROBLEMS;
    text_putc(out, VERSION);
    wire_put_string(out, c->node);
    wire_put_string(out, c->instance);
    cluster_condition_put_text(out, c->release);
    wire_put_u(out, c->serial);
    wire_put_u(out, c->oldest);
    wire_put_u(out, c->newest);
    wire_put_u(out, (uint64_t)c->state);
    cluster_condition_put_text(out, c->text);
    wire_put_u(out, c->all_problems);
    wire_put_u(out, n);
    for (size_t i = 0; i < n; i++)
        cluster_condition_put_text(out, c->problems[i]);
}

int cluster_condition_read(struct arena *a, const void *bytes, size_t n, struct condition *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    uint8_t version;
    *out = (struct condition){0};
    wire_bytes(&w, &version, 1);
    out->node = cluster_condition_take_text(&w, a);
    out->instance = cluster_condition_take_text(&w, a);
    out->release = cluster_condition_take_text(&w, a);
    out->serial = wire_u(&w);
    out->oldest = (unsigned)wire_below(&w, 256);
    out->newest = (unsigned)wire_below(&w, 256);
    out->state = (int)wire_below(&w, CONDITION_FAILED + 1);
    out->text = cluster_condition_take_text(&w, a);
    out->all_problems = (size_t)wire_below(&w, SIZE_MAX / 2);
    out->n_problems = wire_count(&w, 1);
    if (out->n_problems > MOST_PROBLEMS)
        w.damaged = true;
    const char **problems = arena_new(a, const char *, MOST_PROBLEMS);
    for (size_t i = 0; i < out->n_problems && !w.damaged; i++)
        problems[i] = cluster_condition_take_text(&w, a);
    out->problems = problems;
    if (w.damaged || version != VERSION || out->oldest > out->newest || out->all_problems < out->n_problems)
        return err_set(e, ERR_FORMAT, "the condition of a node makes no sense");
    return 0;
}

/* ---- keys ---- */

int cluster_condition_key(const char *entry_key, char out[CLUSTER_SUBJECT], struct err *e)
{
    int n = snprintf(out, CLUSTER_SUBJECT, "%s" SUFFIX, entry_key);
    return n < CLUSTER_SUBJECT ? 0 : err_set(e, ERR_LIMIT, "the name of the node is too long: %.40s", entry_key);
}

size_t cluster_condition_key_is(const char *key)
{
    const char *dot = strchr(key, '.');
    return dot && !strcmp(dot, SUFFIX) ? (size_t)(dot - key) : 0;
}

/* ---- missing sources ---- */

static void add(struct missing_list *out, const char *node, enum cluster_missing_kind kind, const char *text)
{
    vec_push(out, ((struct cluster_missing){node, kind, text}));
}

/* Returns whether the entry has traces, or the node could report that it has none. */
static bool has_opened(const struct cluster_entry *c)
{
    return c && (c->n_hosts || c->serial);
}

/* Returns whether the condition is of the run that put the entry, or of a later one. A node of an older release, which
 * puts no condition, may have taken the name of a killed one. */
static bool is_current(const struct registration *s)
{
    const struct condition *c = s->condition;
    if (!c || !s->entry)
        return c;
    return strcmp(c->instance, s->entry->instance) ? s->condition_revision > s->entry_revision
                                                   : c->serial >= s->entry->serial;
}

/* The entry is put after the condition that it goes with. */
static bool awaits_first_entry(const struct registration *s, const struct condition *c)
{
    return !has_opened(s->entry) && c->state == CONDITION_OPEN;
}

/* A node that was started again is asked about the hosts that it had, and refuses while its traces are not open. */
static bool is_of_run_before(const struct registration *s, const struct condition *c)
{
    return s->entry && s->entry->n_hosts && strcmp(s->entry->instance, c->instance) != 0;
}

static void add_state(
    const struct registration *s, const struct condition *c, struct arena *a, struct missing_list *out)
{
    if (is_of_run_before(s, c))
        return;
    if (c->state == CONDITION_OPENING || awaits_first_entry(s, c))
        add(out, s->node, CLUSTER_MISSING_OPENING,
            arena_printf(a, "node %s has not opened its traces yet: they are being indexed", s->node));
    else if (c->state == CONDITION_FAILED && has_opened(s->entry) && !strcmp(c->instance, s->entry->instance))
        add(out, s->node, CLUSTER_MISSING_FAILED,
            arena_printf(a, "node %s could not open its traces again since they have changed: %s", s->node, c->text));
    else if (c->state == CONDITION_FAILED)
        add(out, s->node, CLUSTER_MISSING_FAILED,
            arena_printf(a, "node %s could not open its traces: %s", s->node, c->text));
}

static void add_problems(
    const struct registration *s, const struct condition *c, struct arena *a, struct missing_list *out)
{
    for (size_t i = 0; i < c->n_problems; i++)
        add(out, s->node, CLUSTER_MISSING_PART, arena_printf(a, "node %s: %s", s->node, c->problems[i]));
    if (c->all_problems > c->n_problems)
        add(out, s->node, CLUSTER_MISSING_PART,
            arena_printf(a, "node %s: %zu more problems with its traces", s->node, c->all_problems - c->n_problems));
}

static bool understands(const struct condition *c)
{
    return c->oldest <= CLUSTER_VERSION && c->newest >= CLUSTER_OLDEST;
}

void cluster_condition_missing(const struct registration *s, struct arena *a, struct missing_list *out)
{
    const struct condition *c = is_current(s) ? s->condition : NULL;
    if (s->refused) {
        add(out, s->node, s->other_version ? CLUSTER_MISSING_VERSION : CLUSTER_MISSING_ENTRY,
            arena_printf(a, "node %s: %s", s->node, s->refused));
        return;
    }
    if (c && !understands(c))
        add(out, s->node, CLUSTER_MISSING_VERSION,
            arena_printf(a,
                "node %s (weft %s) answers questions of versions %u to %u, this program asks those of %d to %d: "
                "update the older one",
                s->node, c->release, c->oldest, c->newest, CLUSTER_OLDEST, CLUSTER_VERSION));
    if (c && !s->entry && c->state == CONDITION_OPEN)
        add(out, s->node, CLUSTER_MISSING_ENTRY,
            arena_printf(a, "node %s: its entry is not in the registry any more", s->node));
    else if (c)
        add_state(s, c, a, out);
    else if (!has_opened(s->entry))
        add(out, s->node, CLUSTER_MISSING_OPENING,
            arena_printf(a, "node %s has not said yet which traces it has", s->node));
    if (c)
        add_problems(s, c, a, out);
}
