/* SPDX-License-Identifier: MIT */
/* Pair of hosts: LTTV's results (category, extreme lines, middle line), and the curve we use. */
#include <math.h>
#include <stdlib.h>

#include "clock/curve_fit.h"
#include "clock/net.h"

struct sheared {
    struct pair_frame frame;
    struct point *sent, *received, *hull_sent, *hull_received;
    size_t ns, nr, hs, hr;
};

static bool shear_point(const struct pair_frame *f, struct net_message m, struct point *out)
{
    int64_t x, y;
    if (__builtin_sub_overflow(m.x, f->x0, &x) || __builtin_sub_overflow(m.y, f->y0, &y))
        return false;
    if (x < -CLOCK_SPAN_LIMIT || x > CLOCK_SPAN_LIMIT || y < -CLOCK_SPAN_LIMIT || y > CLOCK_SPAN_LIMIT)
        return false;
    *out = (struct point){x, y - x};
    return true;
}

static size_t shear(
    const struct pair_frame *f, const struct net_message *v, size_t n, struct point **out, uint64_t *dropped)
{
    size_t k = 0;
    *out = mem_alloc((n + 1) * sizeof **out);
    for (size_t i = 0; i < n; i++)
        if (shear_point(f, v[i], &(*out)[k]))
            k++;
    *dropped += n - k;
    clock_hull_sort(*out, k);
    return k;
}

/* Origin: the begin of the messages, or a message in the middle if single ones with damaged times are far off. */
static struct pair_frame frame_of(const struct clock_told *p)
{
    if ((i128)p->span_a.end - p->span_a.begin <= CLOCK_SPAN_LIMIT &&
        (i128)p->span_b.end - p->span_b.begin <= CLOCK_SPAN_LIMIT)
        return (struct pair_frame){p->span_a.begin, p->span_b.begin};
    const struct keep_side *more = p->sent.v.n > p->received.v.n ? &p->sent : &p->received;
    struct net_message middle = more->v.v[more->v.n / 2];
    return (struct pair_frame){middle.x, middle.y};
}

static void sheared_init(struct sheared *s, const struct clock_told *p, uint64_t *dropped)
{
    s->frame = frame_of(p);
    s->ns = shear(&s->frame, p->sent.v.v, p->sent.v.n, &s->sent, dropped);
    s->nr = shear(&s->frame, p->received.v.v, p->received.v.n, &s->received, dropped);
    s->hull_sent = mem_alloc((s->ns + 1) * sizeof *s->hull_sent);
    s->hull_received = mem_alloc((s->nr + 1) * sizeof *s->hull_received);
    s->hs = clock_hull_lower(s->sent, s->ns, s->hull_sent);
    s->hr = clock_hull_upper(s->received, s->nr, s->hull_received);
}

static void sheared_fini(struct sheared *s)
{
    free(s->sent);
    free(s->received);
    free(s->hull_sent);
    free(s->hull_received);
}

/* a0 of y = a0 + a1 x in absolute times */
static double offset_of(const struct pair_frame *f, const struct straight *s)
{
    return (double)((long double)f->y0 - (long double)f->x0 + s->d - s->slope * ((long double)f->x0 + s->x));
}

static struct straight line_through(struct point early, struct point late)
{
    return (struct straight){
        (long double)early.x, (long double)early.d, (long double)(late.d - early.d) / (long double)(late.x - early.x)};
}

/* Interior bisector of two lines, through their crossing (Duda's middle line; Haddad's formula for the slope). */
static struct straight bisector(const struct straight *flattest, const struct straight *steepest)
{
    long double bm = 1 + flattest->slope, bM = 1 + steepest->slope;
    if (bm == bM || bm + bM == 0)
        return *flattest;
    long double b = (bM * bm - 1 + sqrtl(1 + bM * bM * bm * bm + bM * bM + bm * bm)) / (bM + bm);
    /* crossing, relative to the flattest line's point */
    long double apart = steepest->d + steepest->slope * (flattest->x - steepest->x) - flattest->d;
    long double run = apart / (bm - bM);
    return (struct straight){flattest->x + run, flattest->d + flattest->slope * run, b - 1};
}

static void describe_bounds(struct clock_pair *out, const struct pair_frame *f, const struct hull_bound *flattest,
    const struct hull_bound *steepest, struct straight *middle)
{
    struct straight low = {0}, high = {0};
    if (flattest->exists) {
        low = line_through(flattest->early, flattest->late);
        out->drift_min = (double)(1 + low.slope);
        out->offset_at_min_ns = offset_of(f, &low);
    }
    if (steepest->exists) {
        high = line_through(steepest->early, steepest->late);
        out->drift_max = (double)(1 + high.slope);
        out->offset_at_max_ns = offset_of(f, &high);
    }
    out->category = flattest->exists && steepest->exists ? CLOCK_ACCURATE : CLOCK_ONE_SIDED;
    if (out->category == CLOCK_ACCURATE) {
        *middle = bisector(&low, &high);
        out->drift = (double)(1 + middle->slope);
        out->offset_ns = offset_of(f, middle);
    }
}

static void describe(struct clock_pair *out, const struct sheared *s, struct straight *middle)
{
    out->drift_min = out->offset_at_max_ns = -INFINITY;
    out->drift_max = out->offset_at_min_ns = INFINITY;
    out->drift = out->offset_ns = NAN;
    out->error_ns = 0;
    out->hull_ab = s->hs;
    out->hull_ba = s->hr;
    if (!s->ns || !s->nr) {
        out->category = s->ns || s->nr ? CLOCK_ONE_WAY : CLOCK_ABSENT;
        return;
    }
    if (clock_hull_fits(s->hull_sent, s->hs, s->hull_received, s->hr)) {
        struct hull_bound flattest, steepest;
        clock_hull_slopes(s->hull_sent, s->hs, s->hull_received, s->hr, &flattest, &steepest);
        describe_bounds(out, &s->frame, &flattest, &steepest, middle);
        return;
    }
    out->category = CLOCK_APPROXIMATE;
    struct hull_line line;
    if (!clock_hull_compromise(s->hull_sent, s->hs, s->hull_received, s->hr, &line))
        return;
    *middle = line_through(line.early, line.late);
    out->drift = (double)(1 + middle->slope);
    out->offset_ns = offset_of(&s->frame, middle);
    out->error_ns = (double)line.error;
}

static struct course_limits limits_of(const struct clock_options *o, const struct clock_told *kept)
{
    struct course_limits l = {.prior = kept->prior,
        .low = kept->low,
        .high = kept->high,
        .sent_each = (double)kept->sent.all / (double)(kept->sent.v.n + !kept->sent.v.n),
        .received_each = (double)kept->received.all / (double)(kept->received.v.n + !kept->received.v.n)};
    double low = o->min_drift, high = o->max_drift;
    if (low == 0 && high == 0) { /* any slope that a map and its inverse can represent */
        low = 0.36;
        high = 2.8;
    }
    l.sane_low = slope_from(fmax(low, 0.36) - 1);
    l.sane_high = slope_from(fmin(high, 2.8) - 1);
    return l;
}

/* Span of a host's trace and its messages of one pair. */
static struct net_span span_of(const struct clock_net *net, size_t host, const struct net_span *messages)
{
    struct net_span s = net->hosts.v[host].trace;
    if (messages->known) {
        clock_span_extend(&s, messages->begin);
        clock_span_extend(&s, messages->end);
    }
    return s;
}

/* Part of a's time in which the pair's curve is needed, relative: both traces. */
static void domain(
    const struct clock_net *net, const struct net_pair *p, const struct pair_frame *f, int64_t *begin, int64_t *end)
{
    struct net_span a = span_of(net, p->out.a, &p->span_a), b = span_of(net, p->out.b, &p->span_b);
    i128 first = (i128)a.begin - f->x0, last = (i128)a.end - f->x0, first_b = (i128)b.begin - f->y0,
         last_b = (i128)b.end - f->y0;
    first = first_b < first ? first_b : first;
    last = last_b > last ? last_b : last;
    *begin = clamp64(sat64(first), -2 * CLOCK_SPAN_LIMIT, 2 * CLOCK_SPAN_LIMIT - 10000);
    *end = clamp64(sat64(last), *begin + 10000, 2 * CLOCK_SPAN_LIMIT);
}

static bool sane(const struct course_limits *l, const struct straight *s)
{
    return s->slope >= slope_value(l->sane_low) && s->slope <= slope_value(l->sane_high);
}

/* Solves as LTTV: the middle line, or the best effort; nothing for pairs that messages bound on one side only. */
static void solve_plain(const struct clock_net *net, struct net_pair *p, const struct sheared *s,
    const struct course_limits *l, const struct straight *middle)
{
    int64_t begin, end;
    domain(net, p, &s->frame, &begin, &end);
    if (isnan(p->out.drift) || !sane(l, middle))
        return;
    if (p->out.category == CLOCK_APPROXIMATE) {
        /* Estimate, not a bound: no line is true, so the error is the sum of violations. */
        int64_t error = sat64((i128)ceil(fmin(p->out.error_ns, 4e18)));
        clock_curve_of_line(middle, &s->frame, begin, end, error, slope_from(200e-6L), &p->curve);
        p->usable = true;
        return;
    }
    struct course course;
    if (clock_course_fit(s->sent, s->ns, s->received, s->nr, l, &course)) {
        clock_curve_of_course(&course, &s->frame, begin, end, middle, &p->curve);
        p->usable = true;
    }
    clock_course_free(&course);
}

static void solve_prior(
    const struct clock_net *net, struct net_pair *p, const struct sheared *s, const struct course_limits *l)
{
    int64_t begin, end;
    struct course course;
    domain(net, p, &s->frame, &begin, &end);
    if (clock_course_fit(s->sent, s->ns, s->received, s->nr, l, &course)) {
        clock_curve_of_course(&course, &s->frame, begin, end, NULL, &p->curve);
        p->usable = true;
        p->against_prior = course.against_prior;
        p->outliers = course.outliers;
    }
    clock_course_free(&course);
}

static void solve_same(const struct clock_net *net, struct net_pair *p)
{
    struct net_span a = span_of(net, p->out.a, &p->span_a), b = span_of(net, p->out.b, &p->span_b);
    p->out.category = CLOCK_ACCURATE;
    p->out.drift = p->out.drift_min = p->out.drift_max = 1;
    p->out.offset_ns = p->out.offset_at_min_ns = p->out.offset_at_max_ns = p->out.error_ns = 0;
    int64_t begin = a.begin < b.begin ? a.begin : b.begin, end = a.end > b.end ? a.end : b.end;
    clock_curve_identity(
        &p->curve, begin, sat64((i128)end - begin > CLOCK_SPAN_LIMIT ? (i128)begin + CLOCK_SPAN_LIMIT : end));
    p->usable = true;
    p->width = 0;
}

void clock_pair_reset(struct net_pair *p)
{
    clock_curve_free(&p->curve);
    p->usable = false;
}

void clock_pair_solve(const struct clock_net *net, struct net_pair *p, const struct clock_told *messages)
{
    p->out.messages_ab = messages->sent.all;
    p->out.messages_ba = messages->received.all;
    p->out.hull_ab = p->out.hull_ba = 0;
    if (p->same) {
        solve_same(net, p);
        return;
    }
    if (!messages->sent.v.n && !messages->received.v.n)
        return;
    struct sheared s;
    struct straight middle = {0};
    struct course_limits limits = limits_of(&net->options, messages);
    uint64_t dropped = 0;
    sheared_init(&s, messages, &dropped);
    p->outliers = 0;
    p->against_prior = false;
    describe(&p->out, &s, &middle);
    if (limits.prior)
        solve_prior(net, p, &s, &limits);
    else
        solve_plain(net, p, &s, &limits, &middle);
    p->outliers += dropped + messages->dropped;
    if (p->usable)
        p->width = clock_curve_mean_error(&p->curve);
    sheared_fini(&s);
}
