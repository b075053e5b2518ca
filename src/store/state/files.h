/* SPDX-License-Identifier: MIT */
/* Private to state: which files threads work with, by their file descriptors, while records go by. */
#ifndef WEFT_STATE_FILES_H
#define WEFT_STATE_FILES_H

#include "kernel/kernel.h"
#include "state/series.h"

/* A file and a thread that worked with it. */
struct file_access {
    struct series series;    /* bytes that the use moved << STATE_FILE_USE_BITS | enum state_file_use */
    uint32_t file;           /* index in names */
    int32_t thread;
    int64_t apart[STATE_WAYS]; /* bytes of uses that have no entry of their own */
    uint32_t opened;         /* descriptors that it opened and nobody closed */
};

/* What a file is called. */
struct named_file {
    uint32_t name;           /* number for files_text: of a path, or of a descriptor of which no more is known */
    bool unknown;            /* the latter */
    bool before_loss;        /* events were lost since it was opened: by now it may be another one */
};
static inline uint64_t files_name_key(struct named_file n)
{
    return n.name | (uint64_t)n.before_loss << 32 | (uint64_t)n.unknown << 33;
}

enum { FILE_HIDDEN = -1, FILE_UNKNOWN = 0, FILE_MOST_DESCRIPTORS = 1 << 16, FILE_MOST_IN_ALL = 1 << 21 };
struct file_descriptor {
    int32_t file;    /* index in names + 1, or FILE_UNKNOWN, FILE_HIDDEN */
    int32_t opener;  /* access through which it was opened, -1 */
    int32_t user;    /* thread that used it last, and its access */
    uint32_t access; /* index + 1; 0: not asked for yet */
    uint32_t losses; /* so many were known when its file was known */
    bool close_on_exec;
};
typedef VEC(struct file_descriptor) file_table;

/* A thread, and its call in progress. */
struct file_call {
    uint32_t table; /* index + 1; 0: not asked for yet */
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
    size_t descriptors;        /* in all tables */
    struct map table_of;       /* process -> index + 1 */
    struct map at_address;     /* as the state dump has it -> index + 1 */
    VEC(struct file_call) calls; /* by row */
    struct strings paths;
    size_t open;       /* accesses that hold their files open */
    uint32_t expected; /* access + 1 that was fetched last */
    int64_t bytes;     /* moved in all */
};

struct state_builder;
struct builder_files *files_new(void);
void files_free(struct builder_files *);
/* The ways (bits) in which such a call moves bytes. */
static inline unsigned files_ways(uint8_t io)
{
    enum { READ = 1 << STATE_WAY_READ, WRITTEN = 1 << STATE_WAY_WRITTEN };
    return io == KERNEL_IO_READ ? READ : io == KERNEL_IO_WRITE ? WRITTEN : io == KERNEL_IO_COPY ? READ | WRITTEN : 0;
}
/* A system call of the thread, or its return, with io (kernel.h). Returns the ways in which it moved (of a call: may
 * move) bytes that no row of a file counts. */
unsigned files_call(struct state_builder *, int32_t row, const struct kernel_record *);
/* The thread comes to a CPU: brings near the memory that its call in progress will change. */
void files_arrive(const struct state_builder *, int32_t row);
void files_fork(struct state_builder *, int32_t parent, int32_t child);
void files_exec(struct state_builder *, int32_t row, int64_t ts);
void files_exit(struct state_builder *, int32_t row, int64_t ts);
void files_dumped_process(struct state_builder *, int32_t row, uint64_t table);
void files_dumped_descriptor(struct state_builder *, const struct kernel_record *);
/* The thread's call may have ended unseen. */
void files_lose(struct state_builder *, int32_t row, int64_t ts);
/* The end of the trace: uses that are not over are shown up to there. */
void files_finish(struct state_builder *);
size_t files_accesses(const struct state_builder *, struct file_access **out);
const struct named_file *files_name(const struct state_builder *, const struct file_access *);
const char *files_text(const struct state_builder *, uint32_t);

#endif
