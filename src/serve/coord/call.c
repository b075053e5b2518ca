/* SPDX-License-Identifier: MIT */
/* Replies to the client. */
#include "coord/call.h"

#include <string.h>

void coord_reply(struct coord_call *c, int status, struct text *t)
{
    struct err unkept = {0};
    c->outcome.replied = true;
    coord_ids_save(c->c->ids, &unkept); /* failure is harmless: ids are the same anyhow, unless two hashes collide */
    if (status == 503)
        http_header(c->q, "Retry-After", "1");
    http_reply(c->q, status, "application/json", t);
}

void coord_refuse(struct coord_call *c, int status, enum tsp_code code, const char *title, const char *detail)
{
    struct text t = {.fd = -1};
    tsp_put_error(&t, code ? code : tsp_code_of_status(status), title, detail);
    coord_reply(c, status, &t);
}

void coord_error(struct coord_call *c, int status, const char *title, const char *detail)
{
    coord_refuse(c, status, TSP_CODE_NONE, title, detail);
}

void coord_warn(struct coord_call *c)
{
    const char *missing = coord_missing_text(&c->outcome, NULL);
    if (!missing)
        return;
    char *line = arena_printf(c->arena, "199 weft \"%s\"", missing);
    size_t n = strlen(line);
    for (char *p = line + 10; p < line + n - 1; p++)
        if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ' || (unsigned char)*p >= 127)
            *p = '\'';
    http_header(c->q, "Warning", line);
}
