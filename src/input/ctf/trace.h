/* SPDX-License-Identifier: MIT */
/* Private to ctf: open trace. Immutable once open, except for the counts, which are made once under a lock. */
#ifndef WEFT_CTF_TRACE_H
#define WEFT_CTF_TRACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "ctf/decode.h"
#include "ctf/made.h"
#include "ctf/metadata.h"

/* Problems by text; equal texts are counted, the number of different ones is limited. A remark is harmless. */
struct ctf_problems { VEC(struct ctf_problem) list; };
void ctf_problem_add(struct ctf_problems *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ctf_remark_add(struct ctf_problems *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a problem whose text changes, or changes its text. *number: identifies it; 0 before it is added. */
void ctf_problem_renew(struct ctf_problems *, uint32_t *number, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void ctf_problems_fini(struct ctf_problems *);

enum {
    CTF_PACKET_TIMED = 1,    /* begin and end are known */
    CTF_PACKET_OPEN_END = 2, /* events may lie after `end` */
    CTF_PACKET_UNCLOSED = 4, /* the tracer did not write the content's size */
    CTF_PACKET_HAS_SEQ = 8, CTF_PACKET_HAS_DISCARDED = 16,
    CTF_PACKET_MENDED = 32,  /* `end` was derived from its events, or from the next packet */
    CTF_PACKET_LOST_BEFORE = 64 /* its losses lie before its begin */
};

struct ctf_packet {
    uint64_t offset;         /* bytes in its file, or in the data fed to its line */
    uint64_t content_bits;   /* end of the content, within the file */
    int64_t begin, end;      /* ns */
    uint64_t seq, discarded; /* counters as recorded */
    /* Known once the trace is counted; fed packets are never counted: */
    union {
        uint64_t items;      /* events and losses */
        uint64_t digest;     /* fed: hash of its bytes */
    };
    union {
        uint64_t before;     /* items of the packets before it in its track */
        uint8_t *bytes;      /* fed: copy of its bytes; NULL after reading */
    };
    int64_t first, last;     /* least and greatest time of its items; without items: greatest before it in its track */
    uint64_t cycles;         /* clock before it; for packets without begin time only known after counting */
    uint32_t mark, marks;    /* range of the stream's marks */
    uint32_t file;
    uint32_t loss;           /* first of its losses among the stream's */
    int32_t cpu;             /* -1: unknown */
    uint8_t n_losses, flags, track;
};

enum { CTF_TRACKS_MAX = 8 };
/* Additional state of a stream that may still grow (grow.c). */
struct ctf_stream_growth {
    struct ctf_packet next;  /* last packet, while its end depends on the one after it */
    bool has_next;
    int64_t ends[CTF_TRACKS_MAX]; /* ends of the tracks' last packets */
    int64_t quiet;           /* time declared quiet: losses lie there at the earliest */
    uint64_t gone;           /* number of packets freed in front of `packets`, after reading */
    size_t freed;            /* number of `packets` whose bytes are freed */
};

/* Steps back: packets of a stream that begin before the previously recorded one in their file. */
struct ctf_steps_back {
    uint64_t count, first_at; /* first_at: byte in its file */
    int64_t most_ns;         /* greatest step */
    const char *path;        /* file of the first one */
    uint32_t problem;        /* number of the problem that reports them; 0: none yet */
    bool has_last;
    uint32_t last_file;      /* file of the packet recorded last */
    int64_t last_begin;
};

struct ctf_loss_item { struct ctf_loss loss; int64_t ts; uint8_t item; };

struct ctf_stream {
    const struct ctf_stream_plan *plan;
    const char *name;        /* file name without directory */
    const char *path;        /* path of the first file */
    uint64_t instance_id;
    bool has_instance, timed;
    bool begins_ascend, ends_ascend; /* order of its packets, as numbered */
    bool disorder;           /* known once counted: times step back within a track */
    int32_t cpu;
    uint32_t tracks;         /* packets that overlap in time lie in different tracks: each track is in time order */
    VEC(struct ctf_packet) packets;
    VEC(struct ctf_loss_item) losses;
    struct ctf_mark *marks;  /* known once counted; owned */
    uint64_t lost_events, lost_packets, bytes;
    int64_t begin, end;
    struct ctf_steps_back back;
    uint64_t cycles;         /* clock so far, while its packets are found, if begin times have less than 64 bits */
    struct ctf_stream_growth *growth; /* NULL: complete; owned */
};

struct ctf_known; struct ctf_known_text; struct ctf_known_finder; /* ctf/known.h */

/* Missing file of a stream whose index exists. */
struct ctf_absence { struct ctf_absent is; const char *name; };

/* Directory of a trace. borrowed: its metadata are those of the piece before, byte by byte. own: no other trace shares
 * its schema, because it was made as a continuation of the one before. */
struct ctf_piece {
    char *dir;
    struct ctf_metadata md;
    bool parsed, own, borrowed;
    uint64_t inode, metadata_bytes;
    struct ctf_known *known; /* catalogue entry while the trace is opened, or NULL */
    uint64_t declared;       /* hash of the declarations for reading its packets, except the clock's rate (extend.c) */
};
/* Files that are too many to be kept mapped, and files that grew, have no map: each reader of a packet holds a copy of
 * it. A fed line (feed.c) is a file without data on disk. */
enum { CTF_FILE_SEEN, CTF_FILE_UNSEEN, CTF_FILE_OTHER }; /* UNSEEN: not yet compared with its catalogue entry */
struct ctf_file {
    char *path;
    const char *name;
    uint32_t piece;
    bool kept, fed, made;    /* made: its packets are; `map` is the reader's (made.h) */
    atomic_uchar state;      /* set under the trace's lock; then `kept` and `map` stay */
    uint64_t size, inode;
    uint64_t identity;       /* hash of its name, size and time of modification */
    uint64_t was_identity, was_size; /* state before data was appended (appended.c); size 0: nothing was */
    uint64_t scanned;        /* bytes already searched for packets */
    struct file_map map;
};

/* Key of a stream: see ctf_stream_for. */
struct ctf_stream_key { const struct ctf_stream_plan *plan; uint64_t instance_id; bool has_instance; int32_t cpu; };

/* Tracers known to write wrong times: events before or after their packet, packets without end. */
struct ctf_quirks { bool event_after_packet, no_end, event_before_packet; };

/* Counts that a trace is given to use: the callback that provides them, then the counts. */
struct ctf_recall {
    void (*give)(void *arg, struct ctf_counts *); /* NULL: no counts */
    void (*forget)(void *arg);
    void *arg;
    struct ctf_counts counts; /* owned */
    bool asked;
};

struct ctf_trace {
    struct ctf_schemas *schemas, *own_schemas; /* own: used if the caller gave none */
    VEC(struct ctf_piece) pieces;
    char *text; size_t text_n; uint64_t text_hash; /* metadata of the last piece that has its own; owned */
    const struct ctf_known_text *known_text; /* copy of that text in the catalogue, or NULL */
    struct ctf_known_finder *finder; /* set while files and packets for a catalogue are found */
    VEC(struct ctf_touched { uint32_t stream; size_t packets; uint64_t bytes; }) touched; /* file's streams before it */
    size_t main;             /* number of the piece whose metadata is used for all */
    const struct ctf_schema *schema;
    const struct ctf_op *packet_header;
    const struct ctf_stream_plan **plans; /* plans by position in schema->streams */
    VEC(struct ctf_file) files;
    VEC(struct ctf_stream) streams;
    struct map stream_by;    /* hash of a stream's key -> first in streams + 1; used while packets are found */
    bool growing;            /* data may still come */
    bool appending;          /* packets found are appended to existing ones (grow.c) */
    bool found_late;         /* packets found begin before existing ones */
    bool has_grown;          /* files were appended to since fingerprints may have been made */
    size_t newest, before_newest; /* pieces with the latest packets; SIZE_MAX: none */
    struct map piece_by;     /* followed traces: hash of the directory -> piece + 1, or 1 if it moved */
    bool fed, read;          /* fed: its packets come from a feed; read: a merge reads it */
    struct ctf_maker maker;  /* zeroed but for traces whose packets are made */
    bool still;              /* declarations of another trace, without its packets (still.c) */
    int64_t until;           /* growing traces: nothing more comes before this time, ns */
    uint64_t version;        /* growing traces: number of changes */
    int64_t quiet, late;     /* quiet time of the line while it is fed; a packet that begins before `late` is late */
    struct ctf_quirks quirks;
    VEC(struct ctf_piece) outgrown; /* extended metadata: their classes are still used */
    struct ctf_problems problems;
    VEC(struct ctf_absence) absences;
    VEC(struct ctf_absent) absent; /* intervals in which a CPU's stream is missing */
    uint64_t fingerprint;
    struct err why;          /* reason, while opening, why a packet could not be read; else code 0 */
    struct arena arena;
    pthread_mutex_t lock;     /* guards the counts */
    pthread_mutex_t counting; /* held while the trace is read for the counts; `lock` only while they are stored */
    struct ctf_recall recall; /* guarded by `counting` */
    atomic_bool counted;
    atomic_bool misled;      /* a file differs from its catalogue entry */
};

/* packets.c: finds the packets of one file and adds them to the trace's streams. Unreadable data are problems. An error
 * is a system limit (ERR_NOMEM, ERR_LIMIT) or a file that changes. */
int ctf_packets_find(struct ctf_trace *, uint32_t file, struct err *e);
/* Returns the stream for such packets of a file; adds one if there is none. */
struct ctf_stream *ctf_stream_for(struct ctf_trace *, const struct ctf_file *, const struct ctf_stream_key *);
/* Rebuilds the index of streams before more packets are found. */
void ctf_streams_find_again(struct ctf_trace *);
/* packets_finish.c: sorts packets, drops duplicates, corrects times that tracers are known to write wrong, finds losses
 * and tracks. Errors: as above. */
int ctf_packets_finish(struct ctf_trace *, struct err *e);
/* Finishes one packet that comes after the others of its stream (grow.c). */
void ctf_packet_append(struct ctf_trace *, struct ctf_stream *, struct ctf_packet *);
/* Declares the stream's last packet complete, so that it waits for nothing. */
void ctf_stream_flush(struct ctf_trace *, struct ctf_stream *);
struct ctf_stream_growth *ctf_stream_growth_new(void);
/* Notes whether packet i keeps the order of times. */
static inline void ctf_stream_note_order(struct ctf_stream *s, size_t i)
{
    const struct ctf_packet *p = &s->packets.v[i];
    s->begins_ascend &= i == 0 || p[-1].begin <= p->begin;
    s->ends_ascend &= i == 0 || p[-1].end <= p->end;
}
/* Returns the last packet known so far; NULL: none. */
static inline const struct ctf_packet *ctf_stream_last(const struct ctf_stream *s)
{
    if (s->growth && s->growth->has_next)
        return &s->growth->next;
    return s->packets.n ? &s->packets.v[s->packets.n - 1] : NULL;
}
/* Frees packets that all readers have passed: `passed` packets. Returns how many are removed from the front of
 * `packets`; *losses: how many losses. */
size_t ctf_stream_let_go(struct ctf_stream *, size_t passed, size_t *losses);
/* Parts of packets_finish.c shared by both ways. */
struct ctf_quirks ctf_quirks_of(const struct ctf_trace *);
static inline bool ctf_packet_waits(struct ctf_quirks q, const struct ctf_packet *p)
{
    return p->flags & CTF_PACKET_OPEN_END || q.event_after_packet || q.event_before_packet;
}
/* Returns whether the packet is a copy of one of the n, sorted by begin. Reports a copy in the same directory. */
bool ctf_packet_is_copy(struct ctf_trace *, const struct ctf_packet *, const struct ctf_packet *, size_t n);
void ctf_streams_drop_copies(struct ctf_trace *); /* copied files, before packets are sorted */
void ctf_packet_mend_begin(struct ctf_trace *, const struct ctf_stream *, struct ctf_packet *,
    struct ctf_packet *before);
void ctf_packet_mend_end(struct ctf_trace *, const struct ctf_stream *, struct ctf_packet *,
    const struct ctf_packet *next);
void ctf_packet_losses(struct ctf_stream *, size_t i);
/* Derives losses, tracks, begin and end from the packets and their order. */
void ctf_stream_settle(struct ctf_stream *);
int ctf_packet_by_time(const void *, const void *); /* qsort comparison */
/* Returns whether the packet, which is no copy, steps back. Packets come in the order of recording. */
bool ctf_stream_steps_back(struct ctf_trace *, struct ctf_stream *, const struct ctf_packet *);
void ctf_stream_tell_steps(struct ctf_trace *, struct ctf_stream *);
void ctf_packet_track(struct ctf_stream *, struct ctf_packet *, int64_t ends[CTF_TRACKS_MAX]);
/* Comparison of streams at equal times, as in babeltrace2. */
int ctf_stream_order(const void *a, const void *b);
/* open.c: returns an empty trace; packets can be found once it has metadata. */
struct ctf_trace *ctf_trace_new(struct ctf_schemas *);
/* Adds a directory. `known`: its catalogue entry, which is used or filled; NULL: none. */
int ctf_trace_add_piece(struct ctf_trace *, const char *dir, struct ctf_known *known, struct err *e);
uint64_t ctf_file_identity(const char *name, const struct stat *);
/* Lists the files of a piece that are not known yet. */
int ctf_trace_list(struct ctf_trace *, uint32_t piece, struct err *e);
/* follow.c: notes that all existing data were found, and that more is to come. */
void ctf_trace_followed(struct ctf_trace *);
void ctf_trace_plan(struct ctf_trace *);
/* extend.c: makes the metadata of a piece those of the trace; classes keep their numbers and places. ERR_FORMAT if
 * they contradict; then nothing changed and `md` stays the caller's. Else takes `md` over, or frees it if it adds
 * nothing. */
int ctf_trace_extend(struct ctf_trace *, uint32_t piece, struct ctf_metadata *md, struct err *e);
/* Sets `declared` of the pieces from this one on. */
void ctf_pieces_declare(struct ctf_trace *, size_t from);
/* packets.c: finds packets of a mapped file in the part not scanned yet. */
void ctf_packets_scan(struct ctf_trace *, uint32_t file);
/* Adds the packets of `n` fed bytes, with FILE_COPY_SPARE_BYTES readable after them. */
void ctf_packets_feed(struct ctf_trace *, uint32_t file, const uint8_t *, size_t n);
/* LTTng index file: entries for the packets of a file of `file_bytes` bytes. False if it does not fit the file. */
struct ctf_index_entry {
    uint64_t offset, packet_bits, content_bits, begin, end, discarded, stream_id, instance_id, seq;
};
struct ctf_index { VEC(struct ctf_index_entry) entries; bool has_instance_and_seq; };
enum { CTF_INDEX_HEAD_BYTES = 16 };
bool ctf_index_parse(const uint8_t *data, size_t n, uint64_t file_bytes, struct ctf_index *out);
/* Returns the size of the file that an index file belongs to, according to the index; 0: implausible. */
uint64_t ctf_index_file_bytes(const uint8_t *data, size_t n);
/* absent.c: finds index files of a piece without their stream files. */
void ctf_absences_find(struct ctf_trace *, uint32_t piece);
/* Finds and reports further absences, after all packets are found and finished. */
void ctf_absences_finish(struct ctf_trace *);

/* Returns the clock for a piece's times of the class; NULL: none, or undeclared. */
const struct ctf_clock *ctf_trace_clock_of(const struct ctf_trace *, uint32_t piece, const struct ctf_stream_class *);
struct ctf_clock_rate ctf_trace_rate(const struct ctf_trace *, uint32_t piece, const struct ctf_stream_class *);
/* Returns the packet's bytes. `window` holds them if the file is not kept mapped; its previous contents are freed, and
 * the caller closes it. NULL with the error: no memory, or the file has changed. */
const uint8_t *ctf_packet_data(const struct ctf_trace *, const struct ctf_packet *, struct file_map *window,
    struct err *e);
/* Opens the decoder on a packet's bytes; `d->cycles` continues if packets have no begin time. False: damaged head. */
bool ctf_packet_open(const struct ctf_trace *, const struct ctf_stream *, const struct ctf_packet *,
    const uint8_t *data, struct ctf_decoder *);
/* Returns whether only events give the stream's begin and end. */
static inline bool ctf_stream_untimed(const struct ctf_stream *s) { return !s->timed && s->plan->sc->clock >= 0; }
/* Returns whether the packet's file has changed since it was opened. To be checked after decoding. */
static inline bool ctf_packet_lost(const struct ctf_trace *t, const struct ctf_packet *p)
{
    return file_map_lost(&t->files.v[p->file].map);
}
/* Reports, for users, the reason for which the decoder stopped, and odd times. */
void ctf_packet_problem(const struct ctf_trace *, const struct ctf_packet *, const struct ctf_decoder *,
    struct ctf_problems *);
/* count.c: counts items per packet and finds times, once. */
void ctf_trace_count(const struct ctf_trace *);

#endif
