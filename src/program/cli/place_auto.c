/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <unistd.h>

#include "base/shown.h"
#include "base/time.h"
#include "cli/place.h"
#include "cli/stop.h"

#define IDLE_NS (60 * NS_PER_S)
#define EVERY_NS (10 * NS_PER_S)
#define SETTLE_NS (3600 * NS_PER_S)
#define PATIENCE_NS (30 * NS_PER_S)

int cli_place_auto_check(const struct place_auto *a, struct err *e)
{
    bool given = a->once || a->idle || a->every || a->settle || a->load || a->questions;
    return given && !a->is
        ? err_set(e, ERR_ARG, "--once, --idle, --idle-load, --idle-questions, --settle and --every are for --auto")
        : 0;
}

/* Prints a line for people, and flushes it. */
static void say(void *arg, const char *line)
{
    (void)arg;
    struct text t = {.fd = -1};
    shown_line(&t, line, strlen(line));
    puts(text_cstr(&t));
    text_fini(&t);
    fflush(stdout);
}

static int parse_times(
    const struct place_auto *a, const struct cli_cluster *c, struct place_auto_options *o, struct err *e)
{
    int rc = cli_parse_duration("idle", a->idle, &o->idle_ns, e);
    if (!rc)
        rc = cli_parse_duration("every", a->every, &o->every_ns, e);
    if (!rc)
        rc = cli_parse_duration("settle", a->settle, &o->place.settle_ns, e);
    return rc ? rc : cli_parse_duration("timeout", c->timeout, &o->patience_ns, e);
}

/* Returns the name of this process, which processes that wait for the lease report. */
static void name_self(char *out, size_t n)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    snprintf(out, n, "process %ld of %s", (long)getpid(), host);
}

int cli_place_auto_run(const struct place_auto *a, struct cli_cluster *c, int64_t balance_percent, int64_t gain_percent)
{
    char who[300];
    bool asked = false;
    struct bus *bus = NULL;
    struct err e = {0};
    struct place_auto_options o = {.cluster = c->name,
        .who = who,
        .place = {.balance_percent = (unsigned)balance_percent,
            .gain_percent = (unsigned)gain_percent,
            .settle_ns = SETTLE_NS},
        .load_percent = (unsigned)(a->load ? a->load : PLACE_LOAD),
        .questions = (unsigned)(a->questions ? a->questions : PLACE_QUESTIONS),
        .idle_ns = IDLE_NS,
        .every_ns = EVERY_NS,
        .patience_ns = PATIENCE_NS,
        .once = a->once,
        .say = say,
        .stop = cli_stop_asked,
        .arg = &asked};
    name_self(who, sizeof who);
    int rc = parse_times(a, c, &o, &e);
    cli_stop_hold(true);
    if (!rc)
        rc = cli_cluster_connect(c, "weft place", !a->once, &bus, &e);
    if (!rc)
        rc = place_auto(bus, &o, &e);
    if (bus)
        bus_close(bus);
    return rc ? cli_fail(&e) : CLI_OK;
}
