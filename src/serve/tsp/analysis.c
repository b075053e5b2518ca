/* SPDX-License-Identifier: MIT */
/* Operations that providers answer: search of the provider, query, envelope. */
#include "tsp/markers.h"
#include "tsp/open.h"
#include "tsp/query.h"
#include "tsp/routes.h"

static const char *const status_names[] = {"COMPLETED", "RUNNING", "FAILED", "CANCELLED"};
static const char *const status_words[] = {"Completed", "Running", "Failed", "Task cancelled"};

/* True: every output answers the operation, if only with nothing. */
static bool always_answered(enum tsp_operation op)
{
    return op == TSP_STYLE || op == TSP_ANNOTATION_CATEGORIES || op == TSP_ANNOTATIONS;
}

static bool offers(const struct call *c, const struct tsp_provider *p)
{
    return c->s->o.backend.offers(p, c->operation);
}

/* ---- models: parts of the backend and of the server ---- */

static void ask(struct call *c, const struct tsp_provider *p, const struct tsp_query *q, struct tsp_answer *answer)
{
    c->s->o.backend.ask(c->open->data, p, q, answer);
}

static void write_categories(
    struct call *c, const struct tsp_provider *p, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct json *j = &answer->json;
    const char *set = http_query(c->q, "markerSetId");
    json_begin_object(j);
    json_key(j, "annotationCategories");
    json_begin_array(j);
    ask(c, p, q, answer);
    if (set)
        tsp_markers_write_category(c->s, set, j);
    json_end_array(j);
    json_end_object(j);
}

static void write_annotations(
    struct call *c, const struct tsp_provider *p, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct json *j = &answer->json;
    json_begin_object(j);
    json_key(j, "annotations");
    json_begin_object(j);
    ask(c, p, q, answer);
    if (q->marker_set)
        tsp_markers_write(c->s, q->marker_set, q, answer);
    json_end_object(j);
    json_end_object(j);
}

static void write_model(
    struct call *c, const struct tsp_provider *p, const struct tsp_query *q, struct tsp_answer *answer)
{
    if (c->operation == TSP_ANNOTATION_CATEGORIES) {
        write_categories(c, p, q, answer);
    } else if (c->operation == TSP_ANNOTATIONS) {
        write_annotations(c, p, q, answer);
    } else if (c->operation == TSP_STYLE && !offers(c, p)) {
        tsp_begin_styles(answer);
        tsp_end_styles(answer);
    } else {
        ask(c, p, q, answer);
    }
}

/* ---- sending ---- */

/* Writes which hosts are missing, whole or in part, so that nobody takes a sum over some hosts for one over all. */
static void write_lacks(struct json *j, const struct tsp_data *d)
{
    json_key(j, "hosts");
    json_begin_object(j);
    json_kv_i64(j, "complete", (int64_t)d->whole);
    json_key(j, "lacking");
    json_begin_array(j);
    for (size_t i = 0; i < d->n_lacks && i < TSP_LACKS; i++) {
        json_begin_object(j);
        json_kv_string(j, "host", d->lacks[i].host);
        json_kv_string(j, "status", d->lacks[i].failed ? "FAILED" : "PARTIAL");
        json_kv_string(j, "statusMessage", d->lacks[i].why);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

/* Ends the object that `answer` began with its model, and sends it. */
static void send_envelope(struct call *c, struct text *t, struct tsp_answer *answer)
{
    struct json *j = &answer->json;
    const char *message = answer->message ? answer->message : status_words[answer->status];
    enum tsp_code code = answer->code;
    if (!code && answer->status == TSP_FAILED)
        code = TSP_CODE_FAILED;
    else if (!code && answer->message)
        code = TSP_CODE_NOTE;
    if ((c->operation == TSP_COLUMNS || c->operation == TSP_LINES) && answer->status == TSP_FAILED) {
        text_fini(t);
        tsp_call_refuse(c, 400, code, message, answer->detail);
        return;
    }
    json_kv_string(j, "status", status_names[answer->status]);
    json_kv_string(j, "statusMessage", message);
    if (code)
        json_kv_string(j, "code", tsp_code_name(code));
    if (answer->status == TSP_RUNNING && answer->progress.of)
        tsp_write_progress(j, answer->progress.done, answer->progress.of);
    if (c->reads && c->open->data->n_lacks)
        write_lacks(j, c->open->data);
    json_end_object(j);
    tsp_call_json(c, 200, t);
}

/* Sends an answer without a model. said: status, code, message, detail. */
static void send_without_model(struct call *c, const struct tsp_answer *said)
{
    struct text t = {.fd = -1};
    struct tsp_answer answer = *said;
    answer.json = (struct json)JSON_TO(&t);
    json_begin_object(&answer.json);
    json_key(&answer.json, "model");
    json_write_null(&answer.json);
    send_envelope(c, &t, &answer);
}

static void send_waiting(struct call *c, const char *why)
{
    send_without_model(c, &(struct tsp_answer){.status = TSP_RUNNING, .code = TSP_CODE_NOTE, .message = why});
}

/* Writes the answer of a provider that wrote no model. An empty tree is a tree, without rows and arrows, unless it is
 * still being computed. */
static void write_nothing(struct call *c, struct tsp_answer *answer)
{
    struct json *j = &answer->json;
    if (answer->status != TSP_RUNNING && c->operation == TSP_TREE) {
        tsp_begin_tree(answer, NULL, 0, -1);
        tsp_end_tree(answer);
    } else if (answer->status != TSP_RUNNING && c->operation == TSP_STATES) {
        json_begin_object(j);
        json_key(j, "rows");
        json_begin_array(j);
        json_end_array(j);
        json_end_object(j);
    } else if (answer->status != TSP_RUNNING && c->operation == TSP_ARROWS) {
        json_begin_array(j);
        json_end_array(j);
    } else {
        json_write_null(j);
    }
}

static void send_answer(struct call *c, const struct tsp_provider *p, struct tsp_query *q)
{
    struct text t = {.fd = -1};
    struct tsp_entries entries = tsp_entries_of(c->open->entries, p, q);
    struct tsp_answer answer = {.json = JSON_TO(&t), .entries = &entries};
    struct err unkept = {0};
    c->q->making = &t;
    tsp_entries_take_query(&entries, q);
    if (entries.waits) {
        if (q->configuration)
            tsp_held_note(c->s, c->open, q->output_id, true);
        send_waiting(c, "The analysis is being computed");
        return;
    }
    json_begin_object(&answer.json);
    json_key(&answer.json, "model");
    size_t before = t.n;
    write_model(c, p, q, &answer);
    if (q->configuration)
        tsp_held_note(c->s, c->open, q->output_id, answer.status == TSP_RUNNING);
    tsp_ids_save(c->open->ids, false, &unkept); /* saved before clients know them; after a failure they are the same */
    if (t.error)
        http_lack_memory(c->q);
    if (tsp_full(&answer))
        tsp_fail(&answer, TSP_CODE_TOO_LARGE, "The answer is too large: ask for fewer rows or samples");
    if (http_was_gone(c->q) && answer.status != TSP_FAILED) {
        answer.status = TSP_CANCELLED;
        answer.code = TSP_CODE_NOTE;
        answer.message = "Task cancelled: this is what there was when it had to end";
    }
    if (answer.status == TSP_FAILED) {
        text_fini(&t);
        send_without_model(c, &answer);
        return;
    }
    if (t.n == before)
        write_nothing(c, &answer);
    send_envelope(c, &t, &answer);
}

/* Returns the provider of an output's id, and adds a derived output's configuration to the query; NULL: none. With the
 * lock held. */
static const struct tsp_provider *find_provider(struct call *c, const struct tsp_experiment *x, struct tsp_query *q)
{
    const struct tsp_output *o = tsp_opening_output(c->open, c->arg[1]);
    if (o) {
        q->member = o->member;
        return o->provider;
    }
    const struct tsp_provider *answers = NULL;
    const struct tsp_derived *d = tsp_model_derived(x, c->arg[1], &answers);
    if (d)
        c->configuration = q->configuration = json_deep_copy(d->config.parameters);
    return answers;
}

void tsp_analysis_run(struct call *c)
{
    struct tsp_query q = {.operation = c->operation, .http = c->q, .parameters = c->parameters, .output_id = c->arg[1]};
    const struct tsp_provider *p = NULL;
    int stage = STAGE_OPENING;
    pthread_mutex_lock(&c->s->lock);
    struct tsp_experiment *x = tsp_open_wanted(c->s, c->arg[0]);
    if (x && (c->open = tsp_opening_ref_for(x, c->arg[1]))) {
        stage = c->open->stage;
        c->reads = stage == STAGE_OPEN;
        if (c->reads)
            p = find_provider(c, x, &q);
    }
    pthread_mutex_unlock(&c->s->lock);
    if (!x) {
        tsp_call_error(c, 404, "No such trace", NULL);
    } else if (stage == STAGE_OPENING) {
        send_waiting(c, "The traces are being opened");
    } else if (stage == STAGE_FAILED) {
        if (c->open->error.code == ERR_NOMEM)
            http_lack_memory(c->q);
        send_without_model(
            c, &(struct tsp_answer){.status = TSP_FAILED, .code = TSP_CODE_FAILED, .message = c->open->error.text});
    } else if (!p || (!always_answered(c->operation) && !offers(c, p))) {
        tsp_call_error(c, 405, "Analysis cannot run", NULL);
    } else {
        q.begin = c->open->data->begin;
        q.end = c->open->data->end;
        q.kept = c->open->rows;
        const char *wrong = tsp_query_parse(&q);
        if (wrong)
            tsp_call_error(c, 400, wrong, NULL);
        else
            send_answer(c, p, &q);
        tsp_filter_fini(q.filter);
    }
}
