/* SPDX-License-Identifier: MIT */
#include "tsp/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "base/wait.h"

/* Prefix of names that trees get in the sweeper's directory; their old names are then free. */
#define NAME ".removed-"
enum { NAME_BYTES = 40, STOP_PATIENCE_S = 2 };

struct sweeper {
    int at; /* descriptor of the directory */
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;
    bool wanted, stopping;
    int64_t until_ns; /* monotonic; limit of its work once it stops */
};

static void new_name(char name[NAME_BYTES])
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        number ^= (uint64_t)time_monotonic_ns();
    snprintf(name, NAME_BYTES, NAME "%016llx", (unsigned long long)number);
}

static bool is_over(struct sweeper *s)
{
    pthread_mutex_lock(&s->lock);
    bool over = s->stopping && time_monotonic_ns() > s->until_ns;
    pthread_mutex_unlock(&s->lock);
    return over;
}

/* Directory below `at`; NULL: not a directory, or unreadable. */
static DIR *open_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        close(fd);
    return d;
}

/* Removes a file, or the files in a directory. Subdirectories move up and are swept later, so paths stay short however
 * deep a tree is. True: something changed. */
static bool sweep_one(struct sweeper *s, const char *name)
{
    bool changed = !unlinkat(s->at, name, 0);
    DIR *d = changed ? NULL : open_dir(s->at, name);
    for (const struct dirent *e; d && !is_over(s) && (e = readdir(d));) {
        char up[NAME_BYTES];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        new_name(up);
        changed |= !unlinkat(dirfd(d), e->d_name, 0) || !renameat(dirfd(d), e->d_name, s->at, up);
    }
    if (d)
        closedir(d);
    return !unlinkat(s->at, name, AT_REMOVEDIR) || changed;
}

/* Sweeps what is there now. True: something changed, and there may be more. */
static bool sweep_all(struct sweeper *s)
{
    DIR *d = open_dir(s->at, ".");
    bool changed = false;
    for (const struct dirent *e; d && !is_over(s) && (e = readdir(d));)
        if (!strncmp(e->d_name, NAME, strlen(NAME)))
            changed |= sweep_one(s, e->d_name);
    if (d)
        closedir(d);
    return changed;
}

static void *run(void *sweeper)
{
    struct sweeper *s = sweeper;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->wanted && !s->stopping)
            pthread_cond_wait(&s->wake, &s->lock);
        if (!s->wanted)
            break;
        s->wanted = false;
        pthread_mutex_unlock(&s->lock);
        while (!is_over(s) && sweep_all(s))
            ;
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void free_sweeper(struct sweeper *s)
{
    if (s->at >= 0)
        close(s->at);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int tsp_sweep_start(const char *directory, struct sweeper **out, struct err *e)
{
    struct sweeper *s = mem_zalloc(sizeof *s);
    s->at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    s->wanted = true;
    pthread_mutex_init(&s->lock, NULL);
    wait_init(&s->wake);
    int rc = s->at < 0 ? err_sys(e, "%s", directory) : 0;
    if (!rc && pthread_create(&s->thread, NULL, run, s))
        rc = err_set(e, ERR_NOMEM, "no thread can be started to remove files in %s", directory);
    if (rc) {
        free_sweeper(s);
        return rc;
    }
    *out = s;
    return 0;
}

void tsp_sweep_away(struct sweeper *s, const char *path)
{
    char name[NAME_BYTES];
    new_name(name);
    if (renameat(AT_FDCWD, path, s->at, name))
        return;
    pthread_mutex_lock(&s->lock);
    s->wanted = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

void tsp_sweep_stop(struct sweeper *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    s->until_ns = time_monotonic_ns() + STOP_PATIENCE_S * NS_PER_S;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    free_sweeper(s);
}
