/* SPDX-License-Identifier: MIT */
#include "events/match.h"

#include "base/terms.h"
#include "events/cell.h"

enum answer { UNKNOWN, YES, NO };
enum kind { BY_TYPE, BY_STREAM, BY_CPU, BY_EVENT, KINDS };

struct event_match {
    const struct event_table *table;
    struct terms terms;
    struct {
        size_t n;
        const struct term *v[TERMS_MOST];
    } by_kind[KINDS];
    struct event_filter *filter; /* filter, or NULL */
    struct event_threads *threads;
    uint8_t **types;  /* answers by schema and number of the type */
    uint8_t *streams; /* answers by stream */
    struct {
        uint8_t *v;
        size_t n, cap;
    } cpus; /* answers by CPU + 1 */
};

static enum kind kind_of(int64_t column)
{
    switch (column) {
    case EVENT_TYPE: return BY_TYPE;
    case EVENT_TRACE:
    case EVENT_CHANNEL: return BY_STREAM;
    case EVENT_CPU: return BY_CPU;
    default: return BY_EVENT;
    }
}

static void add_term(struct event_match *m, const struct event_term *t)
{
    size_t column = 0, before = m->terms.n;
    while (column < m->table->n_columns && m->table->columns[column].id != t->column)
        column++;
    if (column == m->table->n_columns) {
        m->terms.impossible = true;
        return;
    }
    terms_add(&m->terms, column, t->pattern);
    if (m->terms.n > before) {
        enum kind kind = kind_of(t->column);
        m->by_kind[kind].v[m->by_kind[kind].n++] = &m->terms.v[before];
    }
}

int events_match_new(
    const struct event_table *table, const struct event_wanted *wanted, struct event_match **out, struct err *e)
{
    struct event_filter_options o = {.cpu = -1, .tid = -1, .where = wanted->where};
    struct event_match *m = mem_zalloc(sizeof *m);
    m->table = table;
    for (size_t i = 0; i < wanted->n_terms; i++)
        add_term(m, &wanted->terms[i]);
    m->types = mem_zalloc(sizeof *m->types * (table->schemas.n + 1));
    for (size_t i = 0; i < table->schemas.n; i++)
        m->types[i] = mem_zalloc(table->schemas.v[i].n + 1);
    m->threads = events_threads_new(table);
    m->streams = mem_zalloc(table->n_streams + 1);
    int rc = o.where ? events_filter_new(table, &o, (struct ctf_window){INT64_MIN, INT64_MAX}, &m->filter, e) : 0;
    if (rc) {
        events_match_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

/* ---- contents that a type's fields can never show ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Returns whether fields of this type show only numbers, and no name that contains the word. */
static bool is_without(const struct ctf_type *t, const char *word, size_t n)
{
    switch (t->kind) {
    case CTF_INT: return true;
    case CTF_ARRAY:
    case CTF_SEQUENCE: return t->u.list.element->kind == CTF_INT && !t->u.list.element->is_text;
    case CTF_STRUCT:
        for (uint32_t i = 0; i < t->n; i++)
            if (memmem(t->u.fields[i].shown, strlen(t->u.fields[i].shown), word, n) ||
                !is_without(t->u.fields[i].type, word, n))
                return false;
        return true;
    default: return false;
    }
}

/* Returns whether the text has a word, with letters that no number has, that fields of this type never show. */
static bool never_shows(const struct ctf_type *t, const char *text)
{
    for (const char *p = text; *p;) {
        size_t n = 0, of_numbers = 0;
        while (is_letter(p[n]))
            of_numbers += strchr("abcdefx", p[n++]) != NULL;
        if (n > of_numbers && is_without(t, p, n))
            return true;
        p += n ? n : 1;
    }
    return false;
}

/* Returns false if no event of this type can contain all literal texts. */
static bool type_may_fit(const struct event_match *m, const struct ctf_event_class *cls)
{
    for (size_t i = 0; i < m->by_kind[BY_EVENT].n; i++) {
        const struct term *t = m->by_kind[BY_EVENT].v[i];
        enum ctf_scope scope;
        if (cls->item == CTF_EVENT && t->plain && event_column_scope(m->table->columns[t->column].id, &scope) &&
            cls->scope[scope] && never_shows(cls->scope[scope], t->plain))
            return false;
    }
    return true;
}

/* ---- matching ---- */

static bool cells_fit(struct event_match *m, enum kind kind, uint32_t source, const struct ctf_event *ev)
{
    for (size_t i = 0; i < m->by_kind[kind].n; i++) {
        const struct term *t = m->by_kind[kind].v[i];
        m->terms.cell.n = 0;
        events_cell_write(m->table, m->threads, t->column, ev, source, &m->terms.cell);
        if (!term_fits(t, text_cstr(&m->terms.cell)))
            return false;
    }
    return true;
}

static bool fits_once(
    struct event_match *m, enum kind kind, uint32_t source, const struct ctf_event *ev, uint8_t *answer)
{
    if (*answer == UNKNOWN)
        *answer = cells_fit(m, kind, source, ev) && (kind != BY_TYPE || type_may_fit(m, ev->cls)) ? YES : NO;
    return *answer == YES;
}

static uint8_t *cpu_answer(struct event_match *m, int32_t cpu)
{
    size_t i = cpu < 0 ? 0 : (size_t)cpu + 1;
    while (m->cpus.n <= i)
        vec_push(&m->cpus, UNKNOWN);
    return &m->cpus.v[i];
}

static bool fits_cells(struct event_match *m, const struct ctf_merge *merge, const struct ctf_event *ev)
{
    uint32_t source = ctf_merge_source(merge, ev->stream);
    uint8_t odd = UNKNOWN; /* impossible CPU number */
    if (!fits_once(m, BY_TYPE, source, ev, &m->types[m->table->schema_of[source]][ev->cls->index]))
        return false;
    if (m->by_kind[BY_STREAM].n && !fits_once(m, BY_STREAM, source, ev, &m->streams[ev->stream]))
        return false;
    if (m->by_kind[BY_CPU].n &&
        !fits_once(m, BY_CPU, source, ev, ev->cpu < CTF_MOST_CPUS ? cpu_answer(m, ev->cpu) : &odd))
        return false;
    return !m->by_kind[BY_EVENT].n || cells_fit(m, BY_EVENT, source, ev);
}

bool events_match_fits(struct event_match *m, const struct ctf_merge *merge, const struct ctf_event *ev)
{
    /* A loss has neither name nor fields, but the filter needs it to forget the current threads. */
    if (m->filter && (!events_filter_matches(m->filter, merge, ev) || ev->cls->item != CTF_EVENT))
        return false;
    return !m->terms.impossible && (m->terms.n || m->filter) && (!m->terms.n || fits_cells(m, merge, ev));
}

bool events_match_impossible(const struct event_match *m)
{
    return m->terms.impossible || (!m->terms.n && !m->filter);
}

void events_match_free(struct event_match *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->table->schemas.n; i++)
        free(m->types[i]);
    free(m->types);
    events_threads_free(m->threads);
    free(m->streams);
    vec_free(&m->cpus);
    events_filter_free(m->filter);
    terms_fini(&m->terms);
    free(m);
}
