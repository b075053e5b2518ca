/* SPDX-License-Identifier: MIT */
/* weft-span run: a command as a span. */
#include "script/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/time.h"
#include "script/mark.h"
#include "script/open.h"
#include "script/spool.h"

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
static const int changed[] = {SIGPIPE, SIGXFSZ, SIGCHLD};
enum { N_FORWARDED = sizeof forwarded / sizeof *forwarded, N_CHANGED = sizeof changed / sizeof *changed };
static struct sigaction before[N_CHANGED]; /* actions inherited from the caller */
static sigset_t mask_before;

void script_quiet_signals(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, usual = {.sa_handler = SIG_DFL};
    for (size_t i = 0; i < N_CHANGED; i++)
        sigaction(changed[i], changed[i] == SIGCHLD ? &usual : &ignore, &before[i]);
    sigprocmask(SIG_BLOCK, NULL, &mask_before);
}

void script_begin_clock(struct script_span *span)
{
    span->start_ns = time_now_ns();
    span->monotonic_ns = time_monotonic_ns();
}

void script_end_clock(struct script_span *span)
{
    int64_t now_ns = time_monotonic_ns();
    if (span->monotonic_ns > 0 && now_ns >= span->monotonic_ns) {
        span->end_ns = span->start_ns + (now_ns - span->monotonic_ns);
        script_add_number(&span->attributes, "weft.monotonic_start_ns", span->monotonic_ns);
        script_add_number(&span->attributes, "weft.monotonic_end_ns", now_ns);
    } else {
        span->end_ns = time_now_ns(); /* the machine was started anew */
    }
    if (span->end_ns < span->start_ns)
        span->end_ns = span->start_ns;
}

void script_export_context(const struct script_span *span)
{
    char value[SCRIPT_CONTEXT_CHARS];
    script_write_traceparent(&span->context, value);
    setenv("TRACEPARENT", value, 1);
    script_write_uber(&span->context, span->parent_id, value);
    setenv("UBER_TRACE_ID", value, 1);
    setenv("TRACE_ID", value, 1);
    script_write_b3(&span->context, value);
    setenv("B3", value, 1);
    if (!span->trace_state)
        unsetenv("TRACESTATE"); /* tracestate of another trace, or malformed */
}

/* ---- the command's process ---- */

static void become(char **command, int problems)
{
    for (size_t i = 0; i < N_CHANGED; i++)
        sigaction(changed[i], &before[i], NULL);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
    execvp(*command, command);
    int problem = errno;
    ssize_t told = write(problems, &problem, sizeof problem);
    (void)told;
    _exit(127);
}

/* Returns the process id; -1 with errno if it could not be started. */
static pid_t start_command(char **command)
{
    int ends[2], problem = 0;
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    pid_t child = fork();
    if (child == 0)
        become(command, ends[1]);
    if (child < 0)
        problem = errno;
    close(ends[1]);
    if (child > 0 && read(ends[0], &problem, sizeof problem) == sizeof problem)
        waitpid(child, NULL, 0);
    close(ends[0]);
    errno = problem;
    return problem ? -1 : child;
}

void script_let_go(int fd)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0)
        return;
    dup3(nothing, fd, O_CLOEXEC);
    close(nothing);
}

/* Reports the open span in a separate process, so that the command's signals do not wait for a collector. */
static pid_t announce_apart(const struct script_settings *s, struct script_span *span)
{
    if (!(span->context.flags & SCRIPT_SAMPLED) || !script_announces(s))
        return -1;
    pid_t helper = fork();
    if (helper == 0) {
        script_let_go(STDOUT_FILENO);
        script_announce(s, span);
        _exit(0);
    }
    return helper;
}

static void stop_helper(pid_t helper)
{
    if (helper > 0) {
        kill(helper, SIGKILL);
        waitpid(helper, NULL, 0);
    }
}

/* Forwards a signal, unless the kernel sent it: the terminal's signals reach the command as well. */
static void forward(pid_t child, const siginfo_t *info)
{
    if (info->si_code != SI_KERNEL)
        kill(child, info->si_signo);
}

/* Passes signals on until the command ends; returns its wait status. The signals are blocked. */
static int attend(struct script_settings *s, struct script_span *span, pid_t child, const sigset_t *signals)
{
    struct timespec until_open = {.tv_nsec = SCRIPT_OPEN_AFTER_MS * 1000000L};
    bool announced = false;
    pid_t helper = -1;
    int status = 0;
    for (;;) {
        siginfo_t info;
        int sig = announced ? sigwaitinfo(signals, &info) : sigtimedwait(signals, &info, &until_open);
        if (sig < 0 && errno == EAGAIN) {
            announced = true;
            helper = announce_apart(s, span);
        } else if (sig == SIGCHLD) {
            if (waitpid(child, &status, WNOHANG) == child)
                break;
            if (helper > 0 && waitpid(helper, NULL, WNOHANG) == helper)
                helper = -1;
        } else if (sig > 0) {
            forward(child, &info);
        }
    }
    stop_helper(helper); /* its report is outdated now */
    return status;
}

static void tell_end(struct script_settings *s, struct script_span *span, int code, int status, bool pfeil)
{
    script_end_clock(span);
    if (WIFSIGNALED(status)) {
        script_add_number(&span->attributes, "process.exit.signal", WTERMSIG(status));
        span->message = arena_printf(
            &s->arena, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        script_add_number(&span->attributes, pfeil ? "exit_code" : "process.exit.code", code);
        if (code && !span->message)
            span->message = arena_printf(&s->arena, "exit status %d", code);
    }
    if (code)
        span->status = SCRIPT_ERROR;
}

/* Events that the command added to its own span, by `weft-span event`. */
static void take_events(struct script_settings *s, struct script_span *span)
{
    struct script_span kept;
    const char *service = s->service;
    if (script_open_read(s, &span->context, &kept, NULL))
        return;
    script_set_service(s, service);
    span->events.v = kept.events.v;
    span->events.n = kept.events.n;
    kept.events.v = NULL;
    kept.events.n = 0;
    script_span_fini(&kept);
}

int script_run(struct script_settings *s, struct script_span *span, char **command, bool pfeil)
{
    struct err e = {0};
    sigset_t signals;
    int status = 0, code;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < N_FORWARDED; i++)
        sigaddset(&signals, forwarded[i]);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    bool recorded = !s->off && span->context.flags & SCRIPT_SAMPLED;
    if (recorded && script_open_keep(s, span, &e))
        script_note(s, "if this process is killed its span is lost: %s", e.text);
    script_export_context(span);
    script_begin_clock(span);
    script_mark_begin(s, span, getpid()); /* the command is its child */
    pid_t child = start_command(command);
    if (child < 0) {
        code = errno == ENOENT ? 127 : 126;
        span->message = arena_printf(&s->arena, "%.200s: %s", *command, strerror(errno));
        dprintf(STDERR_FILENO, "weft-span: cannot run %s\n", span->message);
    } else {
        script_let_go(STDIN_FILENO);
        if (!pfeil)
            script_let_go(STDOUT_FILENO);
        script_add_number(&span->attributes, "process.pid", child);
        status = attend(s, span, child, &signals);
        code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    script_mark_end(s, span);
    tell_end(s, span, code, status, pfeil);
    if (recorded) {
        take_events(s, span);
        bool taken = script_deliver(s, span);
        script_open_remove(s, &span->context);
        if (taken)
            script_spool_send_some(s);
    }
    return code;
}
