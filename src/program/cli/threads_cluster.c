/* SPDX-License-Identifier: MIT */
/* weft threads --cluster: threads and their times from the nodes. */
#include "cli/threads.h"

static int ask(
    const struct threads_choice *c, struct cli_asked *a, struct threads_rows *lines, size_t *away, struct err *e)
{
    struct cluster_threads found = {0};
    struct cluster_threads_question q = {
        .choice = c->choice, .host = c->host, .sort = c->state, .limit = cli_threads_most_lines(c)};
    int rc = cluster_find_threads(a->cluster, &q, a->deadline_ns, &found, away, e);
    for (size_t i = 0; i < found.n; i++) {
        const struct cluster_host *h = &a->hosts[found.v[i].host];
        vec_push(lines, ((struct threads_row){h->name, h->begin, found.v[i].is}));
    }
    lines->total = found.total;
    vec_free(&found);
    return rc;
}

int cli_threads_ask_cluster(struct threads_choice *q, struct cli_cluster *cluster)
{
    struct err e = {0};
    struct cli_asked a;
    struct cli_hosts names = CLI_HOSTS_NONE;
    struct threads_rows lines = {0};
    size_t away = 0;
    int rc = cli_cluster_ask(cluster, NULL, &a, &e), code;
    for (size_t i = 0; i < a.n; i++)
        cli_hosts_add(&names, a.hosts[i].name, a.hosts[i].begin, a.hosts[i].end);
    if (!rc)
        rc = cli_threads_settle(q, &names, &e);
    if (!rc)
        rc = ask(q, &a, &lines, &away, &e);
    if (rc) {
        code = cli_fail(&e);
    } else {
        struct text out = TEXT_TO(1);
        cli_threads_show(q, &lines, &out);
        if (away)
            cli_note("%s; its threads are not shown", e.text);
        bool lesser = cli_asked_note_copies(&a);
        code = cli_asked_finish(&a, &out, away || lesser);
    }
    vec_free(&lines);
    cli_hosts_fini(&names);
    cli_asked_close(&a);
    return code;
}
