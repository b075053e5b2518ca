/* SPDX-License-Identifier: MIT */
/* What the commands of `weft spans` share. */
#ifndef WEFT_CLI_SPANS_H
#define WEFT_CLI_SPANS_H

#include "base/json.h"
#include "cli/cli.h"
#include "span/analysis.h"

struct cli_kernel;
struct cli_spans {
    struct spans *set;
    struct cli_kernel *kernel;           /* critpath: traces of the machines; or NULL */
    int format;
    int64_t limit;                       /* -1: not given */
    struct spans_by by;
    const char *by_text, *main, *split, *trace;
    int64_t split_ns;
    bool damaged;                        /* parts of the input were left out */
};

/* How many lines are shown: for people `few`, for programs `many`, unless --limit says so. */
size_t cli_spans_limit(const struct cli_spans *, size_t few, size_t many);
/* Cells and members that several commands write. */
void cli_spans_ns(struct cli_table *, int format, double ns);          /* a duration that need not be whole */
void cli_spans_id(struct text *, const struct spans *, const struct spans_row *);     /* TRACE:SPAN */
void cli_spans_trace_id(struct text *, const struct spans *, uint32_t trace);
void cli_spans_json_trace(struct json *, const char *key, const struct spans *, uint32_t trace);
void cli_spans_json_span(struct json *, const struct spans *, const struct spans_row *); /* "trace", "span" */
void cli_spans_stage(struct text *, const struct spans *, uint32_t service, uint32_t name);
/* A table shows the service where there are several. */
bool cli_spans_several(const struct spans *);

/* What could be done, or looked into: a sentence, how much it is about, of how many, and where to look. */
struct cli_advice {
    struct text text;                    /* of all, one after the other */
    struct { size_t end, n, of; double ns; uint32_t traces[SPANS_EXAMPLES]; size_t n_traces; } *v;
    size_t n, cap;
};
#define CLI_ADVICE ((struct cli_advice){.text = {.fd = -1}})
/* The sentence was appended to the text. */
void cli_advice_add(struct cli_advice *, double ns, size_t n, size_t of);
/* An example for the last one. */
void cli_advice_example(struct cli_advice *, uint32_t trace);
/* Values of attributes that explain durations by themselves; and as the member "factors". */
void cli_advice_factors(struct cli_advice *, const struct spans *, const struct spans_factors *);
void cli_factors_json(const struct spans *, const struct spans_factors *, struct json *);
/* As lines below a table; as the member "suggestions". Both end it. */
void cli_advice_lines(struct cli_advice *, const struct spans *, struct text *);
void cli_advice_json(struct cli_advice *, const struct spans *, struct json *);

/* The commands. */
typedef int cli_spans_command(struct cli_spans *, struct text *out, struct err *);
cli_spans_command cli_spans_table, cli_spans_stats, cli_spans_outliers, cli_spans_compare, cli_spans_clusters,
    cli_spans_critpath;

#endif
