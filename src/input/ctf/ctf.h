/* SPDX-License-Identifier: MIT */
/* Common Trace Format 1.8 and 2: directories of streams of packets of events.
 *
 *
 * A *trace* is the recording of one tracer on one machine: one directory with a `metadata` file, or several (rotation
 * archives, overlapping snapshots) that are read as one. An open trace is immutable and may be shared by threads. A
 * merge has one owner. Bad input is skipped, counted and described in `struct ctf_problem`; the rest is read. */
#ifndef WEFT_CTF_CTF_H
#define WEFT_CTF_CTF_H

#include <string.h>

#include "base/err.h"
#include "ctf/types.h"

struct text; /* base/text.h: output buffer */

/* Version of the reading rules: grows when the same files give other times or values, so that stores are rebuilt. */
enum { CTF_RULES_VERSION = 1 };

/* ---- events ---- */

/* Loss; `data` of an event that is a loss points to one. */
struct ctf_loss {
    int64_t begin;           /* ns; end of the packet before */
    int64_t end;             /* ns; end (lost events) or begin (lost packets) of the packet that reports the loss */
    uint64_t count;
    bool begin_known, end_known;
};

/* Limit of CPU numbers (Linux is built for at most this many). Higher ones are a sign of damage: events keep them as
 * recorded, but no per-CPU table is sized by them. */
enum { CTF_MOST_CPUS = 8192 };

/* Event. Borrowed: valid until the next read from the merge that returned it. */
struct ctf_event {
    int64_t ts;              /* ns since the epoch by the trace's clock, or corrected by the merge's map; 0: no clock */
    const uint8_t *data;     /* first byte of the packet; readable up to 8 bytes beyond its content */
    const struct ctf_event_class *cls;
    uint64_t payload_bits;   /* position of the payload from the packet's start, aligned */
    /* Bits from the start of the header, and of the stream event context (unaligned), to payload_bits. */
    uint32_t header_back, context_back;
    uint32_t stream;         /* number of the stream in the merge */
    int32_t cpu;             /* cpu_id of the packet context, -1 if there is none */
};

/* ---- traces ---- */

struct ctf_clock {
    const char *name, *description, *id; /* description may be NULL; id: the streams' name for it (1.8: its name) */
    const char *name_space, *uid;   /* CTF 2: with the name, its identity; or NULL */
    const char *origin;             /* CTF 2: "unix-epoch", another one's name and uid, "" if unknown; 1.8: NULL */
    uint8_t uuid[16];               /* CTF 2: the uid, or a hash of namespace and uid */
    bool has_uuid, absolute, has_error; /* has_error: precision and accuracy are stated (CTF 2) */
    uint64_t freq, precision, accuracy; /* Hz, cycles, cycles */
    int64_t offset_s;               /* value 0 is this long after the epoch: offset_s seconds + offset cycles */
    uint64_t offset;
};
struct ctf_env { const char *name; bool is_string; const char *string; int64_t number; };

/* Problem of the input that did not stop the reading. harmless: nothing is missing from the events read. */
struct ctf_problem {
    const char *text;
    uint64_t count;
    bool harmless;
    int64_t end;             /* end of the packet (ns) in whose events it was found; INT64_MAX: packet without times,
                              * INT64_MIN: not found in a packet */
};

struct ctf_stream_info {
    const char *name;                /* file name of the (first) stream file, e.g. "ch_0" */
    uint64_t class_id, instance_id;
    int32_t cpu;                     /* -1 unknown */
    uint64_t packets, lost_events, lost_packets, bytes;
    int64_t begin, end;              /* ns, of the packets (of the events if packets have no times) */
};

struct ctf_trace; struct ctf_schemas; /* event declarations parsed once per distinct content and shared; thread-safe */
struct ctf_schemas *ctf_schemas_new(void);
void ctf_schemas_free(struct ctf_schemas *); /* call after all traces opened with it are closed */

/* A set of directories that make one trace, sorted by path. */
struct ctf_known; /* private */
/* root: number of the root where the first directory was found. known: by directory, the catalogue entry (must live
 * until the group is opened) or NULL. is_file: dirs[0] is a recording of trace-cmd (ftrace_trace_open). */
struct ctf_group { char **dirs; size_t n, root; struct ctf_known **known; bool is_file; };
/* Place to search: a trace, or a tree of them. Pieces below roots with different names are not joined; NULL joins with
 * any. ctf_discover_all sets `found`: directories with traces, of which an earlier root has `again` too; and `problem`:
 * the reason if `found` is 0. */
struct ctf_root {
    const char *path, *name;
    size_t found, again;
    struct err problem;
    struct ctf_catalogue *catalogue; /* known state of the tree, extended with the findings; or NULL */
};
/* Finds the traces below `path`, sorted by path. Directories of one session's rotation archives and of overlapping
 * snapshots (same trace UUID, host and domain) form one group. ERR_NOTFOUND if there is none. */
int ctf_discover(const char *path, struct ctf_group **groups, size_t *n, struct err *e);
/* Checks whether there is a trace; stops at the first. Errors as above. */
int ctf_discover_any(const char *path, struct err *e);
/* Finds the traces below several roots, sorted by root first. A directory below several of them, or reached by links,
 * counts once. If no root has any, the error is the first root's problem. */
int ctf_discover_all(struct ctf_root *roots, size_t n_roots, struct ctf_group **groups, size_t *n, struct err *e);
void ctf_groups_free(struct ctf_group *groups, size_t n);

/* Opens the directories of one group. Reads the metadata and finds the packets (by LTTng index files if present and
 * sane, else by scanning packet headers). Reads no events. */
int ctf_trace_open(const struct ctf_group *g, struct ctf_schemas *schemas, struct ctf_trace **out, struct err *e);
void ctf_trace_close(struct ctf_trace *);

const char *ctf_trace_path(const struct ctf_trace *);          /* path of the first directory */
const uint8_t *ctf_trace_uuid(const struct ctf_trace *);      /* 16 bytes, or NULL */
size_t ctf_trace_directories(const struct ctf_trace *);
const char *ctf_trace_directory(const struct ctf_trace *, size_t i);
bool ctf_trace_is_file(const struct ctf_trace *); /* its "directory" is a file of another format (ctf/made.h) */
size_t ctf_trace_clocks(const struct ctf_trace *, const struct ctf_clock **out);
size_t ctf_trace_env(const struct ctf_trace *, const struct ctf_env **out);
const char *ctf_trace_env_string(const struct ctf_trace *, const char *name); /* NULL if absent */
size_t ctf_trace_classes(const struct ctf_trace *, const struct ctf_event_class *const **out); /* first 2: the losses */
size_t ctf_trace_streams(const struct ctf_trace *);
void ctf_trace_stream(const struct ctf_trace *, size_t i, struct ctf_stream_info *out);
size_t ctf_trace_problems(const struct ctf_trace *, const struct ctf_problem **out); /* problems found while opening */
/* Intervals in which files show that a CPU's stream is missing (ns, both inclusive; cpu -1: unknown). */
struct ctf_absent { int64_t begin, end; int32_t cpu; };
size_t ctf_trace_absent(const struct ctf_trace *, const struct ctf_absent **out);
/* First and last time of the trace's packets in ns; false if it has no events with a clock. */
bool ctf_trace_span(const struct ctf_trace *, int64_t *begin, int64_t *end);
/* ERR_LOST if one of its files was cut off or became unreadable since it was opened: events read since then cannot be
 * trusted. Two loads per file. */
int ctf_trace_intact(const struct ctf_trace *, struct err *e);
/* Traces of one boot of a machine have one clock (same id, name and rate), but each session measures its offset from
 * the epoch anew. Gives the clock of `t` the offset of the clock of `as`, and shifts all times of `t`. Returns the
 * shift (ns); 0: none, also for another clock or a trace that grows. Before others use `t`. O(packets) */
int64_t ctf_trace_take_offset(struct ctf_trace *t, const struct ctf_trace *as);
/* Part of a file (dir: number of its directory) with the packets of [begin, end] (ns, both inclusive) and one more on
 * each side. These parts of all files, with the metadata of their directories, form a trace of that time. Sorted;
 * free(). O(packets) */
struct ctf_cut { size_t dir; const char *name; uint64_t offset, bytes, file_bytes; };
size_t ctf_trace_cut(const struct ctf_trace *, int64_t begin, int64_t end, struct ctf_cut **out);
/* Number that changes whenever the trace's files change (names, sizes, times, metadata). */
uint64_t ctf_trace_fingerprint(const struct ctf_trace *);
/* Number that changes whenever the result of reading [begin, end) changes (ns; INT64_MIN/MAX: no limit): the packets in
 * files of these names, sizes and times, the losses there, the declarations used for them. It does not depend on
 * archives before or after, names of directories, or numbers of streams and classes. O(streams · log packets) and the
 * packets of the range; all packets of streams that overlap or have no times. */
uint64_t ctf_trace_range_fingerprint(const struct ctf_trace *, int64_t begin, int64_t end);
/* File that may still be written to: it has the last packet of a stream. name, tail (its last bytes): hashes. */
struct ctf_file_state { uint64_t name, inode, size, identity, tail; };
/* Returns the states of these files as the trace knows them; free(). */
size_t ctf_trace_file_states(const struct ctf_trace *, struct ctf_file_state **out);
/* Sets their previous states, before others use the trace. Returns whether some have only become longer since. */
bool ctf_trace_grew_from(struct ctf_trace *, const struct ctf_file_state *, size_t n);
/* Returns the fingerprint that a range had then, if these files lacked nothing of it. Bytes before their old ends are
 * taken as unchanged if the heads of their packets are. */
uint64_t ctf_trace_range_before(const struct ctf_trace *, int64_t begin, int64_t end);
/* Returns whether files of the trace became longer, since then or while it was followed. */
bool ctf_trace_has_grown(const struct ctf_trace *);
/* Returns whether ranges read one after the other give the same as one merge of all. False where packets of a stream
 * overlap, times step back, or items lie outside their packets. *certain (or NULL): set if the trace is counted; before
 * that only the packets are known. O(packets) */
bool ctf_trace_is_ordered(const struct ctf_trace *, bool *certain);

/* ---- reading ---- */

/* Corrects n times of one trace in place (order-preserving). */
typedef void ctf_time_map(void *arg, int64_t *ts, size_t n);

struct ctf_source { struct ctf_trace *trace; ctf_time_map *map; void *map_arg; }; /* map: may be NULL */
struct ctf_window { int64_t begin, end; }; /* ns (corrected), end inclusive; INT64_MIN/MAX: no limit */

struct ctf_merge;
/* Merge of the items (events and losses) of all streams of all sources in order of time. Equal times are ordered as by
 * babeltrace2: by trace UUID (traces without one last), host name, then source as given; within a trace by stream class
 * and instance id; within a stream by position. Overlapping packets of one stream are merged by time like separate
 * streams; where times step back inside a packet, the order is that of recording. Streams are numbered through: those
 * of source 0 as in ctf_trace_stream, then those of source 1, ….
 * A loss that begins before the window and ends in it is returned at the window's begin. Packets outside the window are
 * not read: O(streams · log packets) and the items. `only_stream` >= 0 reads one stream of sources[0]. */
int ctf_merge_new(const struct ctf_source *sources, size_t n, struct ctf_window w, int only_stream,
    struct ctf_merge **out, struct err *e);
/* Reads up to `max` events into `out`. Returns 0 at the end, after a file was cut off, and for traces that grow
 * (ctf/feed.h) also for "no more now". The events are valid until the next call, or until such a trace grows. Bad
 * packets are skipped and noted. */
size_t ctf_merge_next(struct ctf_merge *, struct ctf_event *out, size_t max);
/* Calls ctf_trace_intact for all its traces. To be checked before results of the events are shown or saved. */
int ctf_merge_intact(const struct ctf_merge *, struct err *e);
/* Source number of a stream number. */
uint32_t ctf_merge_source(const struct ctf_merge *, uint32_t stream);
/* Problems found while reading so far. */
size_t ctf_merge_problems(const struct ctf_merge *, const struct ctf_problem **out);
void ctf_merge_free(struct ctf_merge *);

/* Positions the merge so that its next item is number n of the sources (from 0, in merge order; losses count too).
 * ERR_NOTFOUND if there are fewer. The first call counts the traces (below). Later calls cost O(streams · log packets)
 * and the decoding of at most some 1000 items per stream. Merges with a window, and streams whose times step back, are
 * read from the start instead. */
int ctf_merge_seek(struct ctf_merge *, uint64_t n, struct err *e);

/* Adds to out[i] the numbers of events and of lost events of a source at or before times[i] (as its map gives them;
 * ascending). Counts the trace if necessary. Costs O(n · streams · log packets) and the decoding of at most some 500
 * items per time and stream, none twice. Streams whose times step back, and traces that grow, are read completely.
 * Stops early once `gone` returns true. */
struct ctf_tally { uint64_t events, lost; };
int ctf_source_tally(const struct ctf_source *, const int64_t *times, size_t n, struct ctf_tally *out,
    bool (*gone)(void *arg), void *arg, struct err *e);

/* Data for random access to a trace: the number of items of each packet, and marks inside packets. Collected by reading
 * packets once: during a merge that reads them anyway (ctf_merge_count), else on first use.
 * Mark: items of the packet before it; position where decoding goes on; time of the next item.
 * Packet: key: hash of its head, its layout, its place and the losses that it reports; cycles: the clock before it, 0
 * if packets have a begin time; first, last: least and greatest time of its items (ns; first > last: no items);
 * disorder: times step back in it. Marks are stored in order of the packets. */
struct ctf_mark { uint64_t before, pos_bits, cycles; int64_t first; };
struct ctf_packet_count { uint64_t key, items, cycles; int64_t first, last; uint32_t marks, disorder; };
struct ctf_counts { struct ctf_packet_count *packets; size_t n_packets; struct ctf_mark *marks; size_t n_marks; };
/* Makes a merge of one trace without a map count each packet that it reads, and read packets cut by its window
 * completely. Must be called before the first read. A trace read without window is counted at the end. */
void ctf_merge_count(struct ctf_merge *);
/* Returns the counts of the packets read completely that begin before `until` (INT64_MAX: all), without those returned
 * earlier. The caller frees the arrays. */
void ctf_merge_counts(struct ctf_merge *, int64_t until, struct ctf_counts *out);
/* Lets the trace use earlier counts of its packets; counts of other packets are ignored. `give` is called at most once,
 * when counts are needed, by any thread; its arrays (malloc) then belong to the trace. Only missing packets are counted
 * by reading. forget(arg): called before the trace is closed or gets other counts. Before others use the trace. */
void ctf_trace_remember(struct ctf_trace *, void (*give)(void *arg, struct ctf_counts *), void *arg,
    void (*forget)(void *arg));
/* Returns the number of items of all streams. Reads the parts of the trace that are not counted yet. */
uint64_t ctf_trace_items(const struct ctf_trace *);

/* ---- fields ---- */

/* Location of a field in one event class; compiled once, used for each event. */
struct ctf_access {
    uint8_t mode;            /* 0 absent; whole bytes at a fixed offset: 1 little, 2 big endian; 3 anything else */
    uint8_t bytes;           /* modes 1, 2: 1, 2, 4, 8 */
    bool is_signed;
    int32_t offset_bytes;    /* modes 1, 2: from the payload's start (negative: in a context before it) */
    int32_t offset_bits;     /* mode 3: same in bits; INT32_MIN if it depends on the data */
    uint8_t scope;
    const struct ctf_event_class *cls;
    const struct ctf_type *type;
    uint16_t path[8];        /* mode 3: field numbers; for a variant the number of the option wanted */
    uint8_t depth;
};
/* Finds a field by a dotted path below a scope ("network_header.ipv4.transport_header.tcp.seq"; names as shown, else as
 * written; variant options are named too). Returns false (mode 0) if the class has none. */
bool ctf_access_find(const struct ctf_event_class *, enum ctf_scope, const char *path, struct ctf_access *out);

/* Value of a field, sign-extended; integers, enums. Mode 3: *present = false if the variant holds another option. */
int64_t ctf_read_slow(const struct ctf_event *, const struct ctf_access *, bool *present);
static inline int64_t ctf_read_int(const struct ctf_event *ev, const struct ctf_access *a)
{
    const uint8_t *p = ev->data + (ev->payload_bits >> 3) + a->offset_bytes;
    if (a->mode == 1) {
        switch (a->bytes) {
        case 1: return a->is_signed ? (int64_t)(int8_t)*p : (int64_t)*p;
        case 2: { uint16_t v; memcpy(&v, p, 2); return a->is_signed ? (int64_t)(int16_t)v : (int64_t)v; }
        case 4: { uint32_t v; memcpy(&v, p, 4); return a->is_signed ? (int64_t)(int32_t)v : (int64_t)v; }
        default: { int64_t v; memcpy(&v, p, 8); return v; }
        }
    }
    bool present;
    return ctf_read_slow(ev, a, &present);
}
/* Bytes of a string, array or sequence of bytes. Borrowed from the packet, not terminated: *n is the length without
 * NUL. NULL if absent, or if the encoding is not UTF-8: only visitors get such text. */
const char *ctf_read_string(const struct ctf_event *, const struct ctf_access *, size_t *n);

/* Generic walk over one scope of an event: one call per leaf and two per compound, in order. */
struct ctf_value {
    const struct ctf_type *type;
    const char *name;        /* shown name; NULL for elements and at the top */
    union { int64_t i; uint64_t u; double f; } v;   /* ints and enums (by is_signed), floats */
    const char *s; size_t len;                      /* strings and text arrays; len of lists for begin calls */
};
struct ctf_visitor {
    /* int, float, enum, string (UTF-8), wide (a string); arrays and sequences of text count as one string */
    void (*leaf)(void *arg, const struct ctf_value *);
    /* struct, array, sequence, variant (followed by its one field, if it has one) */
    void (*begin)(void *arg, const struct ctf_value *);
    void (*end)(void *arg, const struct ctf_value *);
    void *arg;
};
void ctf_visit(const struct ctf_event *, enum ctf_scope, const struct ctf_visitor *);

/* ---- text ---- */

struct ctf_print;            /* print plans of the classes of a set of sources; one owner */
enum ctf_print_format { CTF_PRINT_TEXT, CTF_PRINT_JSON, CTF_PRINT_CSV };
/* Printer of events. The text format equals `babeltrace2 --clock-seconds --no-delta` line by line. */
struct ctf_print *ctf_print_new(const struct ctf_source *sources, size_t n, enum ctf_print_format);
void ctf_print_header(struct ctf_print *, struct text *out);   /* CSV */
/* Prints one line. Losses have lines of their own in JSON and CSV and none in text. */
void ctf_print_event(struct ctf_print *, const struct ctf_merge *, const struct ctf_event *, struct text *out);
/* Sets another host name for a source in JSON and CSV (text shows the environment's, as babeltrace2 does). */
void ctf_print_host(struct ctf_print *, size_t source, const char *host);
/* Returns whether the text shows a time with the event: only for events of streams with a clock. */
bool ctf_print_timed(struct ctf_print *, const struct ctf_merge *, const struct ctf_event *);
void ctf_print_free(struct ctf_print *);

#endif
