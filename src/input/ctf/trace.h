/* SPDX-License-Identifier: MIT */
/* Private to ctf: an open trace. Immutable once open, but for the counts, which are made once under a lock. */
#ifndef WEFT_CTF_TRACE_H
#define WEFT_CTF_TRACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "ctf/decode.h"
#include "ctf/metadata.h"

/* Problems by text; equal texts are counted, the number of different ones is bounded. */
struct ctf_problems { VEC(struct ctf_problem) list; };
void ctf_problem_add(struct ctf_problems *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for what is harmless. */
void ctf_remark_add(struct ctf_problems *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a problem whose text changes, or changes its text. *number: which one it is; 0 before it is added. */
void ctf_problem_renew(struct ctf_problems *, uint32_t *number, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void ctf_problems_fini(struct ctf_problems *);

enum {
    CTF_PACKET_TIMED = 1,    /* begin and end are known */
    CTF_PACKET_OPEN_END = 2, /* events may lie behind `end` */
    CTF_PACKET_UNCLOSED = 4, /* the tracer did not get to write its content's size */
    CTF_PACKET_HAS_SEQ = 8, CTF_PACKET_HAS_DISCARDED = 16,
    CTF_PACKET_MENDED = 32   /* `end` was found by its events, or by the packet behind it */
};

struct ctf_packet {
    uint64_t offset;         /* bytes in its file, or in what was fed of its line */
    uint64_t content_bits;   /* never beyond the file */
    int64_t begin, end;      /* ns */
    uint64_t seq, discarded; /* counters as recorded */
    /* Known once the trace is counted; what is fed is never counted: */
    union {
        uint64_t items;      /* events and losses */
        uint64_t digest;     /* of what is fed: hash of its bytes */
    };
    union {
        uint64_t before;     /* those of the packets before it in its track */
        uint8_t *bytes;      /* of what is fed: a copy; NULL once it is read */
    };
    int64_t first, last;     /* least and greatest time of its items; without any: greatest before it in its track */
    uint64_t cycles;         /* the clock before it; of packets without begin time not before it is counted */
    uint32_t mark, marks;    /* its marks: the stream's marks from here */
    uint32_t file;
    uint32_t loss;           /* its losses: the stream's losses from here */
    int32_t cpu;             /* -1: none */
    uint8_t n_losses, flags, track;
};

enum { CTF_TRACKS_MAX = 8 };
/* What a stream that may still grow has besides (grow.c). */
struct ctf_stream_growth {
    struct ctf_packet next;  /* the last one, while only the one after it can tell when it ends */
    bool has_next;
    int64_t ends[CTF_TRACKS_MAX]; /* of the last packets of the tracks */
    int64_t quiet;           /* it was said that nothing comes before: losses lie there at the earliest */
    uint64_t gone;           /* packets before those of `packets`: they are read and let go */
    size_t freed;            /* so many of `packets` have no bytes any more */
};

/* Packets of a stream that begin before the one that was recorded before them in their file. */
struct ctf_steps_back {
    uint64_t count, first_at; /* first_at: byte in its file */
    int64_t most_ns;         /* the greatest step */
    const char *path;        /* the file of the first one */
    uint32_t problem;        /* what tells of them; 0: nothing yet */
    bool has_last;
    uint32_t last_file;      /* of the packet recorded last */
    int64_t last_begin;
};

struct ctf_loss_item { struct ctf_loss loss; int64_t ts; uint8_t item; };

struct ctf_stream {
    const struct ctf_stream_plan *plan;
    const char *name;        /* file name without directory */
    const char *path;        /* of the first file */
    uint64_t instance_id;
    bool has_instance, timed;
    bool begins_ascend, ends_ascend; /* of its packets, as they are numbered */
    bool disorder;           /* known once counted: times step back within a track */
    int32_t cpu;
    uint32_t tracks;         /* packets that overlap in time lie in different tracks: each track is in time order */
    VEC(struct ctf_packet) packets;
    VEC(struct ctf_loss_item) losses;
    struct ctf_mark *marks;  /* known once counted; owned */
    uint64_t lost_events, lost_packets, bytes;
    int64_t begin, end;
    struct ctf_steps_back back;
    uint64_t cycles;         /* while its packets are found, if begin times have less than 64 bits: the clock so far */
    struct ctf_stream_growth *growth; /* NULL: it is whole; owned */
};

struct ctf_known; struct ctf_known_text; struct ctf_known_finder; /* ctf/known.h */

/* A file of a stream that is not there, though its index is. */
struct ctf_absence { struct ctf_absent is; const char *name; };

/* borrowed: its metadata are those of the piece before, byte by byte. own: its schema is no other trace's, because it
 * was made to go on from the one before. */
struct ctf_piece {
    char *dir;
    struct ctf_metadata md;
    bool parsed, own, borrowed;
    uint64_t inode, metadata_bytes;
    struct ctf_known *known; /* while it is opened, or NULL */
    uint64_t declared;       /* hash of what says how its packets are read, but for the clock's rate (extend.c) */
};
/* Files that are too many to be kept mapped, and those that grew, have no map: whoever reads a packet of theirs holds a
 * copy of it. A line that is fed (feed.c) is a file without anything on disk. */
enum { CTF_FILE_SEEN, CTF_FILE_UNSEEN, CTF_FILE_OTHER }; /* UNSEEN: what is known of it was not compared yet */
struct ctf_file {
    char *path;
    const char *name;
    uint32_t piece;
    bool kept, fed;
    atomic_uchar state;      /* set under the trace's lock; then `kept` and `map` stay */
    uint64_t size, inode;
    uint64_t identity;       /* hash of its name, size and time of modification */
    uint64_t was_identity, was_size; /* before it was appended to (appended.c); size 0: it was not */
    uint64_t scanned;        /* bytes in which packets were looked for */
    struct file_map map;
};

/* What tells streams apart: see ctf_stream_for. */
struct ctf_stream_key { const struct ctf_stream_plan *plan; uint64_t instance_id; bool has_instance; int32_t cpu; };

/* Tracers known to write times that are not: events before or behind their packet, packets without end. */
struct ctf_quirks { bool event_after_packet, no_end, event_before_packet; };

/* Counts that a trace is told to remember: where they are to be had, and once they were asked for, they. */
struct ctf_recall {
    void (*give)(void *arg, struct ctf_counts *); /* NULL: nothing is remembered */
    void (*forget)(void *arg);
    void *arg;
    struct ctf_counts counts; /* owned */
    bool asked;
};

struct ctf_trace {
    struct ctf_schemas *schemas, *own_schemas; /* own: when the caller gave none */
    VEC(struct ctf_piece) pieces;
    char *text; size_t text_n; uint64_t text_hash; /* metadata of the last piece that has its own; owned */
    const struct ctf_known_text *known_text; /* that text in the catalogue that it is opened with, or NULL */
    struct ctf_known_finder *finder; /* while it finds files and packets for a catalogue */
    VEC(struct ctf_touched { uint32_t stream; size_t packets; uint64_t bytes; }) touched; /* by a file, before it */
    size_t main;             /* the piece whose metadata is used for all */
    const struct ctf_schema *schema;
    const struct ctf_op *packet_header;
    const struct ctf_stream_plan **plans; /* by position in schema->streams */
    VEC(struct ctf_file) files;
    VEC(struct ctf_stream) streams;
    struct map stream_by;    /* hash of what tells streams apart -> first in streams + 1; while packets are found */
    bool growing;            /* more may come */
    bool appending;          /* packets that are found go behind those that are there (grow.c) */
    bool found_late;         /* packets that begin before those that were there */
    bool has_grown;          /* files were appended to since fingerprints may have been made of it */
    size_t newest, before_newest; /* pieces with the latest packets; SIZE_MAX: none */
    struct map piece_by;     /* of a trace that is followed: hash of the directory -> piece + 1, or 1 where it moved */
    bool fed, read;          /* its packets come from a feed; which a merge reads */
    bool still;              /* the declarations of another one, without its packets (still.c) */
    int64_t until;           /* of one that grows: nothing comes before this time any more, ns */
    uint64_t version;        /* of one that grows: counts what was added */
    int64_t quiet, late;     /* while packets are fed: their line's; one that begins before `late` comes too late */
    struct ctf_quirks quirks;
    VEC(struct ctf_piece) outgrown; /* metadata that were extended: their classes are still used */
    struct ctf_problems problems;
    VEC(struct ctf_absence) absences;
    VEC(struct ctf_absent) absent; /* those that say what is not known of a CPU */
    uint64_t fingerprint;
    struct err why;          /* while it is opened: code 0, or why a packet could not be had */
    struct arena arena;
    pthread_mutex_t lock;     /* of the counts */
    pthread_mutex_t counting; /* held while the trace is read for the counts; `lock` only while they are stored */
    struct ctf_recall recall; /* under `counting` */
    atomic_bool counted;
    atomic_bool misled;      /* a file was not what a catalogue said */
};

/* packets.c: finds the packets of one file and adds them to the trace's streams. What cannot be read is a problem; an
 * error is a limit of the system (ERR_NOMEM, ERR_LIMIT) or a file that changes. */
int ctf_packets_find(struct ctf_trace *, uint32_t file, struct err *e);
/* The stream of these packets of a file, which is a new one if none is so. */
struct ctf_stream *ctf_stream_for(struct ctf_trace *, const struct ctf_file *, const struct ctf_stream_key *);
/* Once all were found, and more are to be: which streams there are. */
void ctf_streams_find_again(struct ctf_trace *);
/* packets_finish.c: sorts, drops what was recorded twice, corrects times that tracers are known to write wrong, finds
 * losses and tracks. Errors: as above. */
int ctf_packets_finish(struct ctf_trace *, struct err *e);
/* The same for one packet that comes behind those of its stream (grow.c). */
void ctf_packet_append(struct ctf_trace *, struct ctf_stream *, struct ctf_packet *);
/* The stream's last packet is whole, as far as is known: nothing is waited for. */
void ctf_stream_flush(struct ctf_trace *, struct ctf_stream *);
struct ctf_stream_growth *ctf_stream_growth_new(void);
/* Notes whether packet i keeps the order of times. */
static inline void ctf_stream_note_order(struct ctf_stream *s, size_t i)
{
    const struct ctf_packet *p = &s->packets.v[i];
    s->begins_ascend &= i == 0 || p[-1].begin <= p->begin;
    s->ends_ascend &= i == 0 || p[-1].end <= p->end;
}
/* As far as is known; NULL: it has none. */
static inline const struct ctf_packet *ctf_stream_last(const struct ctf_stream *s)
{
    if (s->growth && s->growth->has_next)
        return &s->growth->next;
    return s->packets.n ? &s->packets.v[s->packets.n - 1] : NULL;
}
/* Lets go what all its readers have passed: `passed` packets. Returns how many fewer `packets` has in front, and
 * *losses: how many fewer the losses. */
size_t ctf_stream_let_go(struct ctf_stream *, size_t passed, size_t *losses);
/* The pieces of packets_finish.c that both ways share. */
struct ctf_quirks ctf_quirks_of(const struct ctf_trace *);
static inline bool ctf_packet_waits(struct ctf_quirks q, const struct ctf_packet *p)
{
    return p->flags & CTF_PACKET_OPEN_END || q.event_after_packet || q.event_before_packet;
}
/* Is the packet a copy of one of the n, which are sorted by begin? Tells of one that lies in the same directory. */
bool ctf_packet_is_copy(struct ctf_trace *, const struct ctf_packet *, const struct ctf_packet *, size_t n);
void ctf_packet_mend_begin(struct ctf_trace *, const struct ctf_stream *, struct ctf_packet *,
    struct ctf_packet *before);
void ctf_packet_mend_end(struct ctf_trace *, const struct ctf_stream *, struct ctf_packet *,
    const struct ctf_packet *next);
void ctf_packet_losses(struct ctf_stream *, size_t i);
/* What follows from the packets and their order: losses, tracks, begin and end. */
void ctf_stream_settle(struct ctf_stream *);
int ctf_packet_by_time(const void *, const void *); /* for qsort */
/* A packet that is no copy, in the order of recording: does it step back? */
bool ctf_stream_steps_back(struct ctf_trace *, struct ctf_stream *, const struct ctf_packet *);
void ctf_stream_tell_steps(struct ctf_trace *, struct ctf_stream *);
void ctf_packet_track(struct ctf_stream *, struct ctf_packet *, int64_t ends[CTF_TRACKS_MAX]);
/* As babeltrace2 orders streams at equal times. */
int ctf_stream_order(const void *a, const void *b);
/* open.c: a trace without anything; its packets can be looked for once it has metadata. */
struct ctf_trace *ctf_trace_new(struct ctf_schemas *);
/* `known`: what a catalogue has of it, or gets; NULL: nothing. */
int ctf_trace_add_piece(struct ctf_trace *, const char *dir, struct ctf_known *known, struct err *e);
uint64_t ctf_file_identity(const char *name, const struct stat *);
/* The files of a piece that are not known yet. */
int ctf_trace_list(struct ctf_trace *, uint32_t piece, struct err *e);
/* follow.c: all that there is was found, and more is to come. */
void ctf_trace_followed(struct ctf_trace *);
void ctf_trace_plan(struct ctf_trace *);
/* extend.c: the metadata of a piece become those of the trace, whose classes keep their numbers and places. ERR_FORMAT
 * when they contradict; then all is as it was and `md` is the caller's. Taken over else, or freed: it adds nothing. */
int ctf_trace_extend(struct ctf_trace *, uint32_t piece, struct ctf_metadata *md, struct err *e);
/* Sets what is declared of the pieces from this one on. */
void ctf_pieces_declare(struct ctf_trace *, size_t from);
/* packets.c: the packets of `n` bytes that were fed; readable FILE_COPY_SPARE_BYTES behind. */
/* Those of a mapped file behind what was scanned. */
void ctf_packets_scan(struct ctf_trace *, uint32_t file);
void ctf_packets_feed(struct ctf_trace *, uint32_t file, const uint8_t *, size_t n);
/* What an LTTng index file says of the packets of a file of `file_bytes` bytes. False when it does not fit the file. */
struct ctf_index_entry {
    uint64_t offset, packet_bits, content_bits, begin, end, discarded, stream_id, instance_id, seq;
};
struct ctf_index { VEC(struct ctf_index_entry) entries; bool has_instance_and_seq; };
enum { CTF_INDEX_HEAD_BYTES = 16 };
bool ctf_index_parse(const uint8_t *data, size_t n, uint64_t file_bytes, struct ctf_index *out);
/* The size of the file that an index file belongs to, as it says itself; 0: it makes no sense. */
uint64_t ctf_index_file_bytes(const uint8_t *data, size_t n);
/* absent.c: index files of a piece without their stream files. */
void ctf_absences_find(struct ctf_trace *, uint32_t piece);
/* Once all packets are found and finished: what else is missing; tells of it. */
void ctf_absences_finish(struct ctf_trace *);

/* The clock that a piece's times of the class are by; NULL: none, or one that is not declared. */
const struct ctf_clock *ctf_trace_clock_of(const struct ctf_trace *, uint32_t piece, const struct ctf_stream_class *);
struct ctf_clock_rate ctf_trace_rate(const struct ctf_trace *, uint32_t piece, const struct ctf_stream_class *);
/* The packet's bytes. `window` holds them when the file is not kept mapped: what it held before is given back, and it
 * is the caller's to close. NULL with the error: no memory, or the file is not what it was. */
const uint8_t *ctf_packet_data(const struct ctf_trace *, const struct ctf_packet *, struct file_map *window,
    struct err *e);
/* Opens the decoder on a packet's bytes; `d->cycles` goes on when packets have no begin time. False when its head is
 * damaged. */
bool ctf_packet_open(const struct ctf_trace *, const struct ctf_stream *, const struct ctf_packet *,
    const uint8_t *data, struct ctf_decoder *);
/* Are its events all that says when the stream begins and ends? */
static inline bool ctf_stream_untimed(const struct ctf_stream *s) { return !s->timed && s->plan->sc->clock >= 0; }
/* Is the packet's file no longer what it was when it was opened? To be asked after decoding. */
static inline bool ctf_packet_lost(const struct ctf_trace *t, const struct ctf_packet *p)
{
    return file_map_lost(&t->files.v[p->file].map);
}
/* What stopped the decoder, and what was odd about times, for users. */
void ctf_packet_problem(const struct ctf_trace *, const struct ctf_packet *, const struct ctf_decoder *,
    struct ctf_problems *);
/* count.c: counts items per packet and finds times, once. */
void ctf_trace_count(const struct ctf_trace *);

#endif
