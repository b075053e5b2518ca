/* SPDX-License-Identifier: MIT */
/* Private to bus: answers that are bound to who serves a subject (bus_bind). The answering side has a signer per
 * service, the asking side looks keys up, and checks. docs/cluster-protocol.md says what is signed. */
#ifndef WEFT_BUS_TRUST_H
#define WEFT_BUS_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bus/frame.h"

enum { TRUST_HASH_BYTES = 32, TRUST_KEY_BYTES = 32, TRUST_SIGNATURE_BYTES = 64 };

struct bus;
struct trust; /* what was bound by one bus_bind; lives until bus_trust_close */
struct signer;

/* An answer or a refusal, as it is signed. reply: the subject that it goes to, which no other question has. */
struct trust_statement {
    const char *subject, *reply;
    /* Its hash; NULL: it was not taken whole (too many, no sense). Only the reply subject binds such a refusal. */
    const uint8_t *question;
    enum frame_kind kind;
    int32_t number;
    const void *data;
    size_t n;
};
void bus_trust_hash(const void *question, size_t n, uint8_t out[TRUST_HASH_BYTES]);

/* Of the subject; NULL: it is not bound. */
struct trust *bus_trust_of(struct bus *, const char *subject);
/* Ends all, before the wire closes; frees them. */
void bus_trust_close(struct bus *);
void bus_trust_free(struct bus *);

/* ---- the answering side ---- */

/* Makes a key pair, and puts its public half into the table, where it is put again whenever it is another's or gone.
 * NULL out: the subject is not bound. */
int bus_signer_open(struct bus *, const char *subject, struct signer **out, struct err *e);
/* It looks after its key no more; before the bus is closed. Both are NULL-safe. */
void bus_signer_stop(struct signer *);
void bus_signer_close(struct signer *);
void bus_signer_sign(const struct signer *, const struct trust_statement *, uint8_t out[TRUST_SIGNATURE_BYTES]);

/* ---- the asking side ---- */

/* Whether the service has a key: 1, or 0: all that are there are known, and it has none. Waits for them the first time.
 * ERR_TIMEOUT and others: they are not known. */
int bus_trust_has_key(struct trust *, const char *subject, int64_t deadline_ns, struct err *e);
/* Grows with each change of the keys. */
unsigned bus_trust_changes(struct trust *);
/* Is it signed by the service that has the subject now? */
bool bus_trust_check(struct trust *, const struct trust_statement *, const uint8_t signature[TRUST_SIGNATURE_BYTES]);
/* An answer of a service without a key is taken: reported once for each of the first, and how many at the end. */
void bus_trust_note_unsigned(struct trust *, const char *subject);

/* calls.c: a key has changed. What was not signed by the one before may be by this one. */
void bus_asker_check_again(struct bus *, struct trust *);

#endif
