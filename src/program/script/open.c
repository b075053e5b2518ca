/* SPDX-License-Identifier: MIT */
/* Files of open spans: lines of "key value", in which %XX stands for what has another meaning. */
#include "script/open.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/time.h"
#include "script/send.h"
#include "script/spool.h"

enum { OPEN_FILE_BYTES = 4 << 20 };

static char *open_path(const struct script_settings *s, const struct script_context *c)
{
    return mem_printf("%s/open/%s-%s", s->spool, c->trace_id, c->span_id);
}

/* ---- writing ---- */

static void put_escaped(struct text *t, const char *s, size_t most)
{
    size_t n = strnlen(s, most);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7f || strchr("%,=", s[i]))
            text_printf(t, "%%%02x", (unsigned char)s[i]);
        else
            text_putc(t, s[i]);
}

static void put_attributes(struct text *t, const struct script_attributes *a)
{
    for (size_t i = 0; i < a->list.n; i++) {
        const struct script_attribute *v = &a->list.v[i];
        if (i)
            text_putc(t, ',');
        put_escaped(t, v->key, SCRIPT_NAME_BYTES);
        text_putc(t, '=');
        if (v->text)
            put_escaped(t, v->text, SCRIPT_VALUE_BYTES);
        else
            text_i64(t, v->number);
    }
}

/* "pid:[4026531836]": which numbers processes have. */
static uint64_t pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

static const char *boot_of(const struct script_settings *s)
{
    for (size_t i = 0; i < s->resource.list.n; i++)
        if (!strcmp(s->resource.list.v[i].key, "host.boot_id") && s->resource.list.v[i].text)
            return s->resource.list.v[i].text;
    return "";
}

/* Whole or not at all, but without waiting for the disk: after a crash of the machine the span is lost anyway. */
static int put_file(const char *path, const struct text *t, struct err *e)
{
    char *temporary = mem_printf("%s.new", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), rc = ERR_OK;
    if (fd < 0 || write(fd, t->v, t->n) != (ssize_t)t->n || rename(temporary, path)) {
        rc = err_sys(e, "%s", path);
        unlink(temporary);
    }
    if (fd >= 0)
        close(fd);
    free(temporary);
    return rc;
}

int script_open_keep(const struct script_settings *s, const struct script_span *span, struct err *e)
{
    char id[SCRIPT_CONTEXT_CHARS];
    struct text t = {.fd = -1};
    int rc = script_spool_make(s, "open", e);
    if (rc)
        return rc;
    script_write_traceparent(&span->context, id);
    text_printf(&t, "id %s\nparent %s\nkind %d\nstart %lld\nmonotonic %lld\n", id, span->parent_id, span->kind,
        (long long)span->start_ns, (long long)span->monotonic_ns);
    text_printf(&t, "group %ld\nnamespace %llu\nboot ", (long)getpgrp(), (unsigned long long)pid_namespace());
    put_escaped(&t, boot_of(s), SCRIPT_NAME_BYTES);
    text_puts(&t, "\nservice ");
    put_escaped(&t, s->service, SCRIPT_VALUE_BYTES);
    text_puts(&t, "\nname ");
    put_escaped(&t, span->name, SCRIPT_NAME_BYTES);
    if (span->process)
        text_printf(&t, "\nprocess %ld", span->process);
    if (span->trace_state) {
        text_puts(&t, "\nstate ");
        put_escaped(&t, span->trace_state, SCRIPT_VALUE_BYTES);
    }
    text_puts(&t, "\nattributes ");
    put_attributes(&t, &span->attributes);
    text_puts(&t, "\n");
    char *path = open_path(s, &span->context);
    rc = put_file(path, &t, e);
    free(path);
    text_fini(&t);
    return rc;
}

int script_open_add_event(
    const struct script_settings *s, const struct script_context *c, const struct script_event *event, struct err *e)
{
    char *path = open_path(s, c);
    struct stat st;
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW), rc = ERR_OK;
    struct text t = {.fd = -1};
    text_printf(&t, "event %lld ", (long long)event->time_ns);
    put_escaped(&t, event->name, SCRIPT_NAME_BYTES);
    text_putc(&t, ' ');
    put_attributes(&t, &event->attributes);
    text_putc(&t, '\n');
    if (fd < 0)
        rc = errno == ENOENT ? err_set(e, ERR_NOTFOUND, "no span of this id is open") : err_sys(e, "%s", path);
    else if (fstat(fd, &st) || st.st_size + (off_t)t.n > OPEN_FILE_BYTES)
        rc = err_set(e, ERR_LIMIT, "%s has too many events", path);
    else if (write(fd, t.v, t.n) != (ssize_t)t.n) /* single call: many processes may add at a time */
        rc = err_sys(e, "%s", path);
    if (fd >= 0)
        close(fd);
    text_fini(&t);
    free(path);
    return rc;
}

/* ---- reading ---- */

struct owner {
    long group;
    unsigned long long namespace;
    const char *boot;
};

static const char *unescaped(struct script_settings *s, const char *value)
{
    struct script_attributes one = {0};
    script_read_pairs(&s->arena, arena_printf(&s->arena, "v=%s", value), &one);
    const char *text = one.list.n ? one.list.v[0].text : "";
    free(one.list.v);
    return text;
}

static void read_event(struct script_settings *s, char *value, struct script_span *span)
{
    struct script_event event = {0};
    char *name, *attributes = NULL;
    event.time_ns = strtoll(value, &name, 10);
    if (*name == ' ')
        attributes = strchr(++name, ' ');
    if (!attributes || span->events.n >= SCRIPT_MOST_ATTRIBUTES)
        return;
    *attributes++ = '\0';
    event.name = unescaped(s, name);
    script_read_pairs(&s->arena, attributes, &event.attributes);
    vec_push(&span->events, event);
}

static void read_line(
    struct script_settings *s, const char *key, char *value, struct script_span *span, struct owner *o)
{
    if (!strcmp(key, "id"))
        script_read_traceparent(value, &span->context);
    else if (!strcmp(key, "parent") && strlen(value) < sizeof span->parent_id)
        strcpy(span->parent_id, value);
    else if (!strcmp(key, "kind"))
        span->kind = *value >= '1' && *value <= '5' ? *value - '0' : SCRIPT_INTERNAL;
    else if (!strcmp(key, "start"))
        span->start_ns = strtoll(value, NULL, 10);
    else if (!strcmp(key, "monotonic"))
        span->monotonic_ns = strtoll(value, NULL, 10);
    else if (!strcmp(key, "group"))
        o->group = strtol(value, NULL, 10);
    else if (!strcmp(key, "namespace"))
        o->namespace = strtoull(value, NULL, 10);
    else if (!strcmp(key, "boot"))
        o->boot = unescaped(s, value);
    else if (!strcmp(key, "service"))
        script_set_service(s, unescaped(s, value));
    else if (!strcmp(key, "name"))
        span->name = unescaped(s, value);
    else if (!strcmp(key, "process"))
        script_add_number(&span->attributes, "process.pid", span->process = strtol(value, NULL, 10));
    else if (!strcmp(key, "state"))
        span->trace_state = unescaped(s, value);
    else if (!strcmp(key, "attributes"))
        script_read_pairs(&s->arena, value, &span->attributes);
    else if (!strcmp(key, "event"))
        read_event(s, value, span);
}

static int read_open(
    struct script_settings *s, const char *path, struct script_span *span, struct owner *o, struct err *e)
{
    char *data;
    size_t n;
    *span = (struct script_span){.kind = SCRIPT_INTERNAL};
    *o = (struct owner){.boot = ""};
    int rc = file_read(path, OPEN_FILE_BYTES, &data, &n, e);
    if (rc)
        return rc;
    for (char *line = data, *next; line < data + n; line = next) {
        size_t length = strcspn(line, "\n");
        next = line + length + 1;
        line[length] = '\0';
        char *space = strchr(line, ' ');
        if (!space)
            continue;
        *space = '\0';
        read_line(s, line, space + 1, span, o);
    }
    free(data);
    if (*span->context.trace_id && span->name && span->start_ns > 0 && span->start_ns < INT64_MAX / 2)
        return ERR_OK;
    script_span_fini(span);
    return err_set(e, ERR_FORMAT, "%s is no file of an open span", path);
}

int script_open_read(struct script_settings *s, const struct script_context *c, struct script_span *span, struct err *e)
{
    struct owner o;
    char *path = open_path(s, c);
    int rc = read_open(s, path, span, &o, e);
    free(path);
    return rc;
}

bool script_is_open(const struct script_settings *s, const struct script_context *c)
{
    char *path = open_path(s, c);
    bool is = access(path, F_OK) == 0;
    free(path);
    return is;
}

void script_open_remove(const struct script_settings *s, const struct script_context *c)
{
    char *path = open_path(s, c);
    unlink(path);
    free(path);
}

/* ---- open, and lost ---- */

bool script_announces(const struct script_settings *s)
{
    return !s->off && s->announce && !s->only_kept && !s->unusable && !script_collector_rests(s);
}

void script_announce(const struct script_settings *s, struct script_span *span)
{
    struct script_reply reply;
    struct text body = {.fd = -1};
    size_t n = span->attributes.list.n;
    script_add_text(&span->attributes, "weft.state", "open");
    span->end_ns = time_now_ns() > span->start_ns ? time_now_ns() : span->start_ns;
    script_write_otlp(span, &s->resource, &body);
    span->attributes.list.n = n;
    if (script_send(s, "application/json", body.v, body.n, &reply) == SCRIPT_LATER)
        script_let_collector_rest(s, reply.retry_after_ns);
    text_fini(&body);
}

/* Returns whether the process is in the group, and is not a zombie. */
static bool lives_in(const char *pid, long group)
{
    char path[64], line[512];
    if (*pid < '0' || *pid > '9' || snprintf(path, sizeof path, "/proc/%s/stat", pid) >= (int)sizeof path)
        return false;
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f)
        fclose(f);
    line[n] = '\0';
    const char *behind = strrchr(line, ')'); /* end of the name, which may contain anything */
    char state;
    long parent, of;
    return behind && sscanf(behind, ") %c %ld %ld", &state, &parent, &of) == 3 && of == group && state != 'Z' &&
        state != 'X';
}

/* Returns whether the group has a live process. In many containers nobody reaps zombies, which stay in their group. */
static bool group_lives(long group)
{
    if (kill((pid_t)-group, 0) && errno == ESRCH)
        return false;
    DIR *dir = opendir("/proc");
    bool lives = !dir;
    for (struct dirent *d; dir && !lives && (d = readdir(dir)) != NULL;)
        lives = lives_in(d->d_name, group);
    if (dir)
        closedir(dir);
    return lives;
}

/* Process numbers mean nothing in another container or on another machine: only a process there can decide. */
static bool is_lost(const struct script_settings *s, const struct owner *o, const struct stat *st)
{
    const int64_t week_s = 7 * 24 * 3600;
    if (st->st_mtim.tv_sec + week_s < time_now_ns() / 1000000000)
        return true;
    if (strcmp(o->boot, boot_of(s)) != 0 || o->namespace != pid_namespace() || o->group <= 1)
        return false;
    return !group_lives(o->group);
}

static int64_t last_known_ns(const struct script_span *span)
{
    int64_t last_ns = span->start_ns;
    for (size_t i = 0; i < span->events.n; i++)
        if (span->events.v[i].time_ns > last_ns)
            last_ns = span->events.v[i].time_ns;
    return last_ns;
}

static bool give_up(struct script_settings *s, const char *path)
{
    struct script_span span;
    struct owner o;
    struct stat st;
    struct err e = {0};
    if (lstat(path, &st) || read_open(s, path, &span, &o, &e))
        return false;
    if (!is_lost(s, &o, &st)) {
        script_span_fini(&span);
        return false;
    }
    struct text line = {.fd = -1};
    span.end_ns = last_known_ns(&span);
    span.status = SCRIPT_ERROR;
    span.message = "the script ended without ending this span; it lasted at least so long";
    script_set_text(&span.attributes, "weft.state", "lost");
    script_write_otlp(&span, &s->resource, &line);
    char *mine = mem_printf("%s.lost", path);
    bool taken = rename(path, mine) == 0; /* rename succeeds for one of several concurrent flushes */
    bool kept = taken && script_spool_add(s, line.v, line.n, &e) == ERR_OK;
    if (kept)
        unlink(mine);
    else if (taken && rename(mine, path) == 0)
        script_note(s, "a lost span stays open: %s", e.text);
    free(mine);
    text_fini(&line);
    script_span_fini(&span);
    return kept;
}

size_t script_open_collect_lost(struct script_settings *s)
{
    size_t n = 0;
    const char *service = s->service;
    char *place = mem_printf("%s/open", s->spool);
    DIR *dir = opendir(place);
    for (struct dirent *d; dir && (d = readdir(dir)) != NULL;)
        if (strlen(d->d_name) == 32 + 1 + 16) {
            char *path = mem_printf("%s/%s", place, d->d_name);
            n += give_up(s, path);
            free(path);
        }
    if (dir)
        closedir(dir);
    free(place);
    script_set_service(s, service);
    return n;
}
