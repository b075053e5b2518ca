/* SPDX-License-Identifier: MIT */
/* Sanitizer: repairs or refuses received spans. */
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "span/code.h"

void span_making_fini(struct span_making *m)
{
    text_fini(&m->code);
    text_fini(&m->scratch);
    arena_fini(&m->of_origin);
    arena_fini(&m->of_span);
}

struct arena *span_making_arena(struct span_making *m)
{
    return m->in_span ? &m->of_span : &m->of_origin;
}

static bool is_sound(const char *s, size_t n, bool whole)
{
    for (size_t i = 0, step; i < n; i += step)
        if (!(step = text_sequence(s + i, n - i)) || (whole && !s[i]))
            return false;
    return true;
}

const char *span_making_text(struct span_making *m, const void *v, size_t n, bool whole, size_t *out_n)
{
    struct arena *a = span_making_arena(m);
    const char *s = v;
    if (out_n)
        *out_n = n;
    if (!n)
        return "";
    if (is_sound(s, n, whole))
        return arena_strndup(a, s, n);
    struct text t = {.fd = -1};
    for (size_t i = 0, step; i < n; i += step ? step : 1) {
        step = text_sequence(s + i, n - i);
        if (step && (s[i] || !whole))
            text_put(&t, s + i, step);
        else
            TEXT_PUT(&t, "\xef\xbf\xbd");
    }
    m->mended = true;
    if (out_n)
        *out_n = t.n;
    return text_to_arena(&t, a);
}

/* Returns the place of an equal key among the first `kept`, or `kept`. */
static size_t find_key(struct map *places, const struct span_attribute *v, size_t kept, const char *key)
{
    bool fresh;
    uint64_t *place = map_put(places, map_hash(key, strlen(key)), &fresh);
    if (fresh)
        *place = kept;
    return fresh || !strcmp(v[*place].key, key) ? (size_t)*place : kept;
}

struct span_attributes span_making_attributes(
    struct span_making *m, struct span_attribute *v, size_t n, uint32_t *dropped)
{
    struct map places = {0};
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = find_key(&places, v, kept, v[i].key);
        m->mended |= at < kept;
        if (at == CODE_MOST_ITEMS) {
            *dropped += *dropped < UINT32_MAX;
            m->mended = true;
            map_remove(&places, map_hash(v[i].key, strlen(v[i].key)));
        } else {
            v[at] = v[i];
            kept += at == kept;
        }
    }
    map_fini(&places);
    return (struct span_attributes){v, kept};
}

void span_begin_origin(struct span_making *m)
{
    arena_fini(&m->of_origin);
    m->in_span = m->mended = m->origin_mended = false;
}

void span_begin(struct span_making *m)
{
    arena_fini(&m->of_span);
    m->in_span = true;
    m->mended = m->origin_mended;
}

void span_put_origin(struct span_making *m, struct span_origin *o, const char *service)
{
    const struct span_value *told = span_find(&o->resource, "service.name");
    o->service = service && *service                                                                ? service
        : told && told->type == SPAN_STRING && told->text.n && strlen(told->text.v) == told->text.n ? told->text.v
                                                                                                    : "unknown_service";
    m->origin_mended = m->mended;
    span_record_origin(o, &m->scratch, &m->code);
}

void span_refuse(struct span_making *m, const char *why)
{
    if (!m->told.refused++)
        strncpy(m->told.why, why, sizeof m->told.why - 1);
}

void span_unread(struct span_making *m, const char *what, const char *key, const char *instead)
{
    if (!*m->told.warning)
        snprintf(m->told.warning, sizeof m->told.warning,
            "not understood, so that spans may be missing: %s has no \"%s\"%s%.80s%s", what, key,
            instead ? ", but \"" : "", instead ? instead : "", instead ? "\"" : " (unknown fields)");
}

/* Returns the state that weft-span reports; spans of other senders have all ended. */
static enum span_life life_of(const struct span_attributes *a)
{
    const struct span_value *v = span_find(a, "weft.state");
    const char *state = v && v->type == SPAN_STRING ? v->text.v : "";
    return !strcmp(state, "open") ? SPAN_OPEN : !strcmp(state, "lost") ? SPAN_LOST : SPAN_ENDED;
}

void span_put(struct span_making *m, struct span *s, uint64_t begin_ns, uint64_t end_ns)
{
    if (span_id_is_zero(s->trace_id, sizeof s->trace_id) || span_id_is_zero(s->id, sizeof s->id)) {
        span_refuse(m, "a trace id or span id that is all zero");
        return;
    }
    if (begin_ns >= INT64_MAX || end_ns > INT64_MAX) {
        span_refuse(m, "a time beyond the year 2262");
        return;
    }
    if (end_ns < begin_ns) {
        end_ns = begin_ns + 1;
        m->mended = true;
    }
    if (!*s->name) {
        s->name = "unnamed";
        m->mended = true;
    }
    if (s->kind > SPAN_CONSUMER || s->status > SPAN_ERROR) {
        s->kind = s->kind > SPAN_CONSUMER ? SPAN_UNSPECIFIED : s->kind;
        s->status = s->status > SPAN_ERROR ? SPAN_UNSET : s->status;
        m->mended = true;
    }
    if (!memcmp(s->parent_id, s->id, sizeof s->id)) {
        memset(s->parent_id, 0, sizeof s->parent_id);
        m->mended = true;
    }
    s->begin_ns = (int64_t)begin_ns;
    s->end_ns = (int64_t)end_ns;
    s->life = life_of(&s->attributes);
    m->told.taken++;
    m->told.repaired += m->mended;
    span_record(s, &m->scratch, &m->code);
}
