/* SPDX-License-Identifier: MIT */
#include "cli/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"

static char **arguments; /* copy of the arguments as given: cli_parse reorders argv */

static void occupy_standard_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

void cli_start(char **argv)
{
    size_t n = 0;
    while (argv[n])
        n++;
    arguments = mem_zalloc((n + 1) * sizeof *arguments); /* lives as long as the program */
    memcpy(arguments, argv, n * sizeof *arguments);
    occupy_standard_descriptors();
    signal(SIGPIPE, SIG_IGN);
}

int cli_version(void)
{
    struct text t = TEXT_TO(STDOUT_FILENO);
    text_puts(&t, "weft " WEFT_VERSION "\n");
    return cli_finish(&t, CLI_OK);
}

int cli_run_net(void)
{
    static const char *const places[] = {"weft-net", WEFT_NET};
    char path[PATH_MAX + sizeof WEFT_NET];
    struct err e = {0};
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof "weft-net");
    char *name = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
    if (!name)
        return err_set(&e, ERR_IO, "/proc/self/exe: %s; weft finds weft-net by it", strerror(errno)), cli_fail(&e);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        strcpy(*places[i] == '/' ? path : name + 1, places[i]);
        execv(path, arguments);
        if (errno != ENOENT)
            break;
    }
    err_set(&e, ERR_NOTFOUND,
        "%s: %s; this program of weft does what needs servers, brokers and databases: install weft with all its files",
        path, strerror(errno));
    return cli_fail(&e);
}
