/* SPDX-License-Identifier: MIT */
/* Private to state: files that threads use, by their file descriptors, while records arrive. */
#ifndef WEFT_STATE_FILES_H
#define WEFT_STATE_FILES_H

#include "kernel/kernel.h"
#include "state/series.h"

/* File and a thread that used it. */
struct file_access {
    struct series series;    /* bytes moved by the use << STATE_FILE_USE_BITS | enum state_file_use */
    uint32_t file;           /* index in names */
    int32_t thread;
    int64_t apart[STATE_WAYS]; /* bytes of uses without their own entry */
    uint32_t opened;         /* descriptors opened and not closed yet */
};

/* Name of a file. */
struct named_file {
    uint32_t name;           /* number for state_files_text: a path, or a descriptor of an unknown file */
    bool unknown;            /* descriptor of an unknown file */
    bool before_loss;        /* events were lost since it was opened: it may be another file by now */
};
static inline uint64_t files_name_key(struct named_file n)
{
    return n.name | (uint64_t)n.before_loss << 32 | (uint64_t)n.unknown << 33;
}

enum { FILE_HIDDEN = -1, FILE_UNKNOWN = 0, FILE_MOST_DESCRIPTORS = 1 << 16, FILE_MOST_IN_ALL = 1 << 21 };
struct file_descriptor {
    int32_t file;    /* index in names + 1, or FILE_UNKNOWN, FILE_HIDDEN */
    int32_t opener;  /* access that opened it, or -1 */
    int32_t user;    /* last thread that used it, and its access */
    uint32_t access; /* index + 1; 0: not resolved yet */
    uint32_t losses; /* number of losses when its file was learnt */
    bool close_on_exec;
};
typedef VEC(struct file_descriptor) file_table;

/* Thread and its call in progress. */
struct file_call {
    uint32_t table; /* index + 1; 0: not resolved yet */
    int64_t begin, other;
    int32_t fd;
    uint32_t first, second; /* accesses + 1 */
    uint32_t path, flags;
    uint8_t io;
};

struct builder_files {
    VEC(struct named_file) names;
    struct map name_of;   /* files_name_key -> index */
    VEC(struct file_access) accesses;
    struct map access_of; /* file << 32 | thread -> index + 1 */
    VEC(file_table) tables;
    size_t descriptors;        /* number of descriptors of all tables */
    struct map table_of;       /* process -> index + 1 */
    struct map at_address;     /* address in the state dump -> index + 1 */
    VEC(struct file_call) calls; /* calls by row */
    struct strings paths;
    size_t open;       /* number of accesses that hold their files open */
    uint32_t expected; /* access + 1 that was last prefetched */
    int64_t bytes;     /* total bytes moved */
};

struct state_builder;
struct builder_files *state_files_new(void);
void state_files_free(struct builder_files *);
/* Ways (bits) in which such a call moves bytes. */
static inline unsigned files_ways(uint8_t io)
{
    enum { READ = 1 << STATE_WAY_READ, WRITTEN = 1 << STATE_WAY_WRITTEN };
    return io == KERNEL_IO_READ ? READ : io == KERNEL_IO_WRITE ? WRITTEN : io == KERNEL_IO_COPY ? READ | WRITTEN : 0;
}
/* Handles a system call of the thread, or its return, with io (kernel.h). Returns the ways in which it moved bytes that
 * no row of a file counts (at the begin of a call: may move). */
unsigned state_files_call(struct state_builder *, int32_t row, const struct kernel_record *);
/* Prefetches the memory that the thread's call in progress will change, when the thread is put on a CPU. */
void state_files_arrive(const struct state_builder *, int32_t row);
void state_files_fork(struct state_builder *, int32_t parent, int32_t child);
void state_files_exec(struct state_builder *, int32_t row, int64_t ts);
void state_files_exit(struct state_builder *, int32_t row, int64_t ts);
void state_files_dumped_process(struct state_builder *, int32_t row, uint64_t table);
void state_files_dumped_descriptor(struct state_builder *, const struct kernel_record *);
/* Handles a loss: the thread's call may have ended unseen. */
void state_files_lose(struct state_builder *, int32_t row, int64_t ts);
/* Ends the trace: uses in progress are shown up to its end. */
void state_files_finish(struct state_builder *);
size_t state_files_accesses(const struct state_builder *, struct file_access **out);
const struct named_file *state_files_name(const struct state_builder *, const struct file_access *);
const char *state_files_text(const struct state_builder *, uint32_t);

#endif
