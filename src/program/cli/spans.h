/* SPDX-License-Identifier: MIT */
/* Common parts of the commands of `weft spans`. */
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

/* Returns the number of lines to show: --limit, or else `few` for people, `many` for programs. */
size_t cli_spans_limit(const struct cli_spans *, size_t few, size_t many);
/* Cells and members that several commands write. */
void cli_spans_ns(struct cli_table *, int format, double ns);          /* a duration that need not be whole */
void cli_spans_id(struct text *, const struct spans *, const struct spans_row *);     /* TRACE:SPAN */
void cli_spans_trace_id(struct text *, const struct spans *, uint32_t trace);
void cli_spans_json_trace(struct json *, const char *key, const struct spans *, uint32_t trace);
void cli_spans_json_span(struct json *, const struct spans *, const struct spans_row *); /* "trace", "span" */
void cli_spans_stage(struct text *, const struct spans *, uint32_t service, uint32_t name);
/* Returns whether there are several services, so that tables show them. */
bool cli_spans_several(const struct spans *);

/* Advice: a sentence, the time and the number of cases (n of `of`) that it is about, and examples. */
struct cli_advice {
    struct text text;                    /* sentences, concatenated */
    struct { size_t end, n, of; double ns; uint32_t traces[SPANS_EXAMPLES]; size_t n_traces; } *v;
    size_t n, cap;
};
#define CLI_ADVICE ((struct cli_advice){.text = {.fd = -1}})
/* Adds the sentence that was appended to the text. */
void cli_advice_add(struct cli_advice *, double ns, size_t n, size_t of);
/* Adds an example to the last one. */
void cli_advice_example(struct cli_advice *, uint32_t trace);
/* Add attribute values that explain durations by themselves; as advice, and as the member "factors". */
void cli_advice_factors(struct cli_advice *, const struct spans *, const struct spans_factors *);
void cli_factors_json(const struct spans *, const struct spans_factors *, struct json *);
/* Write them as lines below a table, or as the member "suggestions". Both free the advice. */
void cli_advice_lines(struct cli_advice *, const struct spans *, struct text *);
void cli_advice_json(struct cli_advice *, const struct spans *, struct json *);

/* The commands. */
typedef int cli_spans_command(struct cli_spans *, struct text *out, struct err *);
cli_spans_command cli_spans_table, cli_spans_stats, cli_spans_outliers, cli_spans_compare, cli_spans_clusters,
    cli_spans_critpath;

#endif
