/* SPDX-License-Identifier: MIT */
#include "far_same.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/text.h"

static struct text stored(const struct clock_net *net)
{
    char path[64], buf[4096];
    struct text out = {.fd = -1};
    struct err e = {0};
    size_t n;
    snprintf(path, sizeof path, "%s/weft-far-net-%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
    if (clock_net_save(net, path, 7, &e))
        fail_msg("%s", e.text);
    FILE *f = fopen(path, "r");
    while ((n = fread(buf, 1, sizeof buf, f)))
        text_put(&out, buf, n);
    fclose(f);
    unlink(path);
    return out;
}

static struct text told(const struct clock_net *net)
{
    struct text out = {.fd = -1};
    struct json j = JSON_TO(&out);
    clock_net_write_json(net, &j);
    clock_net_write_table(net, &out, false);
    clock_net_write_stats(net, &out);
    return out;
}

void far_same_nets(const struct clock_net *one, const struct clock_net *two, const char *what)
{
    struct text a = told(one), b = told(two);
    if (strcmp(text_cstr(&a), text_cstr(&b)) != 0)
        fail_msg("%s:\n%s\nand:\n%s", what, text_cstr(&a), text_cstr(&b));
    text_fini(&a);
    text_fini(&b);
    a = stored(one);
    b = stored(two);
    if (a.n != b.n || memcmp(a.v, b.v, a.n) != 0)
        fail_msg("%s: other pairs are stored", what);
    text_fini(&a);
    text_fini(&b);
}
