/* SPDX-License-Identifier: MIT */
#include "coord/merge.h"

#include <string.h>

/* ---- servers of other makes ----
 *
 * Trace Compass states no keys. Its outputs are known by their ids, and their columns by their places. */

#define OS "org.eclipse.tracecompass.analysis.os.linux.core."
#define INTERNAL_OS "org.eclipse.tracecompass.internal.analysis.os.linux.core."

static const struct known_column {
    const char *output;
    size_t place;
    const char *key;
} known_columns[] = {{INTERNAL_OS "threadstatus.ThreadStatusDataProvider", 1, "tid"},
    {INTERNAL_OS "cpuusage.CpuUsageDataProvider", 1, "tid"}, {OS "cpuusage.CpuUsageDataProvider", 1, "tid"},
    {OS "kernelmemoryusage", 1, "tid"},
    {"org.eclipse.tracecompass.internal.provisional.tmf.core.model.events.TmfEventTableDataProvider", 0, "timestamp"}};

/* Event table: its lines are in order of time, by its only column of that type. */
static const char event_table[] = "org.eclipse.tracecompass.internal.provisional.tmf.core.model.events."
                                  "TmfEventTableDataProvider";

/* Outputs whose values count since the previous sample: they are summed up. All others show the state at a time. */
static const char *const known_sums[] = {INTERNAL_OS "cpuusage.CpuUsageDataProvider",
    OS "cpuusage.CpuUsageDataProvider", OS "inputoutput.DisksIODataProvider",
    "org.eclipse.tracecompass.internal.tmf.core.histogram.HistogramDataProvider"};

static const struct merge_total totals[] = {
    {"org.eclipse.tracecompass.internal.tmf.core.histogram.HistogramDataProvider", false, {"total", "lost"}},
    {"org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider", true,
        {"total"}}};

static bool is_output(const char *output, const char *id)
{
    return output && !strcmp(output, id);
}

/* ---- stated rules ---- */

static void take_name(struct slice name, char out[MERGE_NAME])
{
    *out = '\0';
    if (!slice_is(name, '"') || name.n - 2 >= MERGE_NAME)
        return;
    memcpy(out, name.at + 1, name.n - 2);
    out[name.n - 2] = '\0';
}

enum tsp_merge coord_merge_stated(struct slice object)
{
    struct slice name = slice_get(object, "merge");
    for (int how = TSP_MERGE_NONE + 1; how < TSP_N_MERGES; how++)
        if (slice_equals(name, tsp_merge_name((enum tsp_merge)how)))
            return (enum tsp_merge)how;
    return TSP_MERGE_NONE;
}

bool coord_merge_has_key(struct slice object, const char *key)
{
    return slice_equals(slice_get(object, "key"), key);
}

/* ---- columns ---- */

static const char *known_key(const char *output, size_t place)
{
    for (size_t i = 0; i < sizeof known_columns / sizeof *known_columns; i++)
        if (known_columns[i].place == place && is_output(output, known_columns[i].output))
            return known_columns[i].key;
    return NULL;
}

struct merge_rule coord_merge_rule_of(const char *output, struct slice header, size_t place)
{
    struct merge_rule r = {.how = coord_merge_stated(header)};
    struct slice type = slice_get(header, "dataType");
    const char *known = slice_get(header, "key").at ? NULL : known_key(output, place);
    take_name(slice_get(header, "key"), r.key);
    take_name(slice_get(header, "of"), r.of);
    take_name(slice_get(header, "by"), r.by);
    if (known)
        strcpy(r.key, known); /* shorter than MERGE_NAME */
    if (!*r.of)
        strcpy(r.of, r.key);
    if (!*r.key)
        r.how = TSP_MERGE_NONE;
    r.is_duration = slice_equals(type, "DURATION");
    r.is_range = slice_equals(type, "TIME_RANGE");
    return r;
}

bool coord_merge_same_column(struct slice a, struct slice b)
{
    struct slice x = slice_get(a, "key"), y = slice_get(b, "key");
    return x.at && y.at ? slice_same_value(x, y) : slice_same_value(slice_get(a, "name"), slice_get(b, "name"));
}

size_t coord_merge_find_column(const struct slice *headers, size_t n, struct slice header)
{
    size_t i = 0;
    while (i < n && !coord_merge_same_column(headers[i], header))
        i++;
    return i;
}

bool coord_merge_is_time(const char *output, struct slice header, size_t place)
{
    struct slice type = slice_get(header, "dataType");
    type = type.at ? type : slice_get(header, "type");
    return slice_equals(type, "TIMESTAMP") || slice_equals(type, "TIME_RANGE") ||
        !strcmp(coord_merge_rule_of(output, header, place).key, "timestamp");
}

bool coord_merge_orders_lines(const char *output, struct slice column, size_t place)
{
    struct slice order = slice_get(column, "order");
    return order.at
        ? slice_equals(order, "ASCENDING")
        : slice_equals(slice_get(column, "type"), "TIMESTAMP") && (!place || is_output(output, event_table));
}

/* ---- series ---- */

enum tsp_merge coord_merge_of_series(const char *output, struct slice series)
{
    struct slice type = slice_get(slice_get(slice_get(series, "style"), "values"), "series-type");
    enum tsp_merge how = coord_merge_stated(series);
    if (how)
        return how;
    if (slice_equals(type, "scatter"))
        return TSP_CONCATENATE;
    for (size_t i = 0; i < sizeof known_sums / sizeof *known_sums; i++)
        if (is_output(output, known_sums[i]))
            return TSP_SUM;
    return TSP_LEVEL;
}

/* ---- lines of the whole experiment ---- */

const struct merge_total *coord_merge_total_of(const char *output)
{
    for (size_t i = 0; output && i < sizeof totals / sizeof *totals; i++)
        if (totals[i].family ? !strncmp(output, totals[i].output, strlen(totals[i].output))
                             : is_output(output, totals[i].output))
            return &totals[i];
    return NULL;
}

int coord_merge_total_line(const struct merge_total *w, struct slice entry, size_t place)
{
    bool stated = slice_get(entry, "key").at;
    for (int i = 0; w->lines[i]; i++)
        if (stated ? coord_merge_has_key(entry, w->lines[i]) && coord_merge_stated(entry) == TSP_SUM
                   : place == (size_t)i)
            return i;
    return -1;
}
