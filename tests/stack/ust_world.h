/* SPDX-License-Identifier: MIT */
/* User-space traces for tests: written with weft's own CTF writer as LTTng-UST would, with the contexts vpid, vtid and
 * procname. */
#ifndef WEFT_TESTS_STATE_UST_WORLD_H
#define WEFT_TESTS_STATE_UST_WORLD_H

#include <stdbool.h>
#include <stdint.h>

struct ctf_writer;
/* Writer with the recorder of the next events; changed freely between them. */
struct ust {
    struct ctf_writer *writer;
    uint32_t cpu;
    int32_t pid, tid;
    const char *name;
    bool bare;               /* without contexts: threads are unknown; the trace is of process 321 */
};
enum { UST_CPUS = 2 };
#define UST_START INT64_C(1700000000000000000) /* base of the times below, in ns */
void ust_create(struct ust *, const char *dir, const char *host, bool bare);
void ust_close(struct ust *);

void ust_enter(struct ust *, int64_t t, uint64_t address);
void ust_exit(struct ust *, int64_t t, uint64_t address);
/* Enters a function that returns to `site`; others return to behind their address. */
void ust_enter_from(struct ust *, int64_t t, uint64_t address, uint64_t site);
void ust_exit_to(struct ust *, int64_t t, uint64_t address, uint64_t site);
void ust_fast_enter(struct ust *, int64_t t, uint64_t address);
void ust_fast_exit(struct ust *, int64_t t);
/* lttng_ust_cyg_profile:func_entry with a field `name` */
void ust_named_enter(struct ust *, int64_t t, uint64_t address, const char *name);
void ust_message(struct ust *, int64_t t, const char *text);
void ust_bin_info(struct ust *, int64_t t, uint64_t base, uint64_t bytes, const char *path, bool pic);
/* lttng_ust_statedump:start */
void ust_dump(struct ust *, int64_t t);
void ust_dlopen(struct ust *, int64_t t, uint64_t base, uint64_t bytes, const char *path);
void ust_dlclose(struct ust *, int64_t t, uint64_t base);
void ust_malloc(struct ust *, int64_t t, uint64_t bytes, uint64_t result);
void ust_calloc(struct ust *, int64_t t, uint64_t count, uint64_t bytes, uint64_t result);
void ust_realloc(struct ust *, int64_t t, uint64_t old, uint64_t bytes, uint64_t result);
void ust_free(struct ust *, int64_t t, uint64_t address);
/* Ends the current packet of the CPU, which reports lost events. */
void ust_lose(struct ust *, uint64_t events);

/* Writes a sample of every kind: two processes, libraries, unbalanced calls, lost events, memory. */
void ust_write_sample(const char *dir, const char *host);
/* Writes a trace in which process 11 is killed after its last event at 31 µs, and holds 4096 bytes; process 300 has
 * some until 90 µs. */
void ust_write_killed(const char *dir, const char *host);
/* Writes a trace of a program that is replaced by another one, twice. */
void ust_write_exec(const char *dir);
/* Writes a trace of a function that calls itself until so many calls are open. */
void ust_write_deep(const char *dir, int levels);
/* Writes `n` random calls of some threads, now and then without exits or entries. lossy: events are lost too, but none
 * before a CPU's first packet is full, and no two events have one time. */
void ust_write_random(const char *dir, uint32_t seed, int n, bool lossy);

#endif
