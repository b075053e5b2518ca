/* SPDX-License-Identifier: MIT */
/* Private to kernel: namespaces, and which of them are a container. Rules: docs/decisions.md. A namespace is known by
 * its number (an inode's, used again when it is gone) or because it was seen to be made. */
#ifndef WEFT_KERNEL_SPACES_H
#define WEFT_KERNEL_SPACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/kernel.h"

struct carry; struct ctf_event; struct ctf_event_class; struct kernel_plan; struct kernel_tracker;

enum { KERNEL_SPACE_UNKNOWN = 0, KERNEL_MOST_NAME = 64 };

/* What a call in progress does to its thread's namespaces. */
enum kernel_space_call {
    KERNEL_SPACE_NO_CALL, KERNEL_SPACE_CLONE,
    KERNEL_SPACE_CLONE3, /* its flags are not recorded */
    KERNEL_SPACE_UNSHARE, KERNEL_SPACE_SETNS, KERNEL_SPACE_SETHOSTNAME, KERNEL_SPACE_CALLS
};

struct kernel_space {
    int64_t since;       /* first known; with kind and tid that is who it is */
    int32_t tid;         /* of its first thread as far as known; 0: none was in it yet */
    int32_t first;       /* that thread's row, or KERNEL_NO_ROW: it is gone */
    uint32_t first_name; /* what that was called, then */
    uint32_t inum;       /* 0: not told */
    uint32_t name;       /* UTS: the host name that was set in it; else what a thread in it said its container is */
    /* That its first thread is in, and with it all of this one, if it is not the machine's. PID: the network namespace;
     * CGROUP: the pid namespace if that is not the machine's, else the network's. */
    int32_t within;
    int32_t uts;         /* PID, NET, CGROUP: the first one of a thread in it that is not the machine's */
    int32_t pid;         /* NET: the first pid namespace that is within it */
    int32_t members;     /* living threads; but for PID may be 0, when others can still go there */
    uint8_t kind;
    bool created;        /* was seen to be made: is not the machine's, whatever its number */
    bool bound;          /* has that number now */
    bool lasting;        /* a life ended whose container it was */
};

/* Of a life. Namespaces by number, KERNEL_SPACE_UNKNOWN: not known. */
struct kernel_spaces_of {
    int32_t in[KERNEL_SPACE_KINDS];
    int32_t container;   /* once it is dead: the one that it was in */
    int32_t children;    /* the pid namespace of its children, if another one than its own */
    uint32_t argument;   /* of the call: flags, or the string of a name */
    int16_t level;       /* of its pid namespace: how many lie around it */
    uint8_t call;        /* enum kernel_space_call: in progress */
};

/* What the system call does; name may be NULL. fields, text: of its arguments. */
uint8_t kernel_space_call(const char *name, const char *fields[2], const char **text);

void kernel_spaces_fini(struct kernel_tracker *);
/* The child is the row's, and does not have namespaces yet. inum: of its pid namespace, 0 not told; vtid: innermost,
 * -1 not known; levels: of pid namespaces that it has numbers in, 0 not known. */
void kernel_spaces_fork(struct kernel_tracker *, int32_t parent, int32_t child, uint32_t inum, int32_t vtid,
    size_t levels);
/* Before it counts as dead. */
void kernel_spaces_die(struct kernel_tracker *, int32_t row);
/* The row is in the namespace of that number. */
void kernel_spaces_tell(struct kernel_tracker *, int32_t row, uint8_t kind, uint32_t inum);
/* A call begins or ends in the row; v: as bound by the fields of kernel_space_call. */
void kernel_spaces_entry(struct kernel_tracker *, int32_t row, const struct ctf_event *, const struct kernel_plan *,
    int64_t first, int64_t second);
void kernel_spaces_exit(struct kernel_tracker *, int32_t row, int64_t ret);
/* What a thread wrote to /proc/lttng-logger: "weft-container NAME" names its container. */
void kernel_spaces_said(struct kernel_tracker *, int32_t row, const char *text, size_t n);
/* Before the lives of kernel_tracker_carry, and of each of these. */
void kernel_spaces_carry(struct kernel_tracker *, struct carry *);
void kernel_spaces_carry_life(struct kernel_tracker *, struct carry *, struct kernel_spaces_of *, bool lives);

#endif
