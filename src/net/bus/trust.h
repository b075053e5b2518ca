/* SPDX-License-Identifier: MIT */
/* Private to bus: binding of answers to the server of a subject (bus_bind). The answering side has a signer per
 * service; the asking side looks up keys, and checks. docs/cluster-protocol.md defines what is signed. */
#ifndef WEFT_BUS_TRUST_H
#define WEFT_BUS_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bus/frame.h"

enum { TRUST_HASH_BYTES = 32, TRUST_KEY_BYTES = 32, TRUST_SIGNATURE_BYTES = 64 };

struct bus;
struct trust; /* binding of one bus_bind; lives until bus_trust_close */
struct signer;

/* Answer or refusal, as it is signed. reply: the subject that it goes to, unique per question. */
struct trust_statement {
    const char *subject, *reply;
    /* Hash of the question; NULL: the question was not taken completely (too many, invalid). Only the reply subject
     * binds such a refusal. */
    const uint8_t *question;
    enum frame_kind kind;
    int32_t number;
    const void *data;
    size_t n;
};
void bus_trust_hash(const void *question, size_t n, uint8_t out[TRUST_HASH_BYTES]);

/* Returns the binding of the subject; NULL: not bound. */
struct trust *bus_trust_of(struct bus *, const char *subject);
/* Ends all bindings, before the wire closes; then frees them. */
void bus_trust_close(struct bus *);
void bus_trust_free(struct bus *);

/* ---- the answering side ---- */

/* Makes a key pair, and puts its public half into the table, again whenever the entry is replaced or removed. *out is
 * NULL if the subject is not bound. */
int bus_signer_open(struct bus *, const char *subject, struct signer **out, struct err *e);
/* Stops guarding its key, before the bus is closed; then frees it. Both are NULL-safe. */
void bus_signer_stop(struct signer *);
void bus_signer_close(struct signer *);
void bus_signer_sign(const struct signer *, const struct trust_statement *, uint8_t out[TRUST_SIGNATURE_BYTES]);

/* ---- the asking side ---- */

/* Returns 1 if the service has a key, 0 if all present keys are known and it has none. Waits for the keys the first
 * time. ERR_TIMEOUT and others: keys are unknown. */
int bus_trust_has_key(struct trust *, const char *subject, int64_t deadline_ns, struct err *e);
/* Returns a counter of changes of the keys. */
unsigned bus_trust_changes(struct trust *);
/* Returns whether the service that has the subject now signed it. */
bool bus_trust_check(struct trust *, const struct trust_statement *, const uint8_t signature[TRUST_SIGNATURE_BYTES]);
/* Reports an accepted answer of a service without a key: the first ones singly, and their number at the end. */
void bus_trust_note_unsigned(struct trust *, const char *subject);

/* calls.c: repeats checks after a key has changed. Answers not signed by the old key may be signed by this one. */
void bus_asker_check_again(struct bus *, struct trust *);

#endif
