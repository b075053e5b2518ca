/* SPDX-License-Identifier: MIT */
#include "views/served_list.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/wait.h"
#include "show/show.h"
#include "views/list.h"

/* Time that a query waits for the list, and time between retries of other nodes that did not answer. */
static const int64_t patience_ns = 2000000000, slice_ns = 20000000, again_ns = 2000000000;

struct finding {
    const struct path_local *paths;
    const struct requests_far *far; /* NULL: no cluster */
    struct served_far asks;
    atomic_bool stopping;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct served *list; /* NULL: not yet found, or dropped */
    struct err error;    /* reason for a missing list after a search */
    bool at_work;        /* a thread is searching */
    int64_t found_at;    /* time of the last search, monotonic */
};

/* ---- finding ---- */

static char *notes_of(const struct requests *found, struct request_groups *groups)
{
    struct path_requests_lacking l;
    struct text t = {.fd = -1};
    path_requests_lacking(found, &l);
    for (int i = 0; i < SHOW_REQUESTS_LACKS; i++) {
        size_t before = t.n;
        if (before)
            text_puts(&t, "; ");
        if (!show_requests_lack(&l, (enum show_requests_lack)i, &t))
            t.n = before;
    }
    size_t before = t.n;
    if (before)
        text_puts(&t, "; ");
    if (!show_requests_sample(groups, path_requests_count(found), &t))
        t.n = before;
    if (path_request_groups_trouble(groups))
        text_printf(&t, "%s%s", t.n ? "; " : "", path_request_groups_trouble(groups));
    char *notes = mem_strdup(text_cstr(&t));
    text_fini(&t);
    return notes;
}

static void free_list(struct served *l)
{
    if (!l)
        return;
    path_request_groups_free(l->groups);
    path_requests_free(l->found);
    free(l->notes);
    free(l);
}

/* Replaces the list. The last user of the old one frees it. Requires the lock. */
static void replace(struct finding *f, struct served *list)
{
    if (f->list && !f->list->used)
        free_list(f->list);
    f->list = list;
}

static void *find(void *arg)
{
    struct finding *f = arg;
    struct err e = {0};
    mem_begin();
    struct served *l = mem_zalloc(sizeof *l);
    l->found = path_requests_find(f->paths, &(struct requests_question){.begin = INT64_MIN, .end = INT64_MAX});
    l->groups = path_request_groups_new(l->found, f->far);
    l->source = path_local_source(f->paths);
    l->notes = notes_of(l->found, l->groups);
    if (mem_check("finding requests", &e)) {
        free_list(l);
        l = NULL;
    }
    pthread_mutex_lock(&f->lock);
    if (l || !f->list)
        replace(f, l);
    f->found_at = time_monotonic_ns();
    f->error = e;
    f->at_work = false;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* Starts a search. Requires the lock. */
static void begin(struct finding *f)
{
    pthread_t thread;
    f->error = (struct err){0};
    if (pthread_create(&thread, NULL, find, f)) {
        err_set(&f->error, ERR_NOMEM, "no thread can be started to find requests");
        return;
    }
    pthread_detach(thread);
    f->at_work = true;
}

/* ---- queries ---- */

static void *new_finding(struct views *x)
{
    struct finding *f = mem_zalloc(sizeof *f);
    f->paths = x->paths;
    if (x->far) {
        served_far_init(&f->asks, x, &f->stopping);
        f->far = &f->asks.is;
    }
    pthread_mutex_init(&f->lock, NULL);
    wait_init(&f->changed);
    return f;
}

/* Returns whether a new search is due, since other nodes may answer now. Requires the lock. */
static bool is_due(const struct finding *f)
{
    return path_request_groups_trouble(f->list->groups) && time_monotonic_ns() - f->found_at >= again_ns;
}

/* Waits until the list exists, or for the patience time. Requires the lock. */
static void wait_for(struct finding *f, const struct http_request *http)
{
    int64_t deadline = time_monotonic_ns() + patience_ns;
    while (f->at_work && !f->list && !http_gone(http)) {
        int64_t now = time_monotonic_ns();
        if (now >= deadline)
            return;
        wait_until(&f->changed, &f->lock, now + slice_ns < deadline ? now + slice_ns : deadline);
    }
}

static struct served *get(struct finding *f, const struct tsp_query *q, struct tsp_answer *answer)
{
    pthread_mutex_lock(&f->lock);
    if (!f->at_work && (!f->list || is_due(f)))
        begin(f);
    wait_for(f, q->http);
    struct served *list = f->list;
    if (list) {
        list->used++;
    } else if (f->at_work) {
        answer->status = TSP_RUNNING;
        answer->message = "Finding the requests";
    } else {
        if (f->error.code == ERR_NOMEM)
            http_lack_memory(q->http);
        tsp_fail(answer, TSP_CODE_FAILED, arena_strdup(q->http->arena, f->error.text));
    }
    pthread_mutex_unlock(&f->lock);
    return list;
}

void served_with(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer, served_write *write)
{
    struct finding *f = view_cache(x, &view_served_requests, new_finding);
    struct served *list = get(f, q, answer);
    if (!list)
        return;
    write(self, x, q, list, answer);
    if (*list->notes && answer->status == TSP_COMPLETED)
        answer->message = arena_strdup(q->http->arena, list->notes);
    pthread_mutex_lock(&f->lock);
    if (!--list->used && list != f->list)
        free_list(list);
    pthread_mutex_unlock(&f->lock);
}

const struct view_host *served_host(const struct views *x, int32_t number)
{
    size_t i = 0;
    while (i < x->n_hosts && x->path_hosts[i] != number)
        i++;
    return i < x->n_hosts && number >= 0 ? &x->hosts[i] : NULL;
}

void served_forget(struct views *x, void *cache)
{
    struct finding *f = cache;
    pthread_mutex_lock(&f->lock);
    replace(f, NULL);
    pthread_mutex_unlock(&f->lock);
}

void served_close(struct views *x, void *cache)
{
    struct finding *f = cache;
    atomic_store(&f->stopping, true);
    pthread_mutex_lock(&f->lock);
    while (f->at_work)
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
    free_list(f->list);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
