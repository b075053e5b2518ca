#include "events/match.h"

#include "events/events.h"

#include "tsp/search.h"

enum answer { UNKNOWN, YES, NO };
enum kind { BY_TYPE, BY_STREAM, BY_CPU, BY_EVENT, KINDS };
enum { MAX_CPUS = 65536 };

struct event_match {
    const struct event_cells *cells;
    struct search search;
    struct search_terms {
        size_t n;
        const struct search_term *v[SEARCH_MAX];
    } terms[KINDS];
    struct event_filter *filter; /* or NULL */
    const char **hosts;          /* by source */
    struct event_prios *prios;
    uint8_t **types;  /* answers by source and number of the type; sources with the same declarations share them */
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

static void sort_terms(struct event_match *m)
{
    for (size_t i = 0; i < m->search.n; i++) {
        struct search_terms *t = &m->terms[kind_of(m->cells->columns[m->search.terms[i].column].id)];
        t->v[t->n++] = &m->search.terms[i];
    }
}

static void make_types(struct event_match *m)
{
    const struct views *x = m->cells->x;
    const struct ctf_event_class *const *classes, *const *others;
    m->types = mem_zalloc(sizeof *m->types * (x->n_sources + 1));
    for (size_t i = 0; i < x->n_sources; i++) {
        size_t n = ctf_trace_classes(x->sources[i].trace, &classes);
        for (size_t k = 0; k < i && !m->types[i]; k++)
            if (ctf_trace_classes(x->sources[k].trace, &others) == n && others == classes)
                m->types[i] = m->types[k];
        if (!m->types[i])
            m->types[i] = mem_zalloc(n + 1);
    }
}

static int make_filter(struct event_match *m, const char *where, struct err *e)
{
    const struct views *x = m->cells->x;
    m->hosts = mem_zalloc(sizeof *m->hosts * (x->n_sources + 1));
    for (size_t i = 0; i < x->n_sources; i++)
        m->hosts[i] = x->source_hosts[i] >= 0 ? x->hosts[x->source_hosts[i]].id : NULL;
    struct event_filter_options o = {.cpu = -1, .tid = -1, .where = where, .hosts = m->hosts};
    return event_filter_new(&o, x->sources, x->n_sources, (struct ctf_window){INT64_MIN, INT64_MAX}, &m->filter, e);
}

int event_match_new(
    const struct event_cells *cells, json_t *patterns, const char *where, struct event_match **out, struct err *e)
{
    struct event_match *m = mem_zalloc(sizeof *m);
    m->cells = cells;
    search_init(&m->search, patterns, cells->columns, cells->n_columns);
    sort_terms(m);
    make_types(m);
    m->prios = event_prios_new(cells);
    m->streams = mem_zalloc(cells->n_streams + 1);
    int rc = where ? make_filter(m, where, e) : 0;
    if (rc) {
        event_match_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

/* ---- what a type's fields can never show ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Do fields of this type show nothing but numbers, and no name with the word in it? Then neither does a line of them.
 */
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

/* The text has a word, of letters that no number has, that fields of this type never show. */
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

/* False: no event of this type has all the texts that are looked for as they stand. */
static bool type_may_fit(const struct event_match *m, const struct ctf_event_class *cls)
{
    for (size_t i = 0; i < m->terms[BY_EVENT].n; i++) {
        const struct search_term *t = m->terms[BY_EVENT].v[i];
        enum ctf_scope scope;
        if (cls->item == CTF_EVENT && t->plain && event_cell_scope(m->cells, t->column, &scope) && cls->scope[scope] &&
            never_shows(cls->scope[scope], t->plain))
            return false;
    }
    return true;
}

/* ---- matching ---- */

static bool cells_fit(struct event_match *m, enum kind kind, uint32_t source, const struct ctf_event *ev)
{
    for (size_t i = 0; i < m->terms[kind].n; i++) {
        const struct search_term *t = m->terms[kind].v[i];
        m->search.cell.n = 0;
        event_cell_write(m->cells, m->prios, t->column, ev, source, &m->search.cell);
        if (!search_term_fits(t, text_cstr(&m->search.cell)))
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
    uint8_t odd = UNKNOWN; /* a CPU number that no machine has */
    if (!fits_once(m, BY_TYPE, source, ev, &m->types[source][ev->cls->index]))
        return false;
    if (m->terms[BY_STREAM].n && !fits_once(m, BY_STREAM, source, ev, &m->streams[ev->stream]))
        return false;
    if (m->terms[BY_CPU].n && !fits_once(m, BY_CPU, source, ev, ev->cpu < MAX_CPUS ? cpu_answer(m, ev->cpu) : &odd))
        return false;
    return !m->terms[BY_EVENT].n || cells_fit(m, BY_EVENT, source, ev);
}

bool event_match_fits(struct event_match *m, const struct ctf_merge *merge, const struct ctf_event *ev)
{
    /* A loss has neither name nor fields, but the filter must see it: it forgets which threads run. */
    if (m->filter && (!event_filter_keep(m->filter, merge, ev) || ev->cls->item != CTF_EVENT))
        return false;
    return !m->search.impossible && (m->search.n || m->filter) && (!m->search.n || fits_cells(m, merge, ev));
}

bool event_match_impossible(const struct event_match *m)
{
    return m->search.impossible || (!m->search.n && !m->filter);
}

void event_match_free(struct event_match *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->cells->x->n_sources; i++) {
        bool shared = false;
        for (size_t k = i + 1; k < m->cells->x->n_sources && !shared; k++)
            shared = m->types[k] == m->types[i];
        if (!shared)
            free(m->types[i]);
    }
    free(m->types);
    event_prios_free(m->prios);
    free(m->streams);
    vec_free(&m->cpus);
    free(m->hosts);
    event_filter_free(m->filter);
    search_fini(&m->search);
    free(m);
}
