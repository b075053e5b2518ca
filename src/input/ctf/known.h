/* SPDX-License-Identifier: MIT */
/* Private to ctf: what a catalogue knows of the directories of traces, and gives to who finds and opens them. */
#ifndef WEFT_CTF_KNOWN_H
#define WEFT_CTF_KNOWN_H

#include <pthread.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "ctf/catalogue.h"
#include "ctf/trace.h"

/* As they are in the file. */
struct ctf_known_file {
    uint64_t identity;       /* ctf_file_identity */
    uint64_t size, inode;
    int64_t modified_ns;
    uint64_t index;          /* hash of inode, size and time of its index file; 0: it has none */
    uint32_t name;           /* where in the names */
    uint32_t n_runs;
};
/* Packets of one stream in one file. */
struct ctf_known_run {
    uint64_t class_id, instance_id, bytes;
    uint32_t n_packets, has_instance;
    int32_t cpu;
    uint32_t zero;
};
/* As they are found, before they are finished. */
struct ctf_known_packet {
    uint64_t offset, content_bits;
    int64_t begin, end;
    uint64_t seq, discarded;
    int32_t cpu;
    uint32_t flags;
};
struct ctf_known_dir {
    uint64_t inode;
    int64_t modified_ns;
    uint64_t metadata_inode, metadata_size;
    int64_t metadata_modified_ns;
    uint64_t declared;       /* as what its packets were read */
    uint32_t key;            /* where in the names is what makes traces one; 0: nothing does */
    uint32_t text;           /* number of its metadata's text */
    uint32_t n_files, zero;
};

struct ctf_known_text { const char *v; size_t n; uint64_t hash; };
/* A directory of a trace. */
struct ctf_known {
    struct ctf_catalogue *catalogue;
    struct ctf_known_dir dir;
    const char *key;
    const struct ctf_known_text *text;
    const char *names;       /* of its files */
    const struct ctf_known_file *files;
    const struct ctf_known_run *runs;
    const struct ctf_known_packet *packets;
    bool filled;             /* false: the directory must be read */
    bool settled;            /* believed without a look at the files */
    bool read;               /* it was filled now */
    bool own;                /* what is pointed to is its own, but for key and text */
};
/* A directory of the tree, in the order of a walk: those below it come behind it, up to `end`. */
struct ctf_node {
    uint64_t inode;
    const char *name;
    struct ctf_known *known; /* NULL: no trace */
    uint32_t end;
    bool settled;            /* of what was loaded: so are all traces of the subtree, and there is one at least */
};
typedef VEC(struct ctf_node) ctf_tree;

struct ctf_catalogue {
    struct store *store;     /* what it was loaded from; what it points to lies there */
    struct arena arena;      /* of who finds */
    ctf_tree tree;
    VEC(struct ctf_known *) fresh; /* owned */
    pthread_mutex_t lock;    /* of the texts */
    VEC(struct ctf_known_text *) texts;
    struct ctf_known *loaded; /* n_loaded of them at once */
    size_t n_loaded;
};

/* ---- finding ---- */

struct ctf_known *ctf_known_new(struct ctf_catalogue *);
enum ctf_known_state { CTF_KNOWN_SAME, CTF_KNOWN_CHANGED, CTF_KNOWN_REPLACED };
/* Is the directory as it is known? REPLACED: by something that did not grow from what it was. */
enum ctf_known_state ctf_known_compare(const struct ctf_known *, const char *dir);

/* ---- opening ---- */

/* Notes how the directory is before it is read; false: it cannot be looked at. */
bool ctf_known_begin(struct ctf_known *, const char *dir);
/* The text, kept once. Thread-safe. */
const struct ctf_known_text *ctf_known_keep_text(struct ctf_catalogue *, const char *text, size_t n);

/* Adds the files and packets of a piece to the trace. False, and nothing is added: they were found by other
 * declarations than those of the trace now, and must be looked for. */
bool ctf_known_give(struct ctf_trace *, uint32_t piece, const struct ctf_known *);

/* What is found of one piece, while it is found. */
struct ctf_known_finder {
    VEC(struct ctf_known_file) files;
    VEC(struct ctf_known_run) runs;
    VEC(struct ctf_known_packet) packets;
    struct text names;
    size_t next;             /* the file whose packets come next */
    bool odd;                /* something that is to be found again each time */
};
void ctf_known_find_file(struct ctf_known_finder *, const char *dir, const char *name, const struct stat *);
/* The packets that were found of a file of the trace (which is not empty), in file order. */
void ctf_known_find_packets(struct ctf_known_finder *, const struct ctf_trace *, uint32_t file);
/* All was found: now it is known. Frees what is not kept. */
void ctf_known_found(struct ctf_known *, struct ctf_known_finder *, const struct ctf_trace *, uint32_t piece);

#endif
