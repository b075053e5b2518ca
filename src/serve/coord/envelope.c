/* SPDX-License-Identifier: MIT */
/* Envelopes: answers of analyses, with a model and a status. */

#include "coord/gather.h"
#include "coord/output_cache.h"

/* Returns whether a missing server offered the output last, and all refusals are of servers that do not know it. */
static bool is_of_the_missing(const struct coord_answers *f)
{
    const char *output = f->call->request.arg[1];
    bool offered = false, unknown = true;
    for (size_t i = 0; i < f->n; i++) {
        const struct coord_answer *p = &f->v[i];
        unknown &= p->fate != COORD_REFUSED || coord_answer_is_unknown(p);
        offered |= p->fate == COORD_MISSING && output && coord_output_cache_find(f->call, p->node, output).at;
    }
    return offered && unknown;
}

static bool some_refused(const struct coord_answers *f)
{
    bool some = false;
    for (size_t i = 0; i < f->n; i++)
        some |= f->v[i].fate == COORD_REFUSED;
    return some;
}

bool coord_envelopes_open(struct coord_answers *f)
{
    struct coord_call *c = f->call;
    if (coord_outcome_take(f))
        return true;
    if (some_refused(f) && !is_of_the_missing(f) && c->outcome.code != TSP_CODE_AMBIGUOUS_THREAD)
        coord_gather_refuse(f);
    else
        coord_envelope_send_null(c, f->n ? COORD_FAILED : COORD_COMPLETED, f->n ? "No server can answer" : NULL);
    return false;
}

struct json coord_envelope_begin(struct coord_call *c, struct text *t)
{
    enum { LARGE_ANSWERS = 1 << 20 };
    struct json j = JSON_TO(t);
    size_t gathered = c->outcome.gathered;
    c->q->making = t;
    if (gathered > LARGE_ANSWERS)
        text_try_grow(t, gathered + gathered / 16); /* failing that, it grows and is copied each time */
    json_begin_object(&j);
    json_key(&j, "model");
    return j;
}

void coord_envelope_send(struct coord_call *c, struct text *t)
{
    struct json j = JSON_TO(t);
    j.depth = 1;
    j.comma = 2; /* the model was written */
    coord_put_outcome(&c->outcome, &j);
    json_end_object(&j);
    coord_reply(c, 200, t);
}

void coord_envelope_send_null(struct coord_call *c, enum coord_status s, const char *message)
{
    struct text t = {.fd = -1};
    TEXT_PUT(&t, "{\"model\":null");
    c->outcome.status = s;
    c->outcome.message = message;
    coord_envelope_send(c, &t);
}

void coord_envelope_merge(struct coord_answers *f, coord_merge *merge)
{
    struct text t = {.fd = -1};
    struct json j = coord_envelope_begin(f->call, &t);
    merge(f, &j);
    coord_envelope_send(f->call, &t);
}
