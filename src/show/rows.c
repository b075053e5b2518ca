#include "show/rows.h"

#include <stdio.h>

#include "graph/graph.h"

static uint64_t row_key(struct path_row r)
{
    return (uint64_t)(uint32_t)r.host << 32 | (uint32_t)r.row;
}

static void add_row(struct show *s, struct path_row row)
{
    bool fresh;
    uint64_t *at = map_put(&s->index, row_key(row), &fresh);
    if (!fresh)
        return;
    *at = s->rows.n;
    struct show_row r = {.row = row, .host = s->source->host_name(s->source->arg, row.host)};
    s->source->row_name(s->source->arg, row, &r.tid, &r.comm);
    vec_push(&s->rows, r);
}

/* Brings the rows of each machine together, keeping the order of appearance of machines and of rows. */
static void group_by_host(struct show *s)
{
    struct map order = {0};
    VEC(size_t) counts = {0};
    for (size_t i = 0; i < s->rows.n; i++) {
        bool fresh;
        uint64_t *host = map_put(&order, (uint32_t)s->rows.v[i].row.host, &fresh);
        if (fresh) {
            *host = counts.n;
            vec_push(&counts, 0);
        }
        counts.v[*host]++;
    }
    s->hosts = counts.n;
    struct show_row *sorted = mem_alloc(s->rows.n * sizeof *sorted + 1);
    for (size_t h = 0, start = 0; h < counts.n; h++) {
        size_t n = counts.v[h];
        counts.v[h] = start;
        start += n;
    }
    for (size_t i = 0; i < s->rows.n; i++) {
        struct show_row r = s->rows.v[i];
        size_t at = counts.v[*map_find(&order, (uint32_t)r.row.host)]++;
        *map_find(&s->index, row_key(r.row)) = at;
        sorted[at] = r;
    }
    for (size_t i = 0; i < s->rows.n; i++)
        sorted[i].first_of_host = i == 0 || sorted[i].row.host != sorted[i - 1].row.host;
    free(s->rows.v);
    s->rows.v = sorted;
    s->rows.cap = s->rows.n;
    vec_free(&counts);
    map_fini(&order);
}

void show_init(struct show *s, const struct path *p, const struct path_source *source)
{
    *s = (struct show){.path = p, .source = source};
    for (size_t i = 0; i < p->n_segments; i++)
        add_row(s, p->segments[i].row);
    if (!p->n_segments)
        add_row(s, p->start);
    group_by_host(s);
    for (size_t i = 0; i < p->n_segments; i++)
        s->rows.v[show_find(s, p->segments[i].row)].total += p->segments[i].end - p->segments[i].begin;
}

void show_fini(struct show *s)
{
    vec_free(&s->rows);
    map_fini(&s->index);
}

size_t show_find(const struct show *s, struct path_row row)
{
    const uint64_t *at = map_find(&s->index, row_key(row));
    return at ? *at : SIZE_MAX;
}

const char *show_name(const struct path_source *source, struct path_row row, char *buf, size_t n)
{
    int32_t tid;
    const char *comm;
    source->row_name(source->arg, row, &tid, &comm);
    if (tid < 0)
        snprintf(buf, n, "%s interrupt", source->host_name(source->arg, row.host));
    else
        snprintf(buf, n, "%s:%d %s", source->host_name(source->arg, row.host), tid, comm);
    return buf;
}

unsigned show_color(int state)
{
    static const unsigned colors[GRAPH_STATE_COUNT] = {
        [GRAPH_UNKNOWN] = 0x6b6b6b,
        [GRAPH_RUNNING] = 0x2e9e5b,
        [GRAPH_PREEMPTED] = 0xd98e04,
        [GRAPH_INTERRUPTED] = 0xe0c341,
        [GRAPH_BLOCKED] = 0xb5524a,
        [GRAPH_TIMER] = 0x5f8aa8,
        [GRAPH_NETWORK] = 0xb45cc4,
        [GRAPH_BLOCK_DEVICE] = 0x6a4fb3,
        [GRAPH_USER_INPUT] = 0x3a6ea5,
        [GRAPH_IPI] = 0xb79a1f,
        [GRAPH_HYPERVISOR] = 0x8a5a2b,
        [GRAPH_STOLEN] = 0xc62828,
    };
    return state >= 0 && state < GRAPH_STATE_COUNT ? colors[state] : colors[GRAPH_UNKNOWN];
}

/* Length of the well-formed UTF-8 sequence at s, or 0. */
static size_t sequence(const unsigned char *s)
{
    size_t n = s[0] < 0x80            ? 1
        : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
        : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
        : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                      : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    if (s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe)
        return 0; /* no characters, and no XML */
    return n;
}

static bool is_control(const unsigned char *s)
{
    return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

void show_text(struct text *t, const char *string, size_t cells)
{
    size_t all = text_cells(string, strlen(string)), shown = 0;
    for (const unsigned char *s = (const unsigned char *)string; *s && shown < cells; shown++) {
        size_t n = sequence(s);
        if (all > cells && shown + 1 == cells) {
            text_puts(t, "…");
            return;
        }
        if (n == 0 || is_control(s))
            text_putc(t, '?');
        else
            text_put(t, (const char *)s, n);
        s += n ? n : 1;
    }
}

void show_xml(struct text *t, const char *string)
{
    for (const unsigned char *s = (const unsigned char *)string; *s;) {
        size_t n = sequence(s);
        switch (*s) {
        case '&': text_puts(t, "&amp;"); break;
        case '<': text_puts(t, "&lt;"); break;
        case '>': text_puts(t, "&gt;"); break;
        case '"': text_puts(t, "&quot;"); break;
        case '\'': text_puts(t, "&#39;"); break;
        default:
            if (n == 0 || is_control(s))
                text_putc(t, '?');
            else
                text_put(t, (const char *)s, n);
        }
        s += n ? n : 1;
    }
}

int64_t show_tick(int64_t span, int count)
{
    int64_t step = 1;
    while (span / step > count) {
        int64_t lead = step;
        while (lead >= 10)
            lead /= 10;
        if (step > INT64_MAX / 10)
            return step;
        step = lead == 2 ? step / 2 * 5 : step * 2;
    }
    return step;
}
