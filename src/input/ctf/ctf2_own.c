/* SPDX-License-Identifier: MIT */
/* Part of CTF 2 metadata that differs between traces: uuid, environment and clocks. */
#include "ctf/ctf2_own.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "ctf/ctf2.h"

struct reader {
    struct ctf2_own *out;
    struct tsdl_lexer l;
    struct ctf2_json j;
    struct arena *arena;
};

static void note_unknown(struct reader *r, const struct ctf2_node *root, const char *const *names)
{
    const struct ctf2_node *unknown = ctf2_unknown(&r->j, root, names);
    ctf2_check_common(&r->j, root);
    if (!unknown || r->out->remarks.n >= TSDL_MAX_WARNINGS)
        return;
    char place[300];
    ctf2_where(r->l.text, r->l.end, unknown->at, place, sizeof place);
    vec_push(
        &r->out->remarks, (const char *)arena_printf(r->arena, "%s: this property is unknown and is ignored", place));
}

/* ---- preamble ---- */

static void read_uuid(struct reader *r, const struct ctf2_node *root)
{
    const struct ctf2_node *uuid = ctf2_get_kind(&r->j, root, "uuid", CTF2_ARRAY, false);
    uint32_t i = 0;
    if (!uuid)
        return;
    if (uuid->n != 16)
        tsdl_fail(&r->l, uuid->at, ERR_FORMAT, "a uuid has 16 numbers, not %u", uuid->n);
    for
        CTF2_EACH(&r->j, uuid, byte)
        {
            if (byte->kind != CTF2_INTEGER || byte->negative || byte->u > 255)
                tsdl_fail(&r->l, byte->at, ERR_FORMAT, "%.*s is no byte", (int)(byte->end - byte->at), byte->at);
            if (r->l.failed)
                return;
            r->out->uuid[i++] = (uint8_t)byte->u;
        }
    r->out->has_uuid = true;
}

static void read_preamble(struct reader *r, const struct ctf2_node *root)
{
    static const char *const names[] = {"version", "uuid", NULL};
    uint64_t version = 2;
    ctf2_get_count(&r->j, root, "version", true, 0, UINT64_MAX, &version);
    if (version != 2)
        tsdl_fail(&r->l, ctf2_get(&r->j, root, "version")->at, ERR_UNSUPPORTED,
            "version %llu; only CTF 2 and CTF 1.8 can be read", (unsigned long long)version);
    read_uuid(r, root);
    const struct ctf2_node *extensions = ctf2_get_kind(&r->j, root, "extensions", CTF2_OBJECT, false);
    if (extensions)
        for
            CTF2_EACH(&r->j, extensions, space)
    if (space->kind == CTF2_OBJECT && space->n)
        tsdl_fail(&r->l, space->at, ERR_UNSUPPORTED,
            "the trace uses the extension '%.*s' of '%.*s', which weft does not know: its data cannot be read",
            (int)space[1].key_n, space[1].key, (int)space->key_n, space->key);
    note_unknown(r, root, names);
}

/* ---- trace class ---- */

static void read_environment(struct reader *r, const struct ctf2_node *root)
{
    const struct ctf2_node *env = ctf2_get(&r->j, root, "environment");
    if (env && env->kind == CTF2_NULL) { /* LTTng-UST writes null if there are no entries */
        vec_push(&r->out->remarks, "the environment of the trace class is null; it is taken as empty");
        return;
    }
    env = ctf2_get_kind(&r->j, root, "environment", CTF2_OBJECT, false);
    if (!env)
        return;
    for
        CTF2_EACH(&r->j, env, entry)
        {
            struct ctf_env e = {.name = arena_strndup(r->arena, entry->key, entry->key_n),
                .is_string = entry->kind == CTF2_STRING,
                .number = (int64_t)entry->u};
            if (!e.is_string && entry->kind != CTF2_INTEGER)
                tsdl_fail(&r->l, entry->at, ERR_FORMAT, "an entry of the environment must be an integer or a string");
            if (r->l.failed)
                return;
            if (e.is_string)
                e.string = ctf2_text(r->arena, entry);
            vec_push(&r->out->env, e);
        }
}

static void read_trace_class(struct reader *r, const struct ctf2_node *root)
{
    static const char *const names[] = {"namespace", "name", "uid", "environment", "packet-header-field-class", NULL};
    const char *ignored;
    for (size_t i = 0; i < 3; i++)
        ctf2_get_text(&r->j, root, names[i], false, r->arena, &ignored);
    read_environment(r, root);
    note_unknown(r, root, names);
}

/* ---- clocks ---- */

/* LTTng's uid is the boot's id, as the UUID of a clock is in CTF 1.8. Clocks of one identity have one origin: with
 * another one than the epoch they are different clocks. */
static void set_identity(struct ctf_clock *k, bool has_name)
{
    const char *space = k->name_space ? k->name_space : "", *origin = k->absolute ? "" : k->origin;
    k->has_uuid = has_name && k->uid;
    if (!k->has_uuid || (!k->name_space && !*origin && tsdl_uuid(k->uid, k->uuid)))
        return;
    uint64_t parts[4] = {map_hash(k->uid, strlen(k->uid)), map_hash(space, strlen(space)),
        map_hash(origin, strlen(origin)), k->name_space != NULL};
    for (size_t i = 0; i < 2; i++) {
        parts[3] += 2 * i;
        uint64_t half = map_hash(parts, sizeof parts);
        memcpy(k->uuid + 8 * i, &half, sizeof half);
    }
}

static void read_origin(struct reader *r, const struct ctf2_node *root, struct ctf2_clock *c)
{
    const struct ctf2_node *origin = ctf2_get(&r->j, root, "origin");
    const char *space = NULL, *name = "", *uid = "";
    c->clock.origin = "";
    if (!origin)
        return;
    if (ctf2_is(origin, "unix-epoch")) {
        c->clock.absolute = true;
        c->origin = c->clock.origin = "unix-epoch";
        return;
    }
    if (origin->kind != CTF2_OBJECT) {
        tsdl_fail(&r->l, origin->at, ERR_FORMAT, "an origin must be \"unix-epoch\" or an object with name and uid");
        return;
    }
    ctf2_get_text(&r->j, origin, "namespace", false, r->arena, &space);
    ctf2_get_text(&r->j, origin, "name", true, r->arena, &name);
    ctf2_get_text(&r->j, origin, "uid", true, r->arena, &uid);
    c->origin = arena_printf(r->arena, "%s\n%s\n%s\n", space ? space : "\n", name, uid);
    c->clock.origin = arena_printf(r->arena, "%s%s%s/%s", space ? space : "", space ? "/" : "", name, uid);
}

/* Corrects LTTng-UST's offset: it divides a negative offset as an unsigned number, so seconds and cycles are those of
 * 2^64 ns more. */
static bool mend_offset(struct ctf_clock *c)
{
    const uint64_t ghz = 1000000000;
    unsigned __int128 ns = (unsigned __int128)(uint64_t)c->offset_s * ghz + c->offset;
    if (c->freq != ghz || c->offset_s < 0 || ns <= INT64_MAX || ns > UINT64_MAX)
        return false;
    int64_t mended = (int64_t)(uint64_t)ns, seconds = mended / (int64_t)ghz, cycles = mended % (int64_t)ghz;
    c->offset_s = seconds - (cycles < 0);
    c->offset = (uint64_t)(cycles < 0 ? cycles + (int64_t)ghz : cycles);
    return true;
}

static void read_offset(struct reader *r, const struct ctf2_node *root, struct ctf_clock *c)
{
    const struct ctf2_node *offset = ctf2_get_kind(&r->j, root, "offset-from-origin", CTF2_OBJECT, false);
    if (!offset)
        return;
    const struct ctf2_node *seconds = ctf2_get_kind(&r->j, offset, "seconds", CTF2_INTEGER, false);
    if (seconds && !seconds->negative && seconds->u > INT64_MAX)
        tsdl_fail(&r->l, seconds->at, ERR_FORMAT, "this clock's offset does not fit into 64 bits of seconds");
    c->offset_s = seconds ? (int64_t)seconds->u : 0;
    ctf2_get_count(&r->j, offset, "cycles", false, 0, UINT64_MAX, &c->offset);
    if (c->offset >= c->freq)
        tsdl_fail(&r->l, ctf2_get(&r->j, offset, "cycles")->at, ERR_FORMAT,
            "the cycles of an offset must be less than the clock's frequency");
    if (mend_offset(c))
        vec_push(&r->out->remarks,
            (const char *)arena_printf(r->arena,
                "clock '%.100s': its offset is a negative number of ns that was divided as if it were positive; it is "
                "taken as %lld s",
                c->id, (long long)c->offset_s));
}

static bool equal_texts(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void check_identity(struct reader *r, const struct ctf2_node *root, const struct ctf2_clock *c)
{
    for (size_t i = 0; i < r->out->clocks.n; i++) {
        const struct ctf2_clock *o = &r->out->clocks.v[i];
        const struct ctf_clock *a = &o->clock, *b = &c->clock;
        if (strcmp(a->id, b->id) == 0)
            tsdl_fail(&r->l, ctf2_get(&r->j, root, "id")->at, ERR_FORMAT, "a second clock class '%.100s'", b->id);
        if (!c->has_name || !o->has_name || !a->uid || !b->uid || strcmp(a->uid, b->uid) || strcmp(a->name, b->name) ||
            !equal_texts(a->name_space, b->name_space))
            continue;
        const char *other = a->freq != b->freq   ? "frequency"
            : !equal_texts(o->origin, c->origin) ? "origin"
            : a->precision != b->precision       ? "precision"
            : a->accuracy != b->accuracy         ? "accuracy"
                                                 : NULL;
        if (other) {
            const struct ctf2_node *node = ctf2_get(&r->j, root, other);
            tsdl_fail(&r->l, node ? node->at : root->at, ERR_FORMAT,
                "clock classes '%.100s' and '%.100s' are of one clock (name and uid) and differ in their %s", a->id,
                b->id, other);
        }
    }
}

static void read_clock(struct reader *r, const struct ctf2_node *root)
{
    static const char *const names[] = {"id", "namespace", "name", "uid", "description", "frequency", "origin",
        "offset-from-origin", "precision", "accuracy", NULL};
    struct ctf2_clock c = {.clock = {.freq = 1}};
    struct ctf_clock *k = &c.clock;
    ctf2_get_text(&r->j, root, "id", true, r->arena, &k->id);
    ctf2_get_text(&r->j, root, "name", false, r->arena, &k->name);
    ctf2_get_text(&r->j, root, "namespace", false, r->arena, &k->name_space);
    ctf2_get_text(&r->j, root, "uid", false, r->arena, &k->uid);
    ctf2_get_text(&r->j, root, "description", false, r->arena, &k->description);
    ctf2_get_count(&r->j, root, "frequency", true, 1, UINT64_MAX, &k->freq);
    ctf2_get_count(&r->j, root, "precision", false, 0, UINT64_MAX, &k->precision);
    ctf2_get_count(&r->j, root, "accuracy", false, 0, UINT64_MAX, &k->accuracy);
    if (r->l.failed)
        return;
    c.has_name = k->name != NULL;
    k->name = k->name ? k->name : k->id;
    k->has_error = ctf2_get(&r->j, root, "precision") && ctf2_get(&r->j, root, "accuracy");
    read_origin(r, root, &c);
    set_identity(k, c.has_name);
    read_offset(r, root, k);
    note_unknown(r, root, names);
    if (!r->l.failed)
        check_identity(r, root, &c);
    if (r->out->clocks.n >= 1024)
        tsdl_fail(&r->l, root->at, ERR_LIMIT, "more than 1024 clocks");
    if (!r->l.failed)
        vec_push(&r->out->clocks, c);
}

/* Checks that the data stream class names a clock declared before it. */
static void check_stream(struct reader *r, const struct ctf2_node *root)
{
    const struct ctf2_node *id = ctf2_get_kind(&r->j, root, "default-clock-class-id", CTF2_STRING, false);
    if (!id || r->l.failed)
        return;
    for (size_t i = 0; i < r->out->clocks.n; i++)
        if (ctf2_is(id, r->out->clocks.v[i].clock.id))
            return;
    tsdl_fail(&r->l, id->at, ERR_FORMAT, "no clock class '%.*s' was declared before", (int)id->s_n, id->s);
}

/* ---- all fragments ---- */

static void read_fragment(struct reader *r, struct tsdl_span s)
{
    enum ctf2_fragment type = ctf2_type(s, NULL);
    const struct ctf2_node *root = ctf2_parse(&r->j, s.begin, s.end);
    if (!root)
        return;
    switch (type) {
    case CTF2_PREAMBLE: read_preamble(r, root); break;
    case CTF2_TRACE_CLASS: read_trace_class(r, root); break;
    case CTF2_CLOCK_CLASS: read_clock(r, root); break;
    default: check_stream(r, root);
    }
}

int ctf2_read_own(
    const char *text, size_t n, const struct tsdl_scan *scan, struct arena *arena, struct ctf2_own *out, struct err *e)
{
    struct err first = {0};
    struct reader r = {.out = out, .arena = arena, .l = {.text = text, .end = text + n, .e = &first, .is_json = true}};
    r.j = (struct ctf2_json){.l = &r.l, .arena = arena};
    for (size_t i = 0; i < scan->own.n && !r.l.failed; i++)
        read_fragment(&r, scan->own.v[i]);
    ctf2_json_fini(&r.j);
    return r.l.failed ? err_set(e, first.code, "%s", first.text) : 0;
}

void ctf2_own_fini(struct ctf2_own *own)
{
    vec_free(&own->env);
    vec_free(&own->clocks);
    vec_free(&own->remarks);
}

void ctf2_identity(const char *text, size_t n, struct text *key)
{
    static const char *const names[] = {"hostname", "domain", "procname", "vpid"};
    struct tsdl_scan scan;
    struct arena arena = {0};
    struct ctf2_own own = {0};
    struct err ignored;
    ctf2_scan(text, n, &scan, &ignored); /* ignores a cut end, which is expected here */
    ctf2_read_own(text, n, &scan, &arena, &own, &ignored);
    if (own.has_uuid) {
        text_puts(key, "uuid=\"");
        for (size_t i = 0; i < 16; i++)
            text_printf(key, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", own.uuid[i]);
        text_puts(key, "\"\n");
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            for (size_t k = 0; k < own.env.n; k++)
                if (strcmp(own.env.v[k].name, names[i]) == 0 && own.env.v[k].is_string)
                    text_printf(key, "%s=\"%s\"\n", names[i], own.env.v[k].string);
                else if (strcmp(own.env.v[k].name, names[i]) == 0)
                    text_printf(key, "%s=%lld\n", names[i], (long long)own.env.v[k].number);
    }
    ctf2_own_fini(&own);
    tsdl_scan_fini(&scan);
    arena_fini(&arena);
}
