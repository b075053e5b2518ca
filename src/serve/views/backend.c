/* SPDX-License-Identifier: MIT */
/* Backend of the protocol: opening, the list of outputs, the operations of each. */
#include "views/views.h"

#include "base/err.h"
#include "base/mem.h"
#include "ctf/ctf.h"
#include "views/list.h"
#include "views/open.h"
#include "views/spanset.h"
#include "views/tips.h"

enum { MAX_MEMBERS = 1000 };

/* ---- list of outputs ---- */

static int by_name(const void *a, const void *b)
{
    const struct tsp_output *p = a, *q = b;
    int order = strcasecmp(p->name, q->name);
    return order ? order : strcmp(p->id, q->id);
}

static bool is_listed(const struct view *v, struct views *x)
{
    bool has_data = !v->host_has_data;
    for (size_t i = 0; i < x->n_hosts && !has_data; i++)
        has_data = v->host_has_data(v, &x->hosts[i]);
    return has_data && (!v->has_data || v->has_data(v, x));
}

static void find_outputs(struct views *x)
{
    VEC(struct tsp_output) all = {0};
    for (size_t i = 0; view_list[i]; i++) {
        const struct view *v = view_list[i];
        const struct tsp_provider *p = &v->provider;
        if (!is_listed(v, x))
            continue;
        if (!v->members)
            vec_push(&all, ((struct tsp_output){.provider = p, .id = p->id, .name = p->name}));
        size_t n = v->members ? v->members(x) : 0;
        for (size_t k = 0; k < n && k < MAX_MEMBERS; k++) {
            struct tsp_output o = {.provider = p};
            v->member(x, k, &o.member, &o.name);
            o.id = arena_printf(&x->arena, "%s:%s", p->id, o.member);
            o.name = arena_printf(&x->arena, "%s - %s", o.name, p->name);
            vec_push(&all, o);
        }
    }
    if (all.n)
        qsort(all.v, all.n, sizeof *all.v, by_name);
    struct tsp_output *outputs = arena_new(&x->arena, struct tsp_output, all.n + 1);
    for (size_t i = 0; i < all.n; i++)
        outputs[i] = all.v[i];
    x->data.outputs = outputs;
    x->data.n_outputs = all.n;
    vec_free(&all);
}

/* ---- opening ---- */

static int look(void *arg, const char *path, struct err *e)
{
    const struct views_options *o = arg;
    return o->spans && !strcmp(path, o->spans) ? spanset_look(o->spans_url ? o->spans_url : path, e)
                                               : ctf_discover_any(path, e);
}

static struct views *views_of(struct tsp_data *d)
{
    return (struct views *)d;
}

static const struct view *view_of(const struct tsp_provider *p)
{
    return (const struct view *)p;
}

static void close_views(struct tsp_data *d)
{
    struct views *x = views_of(d);
    for (size_t i = VIEWS_MAX; i-- > 0;)
        if (x->caches[i]) /* implies a close(), which may use the caches of earlier views */
            view_list[i]->close(x, x->caches[i]);
    path_local_free(x->paths);
    spanset_close(x->spans);
    if (x->x)
        index_experiment_close(x->x);
    pthread_mutex_destroy(&x->lock);
    arena_fini(&x->arena);
    free(x);
}

static void give_memory(struct tsp_data *d)
{
    struct views *x = views_of(d);
    if (pthread_mutex_trylock(&x->lock)) /* a cache is being made, and its thread ends soon */
        return;
    for (size_t i = 0; i < VIEWS_MAX; i++)
        if (x->caches[i] && view_list[i]->give_memory)
            view_list[i]->give_memory(x, x->caches[i]);
    pthread_mutex_unlock(&x->lock);
}

static int open_views(void *arg, const struct tsp_open_request *request, struct tsp_data **out, struct err *e)
{
    struct views *x = mem_zalloc(sizeof *x);
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&x->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    x->request = request;
    int rc = views_open_traces(x, arg, e);
    if (!rc) {
        find_outputs(x);
        rc = x->x ? index_experiment_intact(x->x, e) : 0;
    }
    if (rc)
        close_views(&x->data);
    else
        *out = &x->data;
    return rc;
}

static void populate(struct tsp_data *d, bool (*stop)(void *), void *stop_arg)
{
    struct views *x = views_of(d);
    for (size_t i = 0; i < x->n_hosts && !stop(stop_arg); i++)
        if (x->hosts[i].states)
            state_populate(x->hosts[i].states);
}

/* Joins some small chunks of stores. Failures are harmless and not reported: the next opening of the traces meets and
 * reports them. */
static enum tsp_tidied tidy(struct tsp_data *d, bool (*stop)(void *), void *stop_arg)
{
    struct index_options index = {.stop = stop, .stop_arg = stop_arg};
    struct err e = {0};
    bool joined;
    if (!views_of(d)->x)
        return TSP_TIDY_ALL;
    if (index_experiment_join(views_of(d)->x, &index, &joined, &e) == ERR_CANCELLED)
        return TSP_TIDY_STOPPED;
    return joined ? TSP_TIDY_SOME : TSP_TIDY_ALL;
}

static int intact(struct tsp_data *d, struct err *e)
{
    const struct experiment *x = views_of(d)->x;
    return x ? index_experiment_intact(x, e) : 0;
}

/* ---- threads, shared by all views ---- */

/* Id of the host's row, with the host in the unused bits. */
static uint64_t thread_key(struct tsp_data *d, int64_t number)
{
    size_t host;
    int32_t row;
    if (!view_thread_of(views_of(d), number, &host, &row))
        return 0;
    const struct index_host *h = views_of(d)->hosts[host].index;
    return index_row_id(h, row) << 12 | h->key >> 52;
}

static size_t find_threads(struct tsp_data *d, uint64_t id, int64_t *numbers, size_t max)
{
    const struct views *x = views_of(d);
    size_t n = 0;
    for (size_t i = 0; i < x->n_hosts && n < max; i++) {
        int32_t row = index_row_find(x->hosts[i].index, id);
        if (row >= 0)
            numbers[n++] = x->hosts[i].first_thread + row;
    }
    return n;
}

/* ---- operations ---- */

static view_operation table_columns, table_lines, no_arrows;

static view_operation *operation_of(const struct view *v, enum tsp_operation operation)
{
    switch (operation) {
    case TSP_TREE: return v->tree;
    case TSP_STATES: return v->states;
    case TSP_ARROWS: return v->arrows || !v->states ? v->arrows : no_arrows;
    case TSP_TOOLTIP: return v->tooltip;
    case TSP_XY: return strcmp(v->provider.type, "TREE_GENERIC_XY") ? v->xy : NULL;
    case TSP_GENERIC_XY: return strcmp(v->provider.type, "TREE_GENERIC_XY") ? NULL : v->xy;
    case TSP_COLUMNS: return v->table_columns ? table_columns : v->columns;
    case TSP_LINES: return v->table ? table_lines : v->lines;
    case TSP_STYLE: return v->style;
    case TSP_ANNOTATION_CATEGORIES: return v->annotation_categories;
    default: return v->annotations;
    }
}

static void no_arrows(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_arrows(answer);
    tsp_end_arrows(answer);
}

static void table_columns(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_table_columns(answer, self->table_columns, self->n_table_columns);
}

static void table_lines(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct tsp_table t = {.columns = self->table_columns, .n_columns = self->n_table_columns, .arg = x};
    self->table(self, x, q, &t);
    tsp_table_lines(answer, &t, q);
}

bool view_has_rows(const struct view *self, struct views *x)
{
    struct tsp_table t = {.arg = x};
    self->table(self, x, NULL, &t);
    return t.rows > 0;
}

static bool offers(const struct tsp_provider *p, enum tsp_operation operation)
{
    return operation_of(view_of(p), operation) != NULL;
}

/* Returns whether the view has elements of the requested kind. A query about an arrow gets no tooltip of a state. */
static bool has_element(const struct view *v, const struct tsp_query *q)
{
    return !q->element || !strcmp(q->element, "state") || (view_tooltip_of_arrow(q) && v->arrows);
}

static void answer_question(const struct view *v, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    view_operation *operation = operation_of(v, q->operation);
    if (q->operation == TSP_TOOLTIP && !has_element(v, q)) {
        tsp_begin_tooltip(answer);
        tsp_end_tooltip(answer);
        return;
    }
    bool tree = q->operation == TSP_TREE && v->headers;
    bool chart = (q->operation == TSP_XY || q->operation == TSP_GENERIC_XY) && v->title;
    if (tree)
        tsp_begin_tree(answer, v->headers, v->n_headers, v->expand ? v->expand : -1);
    if (chart)
        tsp_begin_xy(answer, v->title);
    if (operation)
        operation(v, x, q, answer);
    if (tree)
        tsp_end_tree(answer);
    if (chart)
        tsp_end_xy(answer);
}

static void ask(struct tsp_data *d, const struct tsp_provider *p, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct views *x = views_of(d);
    answer_question(view_of(p), x, q, answer);
    if (q->operation == TSP_ANNOTATION_CATEGORIES)
        view_lost_events_category(x, answer);
    else if (q->operation == TSP_ANNOTATIONS)
        view_lost_events(x, q, answer);
}

static int64_t by_reference(struct tsp_data *d, const char *host, int64_t t)
{
    const struct views *x = views_of(d);
    for (size_t i = 0; i < x->n_hosts; i++)
        if (!strcmp(x->hosts[i].index->clock_name, host))
            return view_to_reference(&x->hosts[i], t);
    return t;
}

static const char *check(
    struct tsp_data *d, const struct tsp_provider *p, json_t *parameters, struct arena *a, enum tsp_code *code)
{
    *code = TSP_CODE_INVALID_QUERY;
    return view_of(p)->check ? view_of(p)->check(views_of(d), parameters, a, code) : NULL;
}

static void forget(struct tsp_data *d, const struct tsp_provider *p, json_t *parameters)
{
    if (view_of(p)->forget)
        view_of(p)->forget(views_of(d), parameters);
}

struct tsp_backend views_backend(const struct views_options *o)
{
    static const struct tsp_provider *derivable[VIEWS_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; view_list[i]; i++)
        if (view_list[i]->provider.derivation)
            derivable[n++] = &view_list[i]->provider;
    return (struct tsp_backend){.arg = (void *)(uintptr_t)o,
        .providers = derivable,
        .look = look,
        .open = open_views,
        .populate = populate,
        .tidy = tidy,
        .intact = intact,
        .close = close_views,
        .give_memory = give_memory,
        .offers = offers,
        .ask = ask,
        .key = thread_key,
        .find = find_threads,
        .by_reference = by_reference,
        .check = check,
        .forget = forget};
}
