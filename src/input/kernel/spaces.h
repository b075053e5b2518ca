/* SPDX-License-Identifier: MIT */
/* Private to kernel: namespaces, and which of them are containers. Rules: docs/decisions/traces.md. A namespace is
 * known by its number (an inode's, reused when it is gone) or because its creation was seen. */
#ifndef WEFT_KERNEL_SPACES_H
#define WEFT_KERNEL_SPACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/kernel.h"

struct carry; struct ctf_event; struct ctf_event_class; struct kernel_plan; struct kernel_tracker;

enum { KERNEL_SPACE_UNKNOWN = 0, KERNEL_MOST_NAME = 64 };

/* Effect of a call in progress on its thread's namespaces. */
enum kernel_space_call {
    KERNEL_SPACE_NO_CALL, KERNEL_SPACE_CLONE,
    KERNEL_SPACE_CLONE3, /* clone3, whose flags are not recorded */
    KERNEL_SPACE_UNSHARE, KERNEL_SPACE_SETNS, KERNEL_SPACE_SETHOSTNAME, KERNEL_SPACE_CALLS
};

struct kernel_space {
    int64_t since;       /* first known; identifies it, together with kind and tid */
    int32_t tid;         /* tid of its first known thread; 0: no thread yet */
    int32_t first;       /* row of that thread, or KERNEL_NO_ROW: it is gone */
    uint32_t first_name; /* name of that thread when it left */
    uint32_t inum;       /* 0: not reported */
    uint32_t name;       /* UTS: host name set in it; else the container's name, reported by a thread */
    /* Outer namespace: its first thread is in it, and so is all of this one, unless it is the machine's. PID: the
     * network namespace; CGROUP: the pid namespace if that is not the machine's, else the network's. */
    int32_t within;
    int32_t uts;         /* PID, NET, CGROUP: the first UTS namespace of a thread in it that is not the machine's */
    int32_t pid;         /* NET: the first pid namespace within it */
    int32_t members;     /* living threads; except for PID it may be 0, while others can still enter */
    uint8_t kind;
    bool created;        /* its creation was seen: not the machine's, whatever its number */
    bool bound;          /* owner of that number now */
    bool lasting;        /* container of an ended life */
};

/* Namespaces of a life, by number; KERNEL_SPACE_UNKNOWN: unknown. */
struct kernel_spaces_of {
    int32_t in[KERNEL_SPACE_KINDS];
    int32_t container;   /* last container of a dead life */
    int32_t children;    /* pid namespace of its children, if different from its own */
    uint32_t argument;   /* argument of the call: flags, or the string of a name */
    int16_t level;       /* number of namespaces around its pid namespace */
    uint8_t call;        /* enum kernel_space_call in progress */
};

/* Effect of the system call; name may be NULL. fields, text: names of its arguments. */
uint8_t kernel_space_call(const char *name, const char *fields[2], const char **text);

void kernel_spaces_fini(struct kernel_tracker *);
/* Sets the namespaces of a new child of the row. inum: of its pid namespace, 0: unknown; vtid: innermost, -1: unknown;
 * levels: number of pid namespaces in which it has a number, 0: unknown. */
void kernel_spaces_fork(struct kernel_tracker *, int32_t parent, int32_t child, uint32_t inum, int32_t vtid,
    size_t levels);
/* Call it before the row counts as dead. */
void kernel_spaces_die(struct kernel_tracker *, int32_t row);
/* Records that the row is in the namespace of that number. */
void kernel_spaces_tell(struct kernel_tracker *, int32_t row, uint8_t kind, uint32_t inum);
/* Handles begin or end of a call in the row; v: as bound by the fields of kernel_space_call. */
void kernel_spaces_entry(struct kernel_tracker *, int32_t row, const struct ctf_event *, const struct kernel_plan *,
    int64_t first, int64_t second);
void kernel_spaces_exit(struct kernel_tracker *, int32_t row, int64_t ret);
/* Handles text that a thread wrote to /proc/lttng-logger: "weft-container NAME" names its container. */
void kernel_spaces_said(struct kernel_tracker *, int32_t row, const char *text, size_t n);
/* Visits the namespaces: before the lives of kernel_tracker_carry, and for each of these. */
void kernel_spaces_carry(struct kernel_tracker *, struct carry *);
void kernel_spaces_carry_life(struct kernel_tracker *, struct carry *, struct kernel_spaces_of *, bool lives);

#endif
