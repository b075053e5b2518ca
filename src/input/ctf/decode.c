/* SPDX-License-Identifier: MIT */
/* Hot loop: packets into events. One function body, compiled once per shape of event header. */
#include "ctf/decode.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- programs ---- */

/* Returns the bytes up to and including the NUL; 0 if there is none within `n` bytes. Loads words: mappings have room
 * after their end. */
static ALWAYS_INLINE uint64_t string_bytes(const uint8_t *p, uint64_t n)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    for (uint64_t i = 0; i < n; i += 8) {
        uint64_t v;
        memcpy(&v, p + i, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        v = __builtin_bswap64(v);
#endif
        uint64_t zero = (v - ones) & ~v & tops;
        if (zero) {
            uint64_t bytes = i + (uint64_t)(__builtin_ctzll(zero) >> 3) + 1;
            return bytes <= n ? bytes : 0;
        }
    }
    return 0;
}

static uint64_t list_end(const struct ctf_op *op, const struct ctf_run *r, uint64_t pos)
{
    uint64_t count = op->counted ? r->slots[op->slot] : op->count;
    if (count == 0)
        return pos;
    pos = (pos + op->align) & ~(uint64_t)op->align;
    if (pos > r->end || count > r->end - pos) /* an element has at least one bit, else the list is invalid */
        return op->size || count > UINT16_MAX ? CTF_RUN_CUT : pos;
    uint64_t room = r->end - pos;
    if (op->size > room || (op->n && count - 1 > (room - op->size) / op->n))
        return CTF_RUN_CUT;
    return pos + (count - 1) * op->n + op->size;
}

static int choose(const struct ctf_op *op, uint64_t tag)
{
    for (uint32_t i = 0; i < op->n_choices; i++) {
        const struct ctf_choice *c = &op->choices[i];
        bool in = op->is_signed ? (int64_t)tag >= c->lo && (int64_t)tag <= c->hi
                                : tag >= (uint64_t)c->lo && tag <= (uint64_t)c->hi;
        if (in)
            return (int)c->option;
    }
    return -1;
}

static ALWAYS_INLINE void keep(const struct ctf_op *op, struct ctf_run *r, uint64_t v, unsigned bits)
{
    if (op->slot)
        r->slots[op->slot] = v;
    if (op->role == CTF_ROLE_CLOCK) {
        r->cycles = ctf_clock_extend(r->cycles, v, bits);
    } else if (op->role == CTF_ROLE_BEGIN) {
        r->cycles = r->values[CTF_ROLE_BEGIN] = ctf_clock_extend(r->cycles, v, bits);
        r->seen |= 1u << CTF_ROLE_BEGIN;
    } else if (op->role) {
        r->values[op->role] = v;
        r->seen |= 1u << op->role;
    }
}

static ALWAYS_INLINE void take(const struct ctf_op *op, struct ctf_run *r, uint64_t pos)
{
    keep(op, r, ctf_bits(r->data, pos, op->bits, op->big_endian, op->is_signed), op->bits);
}

static uint64_t run(const struct ctf_op *base, const struct ctf_op *op, struct ctf_run *r, uint64_t pos);

/* Reads elements whose size depends on the data. An element without bits changes nothing, so the rest of them do not
 * either. */
static uint64_t loop(const struct ctf_op *base, const struct ctf_op *op, struct ctf_run *r, uint64_t pos)
{
    uint64_t count = op->counted ? r->slots[op->slot] : op->count;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t next = run(base, op + 1, r, pos);
        if (CTF_RUN_FAILED(next))
            return next;
        if (next == pos && i > 0)
            return count > UINT16_MAX ? CTF_RUN_CUT : pos;
        pos = next;
    }
    return pos;
}

/* Returns the position after the zero code unit that ends the text from `pos` to `end`; UINT64_MAX: there is none. */
static uint64_t text_end(const uint8_t *data, uint64_t pos, uint64_t end, unsigned unit_bits)
{
    static const uint8_t zeros[4];
    for (; pos <= end && end - pos >= unit_bits; pos += unit_bits)
        if (!memcmp(data + (pos >> 3), zeros, unit_bits / 8))
            return pos + unit_bits;
    return UINT64_MAX;
}

static uint64_t run_text(const struct ctf_op *op, const struct ctf_run *r, uint64_t pos)
{
    uint64_t count = op->counted ? r->slots[op->slot] : op->count;
    if (pos > r->end || count > (r->end - pos) / 8)
        return CTF_RUN_CUT;
    if (count % (op->bits / 8) && text_end(r->data, pos, pos + count * 8, op->bits) == UINT64_MAX)
        return CTF_RUN_STOP(CTF_STOP_TEXT);
    return pos + count * 8;
}

static uint64_t run_leb(const struct ctf_op *op, struct ctf_run *r, uint64_t pos)
{
    uint64_t v = 0, bytes = pos < r->end ? (r->end - pos) >> 3 : 0;
    bool fits = true;
    bytes = ctf_leb(r->data + (pos >> 3), bytes, op->is_signed, &v, &fits);
    if (!bytes)
        return CTF_RUN_CUT;
    if (!fits && (op->slot || op->role))
        return CTF_RUN_STOP(CTF_STOP_WIDE);
    keep(op, r, v, bytes < 10 ? (unsigned)bytes * 7 : 64);
    return op->stays ? pos : pos + bytes * 8;
}

/* Runs the ops that only CTF 2 has. */
static __attribute__((noinline)) uint64_t run_ctf2(const struct ctf_op *op, struct ctf_run *r, uint64_t pos)
{
    uint64_t v;
    pos = (pos + op->align) & ~(uint64_t)op->align;
    switch (op->code) {
    case CTF_OP_LEB: return run_leb(op, r, pos);
    case CTF_OP_BITS:
        if (pos + op->bits > r->end)
            return CTF_RUN_CUT;
        v = ctf_bits(r->data, pos, op->bits, op->big_endian, op->is_signed);
        keep(op, r, op->reversed ? ctf_reverse(v, op->bits, op->is_signed) : v, op->bits);
        return op->stays ? pos : pos + op->bits;
    case CTF_OP_UNITS: pos = text_end(r->data, pos, r->end, op->bits); return pos == UINT64_MAX ? CTF_RUN_CUT : pos;
    case CTF_OP_TEXT: return run_text(op, r, pos);
    case CTF_OP_UNSET: r->unset |= op->n; return pos;
    case CTF_OP_SET: r->unset &= ~op->n; return pos;
    case CTF_OP_NEED: return r->unset >> op->slot & 1 ? CTF_RUN_STOP(CTF_STOP_MISSING) : pos;
    default: /* CTF_OP_ORDER */
        if (pos & 7 && r->order && r->order != 1 + op->big_endian)
            return CTF_RUN_STOP(CTF_STOP_ORDER);
        r->order = 1 + op->big_endian;
        return pos;
    }
}

/* Runs a program. `base`: origin of jumps; `op`: first op. */
static uint64_t run(const struct ctf_op *base, const struct ctf_op *op, struct ctf_run *r, uint64_t pos)
{
    for (;; op++) {
        int option;
        uint64_t bytes;
        switch (op->code) {
        case CTF_OP_END: return pos;
        case CTF_OP_SKIP:
            pos = (pos + op->align) & ~(uint64_t)op->align;
            if (op->n > r->end || pos > r->end - op->n)
                return CTF_RUN_CUT;
            pos += op->n;
            break;
        case CTF_OP_INT:
            pos = (pos + op->align) & ~(uint64_t)op->align;
            if (pos + op->bits > r->end)
                return CTF_RUN_CUT;
            take(op, r, pos);
            pos += op->bits;
            break;
        case CTF_OP_STRING:
            pos = (pos + op->align) & ~(uint64_t)op->align;
            if (pos >= r->end || !(bytes = string_bytes(r->data + (pos >> 3), (r->end - pos) >> 3)))
                return CTF_RUN_CUT;
            pos += bytes * 8;
            break;
        case CTF_OP_LIST:
            pos = list_end(op, r, pos);
            if (CTF_RUN_FAILED(pos))
                return pos;
            break;
        case CTF_OP_LOOP:
            pos = loop(base, op, r, pos);
            if (CTF_RUN_FAILED(pos))
                return pos;
            op = base + op->next - 1;
            break;
        case CTF_OP_VARIANT:
            option = choose(op, r->slots[op->slot]);
            if (option < 0 && !op->optional)
                return CTF_RUN_TAG;
            op = base + (option < 0 ? op->next : op->targets[option]) - 1;
            break;
        case CTF_OP_JUMP: op = base + op->next - 1; break;
        case CTF_OP_PAYLOAD:
            pos = (pos + op->align) & ~(uint64_t)op->align;
            r->payload = pos;
            break;
        case CTF_OP_UUID:
            r->values[CTF_ROLE_UUID] = (pos + op->align) & ~(uint64_t)op->align;
            r->seen |= 1u << CTF_ROLE_UUID;
            break;
        default:
            pos = run_ctf2(op, r, pos);
            if (CTF_RUN_FAILED(pos))
                return pos;
        }
    }
}

uint64_t ctf_program_run(const struct ctf_op *ops, struct ctf_run *r, uint64_t pos)
{
    return run(ops, ops, r, pos);
}

/* ---- integers of CTF 2 ---- */

uint64_t ctf_leb(const uint8_t *p, uint64_t n, bool is_signed, uint64_t *value, bool *fits)
{
    uint64_t v = 0, i = 0;
    uint8_t any = 0, all = 0x7f; /* bits from 64 on */
    for (;; i++) {
        if (i == n)
            return 0;
        uint64_t bits = p[i] & 0x7f;
        if (i < 10)
            v |= bits << (7 * i);
        if (i >= 9) {
            any |= (uint8_t)(i == 9 ? bits >> 1 : bits);
            all &= (uint8_t)(i == 9 ? bits >> 1 | 0x40 : bits);
        }
        if (!(p[i] & 0x80))
            break;
    }
    bool negative = is_signed && p[i] & 0x40, sign = v >> 63;
    if (negative && i < 9)
        v |= ~(uint64_t)0 << (7 * (i + 1));
    if (i >= 9 && (negative ? all != 0x7f || !sign : any || (is_signed && sign))) {
        v = negative ? (uint64_t)INT64_MIN : is_signed ? (uint64_t)INT64_MAX : UINT64_MAX;
        *fits = false;
    }
    *value = v;
    return i + 1;
}

uint64_t ctf_int_at(const struct ctf_type *type, const uint8_t *data, uint64_t pos, uint64_t *bits)
{
    const struct ctf_type *t = ctf_type_bits(type);
    uint64_t v = 0;
    if (t->is_leb) {
        *bits = 8 * ctf_leb(data + (pos >> 3), UINT64_MAX, t->is_signed, &v, &(bool){true});
        return v;
    }
    unsigned n = (unsigned)t->size_bits;
    *bits = n;
    v = ctf_bits(data, pos, n, t->big_endian, t->is_signed);
    if (t->is_reversed)
        v = ctf_reverse(v, n, t->is_signed);
    return t->look == CTF_LOOK_BOOL ? v != 0 : v;
}

/* ---- packets ---- */

atomic_uint ctf_decoder_generation;

bool ctf_decoder_open(
    struct ctf_decoder *d, const struct ctf_stream_plan *plan, const uint8_t *data, uint64_t end, uint64_t last_start)
{
    struct ctf_run *r = &d->run;
    uint64_t pos = 0;
    atomic_fetch_add_explicit(&ctf_decoder_generation, 1, memory_order_relaxed);
    d->plan = plan;
    d->data = r->data = data;
    d->end = r->end = end;
    d->last_start = last_start < end ? last_start : end;
    d->stop = CTF_STOP_NONE;
    r->slots = d->slots;
    r->seen = 0;
    r->unset = 0;
    r->order = 0;
    r->cycles = plan->sc->is_ctf2 ? 0 : d->cycles;
    d->cpu = -1;
    d->back = d->unfit = 0;
    if (plan->packet_header)
        pos = ctf_program_run(plan->packet_header, r, pos);
    if (plan->packet_context && !CTF_RUN_FAILED(pos))
        pos = ctf_program_run(plan->packet_context, r, pos);
    if (CTF_RUN_FAILED(pos) || !plan->readable) {
        d->pos = d->end = d->last_start = 0;
        d->stop = plan->readable ? CTF_RUN_STOPPED(pos) : CTF_STOP_UNREADABLE;
        return false;
    }
    d->pos = pos;
    if (r->seen & 1u << CTF_ROLE_CPU)
        d->cpu = (int32_t)r->values[CTF_ROLE_CPU];
    d->has_clock = plan->sc->clock >= 0;
    d->cycles = d->has_clock ? r->cycles : 0;
    d->has_end = d->has_clock && r->seen & 1u << CTF_ROLE_END;
    d->end_cycles = r->values[CTF_ROLE_END];
    d->at_end = false;
    return true;
}

/* Ends the packet; the rest is not read. */
static bool stop(struct ctf_decoder *d, enum ctf_stop why)
{
    d->stop = why;
    d->pos = d->last_start;
    return false;
}

static const struct ctf_event_class *class_of(const struct ctf_stream_plan *p, uint64_t id)
{
    if (id < p->table_n)
        return p->table[id].cls;
    return ctf_stream_class_event(p->sc, id);
}

/* Reads one event by its program, because the class's size depends on data, the event does not fit, or the class is
 * unknown. Moves d->pos. */
static __attribute__((noinline)) bool slow_event(struct ctf_decoder *d, uint64_t start, uint64_t header_end,
    const struct ctf_event_class *cls, uint64_t id, struct ctf_event *out)
{
    struct ctf_run *r = &d->run;
    if (header_end > d->end)
        return stop(d, CTF_STOP_CUT);
    if (!cls) {
        d->stop_id = id;
        return stop(d, CTF_STOP_UNKNOWN_ID);
    }
    const struct ctf_layout *l = cls->layout;
    if (!l || !l->ops)
        return stop(d, CTF_STOP_UNREADABLE);
    if (l->header_slots && d->plan->kind != CTF_HEADER_PROGRAM) {
        uint64_t saved = r->cycles;
        uint64_t pos = ctf_program_run(d->plan->event_header, r, start);
        r->cycles = saved;
        if (CTF_RUN_FAILED(pos))
            return stop(d, CTF_STOP_CUT);
    }
    uint64_t end = ctf_program_run(l->ops, r, header_end);
    if (CTF_RUN_FAILED(end) || end > d->end)
        return stop(d, CTF_RUN_FAILED(end) ? CTF_RUN_STOPPED(end) : CTF_STOP_CUT);
    if (end == d->pos)
        return stop(d, CTF_STOP_EMPTY);
    if (r->payload - start > UINT32_MAX)
        return stop(d, CTF_STOP_UNREADABLE);
    out->data = d->data;
    out->cls = cls;
    out->payload_bits = r->payload;
    out->header_back = (uint32_t)(r->payload - start);
    out->context_back = (uint32_t)(r->payload - header_end);
    out->stream = d->stream;
    out->cpu = d->cpu;
    d->pos = end;
    return true;
}

static ALWAYS_INLINE uint64_t load(const uint8_t *p, unsigned bytes, bool be)
{
    uint16_t v2;
    uint32_t v4;
    uint64_t v8;
    switch (bytes) {
    case 0: return 0;
    case 1: return *p;
    case 2: memcpy(&v2, p, 2); return be ? __builtin_bswap16(v2) : v2;
    case 4: memcpy(&v4, p, 4); return be ? __builtin_bswap32(v4) : v4;
    default: memcpy(&v8, p, 8); return be ? __builtin_bswap64(v8) : v8;
    }
}

/* Parses a header of known shape at byte `at`; returns the byte after it. It may lie beyond the content: the caller
 * checks. *stepped: the clock was set back. */
static ALWAYS_INLINE uint64_t header(const struct ctf_stream_plan *p, const uint8_t *data, uint64_t at, uint64_t *id,
    uint64_t *cycles, bool *stepped, const int kind, const bool be)
{
    const uint8_t *h = data + at;
    uint64_t behind, before = *cycles;
    if (kind == CTF_HEADER_SIMPLE) {
        *id = load(h + p->id_at, p->id_bytes, be);
        if (p->time_bytes) {
            *cycles = ctf_clock_extend(before, load(h + p->time_at, p->time_bytes, be), p->time_bytes * 8u);
            *stepped |= *cycles < before;
        }
        return at + p->header_bytes;
    }
    if (kind == CTF_HEADER_COMPACT) {
        uint32_t w = (uint32_t)load(h, 4, be);
        *id = be ? w >> 27 : w & 31;
        if (LIKELY(*id != 31)) {
            *cycles = ctf_clock_extend(*cycles, be ? w & 0x7ffffff : w >> 5, 27);
            return at + 4;
        }
        behind = at + 1;
    } else {
        *id = load(h, 2, be);
        behind = at + 2;
        if (LIKELY(*id != 65535)) {
            behind = (behind + p->short_align) & ~(uint64_t)p->short_align;
            *cycles = ctf_clock_extend(*cycles, load(data + behind, 4, be), 32);
            return behind + 4;
        }
    }
    behind = (behind + p->long_align) & ~(uint64_t)p->long_align;
    *id = load(data + behind, 4, be);
    behind = (behind + 4 + p->long_time_align) & ~(uint64_t)p->long_time_align;
    *cycles = load(data + behind, 8, be);
    *stepped |= *cycles < before;
    return behind + 8;
}

/* Decodes classes of fixed size for the cost of their header and one table entry. A program's size in the table is too
 * large to fit: one comparison sends programs, unknown ids and events that do not fit to the slow path. */
static ALWAYS_INLINE size_t decode_fast(
    struct ctf_decoder *d, struct ctf_event *out, size_t max, const int kind, const bool be)
{
    const struct ctf_stream_plan *p = d->plan;
    const struct ctf_entry *table = p->table;
    const uint8_t *data = d->data;
    const uint64_t mask = p->header_align, table_n = p->table_n, last = (d->last_start + 7) >> 3;
    const uint64_t add = d->rate.add;
    static const struct ctf_entry none = {.size = CTF_ENTRY_PROGRAM};
    struct {
        uint32_t stream;
        int32_t cpu;
    } from = {d->stream, d->cpu};
    uint64_t pos = (d->pos + 7) >> 3, cycles = d->cycles, limit = d->end >> 3;
    size_t n = 0;
    bool stepped = false;
    if (limit > pos + (CTF_ENTRY_PROGRAM >> 1))
        limit = pos + (CTF_ENTRY_PROGRAM >> 1);
    while (n < max) {
        uint64_t start = (pos + mask) & ~mask, id = 0;
        if (UNLIKELY(start >= last)) {
            pos = last;
            break;
        }
        uint64_t header_end = header(p, data, start, &id, &cycles, &stepped, kind, be);
        const struct ctf_entry *e = LIKELY(id < table_n) ? &table[id] : &none;
        if (kind == CTF_HEADER_SIMPLE && !p->id_bytes)
            e = p->only ? &p->only->layout->entry : &none;
        uint64_t body = (header_end + e->align) & ~(uint64_t)e->align;
        uint64_t next = body + e->size;
        struct ctf_event *ev = &out[n];
        ev->ts = (int64_t)(cycles + add);
        if (UNLIKELY(next > limit)) {
            const struct ctf_event_class *cls = kind == CTF_HEADER_SIMPLE && !p->id_bytes ? p->only : class_of(p, id);
            d->pos = pos * 8;
            d->run.cycles = cycles;
            if (!slow_event(d, start * 8, header_end * 8, cls, id, ev)) {
                d->cycles = cycles;
                d->stepped = stepped;
                return n;
            }
            stepped |= d->run.cycles < cycles;
            cycles = d->run.cycles;
            pos = (d->pos + 7) >> 3;
            n++;
            continue;
        }
        uint64_t payload = body + e->pre;
        ev->data = data;
        ev->cls = e->cls;
        ev->payload_bits = payload * 8;
        ev->header_back = (uint32_t)(payload - start) * 8;
        ev->context_back = (uint32_t)(payload - header_end) * 8;
        memcpy(&ev->stream, &from, sizeof from);
        pos = next;
        n++;
    }
    d->pos = pos * 8;
    d->cycles = cycles;
    d->stepped = stepped;
    return n;
}

static size_t decode_program(struct ctf_decoder *d, struct ctf_event *out, size_t max)
{
    const struct ctf_stream_plan *p = d->plan;
    struct ctf_run *r = &d->run;
    size_t n = 0;
    d->stepped = true;
    for (; n < max; n++) {
        uint64_t align = p->sc->event_header ? p->sc->event_header->align_bits - 1 : 0,
                 start = (d->pos + align) & ~align, header_end = start;
        if (start >= d->last_start)
            break;
        r->seen = 0;
        r->cycles = d->cycles;
        if (p->event_header)
            header_end = ctf_program_run(p->event_header, r, start);
        if (CTF_RUN_FAILED(header_end)) {
            stop(d, CTF_RUN_STOPPED(header_end));
            return n;
        }
        bool has_id = r->seen & 1u << CTF_ROLE_ID;
        uint64_t id = has_id ? r->values[CTF_ROLE_ID] : 0;
        const struct ctf_event_class *cls = has_id ? class_of(p, id) : p->only;
        out[n].ts = (int64_t)(r->cycles + d->rate.add);
        if (!slow_event(d, start, header_end, cls, id, &out[n]))
            return n;
        d->cycles = r->cycles; /* contexts and payload may advance the clock */
    }
    if (n < max)
        d->pos = d->last_start;
    return n;
}

#define DECODE(name, kind) \
    static size_t name##_le(struct ctf_decoder *d, struct ctf_event *out, size_t max) \
    { \
        return decode_fast(d, out, max, kind, false); \
    } \
    static size_t name##_be(struct ctf_decoder *d, struct ctf_event *out, size_t max) \
    { \
        return decode_fast(d, out, max, kind, true); \
    }
DECODE(simple, CTF_HEADER_SIMPLE)
DECODE(compact, CTF_HEADER_COMPACT)
DECODE(large, CTF_HEADER_LARGE)

static size_t decode_any(struct ctf_decoder *d, struct ctf_event *out, size_t max)
{
    const struct ctf_stream_plan *p = d->plan;
    /* Fallback of big-endian machines: the fast loops load whole words, programs work for both byte orders. */
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return decode_program(d, out, max);
    switch (p->kind) {
    case CTF_HEADER_SIMPLE: return p->big_endian ? simple_be(d, out, max) : simple_le(d, out, max);
    case CTF_HEADER_COMPACT: return p->big_endian ? compact_be(d, out, max) : compact_le(d, out, max);
    case CTF_HEADER_LARGE: return p->big_endian ? large_be(d, out, max) : large_le(d, out, max);
    default: return decode_program(d, out, max);
    }
}

/* Converts cycles to times and counts odd ones. If the clock did not step back, the first and the last event show
 * whether all fit. */
static void set_times(struct ctf_decoder *d, struct ctf_event *out, size_t n)
{
    const struct ctf_clock_rate *r = &d->rate;
    uint64_t first = (uint64_t)out[0].ts - r->add, last = (uint64_t)out[n - 1].ts - r->add;
    bool stepped = d->stepped || last < first;
    if (r->freq != 1000000000 || stepped || first < r->lo || last > r->hi)
        d->unfit += ctf_clock_convert(r, out, n);
    if (stepped || out[0].ts < d->last) {
        int64_t before = d->last;
        for (size_t i = 0; i < n; i++) {
            d->back += out[i].ts < before;
            before = out[i].ts;
        }
    }
    d->last = out[n - 1].ts;
}

/* Advances the clock to the packet's end time, once. */
static void carry_to_end(struct ctf_decoder *d)
{
    if (d->has_end && !d->at_end)
        d->cycles = ctf_clock_extend(d->cycles, d->end_cycles, d->plan->end_bits);
    d->at_end = true;
}

size_t ctf_decode(struct ctf_decoder *d, struct ctf_event *out, size_t max)
{
    size_t n = d->pos < d->last_start ? decode_any(d, out, max) : 0;
    if (n == 0) {
        carry_to_end(d);
        return 0;
    }
    if (d->has_clock) {
        set_times(d, out, n);
    } else {
        for (size_t i = 0; i < n; i++)
            out[i].ts = 0;
    }
    return n;
}
