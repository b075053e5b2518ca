/* SPDX-License-Identifier: MIT */
/* weft verify: checks store files and reports damage. */
#include "cli/cli.h"

#include "cli/traces.h"

static void on_file(void *arg, const struct index_finding *f)
{
    struct cli_table *t = arg;
    cli_table_cell(t, "%s", f->host);
    cli_table_cell(t, "%s",
        f->code == 0                  ? "sound"
            : f->code == ERR_STALE    ? "stale"
            : f->code == ERR_NOTFOUND ? "absent"
                                      : "damaged");
    cli_table_cell(t, "%s", f->file);
    cli_table_cell(t, "%s", f->problem ? f->problem : "");
}

static int run(int argc, char **argv)
{
    const char *store = NULL, *format_name = NULL;
    const struct cli_option options[] = {
        {"store", 0, CLI_STRING, "DIR", "where the stores are (as given to index)", &store},
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name},
        {0},
    };
    static const struct cli_column columns[] = {
        {"host", false, false}, {"state", false, false}, {"file", false, false}, {"problem", false, false}};
    int n, format;
    struct err e = {0};
    struct experiment *x;
    struct index_options o = {0};
    int code = cli_parse(&verb_verify, options, argc, argv, &n);
    if (code >= 0)
        return code;
    o.store = store;
    if (cli_format_parse(format_name, &format, &e) || cli_open_traces(argv + 1, (size_t)n, &o, &x, &e))
        return cli_fail(&e);
    struct cli_table *t = cli_table_new(columns, 4);
    int rc = index_experiment_verify(x, on_file, t, &e);
    struct text out = TEXT_TO(1);
    cli_table_write(t, format, &out);
    cli_table_free(t);
    if (rc && rc != ERR_FORMAT) {
        text_fini(&out);
        code = cli_fail(&e);
    } else {
        if (rc)
            cli_note("%s", e.text);
        code = cli_finish_traces(x, &out, &(struct cli_reading){.damaged = rc != 0, .events = 1});
    }
    index_experiment_close(x);
    return code;
}

const struct cli_verb verb_verify = {"verify", "TRACE…", "checks the store files of traces and says what is damaged",
    "weft verify examples/three-tier", run};
