/* SPDX-License-Identifier: MIT */
/* Private to ctf: catalogue entries of trace directories, used and filled while traces are found and opened. */
#ifndef WEFT_CTF_KNOWN_H
#define WEFT_CTF_KNOWN_H

#include <pthread.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "ctf/catalogue.h"
#include "ctf/trace.h"

/* File, as stored in the catalogue. */
struct ctf_known_file {
    uint64_t identity;       /* ctf_file_identity */
    uint64_t size, inode;
    int64_t modified_ns;
    uint64_t index;          /* hash of inode, size and time of its index file; 0: no index */
    uint32_t name;           /* offset in the names */
    uint32_t n_runs;
};
/* Packets of one stream in one file. */
struct ctf_known_run {
    uint64_t class_id, instance_id, bytes;
    uint32_t n_packets, has_instance;
    int32_t cpu;
    uint32_t zero;
};
/* Packet as found, before it is finished. */
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
    uint64_t declared;       /* hash of the declarations, and the clock's rate, that its packets were read by */
    uint32_t key;            /* offset in the names of the key that joins traces; 0: not joined */
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
    const char *names;       /* names of its files */
    const struct ctf_known_file *files;
    const struct ctf_known_run *runs;
    const struct ctf_known_packet *packets;
    bool filled;             /* false: the directory must be read */
    bool settled;            /* trusted without checking the files */
    bool read;               /* filled by this run */
    bool own;                /* owns all it points to, except key and text */
};
/* Directory of the tree, in the order of a walk: directories below it follow, up to `end`. */
struct ctf_node {
    uint64_t inode;
    const char *name;
    struct ctf_known *known; /* NULL: no trace */
    uint32_t end;
    bool settled;            /* loaded nodes: all traces of the subtree, at least one, are settled */
};
typedef VEC(struct ctf_node) ctf_tree;

struct ctf_catalogue {
    struct store *store;     /* store it was loaded from, which holds the data pointed to; or NULL */
    struct arena arena;      /* memory of the search for traces */
    ctf_tree tree;
    VEC(struct ctf_known *) fresh; /* owned */
    pthread_mutex_t lock;    /* guards the texts */
    VEC(struct ctf_known_text *) texts;
    struct ctf_known *loaded; /* array of n_loaded entries */
    size_t n_loaded;
};

/* ---- finding ---- */

struct ctf_known *ctf_known_new(struct ctf_catalogue *);
enum ctf_known_state { CTF_KNOWN_SAME, CTF_KNOWN_CHANGED, CTF_KNOWN_REPLACED };
/* Compares the directory with its entry. REPLACED: it is no continuation of what it was. */
enum ctf_known_state ctf_known_compare(const struct ctf_known *, const char *dir);

/* ---- opening ---- */

/* Notes the directory's state before it is read; false: it cannot be read. */
bool ctf_known_begin(struct ctf_known *, const char *dir);
/* Returns the text, stored once. Thread-safe. */
const struct ctf_known_text *ctf_known_keep_text(struct ctf_catalogue *, const char *text, size_t n);

/* Adds the files and packets of a piece to the trace. False: they were found with other declarations than the trace's
 * now; nothing is added, and the packets must be found anew. */
bool ctf_known_give(struct ctf_trace *, uint32_t piece, const struct ctf_known *);

/* Findings of one piece, while they are collected. */
struct ctf_known_finder {
    VEC(struct ctf_known_file) files;
    VEC(struct ctf_known_run) runs;
    VEC(struct ctf_known_packet) packets;
    struct text names;
    size_t next;             /* next file to get packets */
    bool odd;                /* contains something that must be found again each time */
};
void ctf_known_find_file(struct ctf_known_finder *, const char *dir, const char *name, const struct stat *);
/* Adds the packets found in a file of the trace (which is not empty), in file order. */
void ctf_known_find_packets(struct ctf_known_finder *, const struct ctf_trace *, uint32_t file);
/* Makes the complete findings the entry. Frees the rest. */
void ctf_known_found(struct ctf_known *, struct ctf_known_finder *, const struct ctf_trace *, uint32_t piece);

#endif
