/* Private to ctf: an open trace. Immutable once open, but for the counts, which are made once under a lock. */
#ifndef WEFT_CTF_TRACE_H
#define WEFT_CTF_TRACE_H

#include <pthread.h>
#include <stdatomic.h>

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
void ctf_problems_fini(struct ctf_problems *);

enum {
    CTF_PACKET_TIMED = 1,    /* begin and end are known */
    CTF_PACKET_OPEN_END = 2, /* events may lie behind `end` */
    CTF_PACKET_UNCLOSED = 4, /* the tracer did not get to write its content's size */
    CTF_PACKET_HAS_SEQ = 8, CTF_PACKET_HAS_DISCARDED = 16
};

struct ctf_packet {
    uint64_t offset;         /* bytes in its file */
    uint64_t content_bits;   /* never beyond the file */
    int64_t begin, end;      /* ns */
    uint64_t seq, discarded; /* counters as recorded */
    /* Known once the trace is counted: */
    uint64_t items, before;  /* events and losses; those of the packets before it in its track */
    int64_t first, last;     /* least and greatest time of its items; without any: greatest before it in its track */
    uint64_t cycles;         /* the clock before it; of packets without begin time not before it is counted */
    uint32_t mark, marks;    /* its marks: the stream's marks from here */
    uint32_t file;
    uint32_t loss;           /* its losses: the stream's losses from here */
    int32_t cpu;             /* -1: none */
    uint8_t n_losses, flags, track;
};

struct ctf_loss_item { struct ctf_loss loss; int64_t ts; uint8_t item; };

struct ctf_stream {
    const struct ctf_stream_plan *plan;
    const char *name;        /* file name without directory */
    const char *path;        /* of the first file */
    uint64_t instance_id;
    bool has_instance, timed;
    bool disorder;           /* known once counted: times step back within a track */
    int32_t cpu;
    uint32_t tracks;         /* packets that overlap in time lie in different tracks: each track is in time order */
    VEC(struct ctf_packet) packets;
    VEC(struct ctf_loss_item) losses;
    struct ctf_mark *marks;  /* known once counted; owned */
    uint64_t lost_events, lost_packets, bytes;
    int64_t begin, end;
    uint64_t cycles;         /* while its packets are found, if begin times have less than 64 bits: the clock so far */
};

struct ctf_piece { char *dir; struct ctf_metadata md; bool parsed; };
/* Files that are too many to be kept mapped have no map: whoever reads a packet of theirs holds a copy of it. */
struct ctf_file { char *path; const char *name; uint32_t piece; bool kept; uint64_t size; struct file_map map; };

struct ctf_trace {
    struct ctf_schemas *schemas, *own_schemas; /* own: when the caller gave none */
    VEC(struct ctf_piece) pieces;
    size_t main;             /* the piece whose metadata is used for all */
    const struct ctf_schema *schema;
    const struct ctf_op *packet_header;
    const struct ctf_stream_plan **plans; /* by position in schema->streams */
    VEC(struct ctf_file) files;
    VEC(struct ctf_stream) streams;
    struct map stream_by;    /* hash of what tells streams apart -> first in streams + 1; while packets are found */
    struct ctf_problems problems;
    uint64_t fingerprint;
    struct err why;          /* while it is opened: code 0, or why a packet could not be had */
    struct arena arena;
    pthread_mutex_t lock;     /* of the counts */
    pthread_mutex_t counting; /* held while the trace is read for the counts; `lock` only while they are stored */
    atomic_bool counted;
};

/* packets.c: finds the packets of one file and adds them to the trace's streams. What cannot be read is a problem; an
 * error is a limit of the system (ERR_NOMEM, ERR_LIMIT) or a file that changes. */
int ctf_packets_find(struct ctf_trace *, uint32_t file, struct err *e);
/* packets.c: sorts, drops what was recorded twice, corrects times that tracers are known to write wrong, finds losses
 * and tracks. Errors: as above. */
int ctf_packets_finish(struct ctf_trace *, struct err *e);
/* What an LTTng index file says of the packets of a file of `file_bytes` bytes. False when it does not fit the file. */
struct ctf_index_entry {
    uint64_t offset, packet_bits, content_bits, begin, end, discarded, stream_id, instance_id, seq;
};
struct ctf_index { VEC(struct ctf_index_entry) entries; bool has_instance_and_seq; };
bool ctf_index_parse(const uint8_t *data, size_t n, uint64_t file_bytes, struct ctf_index *out);

const uint8_t *ctf_trace_uuid(const struct ctf_trace *); /* 16 bytes, or NULL */
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
