/* SPDX-License-Identifier: MIT */
/* Types against babeltrace2's of the same trace: its `sink.text.details` lists every event class with names, kinds,
 * sizes, bases, mappings, lengths and tags. Skipped without babeltrace2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../base/test.h"
#include "base/file.h"
#include "base/text.h"
#include "ctf/metadata.h"

/* ---- our types in babeltrace2's words ---- */

struct words {
    struct text out;
    const struct ctf_event_class *cls;
};

static void show(struct words *w, const struct ctf_type *t, int indent);

static bool find_path(const struct ctf_type *t, const struct ctf_type *target, uint32_t *path, uint32_t *n)
{
    if (t == target)
        return true;
    if (t->kind != CTF_STRUCT && t->kind != CTF_VARIANT)
        return false;
    for (uint32_t i = 0; i < t->n; i++) {
        path[(*n)++] = i;
        if (find_path(t->u.fields[i].type, target, path, n))
            return true;
        --*n;
    }
    return false;
}

/* "[Event payload: 4, 1]". Lengths and tags within lists of structs are not shown by their full path here: the samples
 * have none. */
static void show_path(struct words *w, const struct ctf_type *target)
{
    static const char *const scopes[CTF_SCOPES] = {"Packet header", "Packet context", "Event header",
        "Event common context", "Event specific context", "Event payload"};
    for (int s = 0; s < CTF_SCOPES; s++) {
        uint32_t path[64], n = 0;
        if (!w->cls->scope[s] || !find_path(w->cls->scope[s], target, path, &n))
            continue;
        text_printf(&w->out, "[%s: ", scopes[s]);
        for (uint32_t i = 0; i < n; i++)
            text_printf(&w->out, "%s%u", i ? ", " : "", path[i]);
        text_puts(&w->out, "]");
        return;
    }
    text_puts(&w->out, "[?]");
}

struct span {
    int64_t lo, hi;
};
static bool spans_signed;
static int by_low(const void *a, const void *b)
{
    int64_t x = ((const struct span *)a)->lo, y = ((const struct span *)b)->lo;
    if (spans_signed)
        return (x > y) - (x < y);
    return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
}

static void show_spans(struct words *w, struct span *v, size_t n, bool is_signed)
{
    spans_signed = is_signed;
    qsort(v, n, sizeof *v, by_low);
    for (size_t i = 0; i < n; i++) {
        const char *format = v[i].lo == v[i].hi ? is_signed ? " [%lld]" : " [%llu]"
            : is_signed                         ? " [%lld, %lld]"
                                                : " [%llu, %llu]";
        char s[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(s, sizeof s, format, (long long)v[i].lo, (long long)v[i].hi);
#pragma GCC diagnostic pop
        text_puts(&w->out, s);
    }
}

static int by_label(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void show_enum(struct words *w, const struct ctf_type *t, int indent)
{
    const char **labels = calloc(t->n, sizeof *labels);
    struct span *spans = calloc(t->n, sizeof *spans);
    size_t n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        labels[i] = t->u.enumeration.ranges[i].label;
    qsort(labels, t->n, sizeof *labels, by_label);
    for (uint32_t i = 0; i < t->n; i++)
        if (n == 0 || strcmp(labels[n - 1], labels[i]) != 0)
            labels[n++] = labels[i];
    text_printf(&w->out, "%s enumeration (%d-bit, Base %u, %zu mapping%s):\n", t->is_signed ? "Signed" : "Unsigned",
        (int)t->size_bits, t->base, n, n == 1 ? "" : "s");
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        for (uint32_t r = 0; r < t->n; r++)
            if (strcmp(t->u.enumeration.ranges[r].label, labels[i]) == 0)
                spans[k++] = (struct span){t->u.enumeration.ranges[r].lo, t->u.enumeration.ranges[r].hi};
        text_printf(&w->out, "%*s%s:", indent, "", labels[i]);
        show_spans(w, spans, k, t->is_signed);
        text_puts(&w->out, "\n");
    }
    free(labels);
    free(spans);
}

static void show_fields(struct words *w, const struct ctf_type *t, int indent)
{
    for (uint32_t i = 0; i < t->n; i++) {
        text_printf(&w->out, "%*s%s:", indent, "", t->u.fields[i].shown);
        if (t->kind == CTF_VARIANT) {
            struct span *spans = calloc(t->tag->n_choices, sizeof *spans);
            size_t k = 0;
            for (uint32_t c = 0; c < t->tag->n_choices; c++)
                if (t->tag->choices[c].option == i)
                    spans[k++] = (struct span){t->tag->choices[c].lo, t->tag->choices[c].hi};
            show_spans(w, spans, k, t->tag->target->is_signed);
            text_puts(&w->out, ":");
            free(spans);
        }
        text_puts(&w->out, " ");
        show(w, t->u.fields[i].type, indent + 2);
    }
}

static void show(struct words *w, const struct ctf_type *t, int indent)
{
    const struct ctf_type *element = t->kind == CTF_ARRAY || t->kind == CTF_SEQUENCE ? t->u.list.element : NULL;
    struct text *out = &w->out;
    if (t->kind == CTF_STRING || (element && element->kind == CTF_INT && element->is_text)) {
        text_puts(out, "String\n");
    } else if (t->kind == CTF_INT) {
        text_printf(
            out, "%s integer (%d-bit, Base %u)\n", t->is_signed ? "Signed" : "Unsigned", (int)t->size_bits, t->base);
    } else if (t->kind == CTF_FLOAT) {
        text_printf(out, "%s-precision real\n", t->size_bits == 32 ? "Single" : "Double");
    } else if (t->kind == CTF_ENUM) {
        show_enum(w, t, indent);
    } else if (t->kind == CTF_STRUCT) {
        text_printf(out, "Structure (%u member%s)%s\n", t->n, t->n == 1 ? "" : "s", t->n ? ":" : "");
        show_fields(w, t, indent);
    } else if (t->kind == CTF_VARIANT) {
        text_printf(out, "Variant (%s integer selector) (%u option%s, Selector field path ",
            t->tag->target->is_signed ? "signed" : "unsigned", t->n, t->n == 1 ? "" : "s");
        show_path(w, t->tag->target);
        text_puts(out, "):\n");
        show_fields(w, t, indent);
    } else {
        if (t->kind == CTF_ARRAY) {
            text_printf(out, "Static array (Length %u)", t->n);
        } else {
            text_puts(out, "Dynamic array (with length field) (Length field path ");
            show_path(w, t->u.list.length->target);
            text_puts(out, ")");
        }
        text_printf(out, ":\n%*sElement: ", indent, "");
        show(w, element, indent + 2);
    }
}

static void show_class(struct words *w, const struct ctf_event_class *cls)
{
    static const char *const levels[] = {"Emergency", "Alert", "Critical", "Error", "Warning", "Notice", "Info",
        "Debug (system)", "Debug (program)", "Debug (process)", "Debug (module)", "Debug (unit)", "Debug (function)",
        "Debug (line)", "Debug"};
    bool level = cls->loglevel >= 0 && cls->loglevel < 15;
    w->cls = cls;
    text_printf(&w->out, "    Event class `%s` (ID %llu):\n", cls->name, (unsigned long long)cls->id);
    if (level)
        text_printf(&w->out, "      Log level: %s\n", levels[cls->loglevel]);
    if (cls->model_uri)
        text_printf(&w->out, "      EMF URI: %s\n", cls->model_uri);
    if (cls->scope[CTF_EVENT_CONTEXT]) {
        text_puts(&w->out, "      Specific context field class: ");
        show(w, cls->scope[CTF_EVENT_CONTEXT], 8);
    }
    if (cls->scope[CTF_PAYLOAD]) {
        text_puts(&w->out, "      Payload field class: ");
        show(w, cls->scope[CTF_PAYLOAD], 8);
    }
}

static void show_schema(struct words *w, const struct ctf_schema *s)
{
    for (size_t i = 0; i < s->n_streams; i++) {
        const struct ctf_stream_class *stream = &s->streams[i];
        text_printf(&w->out, "  Stream class (ID %llu):\n", (unsigned long long)stream->id);
        if (stream->event_context && stream->n) {
            w->cls = stream->sorted[0];
            text_puts(&w->out, "    Event common context field class: ");
            show(w, stream->event_context, 6);
        }
        for (size_t k = 0; k < stream->n; k++)
            show_class(w, stream->sorted[k]);
    }
}

/* ---- babeltrace2 ---- */

static bool have_babeltrace2(void)
{
    return system("babeltrace2 --version >/dev/null 2>&1") == 0;
}

/* Large numbers come in groups: 9,223,372. */
static void ungroup(char *line)
{
    char *to = line;
    for (const char *p = line; *p; p++)
        if (*p != ',' || p[1] < '0' || p[1] > '9')
            *to++ = *p;
    *to = '\0';
}

/* The lines about streams' event contexts and event classes, up to the first message. */
static char *ask_babeltrace2(const char *dir)
{
    char command[4096], line[65536];
    snprintf(command, sizeof command, "babeltrace2 '%s' -c sink.text.details 2>/dev/null", dir);
    FILE *f = popen(command, "r");
    struct text out = {0};
    bool keep = false;
    assert_non_null(f);
    while (fgets(line, sizeof line, f) && line[0] != '\n') {
        ungroup(line);
        if (strncmp(line, "    Event ", 10) == 0)
            keep = true;
        if (strncmp(line, "  Stream class", 14) == 0) {
            keep = false;
            text_puts(&out, line);
        } else if (keep) {
            text_puts(&out, line);
        }
    }
    pclose(f);
    return text_take(&out);
}

/* Tells the first line that differs. */
static void assert_same_lines(const char *dir, const char *ours, const char *theirs)
{
    size_t line = 1, begin = 0, i = 0;
    for (; ours[i] && ours[i] == theirs[i]; i++) {
        if (ours[i] == '\n') {
            line++;
            begin = i + 1;
        }
    }
    if (ours[i] != theirs[i])
        fail_msg("%s: line %zu differs:\nours:   %.*s\ntheirs: %.*s", dir, line, (int)strcspn(ours + begin, "\n"),
            ours + begin, (int)strcspn(theirs + begin, "\n"), theirs + begin);
}

static void compare(const char *dir)
{
    char path[4096];
    struct file_map file;
    struct ctf_metadata m;
    struct err e = {0};
    struct words w = {0};
    snprintf(path, sizeof path, "%s/metadata", dir);
    if (file_map_open(path, &file, &e) != 0)
        fail_msg("%s", e.text);
    if (ctf_metadata_parse(path, file.data, file.size, NULL, &m, &e) != 0)
        fail_msg("%s", e.text);
    show_schema(&w, m.schema);
    char *theirs = ask_babeltrace2(dir);
    assert_non_null(strstr(theirs, "Event class"));
    assert_same_lines(dir, text_cstr(&w.out), theirs);
    free(theirs);
    text_fini(&w.out);
    ctf_metadata_fini(&m, NULL);
    file_map_close(&file);
}

/* ---- recordings ---- */

static void test_recordings(void **state)
{
    static const char *const traces[] = {
        "traces/three-tier/web/kernel",
        "traces/vm/vmhost/kernel",
        "traces/perf-ctf/trace",
        "traces/ust-live/relay-dir/vm/tblive-20261121-013145/ust/uid/0/64-bit",
        "traces-public/single-host/many-threads",
        "traces-public/single-host/bug446190",
        "traces-public/single-host/perf-taskset2",
        "traces-public/single-host/flipping-endianness",
        "traces-public/synctraces/scp_src",
        "traces-public/context-switches-ust",
        "traces-public/babeltrace2-tests/succeed/debug-info",
        "traces-public/babeltrace2-tests/succeed/session-rotation/3/ust/pid/10353",
        "traces-public/babeltrace2-tests/succeed/barectf-event-before-packet",
        "traces-public/babeltrace2-tests/succeed/sequence",
        "traces-public/babeltrace2-tests/succeed/struct-array-align-elem",
        "traces-public/babeltrace2-tests/succeed/meta-variant-one-underscore",
        "traces-public/babeltrace2-tests/succeed/meta-variant-two-underscores",
        "traces-public/babeltrace2-tests/succeed/meta-variant-no-underscore",
        "traces-public/babeltrace2-tests/succeed/meta-variant-same-with-underscore",
        "traces-public/babeltrace2-tests/succeed/meta-variant-reserved-keywords",
        "traces-public/babeltrace2-tests/succeed/multi-domains/ust",
        "traces-public/babeltrace2-tests/packet-seq-num/no-lost",
    };
    const char *data = getenv("WEFT_DATA") ? getenv("WEFT_DATA") : WEFT_SOURCE_ROOT "/../shared/data";
    size_t compared = 0;
    if (!have_babeltrace2())
        skip_without("babeltrace2 is not installed");
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        char dir[4096];
        snprintf(dir, sizeof dir, "%s/%s", data, traces[i]);
        if (!test_have(dir))
            continue;
        compare(dir);
        compared++;
    }
    if (!compared)
        skip_without("no recordings below %s", data);
}

/* ---- samples ---- */

#define HEAD \
    "/* CTF 1.8 */\ntypealias integer { size = 8; } := u8;\ntypealias integer { size = 8; signed = true; } := i8;\n" \
    "trace { major = 1; minor = 8; byte_order = le; };\n"
#define STREAM "stream { event.header := struct { u8 id; }; };\nevent { name = nothing; id = 0; };\n"

/* Samples, read from zero bytes: events of the class `nothing`. */
static const char *const samples[] = {
    /* named types, scopes of names, words of types */
    HEAD
    "typealias integer { size = 64; signed = 1; base = x; } := unsigned long;\ntypedef u8 bytes_t[4], word_t[2][3];\n"
    "struct point { u8 x; i8 y; } align(32);\nvariant choice { u8 a; struct point b; string c; };\n"
    "enum color : u8 { red, green = 5, blue };\n" STREAM
    "event { name = \"named\"; id = 1; fields := struct { unsigned long _l; bytes_t b; word_t w; struct point p; "
    "enum color c; enum kind : u8 { a, b, c } k;"
    " variant choice <k> v; struct inner { u8 q; } in; struct inner again; }; };\n"
    "event { name = shadow; id = 2; typealias integer { size = 16; } := u8; fields := struct { u8 a; typealias "
    "integer { size = 24; } := u8; u8 b; }; };\n",
    /* integers and floats */
    HEAD STREAM
    "event { name = numbers; id = 1; loglevel = 6; model.emf.uri = \"http://example.com/a?b\"; fields := struct {\n"
    "integer { size = 1; align = 1; } a; integer { size = 0x40; align = 010; signed = TRUE; base = hexadecimal; "
    "byte_order = network; } b;\n"
    "integer { size = 7; base = octal; signed = 0; } c; integer { size = 64; base = b; signed = false; } d; integer "
    "{ size = 12; base = 2; } e;\n"
    "floating_point { exp_dig = 8; mant_dig = 24; align = 32; byte_order = be; } f; floating_point { mant_dig = 53; "
    "exp_dig = 11; } g;\n"
    "string { encoding = ASCII; } h; string i; integer { size = 8; encoding = UTF8; } j[7]; integer { size = 8; "
    "encoding = ASCII; } k;\n"
    "integer { size = 8; align = 16; encoding = UTF8; } l[2]; integer { size = 16; encoding = UTF8; } m[2]; integer "
    "{ size = 8; encoding = none; } n[2]; }; };\n",
    /* enumerations */
    HEAD
    "typealias integer { size = 32; signed = true; } := int;\n" STREAM
    "event { name = enums; id = 1; fields := struct {\n"
    "enum { A, B, C = 10, D, E = -4 ... -2, F } a; enum : u8 { \"one two\" = 1, \"three \\\"q\\\"\" = 3 ... 0x7, "
    "same = 9, other = 10, same = 11 ... 013, last, } b;\n"
    "enum : integer { size = 64; signed = true; } { low = -9223372036854775808, high = 9223372036854775807 } c;\n"
    "enum : integer { size = 64; } { all = 0 ... 0x7fffffffffffffff } d; enum : i8 { minus = -1, zero, one } e; }; "
    "};\n",
    /* lists */
    HEAD STREAM
    "event { name = lists; id = 1; fields := struct { u8 n; u8 m; u8 a[3]; u8 b[2][3]; u8 c[n]; u8 d[n][m]; u8 "
    "e[2][n]; string f[n];\n"
    "struct { u8 x; string y; } g[2]; integer { size = 16; base = 16; } h[m], i, j[1]; integer { size = 8; encoding "
    "= UTF8; } text[n];\n"
    "enum : u8 { p, q } k[2]; struct { u8 k; } l; u8 o[l.k]; u8 r[event.fields.l.k]; struct { u8 s[n]; u8 t; u8 "
    "u[t]; struct { u8 v[t]; } w; } z; }; };\n",
    /* References. babeltrace2's grammar has no dots in tags, and lengths from elsewhere than the same struct, or in a
     * context, can stop it (test_metadata.c has those). */
    HEAD
    "stream { event.header := struct { u8 id; }; event.context := struct { enum : u8 { A, B } tag; u8 len; struct { "
    "u8 len; } s; }; };\n"
    "event { name = nothing; id = 0; };\n"
    "event { name = far; id = 1; context := struct { u8 len; enum : u8 { A, B = 7, A = 9 } tag; };\n"
    "fields := struct { u8 n; u8 x[event.fields.n]; struct { struct { u8 n; } b; u8 c[b.n]; u8 "
    "d[event.fields.a.b.n]; } a; u8 y[a.b.n];\n"
    "struct { enum : u8 { A, B } tag; variant <tag> { struct { enum : u8 { A, B } tag; variant <tag> { u8 A; u8 B; "
    "} deep; u8 q; } A; u8 B; } near; } s;\n"
    "enum : i8 { _A = -5 ... -1, _B = -7 ... -6, C = 0 } tag; struct { variant <tag> { u8 C; u8 _B; u8 _A; } aa; } "
    "ab; }; };\n",
    /* spelling */
    "/* CTF 1.8 */ // first\r\ntrace\r\n{\r\n\tmajor = 0x1; minor = +010; byte_order = be; /* { \" */ };\r\n// } \"\r\n"
    "typealias integer { size = 8; } := u8;\r\ncallsite { name = \"nothing\"; func = \"f\"; file = \"a.c\"; line = "
    "39; };\r\n"
    "stream { event.header := struct { u8 id; }; };\r\nevent { id = 0; name = \"not\\x68ing\\041\\t\\\"\"; fields "
    ":= struct { string _stream; string _event; u8 __; } align(8); };\r\n",
};

static void test_samples(void **state)
{
    char dir[512], path[1024];
    static const char zeros[64];
    struct err e = {0};
    if (!have_babeltrace2())
        skip_without("babeltrace2 is not installed");
    snprintf(dir, sizeof dir, "%s/weft-metadata-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : P_tmpdir);
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        snprintf(path, sizeof path, "%s/stream", dir);
        assert_int_equal(file_write(path, zeros, sizeof zeros, &e), 0);
        snprintf(path, sizeof path, "%s/metadata", dir);
        assert_int_equal(file_write(path, samples[i], strlen(samples[i]), &e), 0);
        compare(dir);
    }
    unlink(path);
    snprintf(path, sizeof path, "%s/stream", dir);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recordings), cmocka_unit_test(test_samples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
