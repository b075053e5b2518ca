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
    int64_t bytes[STATE_WAYS];
    uint32_t opened;         /* descriptors that it opened and nobody closed */
};

/* What a file is called: a path; or a descriptor of a process of which no more is known. */
struct named_file {
    uint32_t path;           /* number for files_path */
    int32_t fd;              /* -1: a path */
    int32_t thread, process; /* row that used it first, and the number of its process as it was known then */
    bool before_loss;        /* events were lost since it was opened: by now it may be another one */
};

struct builder_files;
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
const char *files_path(const struct state_builder *, const struct named_file *);

#endif
