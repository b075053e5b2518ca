/* SPDX-License-Identifier: MIT */
/* Answers to the current request, and its errors. */
#include "tsp/call.h"

#include <stdarg.h>
#include <stdio.h>

#include "tsp/persist.h"

/* Adds a warning (RFC 7234, 5.5: 199) while changes are unsaved. They are in effect, but a restart would lose them. */
static void warn_unsaved(struct call *c)
{
    struct err why;
    pthread_mutex_lock(&c->s->lock);
    why = c->s->unsaved;
    pthread_mutex_unlock(&c->s->lock);
    if (!why.code)
        return;
    for (char *p = why.text; *p; p++)
        if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ')
            *p = '\'';
    http_header(c->q, "Warning", arena_printf(c->q->arena, "199 weft \"not kept over a restart: %s\"", why.text));
}

/* Sends every answer. An answer is dropped if files from which it was made were truncated meanwhile. */
void tsp_call_json(struct call *c, int status, struct text *t)
{
    struct err lost = {0};
    if (c->reads && tsp_opening_intact(c->s, c->open, &lost)) {
        text_fini(t);
        *t = (struct text){.fd = -1};
        tsp_put_error(t, TSP_CODE_FAILED, "A file of the trace was cut off while it was read", lost.text);
        status = 500;
    }
    if (status == 503)
        http_header(c->q, "Retry-After", "1");
    if (c->s->state_dir && c->changes) {
        tsp_persist_save(c->s); /* saved before the client knows; requests without changes do not wait for the disk */
        if (status < 400)
            warn_unsaved(c);
    }
    http_reply(c->q, status, "application/json", t);
}

void tsp_call_refuse(struct call *c, int status, enum tsp_code code, const char *title, const char *detail)
{
    struct text t = {.fd = -1};
    tsp_put_error(&t, code, title, detail);
    tsp_call_json(c, status, &t);
}

void tsp_call_error(struct call *c, int status, const char *title, const char *detail)
{
    tsp_call_refuse(c, status, tsp_code_of_status(status), title, detail);
}

void tsp_call_errorf(struct call *c, int status, const char *fmt, ...)
{
    char title[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(title, sizeof title, fmt, args);
    va_end(args);
    tsp_call_error(c, status, title, NULL);
}
