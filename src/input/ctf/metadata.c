/* SPDX-License-Identifier: MIT */
/* Metadata file of one trace: packets, own blocks (env, clocks, uuid), and the shared schema. */
#include "ctf/metadata.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctf/ctf2.h"
#include "ctf/ctf2_own.h"

enum { HEADER_BYTES = 37 };
static const uint32_t packet_magic = 0x75d11d57;

struct reader {
    struct ctf_metadata *out;
    VEC(struct ctf_problem) warnings;
    size_t n_dropped;
    bool dropped_harm; /* a dropped warning was about unread data */
    bool cut;
    bool has_packet_uuid;
    uint8_t packet_uuid[16];
};

static void add_warning(struct reader *r, bool harmless, const char *fmt, va_list ap)
{
    if (r->warnings.n >= 2 * TSDL_MAX_WARNINGS) {
        r->n_dropped++;
        r->dropped_harm |= !harmless;
        return;
    }
    char text[400];
    vsnprintf(text, sizeof text, fmt, ap);
    vec_push(&r->warnings, ((struct ctf_problem){arena_strdup(&r->out->arena, text), 1, harmless}));
}

/* Warns of something that is not read. */
static void warn(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void warn(struct reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_warning(r, false, fmt, ap);
    va_end(ap);
}

/* Notes an oddity; all events are read the same. */
static void remark(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void remark(struct reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_warning(r, true, fmt, ap);
    va_end(ap);
}

/* ---- packets ---- */

static uint32_t load32(const uint8_t *p, bool big)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return big ? __builtin_bswap32(v) : v;
}

/* Returns 0 none, 1 little endian, 2 big endian. */
static int packet_order(const uint8_t *p, size_t n)
{
    if (n < 4)
        return 0;
    return load32(p, false) == packet_magic ? 1 : load32(p, true) == packet_magic ? 2 : 0;
}

struct metadata_packet {
    const uint8_t *text;
    size_t text_bytes, packet_bytes;
};

/* Checks the header of the packet at `at`. Its sizes may reach beyond the end: the caller checks. */
static int read_packet(struct reader *r, const uint8_t *data, size_t at, struct metadata_packet *out, struct err *e)
{
    const uint8_t *p = data + at;
    bool big = packet_order(p, 4) == 2;
    uint32_t content_bits = load32(p + 24, big), packet_bits = load32(p + 28, big);
    if (p[35] != 1 || p[36] != 8)
        return err_set(e, ERR_UNSUPPORTED, "byte %zu: this metadata packet has version %u.%u, only 1.8 can be read", at,
            p[35], p[36]);
    if (p[32] || p[33])
        return err_set(
            e, ERR_UNSUPPORTED, "byte %zu: this metadata packet is %s", at, p[32] ? "compressed" : "encrypted");
    if (content_bits % 8 || packet_bits % 8 || content_bits / 8 < HEADER_BYTES || packet_bits < content_bits)
        return err_set(e, ERR_FORMAT,
            "byte %zu: this metadata packet's sizes make no sense: content %u bits, packet %u bits", at, content_bits,
            packet_bits);
    if (r->has_packet_uuid && memcmp(r->packet_uuid, p + 4, 16) != 0)
        return err_set(e, ERR_FORMAT, "byte %zu: this metadata packet belongs to another trace: its uuid differs", at);
    memcpy(r->packet_uuid, p + 4, 16);
    r->has_packet_uuid = true;
    *out = (struct metadata_packet){p + HEADER_BYTES, content_bits / 8 - HEADER_BYTES, packet_bits / 8};
    return 0;
}

/* Joins the texts of all packets; free() it. A damaged or cut tail ends the text with a warning. */
static int join_packets(struct reader *r, const uint8_t *data, size_t n, char **out, size_t *out_n, struct err *e)
{
    char *text = mem_alloc(n + 1);
    size_t text_n = 0, at = 0;
    while (at < n) {
        struct metadata_packet packet = {0};
        struct err why = {0};
        if (n - at < HEADER_BYTES || !packet_order(data + at, n - at)) {
            warn(r, "byte %zu: no metadata packet begins here, the %zu bytes from here on are not read", at, n - at);
            r->cut = true;
            break;
        }
        if (read_packet(r, data, at, &packet, &why) != 0) {
            if (at == 0) {
                free(text);
                return err_set(e, why.code, "%s", why.text);
            }
            warn(r, "%s; the rest of the metadata is not read", why.text);
            r->cut = true;
            break;
        }
        size_t left = n - at - HEADER_BYTES, take = packet.text_bytes < left ? packet.text_bytes : left;
        if (take < packet.text_bytes) {
            warn(r, "byte %zu: the last metadata packet is cut: %zu of %zu bytes are there", at, take,
                packet.text_bytes);
            r->cut = true;
        }
        memcpy(text + text_n, packet.text, take);
        text_n += take;
        if (packet.packet_bytes >= n - at)
            break;
        at += packet.packet_bytes;
    }
    *out = text;
    *out_n = text_n;
    return 0;
}

/* ---- env and clocks ---- */

typedef void on_attribute(
    struct reader *r, struct tsdl_lexer *l, void *arg, const struct tsdl_token *name, const struct tsdl_value *v);

/* Reads the attributes of a block that belongs to the trace only. */
static void read_block(struct reader *r, struct tsdl_lexer *l, on_attribute *attribute, void *arg)
{
    tsdl_next(l);
    tsdl_expect(l, '{', "at the beginning of a block");
    while (l->t.kind != '}' && l->t.kind != TSDL_END) {
        struct tsdl_token name = l->t;
        tsdl_expect(l, TSDL_WORD, "of an attribute");
        while (l->t.kind == '.') {
            tsdl_next(l);
            tsdl_expect(l, TSDL_WORD, "of an attribute");
        }
        if (!tsdl_accept(l, TSDL_TYPE_ASSIGN))
            tsdl_expect(l, '=', "behind an attribute's name");
        struct tsdl_value v;
        tsdl_value(l, &v);
        if (!l->failed)
            attribute(r, l, arg, &name, &v);
    }
}

typedef VEC(struct ctf_env) env_list;

static void on_env(
    struct reader *r, struct tsdl_lexer *l, void *arg, const struct tsdl_token *name, const struct tsdl_value *v)
{
    env_list *list = arg;
    struct arena *a = &r->out->arena;
    if (v->kind != TSDL_VALUE_TEXT && v->kind != TSDL_VALUE_NUMBER) {
        remark(r, "line %zu: %s in an env block is neither number nor string and is ignored",
            tsdl_line(l->text, name->s), tsdl_show(l, name).s);
        return;
    }
    struct ctf_env env = {.name = arena_strndup(a, name->s, name->n), .is_string = v->kind == TSDL_VALUE_TEXT};
    if (env.is_string)
        env.string = tsdl_text(a, &v->t);
    else
        env.number = (int64_t)v->u;
    vec_push(list, env);
}

struct clock_block {
    struct ctf_clock c;
    __int128 offset;
};

static void on_clock(
    struct reader *r, struct tsdl_lexer *l, void *arg, const struct tsdl_token *name, const struct tsdl_value *v)
{
    struct clock_block *b = arg;
    struct arena *a = &r->out->arena;
    bool is_text = v->kind == TSDL_VALUE_TEXT, is_number = v->kind == TSDL_VALUE_NUMBER,
         is_count = is_number && !v->negative;
    size_t line = tsdl_line(l->text, name->s);
    if (tsdl_is(name, "name") && is_text) {
        b->c.name = tsdl_text(a, &v->t);
    } else if (tsdl_is(name, "description") && is_text) {
        b->c.description = tsdl_text(a, &v->t);
    } else if (tsdl_is(name, "uuid") && is_text) {
        b->c.has_uuid = tsdl_uuid(tsdl_text(a, &v->t), b->c.uuid);
        if (!b->c.has_uuid)
            remark(r, "line %zu: this clock's uuid is none", line);
    } else if (tsdl_is(name, "freq") && is_count) {
        b->c.freq = v->u;
        if (v->u == 0)
            tsdl_fail(l, v->t.s, ERR_FORMAT, "a clock's frequency cannot be 0");
    } else if (tsdl_is(name, "precision") && is_count) {
        b->c.precision = v->u;
    } else if (tsdl_is(name, "offset_s") && is_number) {
        b->c.offset_s = (int64_t)v->u;
    } else if (tsdl_is(name, "offset") && is_number) {
        b->offset = v->negative ? (__int128)(int64_t)v->u : (__int128)v->u;
    } else if (tsdl_is(name, "freq") || tsdl_is(name, "offset") || tsdl_is(name, "offset_s")) {
        tsdl_fail(l, v->t.s, ERR_FORMAT, "a clock's %.*s must be a number%s: without it no time is right", (int)name->n,
            name->s, tsdl_is(name, "freq") ? ", not negative" : "");
    } else if (!(tsdl_is(name, "absolute") && tsdl_value_bool(v, &b->c.absolute))) {
        remark(r, "line %zu: %s of a clock is unknown or has no sense and is ignored", line, tsdl_show(l, name).s);
    }
}

/* Moves whole seconds from the offset in cycles to the offset in seconds. */
static void balance_offset(struct tsdl_lexer *l, const char *at, struct clock_block *b)
{
    __int128 freq = b->c.freq, seconds = b->offset / freq, cycles = b->offset % freq;
    if (cycles < 0) {
        cycles += freq;
        seconds--;
    }
    seconds += b->c.offset_s;
    if (seconds > INT64_MAX || seconds < INT64_MIN)
        tsdl_fail(l, at, ERR_FORMAT, "this clock's offset does not fit into 64 bits of seconds");
    b->c.offset_s = (int64_t)seconds;
    b->c.offset = (uint64_t)cycles;
}

typedef VEC(struct ctf_clock) clock_list;

static void read_clock(struct reader *r, struct tsdl_lexer *l, clock_list *clocks)
{
    const char *at = l->t.s;
    struct clock_block b = {.c = {.freq = 1000000000}};
    read_block(r, l, on_clock, &b);
    if (!b.c.name)
        tsdl_fail(l, at, ERR_FORMAT, "this clock has no name");
    if (l->failed)
        return;
    balance_offset(l, at, &b);
    b.c.id = b.c.name;
    for (size_t i = 0; i < clocks->n; i++)
        if (strcmp(clocks->v[i].name, b.c.name) == 0)
            tsdl_fail(l, at, ERR_FORMAT, "a second clock '%.100s'", b.c.name);
    if (clocks->n >= 1024)
        tsdl_fail(l, at, ERR_LIMIT, "more than 1024 clocks");
    vec_push(clocks, b.c);
}

/* Reads env and clock blocks, and the trace's uuid. */
static int read_own(struct reader *r, const char *text, const struct tsdl_scan *scan, struct err *e)
{
    struct ctf_metadata *out = r->out;
    env_list env = {0};
    clock_list clocks = {0};
    struct err first = {0};
    struct tsdl_lexer l = {0};
    for (size_t i = 0; i < scan->own.n && !l.failed; i++) {
        tsdl_lexer_init(&l, text, scan->own.v[i].begin, scan->own.v[i].end, &first);
        l.lenient = true; /* these values do not affect the layout of events */
        if (tsdl_is(&l.t, "env"))
            read_block(r, &l, on_env, &env);
        else
            read_clock(r, &l, &clocks);
        if (l.odd.n)
            remark(r, "line %zu: the escape '%.*s' stands for no byte or character; what can be read of it is taken",
                tsdl_line(text, l.odd.s), (int)l.odd.n, l.odd.s);
    }
    if (!l.failed) {
        out->env = arena_new(&out->arena, struct ctf_env, env.n + 1);
        out->clocks = arena_new(&out->arena, struct ctf_clock, clocks.n + 1);
        if (env.n)
            memcpy(out->env, env.v, env.n * sizeof *env.v);
        if (clocks.n)
            memcpy(out->clocks, clocks.v, clocks.n * sizeof *clocks.v);
        out->n_env = env.n;
        out->n_clocks = clocks.n;
    }
    vec_free(&env);
    vec_free(&clocks);
    if (l.failed)
        return err_set(e, first.code, "%s", first.text);
    if (scan->uuid.kind != TSDL_END) {
        out->has_uuid = tsdl_uuid(tsdl_text(&out->arena, &scan->uuid), out->uuid);
        if (!out->has_uuid)
            remark(r, "line %zu: the trace's uuid is none", tsdl_line(text, scan->uuid.s));
    }
    return 0;
}

/* Reads the own part of CTF 2 metadata. */
static int read_own_ctf2(struct reader *r, const char *text, size_t n, const struct tsdl_scan *scan, struct err *e)
{
    struct ctf_metadata *out = r->out;
    struct ctf2_own own = {0};
    int code = ctf2_read_own(text, n, scan, &out->arena, &own, e);
    for (size_t i = 0; i < own.remarks.n && !code; i++)
        remark(r, "%s", own.remarks.v[i]);
    if (!code) {
        out->has_uuid = own.has_uuid;
        memcpy(out->uuid, own.uuid, sizeof out->uuid);
        out->env = arena_new(&out->arena, struct ctf_env, own.env.n + 1);
        out->clocks = arena_new(&out->arena, struct ctf_clock, own.clocks.n + 1);
        if (own.env.n)
            memcpy(out->env, own.env.v, own.env.n * sizeof *own.env.v);
        for (size_t i = 0; i < own.clocks.n; i++)
            out->clocks[i] = own.clocks.v[i].clock;
        out->n_env = own.env.n;
        out->n_clocks = own.clocks.n;
    }
    ctf2_own_fini(&own);
    return code;
}

/* ---- clocks and warnings of the schema ---- */

static void find_clocks(struct reader *r)
{
    struct ctf_metadata *out = r->out;
    const struct ctf_schema *s = out->schema;
    out->clock_of = arena_new(&out->arena, int32_t, s->n_clock_names + 1);
    for (size_t i = 0; i < s->n_clock_names; i++) {
        const char *name = s->clock_names[i];
        out->clock_of[i] = -1;
        if (*name == '\0' && out->n_clocks == 0 && !s->is_ctf2)
            out->clocks[out->n_clocks++] = (struct ctf_clock){
                .name = "default", .id = "default", .freq = 1000000000}; /* fits in the room reserved by read_own */
        if (*name == '\0' && !s->is_ctf2) {
            out->clock_of[i] = 0;
            if (out->n_clocks > 1)
                remark(
                    r, "times are mapped to none of %zu clocks; '%.100s' is taken", out->n_clocks, out->clocks[0].name);
            continue;
        }
        for (size_t k = 0; k < out->n_clocks; k++)
            if (strcmp(out->clocks[k].id, name) == 0)
                out->clock_of[i] = (int32_t)k;
        if (out->clock_of[i] < 0)
            warn(r, "integers are mapped to a clock '%.100s' that is not declared", name);
    }
}

static void add_schema_warnings(struct reader *r, const char *text, const char *end, const struct tsdl_scan *scan)
{
    const struct ctf_schema *s = r->out->schema;
    for (size_t i = 0; i < s->n_warnings; i++) {
        size_t pos = s->warnings[i].pos, k = 0;
        const char *at = text;
        for (; k < scan->shared.n; k++) {
            size_t n = (size_t)(scan->shared.v[k].end - scan->shared.v[k].begin);
            at = scan->shared.v[k].begin + (pos < n ? pos : n);
            if (pos < n)
                break;
            pos -= n;
        }
        char place[300];
        if (scan->is_ctf2)
            ctf2_where(text, end, at, place, sizeof place);
        else
            snprintf(place, sizeof place, "line %zu", tsdl_line(text, at));
        remark(r, "%s: %s", place, s->warnings[i].text);
    }
}

static void take_warnings(struct reader *r)
{
    struct ctf_metadata *out = r->out;
    if (r->n_dropped)
        vec_push(
            &r->warnings, ((struct ctf_problem){"more warnings about the metadata", r->n_dropped, !r->dropped_harm}));
    out->n_warnings = r->warnings.n;
    if (!r->warnings.n)
        return;
    out->warnings = arena_new(&out->arena, struct ctf_problem, r->warnings.n);
    memcpy(out->warnings, r->warnings.v, r->warnings.n * sizeof *r->warnings.v);
}

/* Parses the text. *cut: it ends within a statement or a fragment. */
static int parse_once(
    struct reader *r, const char *text, size_t n, bool is_ctf2, struct ctf_schemas *schemas, bool *cut, struct err *e)
{
    struct tsdl_scan scan;
    int code = is_ctf2 ? ctf2_scan(text, n, &scan, e) : tsdl_scan(text, n, &scan, e);
    *cut = code == 0 && scan.cut;
    if (*cut && is_ctf2)
        warn(r, "the metadata end within a fragment, which is not read");
    else if (*cut)
        warn(r, "line %zu: the metadata ends within a statement; what comes after this line is not read",
            tsdl_line(text, scan.end));
    if (code == 0)
        code = is_ctf2 ? read_own_ctf2(r, text, n, &scan, e) : read_own(r, text, &scan, e);
    if (code == 0 && !(r->out->schema = ctf_schemas_get(schemas, text, &scan, e)))
        code = e ? e->code : ERR_FORMAT;
    if (code == 0) {
        if (r->cut && scan.n_declarations == 0)
            code = err_set(e, ERR_FORMAT, "line %zu: the metadata is cut before its first stream or event",
                tsdl_line(text, scan.end));
        add_schema_warnings(r, text, text + n, &scan);
        find_clocks(r);
        char place[300];
        if (r->out->schema->has_uuid_role && !r->out->has_uuid) {
            ctf2_where(text, text + n, scan.header.begin, place, sizeof place);
            code = err_set(e, ERR_FORMAT,
                "%s: a field has the role metadata-stream-uuid ('roles'), and the preamble has no uuid", place);
        }
        if (scan.n_declarations == 0)
            remark(r, "the metadata declare no data stream class: the trace has no events");
        if (r->has_packet_uuid && r->out->has_uuid && memcmp(r->packet_uuid, r->out->uuid, 16) != 0)
            remark(r, "the metadata's packets have another uuid than the trace block");
    }
    tsdl_scan_fini(&scan);
    return code;
}

/* Drops the results of the text. */
static void begin_again(struct reader *r, struct ctf_schemas *schemas, size_t warnings)
{
    ctf_schemas_put(schemas, r->out->schema);
    *r->out = (struct ctf_metadata){.arena = r->out->arena};
    r->warnings.n = warnings;
}

static int parse_text(struct reader *r, const char *text, size_t n, struct ctf_schemas *schemas, struct err *e)
{
    while (n > 0 && text[n - 1] == '\0')
        n--; /* file extended before it was written */
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        n -= 3;
    }
    if (n >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2)))
        return err_set(e, ERR_FORMAT, "the metadata are UTF-16; they must be UTF-8");
    bool is_ctf2 = n > 0 && (text[0] == '\x1e' || text[0] == '{'), cut = false;
    size_t warnings = r->warnings.n, mended_n, line;
    int code = parse_once(r, text, n, is_ctf2, schemas, &cut, e);
    char *mended = !is_ctf2 && (code || cut) ? tsdl_mend_labels(text, n, &mended_n, &line) : NULL;
    if (!mended)
        return code;
    struct err ignored = {0};
    begin_again(r, schemas, warnings);
    remark(r, "line %zu: double quotes within a label of an enumeration have no backslash; read as if they had", line);
    if (parse_once(r, mended, mended_n, false, schemas, &cut, &ignored) == 0) {
        code = 0;
    } else if (code == 0) { /* the original text is only cut */
        begin_again(r, schemas, warnings);
        code = parse_once(r, text, n, false, schemas, &cut, e);
    }
    free(mended);
    return code;
}

int ctf_metadata_parse(
    const char *name, const void *data, size_t n, struct ctf_schemas *schemas, struct ctf_metadata *out, struct err *e)
{
    struct err local = {0};
    struct reader r = {.out = out};
    char *joined = NULL;
    int code = 0;
    if (!e)
        e = &local;
    *out = (struct ctf_metadata){0};
    if (n > TSDL_MAX_TEXT)
        code = err_set(e, ERR_LIMIT, "more than %d MiB of metadata", TSDL_MAX_TEXT >> 20);
    const char *text = data;
    if (code == 0 && packet_order(data, n)) {
        code = join_packets(&r, data, n, &joined, &n, e);
        text = joined;
    }
    if (code == 0)
        code = parse_text(&r, text, n, schemas, e);
    free(joined);
    take_warnings(&r);
    vec_free(&r.warnings);
    if (code == 0)
        return 0;
    ctf_metadata_fini(out, schemas);
    return err_wrap(e, "%s", name);
}

void ctf_metadata_fini(struct ctf_metadata *m, struct ctf_schemas *schemas)
{
    ctf_schemas_put(schemas, m->schema);
    arena_fini(&m->arena);
    *m = (struct ctf_metadata){0};
}
