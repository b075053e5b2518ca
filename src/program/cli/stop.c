/* SPDX-License-Identifier: MIT */
#include "cli/stop.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static sigset_t signals(void)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    return stop;
}

void cli_stop_hold(bool hold)
{
    sigset_t stop = signals();
    pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &stop, NULL);
}

bool cli_stop_asked(void *asked)
{
    static const struct timespec now = {0, 0};
    bool *is = asked;
    sigset_t stop = signals();
    if (!*is)
        *is = sigtimedwait(&stop, NULL, &now) > 0;
    return *is;
}
