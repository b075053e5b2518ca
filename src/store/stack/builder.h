/* SPDX-License-Identifier: MIT */
/* Private to stack: the builder of call stacks while events arrive. */
#ifndef WEFT_STACK_BUILDER_H
#define WEFT_STACK_BUILDER_H

#include "base/map.h"
#include "base/mem.h"
#include "ctf/ctf.h"
#include "stack/format.h"

#define STACK_NO_THREAD UINT32_MAX

/* bind.c: meaning of LTTng-UST's event types, bound once per trace. */
enum stack_kind {
    STACK_OTHER, STACK_ENTRY, STACK_EXIT,
    STACK_LOAD, STACK_UNLOAD,               /* library or program at an address */
    STACK_DUMP,                             /* a state dump of the process begins */
    STACK_DUMPED,                           /* LOAD in a state dump: the program first, then its libraries */
    STACK_ALLOC, STACK_REALLOC, STACK_FREE,
};
struct stack_class {
    uint8_t kind;            /* enum stack_kind */
    bool has_address, has_name, has_pic;
    struct ctf_access vpid, vtid, procname;
    struct ctf_access address, name;        /* ENTRY, EXIT; LOAD, UNLOAD: base address and path */
    struct ctf_access site;                 /* ENTRY, EXIT: return address of the function */
    /* LOAD: size, pic. ALLOC, REALLOC: size, count (times size), old; address is the result. */
    struct ctf_access size, count, pic, old;
};
/* Returns the binding of each class of the trace, by index: *n; mem_alloc'd. */
struct stack_class *stack_bind(const struct ctf_trace *, size_t *n);

/* Library or program in the memory of a process. loaded: number of the event in the chunk, 0: before the chunk;
 * unloaded: likewise, UINT64_MAX: not yet. */
struct stack_library {
    uint64_t loaded, unloaded;
    uint64_t begin, end;
    uint32_t path;           /* string */
    bool absolute;           /* addresses inside are those of the file */
};
struct stack_known {         /* a function */
    uint64_t address;
    uint64_t first;          /* number of the event that entered it first; 0: in a chunk before */
    uint32_t process, name;  /* name: string; 0: no name in the trace, and none from a library so far */
};
struct stack_owner {         /* a process */
    int32_t pid;
    uint32_t name;           /* pid -1: distinguishes it; else the first name of any of its threads in the chunk */
    VEC(struct stack_library) libraries;
    struct map functions, named;             /* address, string -> index in known + 1 */
    struct map allocations;                  /* address -> index in sizes + 1 */
    int32_t dump_thread;     /* thread that made the last state dump; -1: unknown */
    bool awaits_program;     /* a state dump has begun, and its program is not known yet */
    uint32_t program;        /* string: path by the last state dump; 0: unknown */
};

struct stack_frame {
    int64_t begin;
    int64_t below;           /* ns of the calls one level below it that ended in chunks before */
    uint64_t address;
    uint64_t site;           /* return address; 0: unknown */
    uint32_t function;
    bool has_address;
};
struct stack_ghost { uint64_t address; bool has_address; };
struct stack_series {        /* a level of a thread */
    VEC(struct stack_disk_call) calls;
    VEC(struct stack_disk_long) longs; /* call: within the series */
    int64_t below;           /* `below` of the frame that the first call was */
};
struct stack_runner {        /* a thread */
    uint32_t owner;
    int32_t tid, cpu;
    uint32_t stream;         /* stream with all of its events, if tid is unknown */
    int64_t begin, last;     /* times of its first and its last event in the chunk */
    /* State after lost events, until they are known to be over. ghosts: calls that were open, the outermost first.
     * unknown: by level of the stack, the time since when it is unknown what the level does without a call of its
     * own. */
    VEC(struct stack_ghost) ghosts;
    VEC(int64_t) unknown;
    bool listed;             /* listed among threads that may have open calls */
    bool active;             /* the chunk has data of it */
    VEC(struct stack_disk_rename) names;
    VEC(struct stack_frame) frames;
    VEC(struct stack_series) series;
    VEC(struct stack_disk_value) memory;     /* the first one may be carried */
};

/* Packet with lost events. Some are missing between the packet before and its first event, or between its last event
 * and its end. */
struct stack_window {
    uint32_t stream;
    bool heard;              /* first event was read */
    int64_t last, end;       /* last: time of its last event; before the first event, the begin of the loss */
};

struct stack_stream {        /* identified by class, instance, CPU and name together: numbers differ between chunks */
    uint64_t class_id, instance_id;
    int32_t cpu;
    uint32_t name;
    bool has_calls;          /* losses may hide entries and exits */
    uint64_t key;            /* key of the event before */
    uint32_t thread;         /* thread of the event before; STACK_NO_THREAD at first */
};

struct stack_builder {
    const struct ctf_trace *trace;
    struct stack_class *classes;
    VEC(struct stack_stream) streams; /* streams of the trace, and others that were carried */
    VEC(uint32_t) of_trace;  /* index in `streams` by number of the trace's stream */
    size_t n_classes;        /* length of `classes` */
    int32_t trace_pid;       /* process of a trace per process; else -1 */
    int64_t first, last;     /* first and last event of all chunks so far; INT64_MAX, INT64_MIN: none */
    int64_t now;             /* greatest time so far; earlier times are raised to it */
    struct strings strings;
    VEC(struct stack_owner) owners;
    VEC(struct stack_runner) runners;
    VEC(struct stack_known) known;
    VEC(int64_t) sizes;      /* sizes of allocations */
    VEC(size_t) free_sizes;  /* free indices in sizes */
    struct map owner_of, owner_by_name;      /* pid, string -> index + 1 */
    struct map thread_of, stream_thread_of;  /* pid << 32 | tid, pid << 32 | stream -> index + 1 */
    VEC(uint32_t) open;      /* threads that may have open calls */
    VEC(struct stack_window) windows;
    VEC(struct stack_disk_loss) losses;
    struct stack_totals totals; /* totals of this chunk */
};

/* Returns the index of the event's stream in `streams`. */
static inline uint32_t stack_stream_of(const struct stack_builder *b, const struct ctf_event *ev)
{
    return b->of_trace.v[ev->stream];
}

/* names.c */
uint32_t stack_owner(struct stack_builder *, int32_t pid, uint32_t name); /* name: if pid is -1 */
/* Returns the numbers of all processes by pid, then name; free() it. */
uint32_t *stack_order_owners(const struct stack_builder *);
void stack_load(struct stack_builder *, uint32_t owner, const struct stack_library *);
void stack_unload(struct stack_builder *, uint32_t owner, uint64_t begin);
void stack_unload_all(struct stack_builder *, uint32_t owner);
uint32_t stack_function_at(struct stack_builder *, uint32_t owner, uint64_t address);
uint32_t stack_function_named(struct stack_builder *, uint32_t owner, uint64_t address, uint32_t name);
/* Appends the name of a function to `out`. Returns false without appending if no library is known yet that may have
 * it. */
bool stack_name_function(const struct stack_builder *, const struct stack_known *, struct text *out);

/* builder.c */
/* Order of threads: by process, with its number from `process_of`, then tid, then stream. */
struct stack_runner_order { const struct stack_builder *b; const uint32_t *process_of; };
int stack_order_runners(const void *a, const void *b, void *order); /* compares numbers of threads, for qsort_r */
/* Returns where the number of a thread + 1 is stored; fresh: it was unknown, and 0 is there. */
uint64_t *stack_runner_place(struct stack_builder *, int32_t pid, int32_t tid, uint32_t stream, bool *fresh);

/* Returns the stream of that identity, or a new one. */
uint32_t stack_find_stream(struct stack_builder *, const struct stack_stream *);

/* calls.c */
void stack_enter(struct stack_builder *, uint32_t thread, int64_t ts, const struct stack_frame *);
/* site: 0: unknown */
void stack_exit(struct stack_builder *, uint32_t thread, int64_t ts, uint64_t address, uint64_t site,
    bool has_address);
void stack_lose(struct stack_builder *, const struct ctf_event *loss);
/* Takes an event of the stream; only to be called while there are windows. */
void stack_watch(struct stack_builder *, uint32_t stream, int64_t ts);
/* Ends all that is open at the end of the trace. */
void stack_finish(struct stack_builder *);
/* Ends all calls of the process without an exit. */
void stack_end_calls(struct stack_builder *, uint32_t owner, int64_t ts);

/* memory.c */
void stack_allocate(struct stack_builder *, uint32_t thread, int64_t ts, uint64_t address, uint64_t bytes);
void stack_release(struct stack_builder *, uint32_t thread, int64_t ts, uint64_t address);
/* Releases all memory of the process' threads. */
void stack_release_all(struct stack_builder *, uint32_t owner, int64_t ts);

#endif
