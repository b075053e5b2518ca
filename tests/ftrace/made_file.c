/* SPDX-License-Identifier: MIT */
#include "made_file.h"

#include <sys/mman.h>

#include "../base/test.h"
#include "base/file.h"

enum { FIRST_AT = 0x1b, OPTIONS_AT = 0xd00 };

void made_put(struct made *m, const void *v, size_t n)
{
    assert_true(n <= sizeof m->v - m->n);
    memcpy(m->v + m->n, v, n);
    m->n += n;
}

static void number_at(struct made *m, size_t at, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        m->v[at + i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
}

void made_number(struct made *m, uint64_t v, unsigned bytes)
{
    static const uint8_t zeros[8];
    made_put(m, zeros, bytes);
    number_at(m, m->n - bytes, v, bytes);
}

uint64_t made_section(struct made *m, unsigned id)
{
    m->section = m->n;
    made_number(m, id, 2);
    made_number(m, 0, 2);
    made_number(m, 0, 4);
    made_number(m, 0, 8);
    return m->section;
}

void made_begin(struct made *m)
{
    char *data;
    size_t n;
    struct err e = {0};
    assert_int_equal(file_read(WEFT_SOURCE_ROOT "/fuzz/corpus/tracedat/version7", 1 << 20, &data, &n, &e), 0);
    assert_true(n > OPTIONS_AT);
    m->n = 0;
    m->page = MADE_PAGE;
    made_put(m, data, OPTIONS_AT);
    free(data);
    made_section(m, 0);
    number_at(m, FIRST_AT, m->section, 8);
    made_option(m, 16, MADE_HEADERS);
    made_option(m, 18, MADE_FORMATS);
}

void made_option(struct made *m, unsigned id, uint64_t v)
{
    made_number(m, id, 2);
    made_number(m, 8, 4);
    made_number(m, v, 8);
}

void made_option_text(struct made *m, unsigned id, const char *text)
{
    made_number(m, id, 2);
    made_number(m, strlen(text) + 1, 4);
    made_put(m, text, strlen(text) + 1);
}

void made_buffer(struct made *m, const char *name, const uint64_t *cpus, size_t n_cpus)
{
    made_number(m, 3, 2);
    made_number(m, 8 + strlen(name) + 1 + 5 + 8 + n_cpus * 20, 4);
    made_number(m, MADE_BUFFER, 8);
    made_put(m, name, strlen(name) + 1);
    made_put(m, "mono", 5);
    made_number(m, m->page, 4);
    made_number(m, n_cpus, 4);
    for (size_t i = 0; i < n_cpus; i++) {
        made_number(m, cpus[3 * i], 4);
        made_number(m, cpus[3 * i + 1], 8);
        made_number(m, cpus[3 * i + 2], 8);
    }
}

void made_end(struct made *m, uint64_t next)
{
    if (m->v[m->section] == 0 && m->v[m->section + 1] == 0)
        made_option(m, 0, next);
    number_at(m, m->section + 8, m->n - m->section - 16, 8);
}

const char *made_path(const struct made *m)
{
    static char path[64];
    static int fd = -1;
    fd = fd < 0 ? memfd_create("trace.dat", MFD_CLOEXEC) : fd;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, m->v, m->n, 0), (ssize_t)m->n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

bool made_tells(const struct ctf_trace *t, const char *part)
{
    const struct ctf_problem *problems;
    size_t n = ctf_trace_problems(t, &problems);
    bool tells = false;
    for (size_t i = 0; i < n; i++)
        tells |= strstr(problems[i].text, part) != NULL;
    return tells;
}
