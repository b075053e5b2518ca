/* SPDX-License-Identifier: MIT */
#include "base/progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"

#define QUIET_NS INT64_C(1000000000) /* delay before anything is shown */
#define STEP_NS INT64_C(200000000)

struct progress {
    char *what;
    bool terminal;
    bool counted; /* set before the first display */
    int64_t began_ns;
    atomic_uint_fast64_t total, done;
    atomic_int_fast64_t next_ns;
    pthread_mutex_t drawing; /* held by the one thread that draws; the others go on working */
    bool shown;              /* guarded by `drawing` */
};

struct progress *progress_new(const char *what)
{
    struct progress *p = mem_zalloc(sizeof *p);
    p->what = mem_strdup(what);
    p->terminal = isatty(STDERR_FILENO);
    p->began_ns = time_monotonic_ns();
    atomic_init(&p->total, 0);
    atomic_init(&p->done, 0);
    atomic_init(&p->next_ns, p->began_ns + QUIET_NS);
    pthread_mutex_init(&p->drawing, NULL);
    return p;
}

struct progress *progress_silent(void)
{
    struct progress *p = progress_new("");
    p->terminal = false;
    return p;
}

void progress_read(const struct progress *p, uint64_t *done, uint64_t *total)
{
    *done = p ? atomic_load_explicit(&p->done, memory_order_relaxed) : 0;
    *total = p ? atomic_load_explicit(&p->total, memory_order_relaxed) : 0;
}

void progress_total(struct progress *p, uint64_t units)
{
    if (p)
        atomic_store_explicit(&p->total, units, memory_order_relaxed);
}

void progress_count(struct progress *p, uint64_t items)
{
    progress_total(p, items);
    if (p)
        p->counted = true;
}

/* Writes a number as "12.3 M". */
static void write_scaled(struct text *t, double v)
{
    static const char *const prefixes[] = {"", " k", " M", " G", " T"};
    size_t i = 0;
    while (v >= 1000 && i + 1 < sizeof prefixes / sizeof *prefixes) {
        v /= 1000;
        i++;
    }
    text_printf(t, "%.*f%s", i && v < 100 ? 1 : 0, v, prefixes[i]);
}

static void draw(struct progress *p, int64_t now)
{
    uint64_t total = atomic_load_explicit(&p->total, memory_order_relaxed),
             done = atomic_load_explicit(&p->done, memory_order_relaxed);
    double seconds = (double)(now - p->began_ns) / 1e9;
    double rate = seconds > 0 ? (double)done / seconds : 0;
    struct text t = {0};
    text_printf(&t, "%s  ", p->what);
    if (p->counted)
        text_printf(&t, "%" PRIu64 " of %" PRIu64 "  ", done, total);
    else if (total)
        text_printf(&t, "%3.0f %%  ", 100.0 * (double)(done < total ? done : total) / (double)total);
    else
        write_scaled(&t, (double)done), text_puts(&t, "  ");
    write_scaled(&t, rate);
    text_puts(&t, "/s");
    if (total && done < total && rate > 0) {
        text_puts(&t, "  ");
        double left = (double)(total - done) / rate;
        if (left < 3600)
            text_printf(&t, "%.0f s left", left + 0.5);
        else
            text_printf(&t, "%.1f h left", left / 3600);
    }
    struct winsize size;
    size_t width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79;
    size_t n = t.n;
    while (n && text_cells(t.v, n) > width)
        n--;
    fprintf(stderr, "\r\033[K%.*s", (int)n, t.v);
    fflush(stderr);
    p->shown = true;
    text_fini(&t);
}

void progress_add(struct progress *p, uint64_t units)
{
    if (!p)
        return;
    atomic_fetch_add_explicit(&p->done, units, memory_order_relaxed);
    if (!p->terminal)
        return;
    int64_t now = time_monotonic_ns();
    if (now < atomic_load_explicit(&p->next_ns, memory_order_relaxed) || pthread_mutex_trylock(&p->drawing) != 0)
        return;
    draw(p, now);
    atomic_store_explicit(&p->next_ns, now + STEP_NS, memory_order_relaxed);
    pthread_mutex_unlock(&p->drawing);
}

void progress_hide(struct progress *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->drawing);
    if (p->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    p->shown = false;
    pthread_mutex_unlock(&p->drawing);
}

void progress_free(struct progress *p)
{
    if (!p)
        return;
    progress_hide(p);
    pthread_mutex_destroy(&p->drawing);
    free(p->what);
    free(p);
}
