/* Operations that providers answer: finding the provider, the query, the envelope. */
#include "tsp/server.h"

static const char *const status_names[] = {"COMPLETED", "RUNNING", "FAILED", "CANCELLED"};
static const char *const status_words[] = {"Completed", "Running", "Failed", "Task cancelled"};

static tsp_operation *operation_of(const struct tsp_provider *p, int op)
{
    switch (op & OP_KIND) {
    case OP_TREE: return p->tree;
    case OP_STATES: return p->states;
    case OP_ARROWS: return p->arrows;
    case OP_TOOLTIP: return p->tooltip;
    case OP_XY: return !strcmp(p->type, "TREE_GENERIC_XY") == !!(op & OP_GENERIC) ? p->xy : NULL;
    case OP_COLUMNS: return p->columns;
    case OP_LINES: return p->lines;
    case OP_STYLE: return p->style;
    case OP_ANNOTATION_CATEGORIES: return p->annotation_categories;
    default: return p->annotations;
    }
}

/* Operations that every output answers, if only with nothing. */
static bool always_answered(int op)
{
    op &= OP_KIND;
    return op == OP_STYLE || op == OP_ANNOTATION_CATEGORIES || op == OP_ANNOTATIONS;
}

/* ---- annotations: the provider's and the traces' ---- */

static const char lost_events[] = "Lost Events";

static bool has_losses(const struct tsp_experiment *x)
{
    const struct graph_loss *losses;
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].index->graph && graph_losses(x->hosts[i].index->graph, &losses))
            return true;
    for (size_t i = 0; i < x->n_sources; i++)
        if (x->traces[i].stacks && stack_losses(x->traces[i].stacks))
            return true;
    return false;
}

static bool category_wanted(const struct tsp_query *q, const char *category)
{
    json_t *item;
    size_t i;
    json_array_foreach(q->marker_categories, i,
        item) if (json_is_string(item) && !strcmp(json_string_value(item), category)) return true;
    return !q->marker_categories;
}

static void write_loss(
    const struct tsp_query *q, const struct tsp_host *h, int64_t from, int64_t to, uint64_t count, struct json *j)
{
    int64_t begin = tsp_to_reference(h, from), end = tsp_to_reference(h, to);
    char label[128];
    snprintf(label, sizeof label, "%llu lost events on %.80s", (unsigned long long)count, h->id);
    if (count && begin <= q->end && end >= q->begin)
        tsp_write_annotation(j, begin, end - begin, -1, label, "#ff0000", 0.2);
}

static void write_losses(const struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    json_key(j, lost_events);
    json_begin_array(j);
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct graph_loss *losses;
        size_t n = x->hosts[i].index->graph ? graph_losses(x->hosts[i].index->graph, &losses) : 0;
        for (size_t k = 0; k < n; k++)
            write_loss(q, &x->hosts[i], losses[k].begin, losses[k].end, losses[k].count, j);
    }
    for (size_t i = 0; i < x->n_sources; i++) {
        const struct stack_store *s = x->traces[i].stacks;
        for (size_t k = 0; s && k < stack_losses(s); k++) {
            struct stack_loss l;
            stack_loss(s, k, &l);
            write_loss(q, &x->hosts[x->traces[i].host], l.begin, l.end, l.count, j);
        }
    }
    json_end_array(j);
}

static struct tsp_result write_categories(
    struct call *c, const struct tsp_provider *p, const struct tsp_query *q, struct json *j)
{
    struct tsp_result r = {TSP_COMPLETED, NULL};
    const char *set = http_query(c->q, "markerSetId");
    json_begin_object(j);
    json_key(j, "annotationCategories");
    json_begin_array(j);
    if (p->annotation_categories)
        r = p->annotation_categories(&c->open->pub, q, j);
    if (has_losses(&c->open->pub))
        json_write_string(j, lost_events);
    if (set)
        markers_write_category(c->s, set, j);
    json_end_array(j);
    json_end_object(j);
    return r;
}

static struct tsp_result write_annotations(
    struct call *c, const struct tsp_provider *p, const struct tsp_query *q, struct json *j)
{
    struct tsp_result r = {TSP_COMPLETED, NULL};
    json_begin_object(j);
    json_key(j, "annotations");
    json_begin_object(j);
    if (p->annotations)
        r = p->annotations(&c->open->pub, q, j);
    if (has_losses(&c->open->pub) && category_wanted(q, lost_events))
        write_losses(&c->open->pub, q, j);
    if (q->marker_set)
        markers_write(c->s, q->marker_set, q, j);
    json_end_object(j);
    json_end_object(j);
    return r;
}

/* ---- answering ---- */

static struct tsp_result write_model(
    struct call *c, const struct tsp_provider *p, const struct tsp_query *q, struct json *j)
{
    int op = c->operation & OP_KIND;
    if (op == OP_ANNOTATION_CATEGORIES)
        return write_categories(c, p, q, j);
    if (op == OP_ANNOTATIONS)
        return write_annotations(c, p, q, j);
    if (op == OP_STYLE && !p->style) {
        tsp_begin_styles(j);
        tsp_end_styles(j);
        return (struct tsp_result){TSP_COMPLETED, NULL};
    }
    return operation_of(p, op | (c->operation & OP_GENERIC))(&c->open->pub, q, j);
}

static void send_envelope(struct call *c, struct text *t, struct json *j, struct tsp_result r)
{
    const char *message = r.message ? r.message : status_words[r.status];
    if (c->operation & OP_TABLE && r.status == TSP_FAILED) {
        text_fini(t);
        call_error(c, 400, message, NULL);
        return;
    }
    json_kv_string(j, "status", status_names[r.status]);
    json_kv_string(j, "statusMessage", message);
    json_end_object(j);
    call_json(c, 200, t);
}

static void send_without_model(struct call *c, struct tsp_result r)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    json_begin_object(&j);
    json_key(&j, "model");
    json_write_null(&j);
    send_envelope(c, &t, &j, r);
}

static void answer(struct call *c, const struct tsp_provider *p, const struct tsp_query *q)
{
    struct text t = {.fd = -1};
    struct tsp_answer a = {.json = JSON_TO(&t)};
    struct json *j = &a.json;
    json_begin_object(j);
    json_key(j, "model");
    size_t before = t.n;
    struct tsp_result r = write_model(c, p, q, j);
    open_told(c->s, c->open, a.last_id);
    if (tsp_full(j))
        r = (struct tsp_result){TSP_FAILED, "The answer is too large: ask for fewer rows or samples"};
    if (r.status == TSP_FAILED) {
        text_fini(&t);
        send_without_model(c, r);
        return;
    }
    if (t.n == before)
        json_write_null(j);
    send_envelope(c, &t, j, r);
}

/* The provider behind an output's id, with what a derived output adds; NULL: none. With the lock held. */
static const struct tsp_provider *find_provider(
    struct call *c, const struct tsp_model_experiment *x, struct tsp_query *q)
{
    const struct tsp_output *o = open_output(c->open, c->arg[1]);
    if (o) {
        q->member = o->member;
        return o->provider;
    }
    const struct tsp_provider *answers = NULL;
    const struct tsp_derived *d = derived_find(x, c->arg[1], &answers);
    if (d)
        c->configuration = q->configuration = json_deep_copy(d->config.parameters);
    return answers;
}

void analysis_run(struct call *c)
{
    struct tsp_query q = {.http = c->q, .parameters = c->parameters, .output_id = c->arg[1]};
    const struct tsp_provider *p = NULL;
    int stage = STAGE_OPENING;
    pthread_mutex_lock(&c->s->lock);
    struct tsp_model_experiment *x = open_wanted(c->s, c->arg[0]);
    if (x && (c->open = open_ref(x))) {
        stage = c->open->stage;
        c->reads = stage == STAGE_OPEN;
        if (c->reads)
            p = find_provider(c, x, &q);
    }
    pthread_mutex_unlock(&c->s->lock);
    if (!x) {
        call_error(c, 404, "No such trace", NULL);
    } else if (stage == STAGE_OPENING) {
        send_without_model(c, (struct tsp_result){TSP_RUNNING, "The traces are being opened"});
    } else if (stage == STAGE_FAILED) {
        send_without_model(c, (struct tsp_result){TSP_FAILED, c->open->error.text});
    } else if (!p || (!always_answered(c->operation) && !operation_of(p, c->operation))) {
        call_error(c, 405, "Analysis cannot run", NULL);
    } else {
        q.begin = c->open->pub.begin;
        q.end = c->open->pub.end;
        const char *wrong = query_parse(c, &q);
        if (wrong)
            call_error(c, 400, wrong, NULL);
        else
            answer(c, p, &q);
        filter_fini(q.filter);
    }
}
