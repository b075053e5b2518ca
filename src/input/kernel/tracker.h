/* SPDX-License-Identifier: MIT */
/* Private to kernel: state of one host while its events are processed. */
#ifndef WEFT_KERNEL_TRACKER_H
#define WEFT_KERNEL_TRACKER_H

#include "base/map.h"
#include "base/mem.h"
#include "kernel/binding.h"
#include "kernel/spaces.h"

/* CPU << 16 | irq fits in 31 bits. */
enum { KERNEL_DEPTH = 12, KERNEL_MOST_CPUS = CTF_MOST_CPUS, KERNEL_DENSE_TIDS = 1 << 22, KERNEL_NO_IRQ = 0xffff };
/* Value in place of the row of a tid's latest life: it died before the chunk. */
enum { KERNEL_BURIED = -2 };

/* Frame: an open bracket of interrupt work. */
struct kernel_frame {
    uint8_t ctx;  /* enum kernel_context */
    uint8_t kind; /* the entry's enum kernel_kind */
    uint16_t number;
    uint32_t serial;
};

struct kernel_cpu {
    int64_t last_ts;              /* time of the last event on the CPU */
    int64_t known_since;          /* time since which no event of the CPU is missing */
    int64_t current_since;
    int32_t current;              /* row, or KERNEL_NO_ROW */
    int32_t idle_row;
    bool seen;                    /* known_since is valid */
    bool bottom_known;            /* a thread is below the frames */
    uint8_t depth;
    struct kernel_frame frames[KERNEL_DEPTH];
    int64_t loss_begin, loss_end; /* loss of the packet that reported lost events; INT64_MAX: none is open */
    /* Position of that packet's last event, once its first event was seen: another packet in the same place begins
     * before that. */
    const uint8_t *loss_packet;
    uint64_t loss_pos_bits;
    /* Bytes of the packet before its first event, which identify it when it is mapped anew; 0: not seen yet. */
    uint32_t loss_head_bytes;
    uint64_t loss_head_hash;
    int64_t absent_until;         /* end of its missing stream, as reported; INT64_MIN: none known */
    bool has_stream;              /* result of looking up the stream */
};
#define KERNEL_CPU_UNSEEN \
    ((struct kernel_cpu){ \
        .current = KERNEL_NO_ROW, .idle_row = KERNEL_NO_ROW, .last_ts = INT64_MIN, .loss_end = INT64_MAX, \
        .absent_until = INT64_MIN})

/* Private fields of a life. */
struct kernel_life {
    uint64_t comm[2]; /* raw name in the event that set its name; 0: another kind of event did, or an earlier chunk */
    uint32_t syscall; /* system call in progress */
    uint8_t io;       /* its enum kernel_io */
    bool exiting;
    bool on_cpu; /* it was seen on a CPU */
    struct kernel_spaces_of spaces;
};

struct kernel_tracker {
    const struct kernel_binding *binding;
    kernel_sink *sink;
    void *arg;
    struct kernel_record record;
    int64_t now;
    int64_t next_loss_end; /* least loss_end of all CPUs */
    int64_t next_absent;   /* time of the next report of a missing stream; INT64_MIN: to be computed */
    VEC(struct kernel_cpu) cpus;
    VEC(struct kernel_thread) threads;
    VEC(struct kernel_life) lives;
    VEC(struct kernel_former) formers;
    int32_t *by_tid;       /* row + 1 of the tid's latest life */
    size_t n_by_tid;
    struct map far_tids;   /* row + 1 for tids above any kernel's pid_max */
    struct strings names;
    size_t n_class_names;
    uint32_t *class_name;  /* by class index: interned name of its system call or vector */
    struct map disks, irqs, numbered_calls;
    bool x86_64;
    uint32_t frames;
    VEC(int32_t) births;   /* carried rows: their positions by birth */
    /* State at a cut: continuing rows in their new order, their positions by birth, and the new numbers of open
     * frames. */
    VEC(int32_t) leaving, leaving_births;
    struct map leaving_frames;
    VEC(struct kernel_space) spaces; /* namespaces by number; 0 is none */
    struct map space_by_inum;        /* kind << 32 | inode's number -> number */
    uint32_t first_net;              /* inode's number of the machine's own network; 0: unknown */
    VEC(int32_t) leaving_spaces;     /* number in the next chunk by number, at a cut; 0: none */
    size_t n_leaving_spaces;
    char device[KERNEL_COMM_BYTES]; /* last interface name and its number */
    uint32_t device_name;
    struct kernel_stack stacks[KERNEL_STACK_KINDS]; /* of the present event */
};

/* threads.c: lives of threads. */
/* Row of the tid's present life; KERNEL_NO_ROW if there is none or it is dead. */
int32_t kernel_row_find(const struct kernel_tracker *, int64_t tid);
/* Returns whether the tid's latest life was seen to die, but not to be freed. */
bool kernel_row_is_buried(const struct kernel_tracker *, int64_t tid);
/* Frees the tid. */
void kernel_row_forget(struct kernel_tracker *, int64_t tid);
/* As kernel_row_find, but adds a missing row; KERNEL_NO_ROW for impossible tids. */
int32_t kernel_row_get(struct kernel_tracker *, int64_t tid, int64_t begin);
int32_t kernel_row_idle(struct kernel_tracker *, uint32_t cpu);
void kernel_row_bind(struct kernel_tracker *, int64_t tid, int32_t row);
void kernel_row_die(struct kernel_tracker *, int32_t row);
/* Takes the name from text i of the event. */
void kernel_row_name(struct kernel_tracker *, int32_t row, const struct ctf_event *, const struct kernel_plan *, int i);
void kernel_row_set_name(struct kernel_tracker *, int32_t row, uint32_t name);
/* Gives the row another tid. */
void kernel_row_renumber(struct kernel_tracker *, int32_t row, int32_t tid);

/* calls.c: names of system calls of which only the number is known. */
bool kernel_looks_like_x86_64(const struct ctf_trace *);
uint32_t kernel_numbered_call(struct kernel_tracker *, int64_t number);

/* lives.c: events that begin, rename and describe lives; v: their fields. Each fills the record; false: nothing is
 * known. */
bool kernel_on_fork(struct kernel_tracker *, const struct ctf_event *, const struct kernel_plan *,
    const int64_t v[KERNEL_FIELDS], struct kernel_record *);
bool kernel_on_exec(struct kernel_tracker *, const struct ctf_event *, const struct kernel_plan *,
    const int64_t v[KERNEL_FIELDS], struct kernel_record *);
bool kernel_on_exit(struct kernel_tracker *, const int64_t v[KERNEL_FIELDS], struct kernel_record *);
bool kernel_on_free(struct kernel_tracker *, const int64_t v[KERNEL_FIELDS], struct kernel_record *);
bool kernel_on_statedump(struct kernel_tracker *, const struct ctf_event *, const struct kernel_plan *,
    const int64_t v[KERNEL_FIELDS], struct kernel_record *);

#endif
