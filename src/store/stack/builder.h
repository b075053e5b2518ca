/* SPDX-License-Identifier: MIT */
/* Private to stack: the builder of call stacks while events go by. */
#ifndef WEFT_STACK_BUILDER_H
#define WEFT_STACK_BUILDER_H

#include "base/map.h"
#include "base/mem.h"
#include "ctf/ctf.h"
#include "stack/format.h"

#define STACK_NO_THREAD UINT32_MAX

/* bind.c: what LTTng-UST's event types mean, bound once per trace. */
enum stack_kind {
    STACK_OTHER, STACK_ENTRY, STACK_EXIT,
    STACK_LOAD, STACK_UNLOAD,               /* of a library or program at an address */
    STACK_DUMP,                             /* a state dump of the process begins */
    STACK_DUMPED,                           /* as LOAD, in a state dump: the program first, then its libraries */
    STACK_ALLOC, STACK_REALLOC, STACK_FREE,
};
struct stack_class {
    uint8_t kind;            /* enum stack_kind */
    bool has_address, has_name, has_pic;
    struct ctf_access vpid, vtid, procname;
    struct ctf_access address, name;        /* ENTRY, EXIT; LOAD, UNLOAD: base address and path */
    struct ctf_access site;                 /* ENTRY, EXIT: where the function returns to */
    /* LOAD: size, pic. ALLOC, REALLOC: size, count (times size), old; address is the result. */
    struct ctf_access size, count, pic, old;
};
/* The binding of each class of the trace, by index: *n; mem_alloc'd. */
struct stack_class *stack_bind(const struct ctf_trace *, size_t *n);

/* A library or program in the memory of a process. Loaded by the event of that number of the chunk, 0: before it;
 * unloaded: UINT64_MAX: not yet. */
struct stack_library {
    uint64_t loaded, unloaded;
    uint64_t begin, end;
    uint32_t path;           /* string */
    bool absolute;           /* addresses in it are those of the file */
};
struct stack_known {         /* a function */
    uint64_t address;
    uint64_t first;          /* number of the event that entered it first; 0: in a chunk before */
    uint32_t process, name;  /* name: string, 0: the trace does not call it anything, and no library did so far */
};
struct stack_owner {         /* a process */
    int32_t pid;
    uint32_t name;           /* pid -1: tells it apart; else the first that any of its threads had in the chunk */
    VEC(struct stack_library) libraries;
    struct map functions, named;             /* address, string -> index in known + 1 */
    struct map allocations;                  /* address -> index in sizes + 1 */
    int32_t dump_thread;     /* that made the last state dump; -1: not known */
    bool awaits_program;     /* a state dump has begun, and has not said which program it is of */
    uint32_t program;        /* string: path by the last state dump; 0: not known */
};

struct stack_frame {
    int64_t begin;
    int64_t below;           /* ns of the calls one level below it that ended in chunks before */
    uint64_t address;
    uint64_t site;           /* where it returns to; 0: not known */
    uint32_t function;
    bool has_address;
};
struct stack_ghost { uint64_t address; bool has_address; };
struct stack_series {        /* a level of a thread */
    VEC(struct stack_disk_call) calls;
    VEC(struct stack_disk_long) longs; /* call: within the series */
    int64_t below;           /* of the frame that the first call was */
};
struct stack_runner {        /* a thread */
    uint32_t owner;
    int32_t tid, cpu;
    uint32_t stream;         /* all of its events are of it, when tid is not known */
    int64_t begin, last;     /* its first event of the chunk, and its last one */
    /* After lost events, until it is known that they are over: the calls that were open, the outermost first; and by
     * level of the stack since when it is not known what the level does without a call of its own. */
    VEC(struct stack_ghost) ghosts;
    VEC(int64_t) unknown;
    bool listed;             /* among those that may have open calls */
    bool active;             /* the chunk has something of it */
    VEC(struct stack_disk_rename) names;
    VEC(struct stack_frame) frames;
    VEC(struct stack_series) series;
    VEC(struct stack_disk_value) memory;     /* the first one may be carried */
};

/* A packet with lost events: some are missing between the packet before and its first event, or between its last event
 * and its end. */
struct stack_window {
    uint32_t stream;
    bool heard;              /* its first event was read */
    int64_t last, end;       /* last: of its events; before the first, where the loss begins */
};

struct stack_stream {        /* told apart by all of class, instance, CPU and name: numbers differ by chunk */
    uint64_t class_id, instance_id;
    int32_t cpu;
    uint32_t name;
    bool has_calls;          /* losses may hide entries and exits */
    uint64_t key;            /* of the event before */
    uint32_t thread;         /* of the event before, STACK_NO_THREAD at first */
};

struct stack_builder {
    const struct ctf_trace *trace;
    struct stack_class *classes;
    VEC(struct stack_stream) streams; /* those of the trace, and others that were carried */
    VEC(uint32_t) of_trace;  /* by number of the trace's stream: which it is here */
    size_t n_classes;        /* in classes */
    int32_t trace_pid;       /* traces of one process each say so; else -1 */
    int64_t first, last;     /* first and last event of all chunks so far; INT64_MAX, INT64_MIN: none */
    int64_t now;             /* the greatest time so far; what steps back counts as then */
    struct strings strings;
    VEC(struct stack_owner) owners;
    VEC(struct stack_runner) runners;
    VEC(struct stack_known) known;
    VEC(int64_t) sizes;      /* of allocations */
    VEC(size_t) free_sizes;  /* index in sizes to be used again */
    struct map owner_of, owner_by_name;      /* pid, string -> index + 1 */
    struct map thread_of, stream_thread_of;  /* pid << 32 | tid, pid << 32 | stream -> index + 1 */
    VEC(uint32_t) open;      /* threads that may have open calls */
    VEC(struct stack_window) windows;
    VEC(struct stack_disk_loss) losses;
    struct stack_totals totals; /* of this chunk */
};

/* Which of the builder's streams it is of. */
static inline uint32_t stack_stream_of(const struct stack_builder *b, const struct ctf_event *ev)
{
    return b->of_trace.v[ev->stream];
}

/* names.c */
uint32_t stack_owner(struct stack_builder *, int32_t pid, uint32_t name); /* name: where pid is -1 */
/* Numbers of all processes by pid, then name; free() it. */
uint32_t *stack_order_owners(const struct stack_builder *);
void stack_load(struct stack_builder *, uint32_t owner, const struct stack_library *);
void stack_unload(struct stack_builder *, uint32_t owner, uint64_t begin);
void stack_unload_all(struct stack_builder *, uint32_t owner);
uint32_t stack_function_at(struct stack_builder *, uint32_t owner, uint64_t address);
uint32_t stack_function_named(struct stack_builder *, uint32_t owner, uint64_t address, uint32_t name);
/* Appends what a function is called to `out`; false, and nothing: no library is known yet that it may be of. */
bool stack_name_function(const struct stack_builder *, const struct stack_known *, struct text *out);

/* builder.c */
/* Threads by process, where `process_of` says its number, then tid, then stream. */
struct stack_runner_order { const struct stack_builder *b; const uint32_t *process_of; };
int stack_order_runners(const void *a, const void *b, void *order); /* of numbers of threads, for qsort_r */
/* Where the number of a thread + 1 is kept; fresh: it was not known, and 0 is there. */
uint64_t *stack_runner_place(struct stack_builder *, int32_t pid, int32_t tid, uint32_t stream, bool *fresh);

/* The stream that is the same, else a new one. */
uint32_t stack_find_stream(struct stack_builder *, const struct stack_stream *);

/* calls.c */
void stack_enter(struct stack_builder *, uint32_t thread, int64_t ts, const struct stack_frame *);
/* site: 0: not known */
void stack_exit(struct stack_builder *, uint32_t thread, int64_t ts, uint64_t address, uint64_t site,
    bool has_address);
void stack_lose(struct stack_builder *, const struct ctf_event *loss);
/* An event of the stream; only to be called while there are windows. */
void stack_watch(struct stack_builder *, uint32_t stream, int64_t ts);
/* The end of the trace: all that is open ends there. */
void stack_finish(struct stack_builder *);
/* All calls of the process end without an exit. */
void stack_end_calls(struct stack_builder *, uint32_t owner, int64_t ts);

/* memory.c */
void stack_allocate(struct stack_builder *, uint32_t thread, int64_t ts, uint64_t address, uint64_t bytes);
void stack_release(struct stack_builder *, uint32_t thread, int64_t ts, uint64_t address);
/* The threads of the process hold nothing any more. */
void stack_release_all(struct stack_builder *, uint32_t owner, int64_t ts);

#endif
