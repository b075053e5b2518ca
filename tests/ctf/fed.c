/* SPDX-License-Identifier: MIT */
#include "fed.h"

#include <dirent.h>

#include "base/file.h"
#include "base/map.h"

/* ---- items ---- */

static void add_leaf(void *arg, const struct ctf_value *v)
{
    uint64_t *sum = arg, parts[3] = {*sum, v->type->kind, 0};
    if (v->s)
        parts[2] = map_hash(v->s, v->len);
    else
        parts[2] = v->v.u;
    *sum = map_hash(parts, sizeof parts);
}
static void add_list(void *arg, const struct ctf_value *v)
{
    uint64_t *sum = arg, parts[2] = {*sum, v->len + 7};
    *sum = map_hash(parts, sizeof parts);
}
static void end_list(void *arg, const struct ctf_value *v) {}

static struct fed_item item_of(const struct ctf_merge *m, const struct ctf_source *sources, const struct ctf_event *ev)
{
    uint32_t source;
    struct ctf_stream_info info;
    size_t stream = ctf_merge_stream(m, ev->stream, &source);
    ctf_trace_stream(sources[source].trace, stream, &info);
    uint64_t parts[6] = {
        source, info.class_id, info.instance_id, (uint64_t)ev->cpu, map_hash(ev->cls->name, strlen(ev->cls->name)), 0};
    struct ctf_visitor visit = {add_leaf, add_list, end_list, &parts[5]};
    if (ev->cls->item == CTF_EVENT) {
        assert_int_equal(source, ctf_merge_source(m, ev->stream));
        for (int s = CTF_EVENT_HEADER; s < CTF_SCOPES; s++)
            ctf_visit(ev, (enum ctf_scope)s, &visit);
    } else {
        const struct ctf_loss *l = (const struct ctf_loss *)ev->data;
        uint64_t loss[5] = {(uint64_t)l->begin, (uint64_t)l->end, l->count, l->begin_known, l->end_known};
        parts[5] = map_hash(loss, sizeof loss);
    }
    return (struct fed_item){ev->ts, map_hash(parts, sizeof parts), ev->cls->item != CTF_EVENT};
}

void fed_take(
    fed_items *out, const struct ctf_merge *m, const struct ctf_source *s, const struct ctf_event *ev, size_t n)
{
    for (size_t i = 0; i < n; i++)
        vec_push(out, item_of(m, s, &ev[i]));
}

void fed_read_rest(fed_items *out, struct ctf_merge *m, const struct ctf_source *sources, size_t portion)
{
    struct ctf_event ev[256];
    for (size_t n; (n = ctf_merge_next(m, ev, portion)) > 0;)
        fed_take(out, m, sources, ev, n);
}

void fed_compare(const fed_items *got, size_t from, const fed_items *expected)
{
    if (got->n > expected->n)
        fail_msg("%zu items, there are only %zu", got->n, expected->n);
    for (size_t i = from; i < got->n; i++)
        if (got->v[i].ts != expected->v[i].ts || got->v[i].digest != expected->v[i].digest)
            fail_msg("item %zu of %zu differs: time %lld, expected %lld", i, expected->n, (long long)got->v[i].ts,
                (long long)expected->v[i].ts);
}

/* ---- dice ---- */

_Thread_local uint64_t fed_dice;

uint64_t fed_roll(uint64_t sides)
{
    fed_dice = map_mix(fed_dice + 0x9e3779b97f4a7c15u);
    return fed_dice % sides;
}

/* ---- files ---- */

static uint64_t le(const uint8_t *p, int n)
{
    uint64_t v = 0;
    for (int i = n; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static void cut(struct fed_file *f, size_t from, size_t head)
{
    for (size_t at = from; at < f->bytes.n;) {
        const uint8_t *p = f->bytes.v + at;
        assert_true(f->bytes.n - at >= head + 32 && le(p, 4) == 0xC1FC1FC1);
        struct fed_part part = {
            at, (size_t)le(p + head + 24, 8) / 8, le(p + head, 8), le(p + head + 8, 8), le(p + 20, 4)};
        assert_true(part.n > 0 && part.n <= f->bytes.n - at);
        vec_push(&f->parts, part);
        at += part.n;
    }
}

static struct fed_file *file_of(struct fed_trace *r, const char *name)
{
    for (size_t i = 0; i < r->files.n; i++)
        if (!strcmp(r->files.v[i].name, name))
            return &r->files.v[i];
    struct fed_file f = {.line = UINT32_MAX};
    snprintf(f.name, sizeof f.name, "%s", name);
    vec_push(&r->files, f);
    return &r->files.v[r->files.n - 1];
}

void fed_load(struct fed_trace *r, const struct ctf_group *g, size_t head)
{
    memset(r, 0, sizeof *r);
    for (size_t d = 0; d < g->n; d++) {
        struct dirent **names;
        int n = scandir(g->dirs[d], &names, NULL, alphasort);
        for (int i = 0; i < n; i++) {
            char path[1300], *data;
            size_t size;
            struct stat st;
            snprintf(path, sizeof path, "%s/%s", g->dirs[d], names[i]->d_name);
            if (names[i]->d_name[0] != '.' && !stat(path, &st) && S_ISREG(st.st_mode)) {
                assert_int_equal(file_read(path, 1 << 30, &data, &size, NULL), 0);
                if (!strcmp(names[i]->d_name, "metadata")) {
                    free(r->metadata);
                    r->metadata = data;
                    r->metadata_n = size;
                    data = NULL;
                } else {
                    struct fed_file *f = file_of(r, names[i]->d_name);
                    size_t from = f->bytes.n;
                    vec_reserve(&f->bytes, size + 1);
                    memcpy(f->bytes.v + from, data, size);
                    f->bytes.n += size;
                    cut(f, from, head);
                }
                free(data);
            }
            free(names[i]);
        }
        free(names);
    }
}

void fed_unload(struct fed_trace *r)
{
    for (size_t i = 0; i < r->files.n; i++) {
        vec_free(&r->files.v[i].bytes);
        vec_free(&r->files.v[i].parts);
    }
    vec_free(&r->files);
    free(r->metadata);
}

/* ---- feeding ---- */

void fed_hold(struct ctf_feed *feed, const struct fed_trace *r, bool overlap)
{
    int64_t least = INT64_MAX, ns;
    for (size_t i = 0; i < r->files.n; i++) {
        const struct fed_file *f = &r->files.v[i];
        if ((overlap || !f->known) && f->fed < f->parts.n &&
            ctf_feed_time(feed, f->parts.v[f->fed].class_id, f->parts.v[f->fed].begin, &ns))
            least = ns < least ? ns : least;
    }
    ctf_feed_hold(feed, least);
}

bool fed_step(struct ctf_feed *feed, struct fed_trace *r, bool beacons, bool overlap)
{
    bool left = false;
    for (size_t i = 0; i < r->files.n; i++)
        left |= !r->files.v[i].ended;
    if (!left)
        return false;
    struct fed_file *f = &r->files.v[fed_roll(r->files.n)];
    if (f->ended)
        return true;
    if (!f->known) {
        f->line = ctf_feed_line(feed, f->name);
        f->known = true;
        fed_hold(feed, r, overlap);
        return true;
    }
    if (f->fed == f->parts.n) {
        ctf_feed_line_end(feed, f->line);
        f->ended = true;
        return true;
    }
    const struct fed_part *p = &f->parts.v[f->fed];
    int64_t ns;
    if (beacons && fed_roll(3) == 0 && ctf_feed_time(feed, p->class_id, p->begin, &ns)) {
        ctf_feed_quiet(feed, f->line, ns - (int64_t)fed_roll(3) * (int64_t)fed_roll(1000000));
        return true;
    }
    size_t k = 1 + fed_roll(3), from = p->at, n = 0;
    for (; k > 0 && f->fed < f->parts.n; k--)
        n += f->parts.v[f->fed++].n;
    assert_int_equal(ctf_feed_packet(feed, f->line, f->bytes.v + from, n, NULL), 0);
    if (overlap)
        fed_hold(feed, r, true);
    return true;
}
