/* The answer in one sentence: at most three parts of the path, largest first, in words of people. Its rules are told in
 * docs/concepts.md. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/text.h"
#include "graph/graph.h"
#include "show/parts.h"
#include "show/show.h"
#include "show/words.h"

enum {
    MOST_CELLS = 140,
    MOST_GROUPS = 3,
    LEAST_PERCENT = 5,     /* of the path: what is less is of the rest */
    MAJORITY_PERCENT = 85, /* of a group: that is what the group did */
    HOST_CELLS = 24,
    NAME_CELLS = 16,
    DETAIL_CELLS = 24
};
/* How much is said of a group, when a sentence is too long. */
enum brevity { FULL, NO_EXAMPLES, NAMES_ONLY };

/* What threads of one name did in one state on one machine. */
struct kind {
    struct show_part part; /* the largest */
    int64_t duration;
    size_t threads;
};
/* By what the path is divided. */
enum division { BY_MACHINE, BY_THREAD, BY_WORK };
struct group {
    int64_t duration;
    const struct kind *top;
    size_t hosts;
    const char *last_host;
};

struct story {
    const struct path *path;
    int64_t length;
    enum division division;
    VEC(struct kind) kinds;
    VEC(struct group) groups;
};

static bool is_network(const struct show_part *p)
{
    return p->state == GRAPH_NETWORK && p->reason < 0 && (!p->from || strcmp(p->from, p->host) != 0);
}

static uint64_t hash_text(const char *s, uint64_t seed)
{
    return map_mix(seed ^ (s ? map_hash(s, strlen(s)) : 1));
}

static int by_duration(const void *pa, const void *pb)
{
    const struct kind *a = pa, *b = pb;
    return order_of(b->duration, a->duration) ?: strcmp(a->part.host, b->part.host)
        ?: strcmp(a->part.comm ? a->part.comm : "", b->part.comm ? b->part.comm : "")
        ?: order_of(a->part.state, b->part.state);
}

static void find_kinds(struct story *s, const struct show_parts *parts)
{
    struct map index = {0};
    for (size_t i = 0; i < parts->n; i++) {
        const struct show_part *p = &parts->v[i];
        uint64_t key = (uint64_t)p->state << 16 | (uint64_t)p->assumed << 8 | (uint8_t)p->reason;
        bool fresh;
        key = hash_text(p->from, hash_text(p->host, hash_text(p->tid < 0 ? NULL : p->comm, map_mix(key))));
        uint64_t *at = map_put(&index, key, &fresh);
        if (fresh) {
            *at = s->kinds.n;
            vec_push(&s->kinds, ((struct kind){.part = *p}));
        }
        s->kinds.v[*at].duration += p->duration;
        s->kinds.v[*at].threads++;
    }
    if (s->kinds.n)
        qsort(s->kinds.v, s->kinds.n, sizeof *s->kinds.v, by_duration);
    map_fini(&index);
}

static uint64_t group_of(const struct story *s, const struct show_part *p)
{
    if (p->reason >= 0)
        return hash_text(p->peer, 1000 + (uint64_t)p->reason);
    if (is_network(p))
        return 2000;
    if (s->division == BY_WORK)
        return map_mix(3000 + p->state);
    if (s->division == BY_THREAD)
        return hash_text(p->tid < 0 ? NULL : p->comm, 4000 + (p->state == GRAPH_NETWORK));
    return hash_text(p->host, 5000);
}

static int larger_first(const void *pa, const void *pb)
{
    const struct group *a = pa, *b = pb;
    return order_of(b->duration, a->duration) ?: by_duration(a->top, b->top);
}

static void divide(struct story *s, enum division division)
{
    struct map index = {0};
    s->division = division;
    s->groups.n = 0;
    for (size_t i = 0; i < s->kinds.n; i++) { /* the largest first, which then is the group's top */
        const struct kind *k = &s->kinds.v[i];
        bool fresh;
        uint64_t *at = map_put(&index, group_of(s, &k->part), &fresh);
        if (fresh) {
            *at = s->groups.n;
            vec_push(&s->groups, ((struct group){.top = k}));
        }
        struct group *g = &s->groups.v[*at];
        g->duration += k->duration;
        g->hosts += !g->last_host || strcmp(g->last_host, k->part.host) != 0;
        g->last_host = k->part.host;
    }
    if (s->groups.n)
        qsort(s->groups.v, s->groups.n, sizeof *s->groups.v, larger_first);
    map_fini(&index);
}

static bool is_on_one_machine(const struct story *s)
{
    for (size_t i = 0; i < s->kinds.n; i++)
        if (is_network(&s->kinds.v[i].part) || strcmp(s->kinds.v[i].part.host, s->kinds.v[0].part.host) != 0)
            return false;
    return true;
}

/* Machines; where there is one, its threads; where many have a little each, what was done there. */
static void choose_division(struct story *s)
{
    size_t machines = 0;
    int64_t three = 0, all = 0;
    divide(s, BY_MACHINE);
    for (size_t i = 0; i < s->groups.n; i++) {
        const struct group *g = &s->groups.v[i];
        if (g->top->part.reason >= 0 || is_network(&g->top->part))
            continue;
        all += g->duration;
        three += machines++ < MOST_GROUPS ? g->duration : 0;
    }
    if (is_on_one_machine(s))
        divide(s, BY_THREAD);
    else if (machines > MOST_GROUPS && three < all / 2)
        divide(s, BY_WORK);
}

/* ---- words ---- */

static void put_name(struct text *t, const char *name, size_t cells)
{
    show_text(t, name && *name ? name : "?", cells);
}

static void with_detail(struct text *t, const char *words, const char *link, const char *detail)
{
    text_puts(t, words);
    if (detail) {
        text_puts(t, link);
        show_text(t, detail, DETAIL_CELLS);
    }
}

/* What was done, after who did it: "computed", "waited for disk vda". */
static void put_verb(struct text *t, const struct show_part *p)
{
    const char *d = p->detail;
    switch (p->state) {
    case GRAPH_RUNNING: text_puts(t, p->assumed ? "polled" : p->tid < 0 ? "worked in interrupts" : "computed"); break;
    case GRAPH_PREEMPTED:
        if (d && !strncmp(d, "by ", 3))
            with_detail(t, "waited for the CPU", " behind ", d + 3);
        else
            with_detail(t, "waited for the CPU", ", ", d);
        break;
    case GRAPH_INTERRUPTED: with_detail(t, "was interrupted", " by ", d); break;
    case GRAPH_BLOCKED: with_detail(t, "waited", " in ", d); break;
    case GRAPH_TIMER: text_puts(t, "slept by itself"); break;
    case GRAPH_NETWORK: text_puts(t, "waited for messages of its own"); break;
    case GRAPH_BLOCK_DEVICE: with_detail(t, "waited for disk", " ", d); break;
    case GRAPH_USER_INPUT: text_puts(t, "waited for a user"); break;
    case GRAPH_IPI: text_puts(t, "waited for another CPU"); break;
    case GRAPH_HYPERVISOR: with_detail(t, "was in the hypervisor", ": ", d); break;
    case GRAPH_STOLEN: with_detail(t, "had its CPU stolen", " ", d); break;
    default: text_puts(t, "did what is not known");
    }
}

/* One thread alone did most of it. */
static bool is_one(const struct kind *k)
{
    return k->part.duration > k->duration / 2;
}

static void put_who(struct text *t, const struct kind *k)
{
    if (k->part.tid < 0) {
        text_puts(t, k->part.state == GRAPH_NETWORK ? "messages" : "interrupts");
        return;
    }
    if (is_one(k))
        text_printf(t, "%d ", k->part.tid);
    else
        text_printf(t, "%zu × ", k->threads);
    put_name(t, k->part.comm, NAME_CELLS);
}

static void put_time(struct text *t, const struct kind *k)
{
    text_duration(t, is_one(k) ? k->part.duration : k->duration);
}

static void put_reason(struct text *t, const struct show_part *p)
{
    static const struct {
        const char *words, *link;
    } reasons[] = {[PATH_NO_WAKER] = {"nobody was seen to end the wait", ": "},
        [PATH_UNTRACED_PEER] = {"waited for a machine without trace", ": "},
        [PATH_OFFLINE_NODE] = {"not known: a node is away", ": "},
        [PATH_LOST_EVENTS] = {"not known: events were lost", " on "},
        [PATH_NO_CLOCK] = {"not known: clocks are not related", ": "},
        [PATH_PENDING] = {"still being asked for", ": "}};
    with_detail(t, reasons[p->reason].words, reasons[p->reason].link, p->peer);
}

static bool is_most(const struct group *g)
{
    return g->top->duration >= g->duration / 100 * MAJORITY_PERCENT;
}

static void put_network(struct text *t, const struct group *g, enum brevity brief)
{
    text_puts(t, "network");
    if (is_most(g) && brief < NAMES_ONLY && g->top->part.from) {
        text_puts(t, " from ");
        put_name(t, g->top->part.from, HOST_CELLS);
        text_puts(t, " to ");
        put_name(t, g->top->part.host, HOST_CELLS);
    }
}

static void put_subject(struct text *t, const struct story *s, const struct group *g)
{
    if (s->division == BY_MACHINE)
        put_name(t, g->top->part.host, HOST_CELLS);
    else
        put_who(t, g->top);
}

/* All of it, or nearly, is what the top did. */
static void put_whole(struct text *t, const struct story *s, const struct group *g, enum brevity brief)
{
    const struct show_part *p = &g->top->part;
    put_subject(t, s, g);
    text_putc(t, ' ');
    if (s->division == BY_THREAD && p->tid < 0)
        text_puts(t, "took");
    else
        put_verb(t, p);
    if (s->division == BY_MACHINE && brief == FULL) {
        text_puts(t, " (");
        if (p->tid >= 0) {
            put_who(t, g->top);
            text_puts(t, ", ");
        }
        put_time(t, g->top);
        text_putc(t, ')');
    } else if (s->division == BY_THREAD && brief < NAMES_ONLY) {
        text_putc(t, ' ');
        put_time(t, g->top);
    }
}

static void put_mixed(struct text *t, const struct story *s, const struct group *g, enum brevity brief)
{
    const struct show_part *p = &g->top->part;
    put_subject(t, s, g);
    if (brief == NO_EXAMPLES && g->top->duration > g->duration / 2) {
        text_puts(t, " mostly ");
        put_verb(t, p);
    }
    if (brief > FULL)
        return;
    text_puts(t, ", of which ");
    if (s->division == BY_MACHINE)
        put_who(t, g->top);
    else
        text_puts(t, "it");
    text_putc(t, ' ');
    if (p->tid < 0)
        text_puts(t, "took");
    else
        put_verb(t, p);
    text_putc(t, ' ');
    put_time(t, g->top);
}

static void put_work(struct text *t, const struct group *g, enum brevity brief)
{
    struct show_part p = g->top->part;
    p.detail = NULL;
    put_verb(t, &p);
    if (brief == NAMES_ONLY || g->hosts < 2)
        return;
    text_printf(t, " on %zu machines", g->hosts);
    if (brief == FULL) {
        text_puts(t, " (most on ");
        put_name(t, p.host, HOST_CELLS);
        text_puts(t, ", ");
        put_time(t, g->top);
        text_putc(t, ')');
    }
}

static void put_percent(struct text *t, int64_t part, int64_t whole)
{
    text_printf(t, "%.0f %% ", 100 * (double)part / (double)whole);
}

static void put_group(struct text *t, const struct story *s, const struct group *g, enum brevity brief)
{
    put_percent(t, g->duration, s->length);
    if (g->top->part.reason >= 0)
        put_reason(t, &g->top->part);
    else if (is_network(&g->top->part))
        put_network(t, g, brief);
    else if (s->division == BY_WORK)
        put_work(t, g, brief);
    else
        (is_most(g) ? put_whole : put_mixed)(t, s, g, brief);
}

static void put_story(struct text *t, const struct story *s, size_t told, const uint8_t brief[])
{
    int64_t rest = s->length;
    text_duration(t, s->length);
    for (size_t i = 0; i < told; i++) {
        text_puts(t, i ? " · " : ": ");
        put_group(t, s, &s->groups.v[i], brief[i]);
        rest -= s->groups.v[i].duration;
    }
    if (rest >= s->length / 100) {
        text_puts(t, " · ");
        put_percent(t, rest, s->length);
        text_puts(t, "rest");
    }
}

/* As much as there is room for: the last of those of which most is said gives way first. */
static void tell(struct text *t, const struct story *s)
{
    uint8_t brief[MOST_GROUPS] = {FULL};
    size_t told = s->groups.n > 0;
    while (told < s->groups.n && told < MOST_GROUPS && s->groups.v[told].duration >= s->length / 100 * LEAST_PERCENT)
        told++;
    put_story(t, s, told, brief);
    for (enum brevity most = FULL; most < NAMES_ONLY; most++)
        for (size_t i = told; i-- && text_cells(t->v, t->n) > MOST_CELLS;) {
            brief[i] = (uint8_t)(most + 1);
            t->n = 0;
            put_story(t, s, told, brief);
        }
}

void show_sentence(const struct path *p, const struct path_source *source, struct text *out)
{
    struct story s = {.path = p, .length = p->end - p->begin};
    struct arena arena = {0};
    struct text t = {.fd = -1};
    if (s.length <= 0)
        return;
    struct show_parts parts = show_parts(p, source, &arena);
    find_kinds(&s, &parts);
    choose_division(&s);
    tell(&t, &s);
    text_put(out, t.v, t.n);
    text_fini(&t);
    vec_free(&s.kinds);
    vec_free(&s.groups);
    arena_fini(&arena);
}
