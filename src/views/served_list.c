#include "views/served_list.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/wait.h"
#include "show/show.h"
#include "views/list.h"

/* So long a question waits for the list. */
static const int64_t patience_ns = 2000000000, slice_ns = 20000000;

struct finding {
    const struct path_local *paths;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct served *list; /* NULL: not found yet, or forgotten */
    struct err error;    /* why it is not there, once somebody looked */
    bool at_work;        /* a thread finds it */
    unsigned used;       /* by so many answers */
};

/* ---- finding ---- */

static char *notes_of(const struct requests *found, const struct request_groups *groups)
{
    struct requests_lacking l;
    struct text t = {.fd = -1};
    requests_lacking(found, &l);
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
    if (!show_requests_sample(request_groups_looked(groups), requests_count(found), &t))
        t.n = before;
    char *notes = mem_strdup(text_cstr(&t));
    text_fini(&t);
    return notes;
}

static void free_list(struct served *l)
{
    if (!l)
        return;
    request_groups_free(l->groups);
    requests_free(l->found);
    free(l->notes);
    free(l);
}

static void *find(void *arg)
{
    struct finding *f = arg;
    struct err e = {0};
    mem_begin();
    struct served *l = mem_zalloc(sizeof *l);
    l->found = requests_find(f->paths, &(struct requests_question){.begin = INT64_MIN, .end = INT64_MAX});
    l->groups = request_groups_new(l->found);
    l->source = path_local_source(f->paths);
    l->notes = notes_of(l->found, l->groups);
    if (mem_check("finding requests", &e)) {
        free_list(l);
        l = NULL;
    }
    pthread_mutex_lock(&f->lock);
    f->list = l;
    f->error = e;
    f->at_work = false;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* With the lock held. */
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

/* ---- asking ---- */

static void *new_finding(struct views *x)
{
    struct finding *f = mem_zalloc(sizeof *f);
    f->paths = x->paths;
    pthread_mutex_init(&f->lock, NULL);
    wait_init(&f->changed);
    return f;
}

/* With the lock held: until the list is there, or patience ends. */
static void wait_for(struct finding *f, const struct http_request *http)
{
    int64_t deadline = time_monotonic_ns() + patience_ns;
    while (f->at_work && !http_gone(http)) {
        int64_t now = time_monotonic_ns();
        if (now >= deadline)
            return;
        wait_until(&f->changed, &f->lock, now + slice_ns < deadline ? now + slice_ns : deadline);
    }
}

static const struct served *get(struct finding *f, const struct tsp_query *q, struct tsp_answer *answer)
{
    pthread_mutex_lock(&f->lock);
    if (!f->list && !f->at_work)
        begin(f);
    wait_for(f, q->http);
    const struct served *list = f->list;
    if (list) {
        f->used++;
    } else if (f->at_work) {
        answer->status = TSP_RUNNING;
        answer->message = "Finding the requests";
    } else {
        if (f->error.code == ERR_NOMEM)
            http_lack_memory(q->http);
        tsp_fail(answer, arena_strdup(q->http->arena, f->error.text));
    }
    pthread_mutex_unlock(&f->lock);
    return list;
}

void served_with(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer, served_write *write)
{
    struct finding *f = view_cache(x, &view_served_requests, new_finding);
    const struct served *list = get(f, q, answer);
    if (!list)
        return;
    write(self, x, q, list, answer);
    if (*list->notes && answer->status == TSP_COMPLETED)
        answer->message = arena_strdup(q->http->arena, list->notes);
    pthread_mutex_lock(&f->lock);
    f->used--;
    pthread_mutex_unlock(&f->lock);
}

void served_forget(struct views *x, void *cache)
{
    struct finding *f = cache;
    pthread_mutex_lock(&f->lock);
    if (!f->used) {
        free_list(f->list);
        f->list = NULL;
    }
    pthread_mutex_unlock(&f->lock);
}

void served_close(struct views *x, void *cache)
{
    struct finding *f = cache;
    pthread_mutex_lock(&f->lock);
    while (f->at_work)
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
    free_list(f->list);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
