/* What the providers of state rows share. */
#include "views/state_rows.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/time.h"

/* ---- looks ---- */

/* Keys are the names that Trace Compass uses for the same states; heights are its heights. */
static const struct look {
    const char *key, *color;
    double height, opacity;
} looks[STATE_VALUES] = {
    [STATE_USERMODE] = {"Usermode", LOOK_RUNNING, 1, -1},
    [STATE_SYSCALL] = {"System call", LOOK_SYSCALL, 1, -1},
    [STATE_INTERRUPTED] = {"Interrupt", LOOK_INTERRUPTED, 0.75, -1},
    [STATE_WAIT_FOR_CPU] = {"Wait for CPU", LOOK_PREEMPTED, 0.5, -1},
    [STATE_WAIT_BLOCKED] = {"Wait blocked", LOOK_BLOCKED, 0.5, -1},
    [STATE_WAIT_UNKNOWN] = {"Wait", "#a88f8c", 0.5, -1},
    [STATE_IDLE] = {"Idle", LOOK_IDLE, 0.25, 0},
    [STATE_IRQ] = {"IRQ", LOOK_INTERRUPTED, 1, -1},
    [STATE_SOFTIRQ] = {"Soft IRQ", "#c9a227", 1, -1},
    [STATE_SOFTIRQ_RAISED] = {"Soft IRQ raised", "#e8d9a0", 0.5, -1},
    [STATE_ACTIVE] = {"Active", LOOK_INTERRUPTED, 0.75, -1},
    [STATE_UNKNOWN] = {"Unknown", LOOK_UNKNOWN, 0.33, -1},
    [STATE_FUTEX_WAIT] = {"Futex wait", LOOK_BLOCKED, 1, -1},
    [STATE_FUTEX_WAKE] = {"Futex wake", LOOK_RUNNING, 0.75, -1},
};

const char *const view_palette[VIEW_PALETTE] = {"#4c8c6b", "#5b7fb5", "#b8894a", "#a4607a", "#7a6bb0", "#4f9aa0",
    "#8f9a4c", "#b56f5b", "#6d8f4f", "#8a6f9e", "#5f8fae", "#a08458"};

const char *view_state_key(int value)
{
    return value > STATE_NONE && value < STATE_VALUES ? looks[value].key : NULL;
}

void view_write_state_styles(struct tsp_answer *answer, unsigned states)
{
    for (int i = 0; i < STATE_VALUES; i++)
        if (looks[i].key && states >> i & 1)
            tsp_write_style(
                answer, looks[i].key, NULL, looks[i].color, looks[i].height, looks[i].opacity, looks[i].key);
}

/* ---- rows ---- */

enum { NEAR = 16 };

int64_t view_sample_time(const struct view_host *h, int64_t t)
{
    int64_t at = view_to_host(h, t);
    if (!h->map)
        return at;
    /* A few steps at most: at the ends of 64 bits the conversions give what is nearest, and no time is right. */
    for (int i = 0; i < NEAR && at > INT64_MIN && view_to_reference(h, at) > t; i++)
        at--;
    for (int i = 0; i < NEAR && at < INT64_MAX && view_to_reference(h, at + 1) <= t; i++)
        at++;
    return at;
}

void view_add_property(struct view_shown *s, const char *key, const char *value)
{
    if (value && s->n < VIEW_SHOWN_PROPERTIES)
        s->properties[s->n++] = (struct tsp_property){key, value};
}

void view_add_number(struct view_shown *s, const char *key, int64_t value)
{
    if (s->n == VIEW_SHOWN_PROPERTIES)
        return;
    snprintf(s->numbers[s->n], sizeof s->numbers[0], "%" PRId64, value);
    view_add_property(s, key, s->numbers[s->n]);
}

struct view_sampler view_begin_sampling(
    struct views *x, const struct tsp_query *q, struct tsp_answer *answer, view_show_state *show)
{
    struct view_sampler s = {.x = x, .q = q, .answer = answer, .show = show};
    s.times = arena_new(q->http->arena, int64_t *, x->n_hosts + 1);
    s.found = arena_new(q->http->arena, struct state_interval, q->n_times + 1);
    tsp_begin_rows(answer);
    return s;
}

void view_end_sampling(struct view_sampler *s)
{
    tsp_end_rows(s->answer);
}

static const int64_t *times_of(struct view_sampler *s, size_t host)
{
    if (!s->times[host]) {
        s->times[host] = arena_new(s->q->http->arena, int64_t, s->q->n_times + 1);
        for (size_t i = 0; i < s->q->n_times; i++)
            s->times[host][i] = view_sample_time(&s->x->hosts[host], s->q->times[i]);
    }
    return s->times[host];
}

/* The filter's tags of an interval of [begin, end) on the reference clock. */
static int tags_of(const struct view_sampler *s, struct view_shown *shown, int64_t begin, int64_t end)
{
    view_add_property(shown, "label", shown->label ? shown->label : "");
    view_add_number(shown, "start", begin);
    view_add_number(shown, "duration", end - begin);
    return tsp_filter_tags(s->q, shown->properties, shown->n);
}

static bool is_hidden(int tags)
{
    return tags & 4;
}
static bool is_match(int tags)
{
    return !(tags & (1 | 4));
}

/* Writes the interval unless `only_matches` and the filter is against it. */
static bool write_interval(
    const struct view_sampler *s, const struct view_state_row *row, const struct state_interval *iv, bool only_matches)
{
    const struct view_host *h = &s->x->hosts[row->host];
    int64_t begin = view_to_reference(h, iv->begin), end = view_to_reference(h, iv->end);
    struct view_shown shown;
    shown.n = 0;
    shown.label = shown.style_key = NULL;
    if (begin >= end)
        return false;
    s->show(s->x, row, iv, s->q->filter != NULL, &shown);
    int tags = s->q->filter && shown.style_key ? tags_of(s, &shown, begin, end) : 0;
    if (only_matches && (!shown.style_key || !is_match(tags)))
        return false;
    struct tsp_state state = {begin, end, shown.label, shown.style_key, tags};
    if (is_hidden(tags))
        state.label = state.style_key = NULL;
    tsp_write_state(s->answer, &state);
    return true;
}

/* Between two samples lies more than they show: the first that the filter wants stands for it. */
static void write_match_within(
    const struct view_sampler *s, const struct view_state_row *row, int64_t begin, int64_t end)
{
    enum { BATCH = 64 };
    struct state_interval batch[BATCH];
    const struct state_store *states = s->x->hosts[row->host].states;
    while (begin < end && !http_gone(s->q->http)) {
        size_t n = state_range(states, row->kind, row->row, begin, end, batch, BATCH);
        for (size_t i = 0; i < n; i++)
            if (batch[i].begin >= begin && batch[i].end <= end && write_interval(s, row, &batch[i], true))
                return;
        if (n < BATCH || batch[n - 1].end <= begin)
            return;
        begin = batch[n - 1].end;
    }
}

bool view_sample_row(struct view_sampler *s, const struct view_state_row *row)
{
    return view_sample_row_by(s, row, NULL);
}

bool view_sample_row_by(struct view_sampler *s, const struct view_state_row *row, view_sample_function *sample)
{
    const struct state_store *states = s->x->hosts[row->host].states;
    if (tsp_full(s->answer) || http_gone(s->q->http))
        return false;
    if (!states || row->row >= state_rows(states, row->kind))
        return true;
    const int64_t *times = times_of(s, row->host);
    size_t n = sample ? sample(states, row->row, times, s->q->n_times, s->found)
                      : state_sample(states, row->kind, row->row, times, s->q->n_times, s->found);
    tsp_begin_row(s->answer, row->entry);
    for (size_t i = 0; i < n; i++) {
        if (i && s->q->deep && s->q->filter && s->found[i - 1].end < s->found[i].begin)
            write_match_within(s, row, s->found[i - 1].end, s->found[i].begin);
        write_interval(s, row, &s->found[i], false);
    }
    tsp_end_row(s->answer);
    return true;
}

/* ---- rows of intervals that are at hand ---- */

static int64_t begin_of(const struct view_spans *s, size_t i)
{
    int64_t begin, end;
    s->bounds(s->arg, i, &begin, &end);
    return begin;
}

static int64_t end_of(const struct view_spans *s, size_t i)
{
    int64_t begin, end;
    s->bounds(s->arg, i, &begin, &end);
    return end;
}

size_t view_find_span(const struct view_spans *s, int64_t t)
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (begin_of(s, mid) <= t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? lo - 1 : SIZE_MAX;
}

/* First of the query's times from number i on that is >= t. */
static size_t time_from(const struct tsp_query *q, size_t i, int64_t t)
{
    size_t lo = i, hi = q->n_times;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (q->times[mid] < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void view_write_spans(const struct view_spans *s, const struct views *x, const struct tsp_query *q, int64_t entry,
    struct tsp_answer *answer)
{
    size_t next = SIZE_MAX; /* intervals before it are written or passed by; the first sample has nothing before it */
    tsp_begin_row(answer, entry);
    for (size_t i = time_from(q, 0, x->data.begin); i < q->n_times && !tsp_full(answer);) {
        int64_t t = q->times[i];
        size_t at = view_find_span(s, t), after = at == SIZE_MAX ? 0 : at + 1;
        bool inside = at != SIZE_MAX && t < end_of(s, at);
        bool found = false;
        for (size_t k = next;
             q->deep && q->filter && k < (inside ? at : after) && !found && (k % 65536 || !http_gone(q->http)); k++)
            found = s->write(s->arg, k, true);
        next = after;
        if (inside) {
            s->write(s->arg, at, false);
            i = time_from(q, i + 1, end_of(s, at));
            continue;
        }
        int64_t begin = at != SIZE_MAX ? end_of(s, at) : x->data.begin,
                end = after < s->n ? begin_of(s, after) : x->data.end;
        if (t >= end) /* behind the experiment's end */
            break;
        tsp_write_state(answer, &(struct tsp_state){.start = begin, .end = end});
        i = time_from(q, i + 1, end);
    }
    tsp_end_row(answer);
}

/* ---- tooltips ---- */

bool view_tooltip_target(const struct tsp_query *q, int64_t *entry, int64_t *time)
{
    *entry = q->element_entry >= 0 ? q->element_entry : q->n_items ? q->items[0] : -1;
    *time = q->n_times ? q->times[0] : q->element_time;
    return *entry >= 0;
}

static void kv_duration(struct tsp_answer *answer, const char *key, int64_t ns)
{
    struct text t = {.fd = -1};
    text_duration(&t, ns);
    tsp_write_tip(answer, key, text_cstr(&t));
    text_fini(&t);
}

static void kv_time(struct tsp_answer *answer, const char *key, int64_t ns)
{
    struct text t = {.fd = -1};
    time_write_utc(&t, ns, true);
    tsp_write_tip(answer, key, text_cstr(&t));
    text_fini(&t);
}

void view_write_span(struct tsp_answer *answer, int64_t begin, int64_t end)
{
    kv_time(answer, "Start", begin);
    kv_time(answer, "End", end);
    kv_duration(answer, "Duration", end - begin);
}

void view_write_clock_error(struct tsp_answer *answer, const struct view_host *h, int64_t t)
{
    if (!h->map || h->map->predecessor < 0)
        return;
    struct text text = {.fd = -1};
    text_puts(&text, "±");
    text_duration(&text, clock_error_at(h->map, view_to_host(h, t)));
    tsp_write_tip(answer, "Clock error", text_cstr(&text));
    text_fini(&text);
}

void view_no_arrows(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    json_begin_array(&answer->json);
    json_end_array(&answer->json);
}
