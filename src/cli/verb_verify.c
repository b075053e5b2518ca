/* weft verify: checks store files and says what is damaged. */
#include "cli/cli.h"

#include "index/index.h"

struct rows {
    struct cli_table *table;
    size_t n;
};

static void on_file(void *arg, const char *file, const char *problem)
{
    struct rows *r = arg;
    cli_table_cell(r->table, "%s", file);
    cli_table_cell(r->table, "%s", problem ? "damaged" : "sound");
    cli_table_cell(r->table, "%s", problem ? problem : "");
    r->n++;
}

static int run(int argc, char **argv)
{
    const char *store = NULL, *format_name = NULL;
    const struct cli_option options[] = {
        {"store", 0, CLI_STRING, "DIR", "where the stores are (as given to index)", &store},
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name},
        {0},
    };
    int n, format;
    struct err e = {0};
    int code = cli_parse(&verb_verify, options, argc, argv, &n);
    if (code >= 0)
        return code;
    if (n == 0)
        err_set(&e, ERR_ARG, "verify: no trace given; try: weft verify --help");
    if (e.code || cli_format_parse(format_name, &format, &e))
        return cli_fail(&e);
    static const struct cli_column columns[] = {{"file", false, false}, {"state", false, false}, {"problem", false, false}};
    struct rows rows = {.table = cli_table_new(columns, 3)};
    int rc = index_verify((const char *const *)argv + 1, (size_t)n, store, on_file, &rows, &e);
    struct text out = TEXT_TO(1);
    if (rows.n)
        cli_table_write(rows.table, format, &out);
    cli_table_free(rows.table);
    code = cli_finish(&out, CLI_OK);
    return rc ? cli_fail(&e) : code;
}

const struct cli_verb verb_verify = {
    "verify", "TRACE…", "checks the store files of traces and says what is damaged", "weft verify traces/three-tier", run};
