/* SPDX-License-Identifier: MIT */
/* weft place: traces by node of a cluster, traffic between them, advice where to place them; moving them. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/time.h"
#include "cli/place.h"

#define LOAD_NS (2 * NS_PER_S) /* timeout for the nodes' load reports */
enum { BALANCE_PERCENT = 25, GAIN_PERCENT = 1, AUTO_GAIN_PERCENT = 5, MOST_TALK = 20 };

/* ---- tables ---- */

static void write_nodes(const struct place_plan *p, int format, struct text *out)
{
    static const struct cli_column columns[] = {{"node", false, false}, {"hosts", true, true}, {"copies", true, true},
        {"bytes", true, true}, {"stores", true, true}, {"planned", true, true}, {"cpus", true, true},
        {"load", true, true}, {"questions", true, true}, {"room", true, true}, {"moves", false, false}};
    struct cli_table *t = cli_table_new(columns, 11);
    for (size_t i = 0; i < p->n_nodes; i++) {
        const struct place_node *n = &p->nodes[i];
        const struct cluster_load *l = &n->load;
        cli_table_cell(t, "%s", n->name);
        cli_table_number(t, (int64_t)n->hosts);
        cli_table_number(t, (int64_t)n->copies);
        cli_table_size(t, format, n->bytes);
        cli_table_size(t, format, n->store_bytes);
        cli_table_size(t, format, n->planned_bytes);
        for (int k = 0; k < 4 && !l->answered; k++)
            cli_table_cell(t, "%s", "");
        if (l->answered) {
            cli_table_number(t, l->cpus);
            cli_table_cell(t, "%u.%02u", l->load_percent / 100, l->load_percent % 100);
            cli_table_number(t, (int64_t)l->questions);
            cli_table_size(t, format, l->room_bytes);
        }
        cli_table_cell(t, "%s",
            !l->answered                  ? "does not answer"
                : l->receives && l->gives ? "takes, gives"
                : l->receives             ? "takes"
                : l->gives                ? "gives"
                                          : "");
    }
    cli_table_write(t, format, out);
    cli_table_free(t);
}

static void write_hosts(const struct place_plan *p, const struct cli_asked *a, int format, struct text *out)
{
    static const struct cli_column columns[] = {{"host", false, false}, {"node", false, false}, {"bytes", true, true},
        {"stores", true, true}, {"events", true, true}, {"life", true, true}, {"snips", false, false}};
    struct cli_table *t = cli_table_new(columns, 7);
    for (size_t i = 0; i < p->n_hosts; i++) {
        struct text excerpts = {.fd = -1};
        for (size_t k = 0; k < p->hosts[i].n_excerpts; k++)
            text_printf(&excerpts, "%s%s", k ? ", " : "", p->hosts[i].excerpts[k]);
        cli_table_cell(t, "%s", a->hosts[i].clock_name);
        cli_table_cell(t, "%s", p->nodes[p->hosts[i].node].name);
        cli_table_size(t, format, p->hosts[i].bytes);
        cli_table_size(t, format, p->hosts[i].store_bytes);
        cli_table_number(t, (int64_t)p->hosts[i].events);
        cli_table_duration(t, format, a->hosts[i].end - a->hosts[i].begin);
        cli_table_text(t, &excerpts);
        text_fini(&excerpts);
    }
    cli_table_write(t, format, out);
    cli_table_free(t);
}

static void write_talk(const struct place_plan *p, const struct cli_asked *a, int format, size_t most, struct text *out)
{
    static const struct cli_column columns[] = {{"host", false, false}, {"other", false, false}, {"node", false, false},
        {"other_node", false, false}, {"packets", true, true}, {"bytes", true, true}};
    struct cli_table *t = cli_table_new(columns, 6);
    for (size_t i = 0; i < p->n_talk && i < most; i++) {
        const struct place_talk *k = &p->talk[i];
        cli_table_cell(t, "%s", a->hosts[k->a].clock_name);
        cli_table_cell(t, "%s", a->hosts[k->b].clock_name);
        cli_table_cell(t, "%s", p->nodes[p->hosts[k->a].node].name);
        cli_table_cell(t, "%s", p->nodes[p->hosts[k->b].node].name);
        cli_table_number(t, (int64_t)k->packets);
        cli_table_size(t, format, k->bytes);
    }
    cli_table_write(t, format, out);
    cli_table_free(t);
}

static void write_moves(const struct place_lines *lines, const struct cli_asked *a, int format, struct text *out)
{
    static const struct cli_column columns[] = {{"host", false, false}, {"from", false, false}, {"to", false, false},
        {"bytes", true, true}, {"saves", true, true}, {"relieves", true, true}, {"result", false, false}};
    struct cli_table *t = cli_table_new(columns, 7);
    for (size_t i = 0; i < lines->n; i++) {
        const struct place_line *l = &lines->v[i];
        cli_table_cell(t, "%s", a->hosts[l->is.host].clock_name);
        cli_table_cell(t, "%s", l->from);
        cli_table_cell(t, "%s", l->to);
        for (int k = 0; k < 3 && l->excerpt; k++) /* copy of an unknown number of packets */
            cli_table_cell(t, "%s", "");
        if (!l->excerpt) {
            cli_table_size(t, format, l->is.bytes);
            cli_table_number(t, l->is.saves);
            cli_table_size(t, format, l->is.relieves);
        }
        cli_table_cell(t, "%s", cli_place_result(l));
    }
    cli_table_write(t, format, out);
    cli_table_free(t);
}

/* ---- the whole output ---- */

static void heading(struct text *out, const char *what)
{
    cli_bold(out);
    text_puts(out, what);
    cli_plain(out);
    text_putc(out, '\n');
}

static void write_all(const struct place_plan *p, const struct place_lines *lines, const struct cli_asked *a,
    bool advice, struct text *out)
{
    heading(out, "nodes");
    write_nodes(p, CLI_TABLE, out);
    heading(out, "\nhosts that talk");
    write_talk(p, a, CLI_TABLE, MOST_TALK, out);
    if (p->n_talk > MOST_TALK)
        text_printf(out, "(%zu more: --table talk)\n", p->n_talk - MOST_TALK);
    heading(out, advice ? "\nadvice" : "\nmoves");
    if (lines->n)
        write_moves(lines, a, CLI_TABLE, out);
    else
        text_puts(out, "every trace is well where it is, or may not be moved (weft serve --give, --receive DIR)\n");
    text_printf(out, "\n%llu packets between hosts of different nodes", (unsigned long long)p->between);
    if (advice && lines->n)
        text_printf(out, ", %llu after these moves", (unsigned long long)p->between_after);
    text_putc(out, '\n');
}

static void write_json(
    const struct place_plan *p, const struct place_lines *lines, const struct cli_asked *a, struct text *out)
{
    static const char *const keys[] = {"nodes", "hosts", "talk", "moves"};
    struct json j = JSON_TO(out);
    json_begin_object(&j);
    for (size_t i = 0; i < 4; i++) {
        struct text t = {.fd = -1};
        if (i == 0)
            write_nodes(p, CLI_JSON, &t);
        else if (i == 1)
            write_hosts(p, a, CLI_JSON, &t);
        else if (i == 2)
            write_talk(p, a, CLI_JSON, SIZE_MAX, &t);
        else
            write_moves(lines, a, CLI_JSON, &t);
        json_key(&j, keys[i]);
        json_raw(&j, t.v, t.n - (t.n && t.v[t.n - 1] == '\n'));
        text_fini(&t);
    }
    json_kv_u64(&j, "limit", p->limit_bytes);
    json_kv_u64(&j, "between", p->between);
    json_kv_u64(&j, "between_after", p->between_after);
    json_end_object(&j);
    text_putc(out, '\n');
}

static void write_answer(const struct place_choice *c, const struct place_plan *p, const struct place_lines *lines,
    const struct cli_asked *a, struct text *out)
{
    const char *table = c->table ? c->table : c->format == CLI_CSV ? "moves" : NULL;
    if (!table && c->format == CLI_JSON)
        write_json(p, lines, a, out);
    else if (!table)
        write_all(p, lines, a, !c->moves.n, out);
    else if (!strcmp(table, "nodes"))
        write_nodes(p, c->format, out);
    else if (!strcmp(table, "hosts"))
        write_hosts(p, a, c->format, out);
    else if (!strcmp(table, "talk"))
        write_talk(p, a, c->format, SIZE_MAX, out);
    else
        write_moves(lines, a, c->format, out);
}

/* ---- the verb ---- */

static size_t silent_nodes(const struct place_plan *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_nodes; i++)
        n += !p->nodes[i].load.answered;
    return n;
}

static int show(struct place_choice *c, struct cli_cluster *cluster)
{
    struct err e = {0};
    struct cli_asked a;
    struct place_plan *p = NULL;
    struct place_lines lines = {0};
    int rc = cli_cluster_ask(cluster, place_is_excerpt(c) ? &c->clocks : NULL, &a, &e), code;
    int64_t patience = a.deadline_ns - time_monotonic_ns();
    struct place_options o = {.balance_percent = (unsigned)c->balance,
        .gain_percent = (unsigned)c->gain,
        .deadline_ns = time_monotonic_ns() + LOAD_NS};
    if (!rc && a.deadline_ns < o.deadline_ns)
        o.deadline_ns = a.deadline_ns;
    if (!rc)
        place_advise(a.cluster, &o, &p);
    if (!rc)
        rc = cli_place_find_moves(c, p, &a, &lines, &e);
    if (rc) {
        code = cli_fail(&e);
    } else {
        struct text out = TEXT_TO(1);
        size_t failed = c->apply || c->moves.n ? cli_place_apply(&a, &lines, patience) : 0, silent = silent_nodes(p);
        write_answer(c, p, &lines, &a, &out);
        if (silent)
            cli_note("%zu nodes do not answer: their traces are left where they are", silent);
        code = failed ? cli_finish(&out, CLI_FAILED) : cli_asked_finish(&a, &out, silent);
    }
    vec_free(&lines);
    place_plan_free(p);
    cli_asked_close(&a);
    return code;
}

static int check_table(const char *s, struct err *e)
{
    bool known = !s || !strcmp(s, "nodes") || !strcmp(s, "hosts") || !strcmp(s, "talk") || !strcmp(s, "moves");
    return known ? 0 : err_set(e, ERR_ARG, "--table %s: give nodes, hosts, talk or moves", s);
}

static int check(struct place_choice *c, const struct cli_cluster *cluster, const char *format_name, struct err *e)
{
    const struct place_auto *a = &c->by_itself;
    int rc = cli_format_parse(format_name, &c->format, e);
    if (!rc)
        rc = check_table(c->table, e);
    if (!rc)
        rc = cli_place_auto_check(a, e);
    if (!rc && a->is && (c->apply || c->moves.n || c->table || format_name))
        rc = err_set(e, ERR_ARG, "--auto cannot be combined with --apply, --move or tables");
    if (!rc && place_is_excerpt(c) && !c->moves.n)
        rc = err_set(e, ERR_ARG, "--begin and --end need --move HOST=NODE");
    if (!rc)
        rc = cli_clocks_parse(&c->clocks, e);
    if (!rc && !cluster->url)
        rc = err_set(e, ERR_ARG, "--cluster URL is missing");
    if (c->gain < 0)
        c->gain = a->is ? AUTO_GAIN_PERCENT : GAIN_PERCENT;
    return rc;
}

static int run(int argc, char **argv)
{
    struct place_choice c = {.balance = BALANCE_PERCENT, .gain = -1};
    struct cli_cluster cluster = {0};
    const char *format_name = NULL;
    const struct cli_option options[] = {
        {"apply", 0, CLI_FLAG, NULL, "move the traces as advised", &c.apply},
        {"move", 0, CLI_LIST, "HOST=NODE", "move the trace of HOST to NODE; may be given several times", &c.moves},
        {"begin", 'b', CLI_STRING, "TIME", "with --move: only what was recorded from then on, as a snip", &c.begin},
        {"end", 'e', CLI_STRING, "TIME", "with --move: only what was recorded up to then", &c.end},
        {"balance", 0, CLI_INT, "PERCENT", "limit of a node's bytes above the mean, in percent (default: 25)",
            &c.balance, 0, 10000},
        {"gain", 0, CLI_INT, "PERCENT",
            "least gain of a move: percent of all packets, or of a node's bytes (default: 1; with --auto 5)", &c.gain,
            0, 100},
        PLACE_AUTO(&c.by_itself),
        {"table", 0, CLI_STRING, "TABLE", "nodes, hosts, talk or moves alone (default: all; of CSV: moves)", &c.table},
        CLI_CLUSTER_ASKED(&cluster),
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name},
        {0},
    };
    int n;
    struct err e = {0};
    int code = cli_parse(&verb_place, options, argc, argv, &n);
    if (code >= 0)
        return code;
    int rc = check(&c, &cluster, format_name, &e);
    if (!rc)
        rc = cli_cluster_check(&cluster, (size_t)n, &e);
    code = rc            ? cli_fail(&e)
        : c.by_itself.is ? cli_place_auto_run(&c.by_itself, &cluster, c.balance, c.gain)
                         : show(&c, &cluster);
    free(c.moves.v);
    cli_clocks_fini(&c.clocks);
    return code;
}

const struct cli_verb verb_place = {"place", "", "advise where to keep a cluster's traces, and move them",
    "weft place --cluster nats://broker:4222", run};
