/* A solution as a store (docs/formats/clocks.md), and back. */
#include <stdlib.h>
#include <string.h>

#include "base/store.h"
#include "clock/net.h"

enum { CLOCKS_VERSION = 1 };
static const char clocks_kind[] = "clocks";

struct stored_options {
    double drift_prior_ppm, min_drift, max_drift;
    uint64_t loopback, dropped;
};
struct stored_host {
    uint64_t name; /* position in `names` */
    uint64_t reference, island, first_piece, pieces;
    int64_t predecessor, begin, end, growth_q62;
    int64_t category;
};
struct stored_pair {
    uint64_t a, b, messages_ab, messages_ba, hull_ab, hull_ba, outliers;
    double drift_min, drift_max, drift, offset_ns, offset_at_min_ns, offset_at_max_ns, error_ns;
    int32_t category, flags;
};
enum { STORED_SAME = 1, STORED_AGAINST_PRIOR = 2, STORED_USABLE = 4 };
struct stored_island {
    uint64_t reference, hosts;
};

_Static_assert(sizeof(struct stored_options) == 40 && sizeof(struct stored_host) == 80 &&
        sizeof(struct stored_pair) == 120 && sizeof(struct stored_island) == 16 && sizeof(struct clock_piece) == 56,
    "layouts of docs/formats/clocks.md");

static struct stored_pair stored_of_pair(const struct net_pair *p)
{
    const struct clock_pair *o = &p->out;
    return (struct stored_pair){o->a, o->b, o->messages_ab, o->messages_ba, o->hull_ab, o->hull_ba, p->outliers,
        o->drift_min, o->drift_max, o->drift, o->offset_ns, o->offset_at_min_ns, o->offset_at_max_ns, o->error_ns,
        o->category,
        (p->same ? STORED_SAME : 0) | (p->against_prior ? STORED_AGAINST_PRIOR : 0) | (p->usable ? STORED_USABLE : 0)};
}

int clock_net_save(const struct clock_net *net, const char *path, uint64_t key, struct err *e)
{
    struct stored_options options = {
        net->options.drift_prior_ppm, net->options.min_drift, net->options.max_drift, net->loopback, net->dropped};
    struct text names = {.fd = -1};
    VEC(struct clock_piece) pieces = {0};
    struct stored_host *hosts = mem_zalloc((net->hosts.n + 1) * sizeof *hosts);
    struct stored_pair *pairs = mem_zalloc((net->pairs.n + 1) * sizeof *pairs);
    struct stored_island *islands = mem_zalloc((net->islands.n + 1) * sizeof *islands);
    for (size_t i = 0; i < net->hosts.n; i++) {
        const struct net_host *h = &net->hosts.v[i];
        hosts[i] = (struct stored_host){names.n, h->map.reference, h->map.island, pieces.n, h->npieces,
            h->map.predecessor, h->begin, h->end, h->map.growth_q62, h->map.category};
        text_put(&names, h->name, strlen(h->name) + 1);
        for (size_t k = 0; k < h->npieces; k++)
            vec_push(&pieces, h->pieces[k]);
    }
    for (size_t i = 0; i < net->pairs.n; i++)
        pairs[i] = stored_of_pair(&net->pairs.v[i]);
    for (size_t i = 0; i < net->islands.n; i++)
        islands[i] = (struct stored_island){net->islands.v[i].reference, net->islands.v[i].hosts};
    struct store_writer *w = store_create(path, clocks_kind, CLOCKS_VERSION, key, 6);
    store_add(w, "options", &options, sizeof options, 1);
    store_add(w, "hosts", hosts, sizeof *hosts, net->hosts.n);
    store_add(w, "names", names.v, 1, names.n);
    store_add(w, "pieces", pieces.v, sizeof *pieces.v, pieces.n);
    store_add(w, "pairs", pairs, sizeof *pairs, net->pairs.n);
    store_add(w, "islands", islands, sizeof *islands, net->islands.n);
    int rc = store_commit(w, e);
    text_fini(&names);
    vec_free(&pieces);
    free(hosts);
    free(pairs);
    free(islands);
    return rc;
}

struct sections {
    const struct stored_options *options;
    const struct stored_host *hosts;
    const char *names;
    const struct clock_piece *pieces;
    const struct stored_pair *pairs;
    const struct stored_island *islands;
    size_t n_options, n_hosts, n_names, n_pieces, n_pairs, n_islands;
};

/* Conversion computes with these without looking again. */
static bool piece_sound(const struct clock_piece *p, const struct clock_piece *before)
{
    return p->begin <= p->end && p->slope_q62 >= -CLOCK_SLOPE_LIMIT && p->slope_q62 <= CLOCK_SLOPE_LIMIT &&
        p->t0 >= -3 * (CLOCK_TIME_LIMIT / 2) && p->t0 <= 3 * (CLOCK_TIME_LIMIT / 2) && p->error_begin >= 0 &&
        p->error_end >= 0 && (!before || before->end == p->begin);
}

static bool host_sound(const struct sections *s, const struct stored_host *h)
{
    if (h->name >= s->n_names || !memchr(s->names + h->name, '\0', s->n_names - h->name))
        return false;
    if (h->reference >= s->n_hosts || h->island >= s->n_islands || h->predecessor < -1 ||
        h->predecessor >= (int64_t)s->n_hosts || h->category < CLOCK_REFERENCE || h->category > CLOCK_ABSENT ||
        h->growth_q62 < 0 || h->growth_q62 > CLOCK_SLOPE_LIMIT)
        return false;
    if (h->first_piece > s->n_pieces || h->pieces > s->n_pieces - h->first_piece || !h->pieces)
        return false;
    for (size_t i = 0; i < h->pieces; i++)
        if (!piece_sound(&s->pieces[h->first_piece + i], i ? &s->pieces[h->first_piece + i - 1] : NULL))
            return false;
    return true;
}

static bool sound(const struct sections *s)
{
    if (s->n_options != 1 || (s->n_hosts && !s->n_islands))
        return false;
    for (size_t i = 0; i < s->n_hosts; i++)
        if (!host_sound(s, &s->hosts[i]))
            return false;
    for (size_t i = 0; i < s->n_islands; i++)
        if (s->islands[i].reference >= s->n_hosts)
            return false;
    for (size_t i = 0; i < s->n_pairs; i++) {
        const struct stored_pair *p = &s->pairs[i];
        if (p->a >= p->b || p->b >= s->n_hosts || p->category < 0 || p->category > CLOCK_ABSENT)
            return false;
        if (i && (p[-1].a > p->a || (p[-1].a == p->a && p[-1].b >= p->b)))
            return false;
    }
    return true;
}

static void load_host(struct clock_net *net, const struct sections *s, const struct stored_host *k)
{
    struct net_host h = {.name = arena_strdup(&net->arena, s->names + k->name),
        .begin = k->begin,
        .end = k->end,
        .has_span = true,
        .npieces = k->pieces};
    h.pieces = mem_alloc(k->pieces * sizeof *h.pieces);
    memcpy(h.pieces, s->pieces + k->first_piece, k->pieces * sizeof *h.pieces);
    h.map = (struct clock_map){.host = net->hosts.n,
        .reference = k->reference,
        .predecessor = k->predecessor,
        .category = (int)k->category,
        .island = k->island,
        .growth_q62 = k->growth_q62};
    if (k->island == 0) {
        h.map.pieces = h.pieces;
        h.map.n = h.npieces;
    }
    vec_push(&net->hosts, h);
}

static void load_pair(struct clock_net *net, const struct stored_pair *k)
{
    struct net_pair p = {.outliers = k->outliers,
        .same = k->flags & STORED_SAME,
        .against_prior = k->flags & STORED_AGAINST_PRIOR,
        .usable = k->flags & STORED_USABLE};
    p.out = (struct clock_pair){.a = k->a,
        .b = k->b,
        .category = k->category,
        .messages_ab = k->messages_ab,
        .messages_ba = k->messages_ba,
        .hull_ab = k->hull_ab,
        .hull_ba = k->hull_ba,
        .drift_min = k->drift_min,
        .drift_max = k->drift_max,
        .drift = k->drift,
        .offset_ns = k->offset_ns,
        .offset_at_min_ns = k->offset_at_min_ns,
        .offset_at_max_ns = k->offset_at_max_ns,
        .error_ns = k->error_ns};
    vec_push(&net->pairs, p);
    *map_put(&net->pair_of, (uint64_t)k->a << 32 | k->b, NULL) = net->pairs.n;
}

static struct clock_net *load(const struct sections *s)
{
    struct clock_options o = {.drift_prior_ppm = s->options->drift_prior_ppm,
        .min_drift = s->options->min_drift,
        .max_drift = s->options->max_drift};
    struct clock_net *net = clock_net_new(&o);
    net->loopback = s->options->loopback;
    net->dropped = s->options->dropped;
    for (size_t i = 0; i < s->n_hosts; i++)
        load_host(net, s, &s->hosts[i]);
    for (size_t i = 0; i < s->n_pairs; i++)
        load_pair(net, &s->pairs[i]);
    for (size_t i = 0; i < s->n_islands; i++)
        vec_push(&net->islands, ((struct net_island){s->islands[i].reference, s->islands[i].hosts}));
    net->published = mem_zalloc((net->pairs.n + 1) * sizeof *net->published);
    for (size_t i = 0; i < net->pairs.n; i++)
        net->published[i] = net->pairs.v[i].out;
    net->solved = true;
    return net;
}

int clock_net_load(const char *path, uint64_t key, struct clock_net **out, struct err *e)
{
    struct store *store;
    struct sections s = {0};
    int rc = store_open(path, clocks_kind, CLOCKS_VERSION, &key, &store, e);
    if (rc)
        return rc;
    s.options = store_section(store, "options", sizeof *s.options, &s.n_options);
    s.hosts = store_section(store, "hosts", sizeof *s.hosts, &s.n_hosts);
    s.names = store_section(store, "names", 1, &s.n_names);
    s.pieces = store_section(store, "pieces", sizeof *s.pieces, &s.n_pieces);
    s.pairs = store_section(store, "pairs", sizeof *s.pairs, &s.n_pairs);
    s.islands = store_section(store, "islands", sizeof *s.islands, &s.n_islands);
    if (sound(&s))
        *out = load(&s);
    else
        rc = err_set(e, ERR_FORMAT,
            "%s: the contents of this clocks store make no sense; remove it, the next run makes it anew", path);
    store_close(store);
    return rc;
}
