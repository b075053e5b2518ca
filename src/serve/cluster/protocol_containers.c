/* SPDX-License-Identifier: MIT */
/* Encoding of the containers of threads. */
#include "base/map.h"
#include "base/mem.h"
#include "base/wire.h"
#include "cluster/protocol.h"

/* Ids are written as differences to the one before. */
void cluster_containers_question_write(const struct containers_question *q, struct text *out)
{
    wire_put_u(out, q->n);
    for (size_t i = 0; i < q->n; i++) {
        const struct containers_question_host *h = &q->hosts[i];
        uint64_t before = 0;
        wire_put_bytes(out, &h->key, sizeof h->key);
        wire_put_u(out, h->n);
        for (size_t k = 0; k < h->n; k++) {
            wire_put_u(out, h->rows[k] - before);
            before = h->rows[k];
        }
    }
}

/* Reads rows; they must be in order, each once. */
static void take_rows(struct wire_in *w, struct arena *a, struct containers_question_host *h)
{
    h->n = wire_count(w, 1);
    uint64_t *rows = arena_new(a, uint64_t, h->n + 1);
    for (size_t i = 0; i < h->n; i++) {
        uint64_t before = i ? rows[i - 1] : 0;
        rows[i] = before + wire_u(w);
        w->damaged |= i && rows[i] <= before;
    }
    h->rows = rows;
}

int cluster_containers_question_read(
    struct arena *a, const void *bytes, size_t n, struct containers_question *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    out->n = wire_count(&w, 9);
    out->hosts = arena_new(a, struct containers_question_host, out->n + 1);
    uint64_t *keys = arena_new(a, uint64_t, out->n + 1);
    for (size_t i = 0; i < out->n; i++) {
        wire_bytes(&w, &out->hosts[i].key, sizeof out->hosts[i].key);
        take_rows(&w, a, &out->hosts[i]);
        keys[i] = out->hosts[i].key;
    }
    w.damaged |= !cluster_protocol_all_differ(a, keys, out->n);
    return w.damaged || w.at != w.end ? err_set(e, ERR_FORMAT, "a question for containers that makes no sense") : 0;
}

/* Writes each name once, then numbers of names. */
void cluster_containers_write(const char *const *names, size_t n, struct text *out)
{
    struct strings each = {0};
    uint32_t *numbers = mem_alloc((n + 1) * sizeof *numbers);
    for (size_t i = 0; i < n; i++)
        numbers[i] = strings_intern(&each, names[i], strlen(names[i]));
    wire_put_u(out, each.n);
    for (size_t i = 0; i < each.n; i++)
        wire_put_string(out, strings_get(&each, (uint32_t)i));
    for (size_t i = 0; i < n; i++)
        wire_put_u(out, numbers[i]);
    free(numbers);
    strings_fini(&each);
}

int cluster_containers_read(
    struct arena *a, const void *bytes, size_t size, const char **names, size_t n, struct err *e)
{
    struct wire_in w = wire_of(bytes, size);
    size_t n_each = wire_count(&w, 1);
    const char **each = arena_new(a, const char *, n_each + 1);
    for (size_t i = 0; i < n_each; i++) {
        size_t length;
        const char *s = wire_string(&w, &length);
        each[i] = arena_strndup(a, s, strnlen(s, length));
    }
    for (size_t i = 0; i < n && !w.damaged; i++) {
        uint64_t number = wire_below(&w, n_each);
        names[i] = w.damaged ? "" : each[number];
    }
    return w.damaged || w.at != w.end ? err_set(e, ERR_FORMAT, "an answer that makes no sense") : 0;
}
