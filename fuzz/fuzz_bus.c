/* SPDX-License-Identifier: MIT */
/* Frames as they come from a broker: the input is a sequence of them, each behind its length in 2 bytes. Up to 4
 * messages are put together at once, chosen by their ids; what is in a beat is read; every text is tried as a token
 * and as a subject. */
#include <stdlib.h>
#include <string.h>

#include "bus/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MESSAGES = 4, LIMIT = 1 << 16 };

static void try_token(const uint8_t *data, size_t n)
{
    char text[300], name[300], again[900];
    n = n < sizeof text ? n : sizeof text - 1;
    memcpy(text, data, n);
    text[n] = '\0';
    if (!bus_untoken(text, name, sizeof name) && (bus_token(name, again, sizeof again) || strcmp(again, text) != 0))
        abort(); /* one token, one name */
    if (bus_token(text, again, sizeof again) || bus_untoken(again, name, sizeof name) || strcmp(name, text) != 0)
        abort();
    if (!bus_subject_check(text, false, NULL) && !bus_subject_matches(text, text))
        abort();
}

static void take(struct assembly *messages, const uint8_t *data, size_t n)
{
    struct frame f;
    struct beat b;
    uint8_t *exact = malloc(n ? n : 1), header[FRAME_BYTES]; /* so that reading one byte too far is seen */
    if (!exact)
        return;
    memcpy(exact, data, n);
    if (!bus_frame_read(exact, n, &f, NULL)) {
        struct assembly *a = &messages[f.id % MESSAGES];
        bus_frame_write(&f, header);
        if (memcmp(header, exact, FRAME_BYTES) != 0)
            abort();
        if (!bus_beat_read(&f, &b, NULL) && bus_beat_bytes(&b) != f.n)
            abort();
        int rc = bus_assembly_add(a, &f, LIMIT, NULL);
        if (a->n > LIMIT || a->cap > 2 * a->n + 2 || (rc == 1 && a->n != f.whole_bytes))
            abort();
        if (rc)
            bus_assembly_free(a);
    } else {
        try_token(exact, n);
    }
    free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct assembly messages[MESSAGES] = {0};
    while (size >= 2) {
        size_t n = data[0] | (size_t)data[1] << 8;
        data += 2;
        size -= 2;
        n = n < size ? n : size;
        take(messages, data, n);
        data += n;
        size -= n;
    }
    for (int i = 0; i < MESSAGES; i++)
        bus_assembly_free(&messages[i]);
    return 0;
}
