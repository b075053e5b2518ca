/* SPDX-License-Identifier: MIT */
/* PostgreSQL: connections. */
#include "span/postgres.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"

enum { STATEMENT_MS = 30000 }; /* timeout of a statement on the server */
static const char connect_s[] = "5", not_answering_ms[] = "15000";

/* ---- connecting ---- */

static int refuse_url(struct err *e)
{
    return err_set(e, ERR_ARG,
        "that is no URL as libpq takes it (it is not repeated here, for its password): "
        "postgresql://USER:PASSWORD@HOST:PORT/DATABASE; in names and passwords %%40 is written for @, %%2F for /, "
        "%%3A for :, %%3F for ?");
}

int postgres_show_url(const char *url, char **out, struct err *e)
{
    PQconninfoOption *all = PQconninfoParse(url, NULL);
    const char *user = "", *host = "", *port = "", *database = "";
    const struct {
        const char *key, **value;
    } wanted[] = {{"user", &user}, {"host", &host}, {"port", &port}, {"dbname", &database}};
    for (PQconninfoOption *o = all; o && o->keyword; o++)
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            if (!strcmp(o->keyword, wanted[i].key) && o->val)
                *wanted[i].value = o->val;
    /* An unescaped password with special characters is split into parts that look like these. */
    bool sound = all && strspn(port, "0123456789,") == strlen(port) && !strchr(database, '@') && !strchr(host, '@');
    if (sound)
        *out = mem_printf("postgresql://%s%s%s%s%s%s%s", user, *user ? "@" : "", host, *port ? ":" : "", port,
            *database ? "/" : "", database);
    PQconninfoFree(all);
    return sound ? 0 : refuse_url(e);
}

char *span_store_shown(const char *store)
{
    char *shown;
    if (!span_store_is_url(store))
        return mem_strdup(store);
    return postgres_show_url(store, &shown, NULL) ? mem_strdup("postgresql://?") : shown;
}

static void ignore_notice(void *arg, const PGresult *r)
{
    (void)arg;
    (void)r;
}

static int connect_to(struct postgres *p, struct err *e)
{
    const char *const keys[] = {"connect_timeout", "tcp_user_timeout", "keepalives_idle", "fallback_application_name",
        "dbname", "client_encoding", NULL};
    const char *const values[] = {connect_s, not_answering_ms, "30", "weft", p->url, "UTF8", NULL};
    p->c = PQconnectdbParams(keys, values, 1);
    if (!p->c)
        return err_set(e, ERR_NOMEM, "out of memory");
    if (PQstatus(p->c) != CONNECTION_OK)
        return postgres_fail_to_reach(p, PQerrorMessage(p->c), e);
    PQsetNoticeReceiver(p->c, ignore_notice, NULL);
    PQsetnonblocking(p->c, 1);
    p->prepared = false;
    return 0;
}

/* JIT is off: plans are short here, and take less time than their compilation. */
static int set_up(struct postgres *p, struct err *e)
{
    struct postgres_values v = {0};
    char statement_ms[16];
    snprintf(statement_ms, sizeof statement_ms, "%d", STATEMENT_MS);
    postgres_put_text(&v, statement_ms);
    postgres_put_text(&v, p->filled ? "off" : "on");
    return postgres_ask(p,
        "SELECT set_config('statement_timeout', $1, false), set_config('default_transaction_read_only', $2, false),"
        " set_config('jit', 'off', false), set_config('lock_timeout', $1, false),"
        " set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'"
        " ELSE current_setting('synchronous_commit') END, false)",
        &v, NULL, e);
}

/* ---- what is known of the database ---- */

static void knowns_fini(struct postgres_knowns *k)
{
    vec_free(&k->v);
    vec_free(&k->used);
    map_fini(&k->by_hash);
    *k = (struct postgres_knowns){0};
}

void postgres_forget(struct postgres *p)
{
    knowns_fini(&p->texts);
    knowns_fini(&p->origins);
    map_fini(&p->operations);
    map_fini(&p->days);
    p->operations = p->days = (struct map){0};
    p->new_operations.n = 0;
}

/* ---- ready to ask ---- */

int postgres_ready(struct postgres *p, struct err *e)
{
    if (p->c && PQstatus(p->c) == CONNECTION_OK)
        return 0;
    PQfinish(p->c);
    p->c = NULL;
    postgres_forget(p);
    int rc = connect_to(p, e);
    rc = rc ? rc : set_up(p, e);
    rc = rc ? rc : postgres_check_schema(p, e);
    if (rc) {
        PQfinish(p->c);
        p->c = NULL;
    }
    return rc;
}

int postgres_ask_anew(
    struct postgres *p, const char *sql, const struct postgres_values *v, PGresult **out, struct err *e)
{
    bool was_connected = p->c;
    int rc = postgres_ready(p, e);
    rc = rc ? rc : postgres_ask(p, sql, v, out, e);
    if (!rc || !was_connected || p->c)
        return rc;
    e->code = 0;
    rc = postgres_ready(p, e);
    return rc ? rc : postgres_ask(p, sql, v, out, e);
}
