/* SPDX-License-Identifier: MIT */
/* Runs print plans: the inner loop of event output. */
#include "base/mem.h"
#include "ctf/print_run.h"

static const char pairs[201] = "0001020304050607080910111213141516171819"
                               "2021222324252627282930313233343536373839"
                               "4041424344454647484950515253545556575859"
                               "6061626364656667686970717273747576777879"
                               "8081828384858687888990919293949596979899";

static inline char *two(char *o, uint32_t v)
{
    memcpy(o, pairs + 2 * v, 2);
    return o + 2;
}

static inline char *four(char *o, uint32_t v)
{
    return two(two(o, v / 100), v % 100);
}

static inline char *eight(char *o, uint32_t v)
{
    return four(four(o, v / 10000), v % 10000);
}

static inline char *up_to_four(char *o, uint32_t v)
{
    if (v < 10) {
        *o = (char)('0' + v);
        return o + 1;
    }
    if (v < 100)
        return two(o, v);
    if (v < 1000) {
        *o = (char)('0' + v / 100);
        return two(o + 1, v % 100);
    }
    return four(o, v);
}

static inline char *print_u32(char *o, uint32_t v)
{
    if (v < 10000)
        return up_to_four(o, v);
    if (v < 100000000)
        return four(up_to_four(o, v / 10000), v % 10000);
    return eight(up_to_four(o, v / 100000000), v % 100000000);
}

char *print_u64(char *o, uint64_t v)
{
    if (v <= UINT32_MAX)
        return print_u32(o, (uint32_t)v);
    uint64_t high = v / 100000000;
    if (high <= UINT32_MAX)
        return eight(print_u32(o, (uint32_t)high), (uint32_t)(v % 100000000));
    return eight(
        eight(up_to_four(o, (uint32_t)(high / 100000000)), (uint32_t)(high % 100000000)), (uint32_t)(v % 100000000));
}

char *print_nine(char *o, uint32_t v)
{
    *o = (char)('0' + v / 100000000);
    return eight(o + 1, v % 100000000);
}

char *print_i64(char *o, int64_t v)
{
    if (v >= 0)
        return print_u64(o, (uint64_t)v);
    *o = '-';
    return print_u64(o + 1, -(uint64_t)v);
}

static inline char *print_i32(char *o, int32_t v)
{
    if (v >= 0)
        return print_u32(o, (uint32_t)v);
    *o = '-';
    return print_u32(o + 1, -(uint32_t)v);
}

static inline char *print_hex(char *o, uint64_t v)
{
    unsigned n = (67 - (unsigned)__builtin_clzll(v | 1)) / 4;
    *o++ = '0';
    *o++ = 'x';
    for (char *p = o + n; p > o; v >>= 4)
        *--p = "0123456789ABCDEF"[v & 15];
    return o + n;
}

/* Makes room for `need` more bytes and what follows them. */
static char *make_room(struct print_run *r, char *o, size_t need)
{
    struct text *t = r->out;
    t->n = (size_t)(o - t->v);
    text_room(t, need + 2 * PRINT_ROOM);
    r->limit = t->v + t->cap - PRINT_ROOM;
    return t->v + t->n;
}

static inline char *room(struct print_run *r, char *o, size_t need)
{
    return r->limit - o >= (ptrdiff_t)need ? o : make_room(r, o, need);
}

char *print_put_string(struct print_run *r, char *o, const char *s, size_t n)
{
    if (r->plan->json)
        return print_json_string(room(r, o, 6 * n + 2), s, n);
    return print_text_string(room(r, o, 4 * n + 2), s, n);
}

struct labels {
    struct print_run *r;
    char *o;
    unsigned n;
};

static void text_label(void *arg, const char *label)
{
    struct labels *l = arg;
    if (l->n++)
        l->o = stpcpy(l->o, ", ");
    l->o = print_put_string(l->r, l->o, label, strlen(label));
}

static void json_label(void *arg, const char *label)
{
    struct labels *l = arg;
    if (l->n++) { /* "A" becomes "A|B" */
        l->o[-1] = '|';
        ptrdiff_t at = l->o - l->r->out->v;
        l->o = print_put_string(l->r, l->o, label, strlen(label));
        char *quote = l->r->out->v + at;
        memmove(quote, quote + 1, (size_t)(l->o - quote - 1));
        l->o--;
        return;
    }
    l->o = print_put_string(l->r, l->o, label, strlen(label));
}

static void count_label(void *arg, const char *label)
{
    struct labels *l = arg;
    l->n++;
}

char *print_put_enum(struct print_run *r, char *o, const struct print_op *op, int64_t v)
{
    const struct ctf_type *t = op->type;
    bool json = r->plan->json, braces = false;
    const uint32_t *order = op->flag ? r->plan->ranges + op->b : NULL;
    if (!json && t->shown_as != CTF_SHOWN_BY_RULE) { /* babeltrace2 shows several labels of CTF 2 as a list */
        struct labels several = {.r = r};
        print_labels(t, v, order, count_label, &several);
        braces = several.n > 1;
    }
    o = stpcpy(o, json ? "{\"label\":" : braces ? "( { " : "( ");
    struct labels l = {.r = r, .o = o};
    print_labels(t, v, order, json ? json_label : text_label, &l);
    o = l.o;
    if (json) {
        o = stpcpy(o, l.n ? ",\"value\":" : "null,\"value\":");
        o = print_int_type(t)->is_signed ? print_i64(o, v) : print_u64(o, (uint64_t)v);
        *o++ = '}';
        return o;
    }
    o = stpcpy(o, braces ? " } : container = " : l.n ? " : container = " : "<unknown> : container = ");
    o = print_text_int(o, print_int_type(t), v);
    return stpcpy(o, " )");
}

static char *put_float(struct print_run *r, char *o, const struct ctf_type *t)
{
    uint64_t bits = print_bits(r->data, r->pos, (unsigned)t->size_bits, t->big_endian);
    double v;
    if (t->size_bits == 32) {
        uint32_t low = (uint32_t)bits;
        float f;
        memcpy(&f, &low, 4);
        v = (double)f;
    } else {
        memcpy(&v, &bits, 8);
    }
    return r->plan->json ? print_json_float(o, v, t->size_bits == 32) : print_text_float(o, v);
}

static char *run(struct print_run *r, const struct print_op *op, const struct print_op *end, char *o);

/* Elements shown of a list of elements without content, which can claim any length. */
enum { MOST_EMPTY = 4096 };

static char *run_loop(struct print_run *r, const struct print_op *op, char *o)
{
    const struct print_op *body = op + 1, *end = r->plan->ops + op->b;
    uint64_t n = op->flag ? r->slots[op->a] : op->a;
    bool silent = !op->type, json = r->plan->json;
    uint64_t start = r->pos;
    for (uint64_t i = 0; i < n; i++) {
        if (i == MOST_EMPTY && r->pos == start)
            break;
        if (!silent) {
            o = room(r, o, 32);
            if (json) {
                *o = ',';
                o += i > 0;
            } else {
                o = print_u64(stpcpy(o, i ? ", [" : " ["), i);
                o = stpcpy(o, "] = ");
            }
        }
        o = run(r, body, end, o);
    }
    return o;
}

static char *run_choice(struct print_run *r, const struct print_op *op, char *o)
{
    const struct ctf_ref *ref = op->type->tag;
    uint64_t tag = r->slots[ref->slot];
    bool is_signed = print_int_type(ref->target)->is_signed;
    for (uint32_t i = 0; i < ref->n_choices; i++) {
        const struct ctf_choice *c = &ref->choices[i];
        bool hit = is_signed ? (int64_t)tag >= c->lo && (int64_t)tag <= c->hi
                             : tag >= (uint64_t)c->lo && tag <= (uint64_t)c->hi;
        if (hit && c->option < op->a) {
            const struct print_op *option = op + 1 + c->option;
            return run(r, r->plan->ops + option->a, r->plan->ops + option->b, o);
        }
    }
    return op->flag ? stpcpy(o, r->plan->json ? "null" : "<none>") : o;
}

/* Runs moves, and writes values that are not plain numbers. */
static char *run_other(struct print_run *r, const struct print_op *op, char *o)
{
    const uint8_t *data = r->data;
    switch (op->code) {
    case PRINT_AT_PACKET: r->pos = op->a; break;
    case PRINT_AT_HEADER: r->pos = r->header + op->a; break;
    case PRINT_AT_CONTEXT: r->pos = r->context + op->a; break;
    case PRINT_AT_PAYLOAD: r->pos = r->payload + op->a; break;
    case PRINT_ALIGN: r->pos = (r->pos + op->a - 1) & ~(uint64_t)(op->a - 1); break;
    case PRINT_SKIP: r->pos += op->a; break;
    case PRINT_SKIP_STRING: r->pos += 8 * (strlen((const char *)data + (r->pos >> 3)) + 1); break;
    case PRINT_SKIP_MANY: r->pos += op->a * (op->flag ? r->slots[op->b] : op->b); break;
    case PRINT_REMEMBER: r->slots[op->a] = (uint64_t)print_int_at(op->type, data, r->pos); break;
    case PRINT_INT:
        if (r->plan->json) {
            int64_t v = print_int_at(op->type, data, r->pos);
            o = op->type->is_signed ? print_i64(o, v) : print_u64(o, (uint64_t)v);
        } else {
            o = print_text_int(o, op->type, print_int_at(op->type, data, r->pos));
        }
        r->pos += op->a;
        break;
    case PRINT_ENUM:
        o = print_put_enum(r, o, op, print_int_at(op->type, r->data, r->pos));
        r->pos += op->a;
        break;
    case PRINT_FLOAT:
        o = put_float(r, o, op->type);
        r->pos += (uint64_t)op->type->size_bits;
        break;
    case PRINT_REMEMBER_ANY: r->slots[op->a] = ctf_int_at(op->type, data, r->pos, &(uint64_t){0}); break;
    case PRINT_OTHER:
    case PRINT_SKIP_OTHER: o = print_other(r, op, o); break;
    case PRINT_CHARS: {
        const char *s = (const char *)data + (r->pos >> 3);
        uint64_t n = op->flag ? r->slots[op->b] : op->a;
        o = print_put_string(r, o, s, strnlen(s, n));
        r->pos += 8 * n;
        break;
    }
    default: break;
    }
    return o;
}

#define NUMBER(type, print) \
    { \
        type v; \
        memcpy(&v, r->data + (r->pos >> 3), sizeof v); \
        o = print(o, v); \
        r->pos += 8 * sizeof v; \
        break; \
    }

static char *run(struct print_run *r, const struct print_op *op, const struct print_op *end, char *o)
{
    const char *literals = r->plan->literals;
    while (op < end) {
        if (op->literal_n) {
            o = room(r, o, op->literal_n);
            /* Short literals, the majority, are copied with a fixed size, which is no call. Room and literals are
             * longer by that much. */
            if (op->literal_n <= PRINT_SHORT)
                memcpy(o, literals + op->literal, PRINT_SHORT);
            else
                memcpy(o, literals + op->literal, op->literal_n);
            o += op->literal_n;
        }
        switch (op->code) {
        case PRINT_LITERAL: break;
        case PRINT_U8: NUMBER(uint8_t, print_u32)
        case PRINT_U16: NUMBER(uint16_t, print_u32)
        case PRINT_U32: NUMBER(uint32_t, print_u32)
        case PRINT_U64: NUMBER(uint64_t, print_u64)
        case PRINT_S8: NUMBER(int8_t, print_i32)
        case PRINT_S16: NUMBER(int16_t, print_i32)
        case PRINT_S32: NUMBER(int32_t, print_i32)
        case PRINT_S64: NUMBER(int64_t, print_i64)
        case PRINT_X8: NUMBER(uint8_t, print_hex)
        case PRINT_X16: NUMBER(uint16_t, print_hex)
        case PRINT_X32: NUMBER(uint32_t, print_hex)
        case PRINT_X64: NUMBER(uint64_t, print_hex)
        case PRINT_STRING: {
            const char *s = (const char *)r->data + (r->pos >> 3);
            size_t n = strlen(s);
            o = print_put_string(r, o, s, n);
            r->pos += 8 * (n + 1);
            break;
        }
        case PRINT_LOOP:
            o = run_loop(r, op, o);
            op = r->plan->ops + op->b;
            continue;
        case PRINT_CHOOSE:
            o = run_choice(r, op, o);
            op = r->plan->ops + op->b;
            continue;
        default: o = run_other(r, op, o);
        }
        op++;
    }
    return o;
}

void print_plan_run(const struct print_plan *p, const struct ctf_event *ev, struct text *out)
{
    struct print_run r;
    r.plan = p;
    r.data = ev->data;
    r.pos = r.payload = ev->payload_bits;
    r.header = ev->payload_bits - ev->header_back;
    r.context = ev->payload_bits - ev->context_back;
    r.out = out;
    char *o = text_room(out, 2 * PRINT_ROOM);
    r.limit = out->v + out->cap - PRINT_ROOM;
    o = run(&r, p->ops, p->ops + p->n, o);
    out->n = (size_t)(o - out->v);
}
