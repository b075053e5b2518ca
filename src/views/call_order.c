#include "views/call_order.h"

static void get(const struct call_row *r, size_t k, struct stack_call *out)
{
    stack_call(r->p->s, r->row, stack_whole_at(r->p->s, r->row, k), out);
}

static int64_t begin_of(const struct call_order *o, const struct call_row *r, size_t k)
{
    struct stack_call c;
    get(r, k, &c);
    return view_to_reference(&o->x->hosts[r->p->host], c.begin);
}

static void set_next(const struct call_order *o, struct call_row *r, size_t next)
{
    r->next = next;
    r->begin = next < r->whole ? begin_of(o, r, next) : INT64_MAX;
}

void call_order_init(struct call_order *o, struct views *x, struct arena *a)
{
    const struct stacks *all = stacks_of(x);
    size_t rows = 0;
    for (size_t i = 0; i < all->n; i++)
        rows += stack_rows(all->v[i].s);
    *o = (struct call_order){.x = x, .rows = arena_new(a, struct call_row, rows + 1), .place = SIZE_MAX};
    for (size_t i = 0; i < all->n; i++)
        for (size_t row = 0; row < stack_rows(all->v[i].s); row++) {
            const struct stack_store *s = all->v[i].s;
            struct call_row *r = &o->rows[o->n_rows++];
            *r = (struct call_row){
                .p = &all->v[i], .row = row, .whole = stack_whole_before(s, row, stack_calls(s, row))};
            o->n += r->whole;
        }
}

static size_t before(const struct call_order *o, int64_t t)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n_rows; i++) {
        const struct call_row *r = &o->rows[i];
        n += stack_whole_before(r->p->s, r->row, stacks_begun(o->x, r->p, r->row, 0, t));
    }
    return n;
}

/* The latest time before which no more than `place` begin; then those that begin at it, row after row. */
static void seek(struct call_order *o, size_t place)
{
    int64_t lo = o->x->data.begin, hi = o->x->data.end;
    while (lo < hi) {
        int64_t mid = (int64_t)((uint64_t)lo + ((uint64_t)hi - (uint64_t)lo) / 2 + 1);
        if (before(o, mid) <= place)
            lo = mid;
        else
            hi = mid - 1;
    }
    size_t left = place - before(o, lo);
    for (size_t i = 0; i < o->n_rows; i++) {
        struct call_row *r = &o->rows[i];
        set_next(o, r, stack_whole_before(r->p->s, r->row, stacks_begun(o->x, r->p, r->row, 0, lo)));
        for (; left && r->begin == lo; left--)
            set_next(o, r, r->next + 1);
    }
}

/* The row whose call comes next. */
static size_t head(const struct call_order *o)
{
    size_t best = 0;
    for (size_t i = 1; i < o->n_rows; i++)
        if (o->rows[i].begin < o->rows[best].begin)
            best = i;
    return best;
}

/* The row whose call came last. */
static size_t tail(const struct call_order *o)
{
    size_t best = 0;
    int64_t latest = INT64_MIN;
    for (size_t i = 0; i < o->n_rows; i++) {
        int64_t t = o->rows[i].next ? begin_of(o, &o->rows[i], o->rows[i].next - 1) : INT64_MIN;
        if (o->rows[i].next && t >= latest) {
            latest = t;
            best = i;
        }
    }
    return best;
}

const struct call_row *call_order_at(struct call_order *o, size_t place, struct stack_call *out)
{
    if (place != o->place) {
        if (o->place != SIZE_MAX && place == o->place + 1) {
            set_next(o, &o->rows[o->at], o->rows[o->at].next + 1);
            o->at = head(o);
        } else if (o->place != SIZE_MAX && place + 1 == o->place) {
            o->at = tail(o);
            set_next(o, &o->rows[o->at], o->rows[o->at].next - 1);
        } else {
            seek(o, place);
            o->at = head(o);
        }
        o->place = place;
    }
    get(&o->rows[o->at], o->rows[o->at].next, out);
    return &o->rows[o->at];
}
