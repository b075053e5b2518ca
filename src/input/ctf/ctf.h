/* SPDX-License-Identifier: MIT */
/* Common Trace Format 1.8 and 2: directories of streams of packets of events.
 *
 * A *trace* here is what one tracer recorded on one machine: one directory with a `metadata` file, or several (rotation
 * archives, overlapping snapshots) that belong together and are read as one. What is open is immutable and may be
 * shared by threads; a merge has one owner. Bad input: what is good is read; the rest is counted and described in
 * `struct ctf_problem`. */
#ifndef WEFT_CTF_CTF_H
#define WEFT_CTF_CTF_H

#include <string.h>

#include "base/err.h"
#include "ctf/types.h"

struct text; /* base/text.h: output buffer */

/* Grows when other times or values are read of the same files: stores that were made of them are made again. */
enum { CTF_RULES_VERSION = 1 };

/* ---- events ---- */

/* For items that are losses, `data` of the event points to one of these. */
struct ctf_loss {
    int64_t begin;           /* ns; end of the packet before */
    int64_t end;             /* ns; end (lost events) or begin (lost packets) of the packet that reports the loss */
    uint64_t count;
    bool begin_known, end_known;
};

/* CPU numbers from here on are no machine's (Linux is built for at most so many): damage. They are given as recorded,
 * and nobody keeps something for each CPU below. */
enum { CTF_MOST_CPUS = 8192 };

/* One event. Borrowed: valid until the next read from the merge that gave it. */
struct ctf_event {
    int64_t ts;              /* ns since the epoch by the trace's clock, or corrected by the merge's map; 0: no clock */
    const uint8_t *data;     /* first byte of the packet; readable up to 8 bytes beyond its content */
    const struct ctf_event_class *cls;
    uint64_t payload_bits;   /* position of the payload from the packet's start, aligned */
    /* Bits from the start of the header, and of the stream event context (unaligned), to payload_bits. */
    uint32_t header_back, context_back;
    uint32_t stream;         /* number of the stream in the merge */
    int32_t cpu;             /* cpu_id of the packet context, -1 when there is none */
};

/* ---- traces ---- */

struct ctf_clock {
    const char *name, *description, *id; /* description may be NULL; id: what streams name it by (1.8: its name) */
    const char *name_space, *uid;   /* CTF 2: with the name, its identity; or NULL */
    uint8_t uuid[16];
    bool has_uuid, absolute;
    uint64_t freq, precision, accuracy; /* Hz, cycles, cycles */
    int64_t offset_s;               /* value 0 is this long after the epoch: offset_s seconds + offset cycles */
    uint64_t offset;
};
struct ctf_env { const char *name; bool is_string; const char *string; int64_t number; };

/* Something wrong with the input that did not stop the reading. harmless: it was all read the same; else something is
 * missing from what is read. */
struct ctf_problem {
    const char *text;
    uint64_t count;
    bool harmless;
    int64_t end;             /* of the packet (ns) whose events it was found in; INT64_MAX: which has no times,
                              * INT64_MIN: it was not found in one */
};

struct ctf_stream_info {
    const char *name;                /* file name of the (first) stream file, e.g. "ch_0" */
    uint64_t class_id, instance_id;
    int32_t cpu;                     /* -1 unknown */
    uint64_t packets, lost_events, lost_packets, bytes;
    int64_t begin, end;              /* ns, of the packets (or of the events where packets have no times) */
};

struct ctf_trace; struct ctf_schemas; /* event declarations parsed once per distinct content and shared; thread-safe */
struct ctf_schemas *ctf_schemas_new(void);
void ctf_schemas_free(struct ctf_schemas *); /* after all traces opened with it */

/* A set of directories that make one trace, sorted by path. */
struct ctf_known; /* private */
/* root: that of the first one found, one with a name if any. known: by directory, what a catalogue (ctf/catalogue.h)
 * has of it, which must live until the group is opened; or NULL. */
struct ctf_group { char **dirs; size_t n, root; struct ctf_known **known; };
/* Where to look: a trace, or a tree of them. Pieces below roots with different names are not joined; NULL joins with
 * any. Set by ctf_discover_all: `found` directories with traces, of which an earlier root has `again` too; why it has
 * none, where `found` is 0. */
struct ctf_root {
    const char *path, *name;
    size_t found, again;
    struct err problem;
    struct ctf_catalogue *catalogue; /* or NULL: what is known of the tree; then gets what is found */
};
/* Finds the traces below `path`, sorted by path; directories of one session's rotation archives and of overlapping
 * snapshots (same trace UUID, host and domain) come as one group. ERR_NOTFOUND when there is none. */
int ctf_discover(const char *path, struct ctf_group **groups, size_t *n, struct err *e);
/* Is there one? Looks no further than to the first; errors as above. */
int ctf_discover_any(const char *path, struct err *e);
/* The same below several roots, whose order comes first. A directory that lies below several of them, or is reached by
 * links, counts once. The problem of the first root when none of them has any. */
int ctf_discover_all(struct ctf_root *roots, size_t n_roots, struct ctf_group **groups, size_t *n, struct err *e);
void ctf_groups_free(struct ctf_group *groups, size_t n);

/* Opens the directories of one group. Reads the metadata and finds the packets (LTTng index files when present and
 * sane, else by scanning packet headers); reads no events. */
int ctf_trace_open(const struct ctf_group *g, struct ctf_schemas *schemas, struct ctf_trace **out, struct err *e);
void ctf_trace_close(struct ctf_trace *);

const char *ctf_trace_path(const struct ctf_trace *);          /* of the first directory */
const uint8_t *ctf_trace_uuid(const struct ctf_trace *);      /* 16 bytes, or NULL */
size_t ctf_trace_directories(const struct ctf_trace *);
const char *ctf_trace_directory(const struct ctf_trace *, size_t i);
size_t ctf_trace_clocks(const struct ctf_trace *, const struct ctf_clock **out);
size_t ctf_trace_env(const struct ctf_trace *, const struct ctf_env **out);
const char *ctf_trace_env_string(const struct ctf_trace *, const char *name); /* or NULL */
size_t ctf_trace_classes(const struct ctf_trace *, const struct ctf_event_class *const **out); /* first 2: the losses */
size_t ctf_trace_streams(const struct ctf_trace *);
void ctf_trace_stream(const struct ctf_trace *, size_t i, struct ctf_stream_info *out);
size_t ctf_trace_problems(const struct ctf_trace *, const struct ctf_problem **out); /* those found while opening */
/* Intervals in which files show that a CPU's stream is missing (ns, both inclusive; cpu -1: unknown). */
struct ctf_absent { int64_t begin, end; int32_t cpu; };
size_t ctf_trace_absent(const struct ctf_trace *, const struct ctf_absent **out);
/* First and last time of the trace's packets in ns; false when it has no events with a clock. */
bool ctf_trace_span(const struct ctf_trace *, int64_t *begin, int64_t *end);
/* ERR_LOST when one of its files was cut off, or could not be read, since it was opened: what was read of it then
 * cannot be believed. Two loads per file. */
int ctf_trace_intact(const struct ctf_trace *, struct err *e);
/* Traces of one boot of a machine have one clock (same id, name and rate), but each session measures anew how far it is
 * from the epoch. Gives the clock of `t` the offset of that of `as`, and moves all times of `t`. Returns by how much
 * (ns); 0: not at all, as for another clock or a trace that grows. Before others use `t`. O(packets) */
int64_t ctf_trace_take_offset(struct ctf_trace *t, const struct ctf_trace *as);
/* The part of a file, of its directory by number, that has the packets of [begin, end] (ns, both inclusive), and one
 * more on each side: these parts of all files, with the metadata of their directories, are a trace of that time.
 * Sorted; free(). O(packets) */
struct ctf_cut { size_t dir; const char *name; uint64_t offset, bytes, file_bytes; };
size_t ctf_trace_cut(const struct ctf_trace *, int64_t begin, int64_t end, struct ctf_cut **out);
/* A number that changes whenever the files that make the trace change (names, sizes, times, metadata). */
uint64_t ctf_trace_fingerprint(const struct ctf_trace *);
/* A number that changes whenever what is read of [begin, end) changes (ns; INT64_MIN/MAX: no limit): its packets, as
 * they lie in files of these names, sizes and times, the losses there, the declarations that they were recorded with.
 * Another archive before or behind changes nothing, nor do other names of directories, numbers of streams and classes.
 * O(streams · log packets) and the packets of the range; all packets of streams where they overlap or have no times. */
uint64_t ctf_trace_range_fingerprint(const struct ctf_trace *, int64_t begin, int64_t end);
/* A file that may still be written to: it has the last packet of a stream. name, tail (its last bytes): hashes. */
struct ctf_file_state { uint64_t name, inode, size, identity, tail; };
/* How these files are, as the trace knows them; the array is the caller's to free. */
size_t ctf_trace_file_states(const struct ctf_trace *, struct ctf_file_state **out);
/* How they were before. Returns whether some of them have only become longer since. Before others use the trace. */
bool ctf_trace_grew_from(struct ctf_trace *, const struct ctf_file_state *, size_t n);
/* The fingerprint that a range had then, if these files lacked nothing of it: what lies before their old ends is taken
 * to be what it was when the heads of its packets are. */
uint64_t ctf_trace_range_before(const struct ctf_trace *, int64_t begin, int64_t end);
/* Have files of the trace become longer, since then or while it was followed? */
bool ctf_trace_has_grown(const struct ctf_trace *);
/* Do ranges that are read one after the other give what one merge of all gives? No where packets of a stream overlap,
 * times step back, or items lie outside of their packets. *certain (or NULL): the trace is counted; before that only
 * the packets are known. O(packets) */
bool ctf_trace_is_ordered(const struct ctf_trace *, bool *certain);

/* ---- reading ---- */

/* Corrects n times of one trace in place (order-preserving). */
typedef void ctf_time_map(void *arg, int64_t *ts, size_t n);

struct ctf_source { struct ctf_trace *trace; ctf_time_map *map; void *map_arg; }; /* map: or NULL */
struct ctf_window { int64_t begin, end; }; /* ns (corrected), end inclusive; INT64_MIN/MAX for no limit */

struct ctf_merge;
/* Items (events and losses) of all streams of all sources in order of time. At equal times, as babeltrace2 orders them:
 * by trace UUID (traces without come last), host name, then source as given; within a trace by stream class and
 * instance id; within a stream by position. Packets of one stream that overlap are merged by time like streams of their
 * own; where times step back inside a packet, the order is that of recording. Streams are numbered through: those of
 * source 0 as ctf_trace_stream numbers them, then those of source 1, ….
 * A loss that begins before the window and ends in it is given at the window's begin. Packets outside the window are
 * not touched: O(streams · log packets) and the items. `only_stream` >= 0 reads one stream of sources[0]. */
int ctf_merge_new(const struct ctf_source *sources, size_t n, struct ctf_window w, int only_stream,
    struct ctf_merge **out, struct err *e);
/* Up to `max` next events into `out`; 0 at the end, and where a file was cut off meanwhile; of traces that grow
 * (ctf/feed.h) also for "no more now". The events stay valid until the next call, or until such a trace grows. Bad
 * packets are skipped and noted. */
size_t ctf_merge_next(struct ctf_merge *, struct ctf_event *out, size_t max);
/* ctf_trace_intact of all that it reads: to be asked before anything that was made of events is shown or saved. */
int ctf_merge_intact(const struct ctf_merge *, struct err *e);
/* Source number of a stream number. */
uint32_t ctf_merge_source(const struct ctf_merge *, uint32_t stream);
/* What was found bad while reading so far. */
size_t ctf_merge_problems(const struct ctf_merge *, const struct ctf_problem **out);
void ctf_merge_free(struct ctf_merge *);

/* Item number n (from 0, in merge order; losses count too) of the sources: positions the merge so that the next one
 * read is n. ERR_NOTFOUND when there are fewer. The first call counts the traces (below); then O(streams · log packets)
 * and the decoding of at most some 1000 items per stream. Merges with a window and streams whose times step back are
 * read from the start instead. */
int ctf_merge_seek(struct ctf_merge *, uint64_t n, struct err *e);

/* Adds to out[i] the events of a source, and those lost, at or before times[i] (as its map gives them; ascending).
 * Counts the trace, if nobody has; then O(n · streams · log packets) and the decoding of at most some 500 items for
 * each time and stream, and of none twice. Streams whose times step back, and traces that grow, are read whole. Ends
 * early once `gone` says so. */
struct ctf_tally { uint64_t events, lost; };
int ctf_source_tally(const struct ctf_source *, const int64_t *times, size_t n, struct ctf_tally *out,
    bool (*gone)(void *arg), void *arg, struct err *e);

/* What random access must know of a trace: how many items each packet has, and marks inside packets. Found by reading
 * packets once: by a merge that reads them anyway (ctf_merge_count), else on first use.
 * A mark: items of the packet before it; where decoding goes on; time of the next item.
 * A packet: its key is a hash of its head, of how it is read, where it lies and of the losses that it reports;
 * cycles: the clock before it, 0 where packets tell their begin; first, last: least and greatest time of its items
 * (ns; first > last: it has none); disorder: times step back in it. Marks: those of the packets in order. */
struct ctf_mark { uint64_t before, pos_bits, cycles; int64_t first; };
struct ctf_packet_count { uint64_t key, items, cycles; int64_t first, last; uint32_t marks, disorder; };
struct ctf_counts { struct ctf_packet_count *packets; size_t n_packets; struct ctf_mark *marks; size_t n_marks; };
/* To be called before anything is read from a merge of one trace without a map: it counts each packet that it reads,
 * and it reads wholly what its window cuts. A trace that it reads without window is counted once it is at the end. */
void ctf_merge_count(struct ctf_merge *);
/* The packets that it has read to their end and that begin before `until` (INT64_MAX: all), but for those that it has
 * told before; arrays are the caller's to free. */
void ctf_merge_counts(struct ctf_merge *, int64_t until, struct ctf_counts *out);
/* Lets the trace remember what was found before, of its packets and of others: `give` is called at most once, when
 * somebody wants to know, by any thread; arrays (of malloc) are the trace's then. What is missing is counted by reading
 * just that. forget(arg): before the trace is closed, or told anew. Before others use the trace. */
void ctf_trace_remember(struct ctf_trace *, void (*give)(void *arg, struct ctf_counts *), void *arg,
    void (*forget)(void *arg));
/* Items of all streams. Reads what of the trace nobody has counted. */
uint64_t ctf_trace_items(const struct ctf_trace *);

/* ---- fields ---- */

/* Where a field of one event class lies; compiled once, read per event. */
struct ctf_access {
    uint8_t mode;            /* 0 absent; whole bytes at a fixed offset: 1 little, 2 big endian; 3 anything else */
    uint8_t bytes;           /* modes 1, 2: 1, 2, 4, 8 */
    bool is_signed;
    int32_t offset_bytes;    /* modes 1, 2: from the payload's start (negative: in a context before it) */
    int32_t offset_bits;     /* mode 3: the same in bits; INT32_MIN when it depends on the data */
    uint8_t scope;
    const struct ctf_event_class *cls;
    const struct ctf_type *type;
    uint16_t path[8];        /* mode 3: field numbers; for a variant the number of the option wanted */
    uint8_t depth;
};
/* Finds a field by a dotted path below a scope ("network_header.ipv4.transport_header.tcp.seq"; names as shown, else as
 * written; variant options are named too). Returns false (mode 0) when the class has none. */
bool ctf_access_find(const struct ctf_event_class *, enum ctf_scope, const char *path, struct ctf_access *out);

/* Value of a field, sign-extended; integers, enums. Mode 3: *present = false when the variant holds another option. */
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
 * NUL. NULL when absent, or text in another encoding than UTF-8, which only visitors get. */
const char *ctf_read_string(const struct ctf_event *, const struct ctf_access *, size_t *n);

/* A generic walk over one scope of an event: one call per leaf and two per compound, in order. */
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
/* Text is line for line what `babeltrace2 --clock-seconds --no-delta` prints for the same traces. */
struct ctf_print *ctf_print_new(const struct ctf_source *sources, size_t n, enum ctf_print_format);
void ctf_print_header(struct ctf_print *, struct text *out);   /* CSV */
/* One line. Losses are lines of their own in JSON and CSV and nothing in text. */
void ctf_print_event(struct ctf_print *, const struct ctf_merge *, const struct ctf_event *, struct text *out);
/* Another name for the host of a source, shown by JSON and CSV (text shows the environment's, as babeltrace2 does). */
void ctf_print_host(struct ctf_print *, size_t source, const char *host);
/* Does the text show a time with the event? Only events of streams with a clock have one. */
bool ctf_print_timed(struct ctf_print *, const struct ctf_merge *, const struct ctf_event *);
void ctf_print_free(struct ctf_print *);

#endif
