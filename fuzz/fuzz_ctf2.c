/* SPDX-License-Identifier: MIT */
/* CTF 2: any metadata with any stream. Input: two bytes (little endian: bytes of the metadata), the metadata, then one
 * packet or several. All that is read is also visited and printed. */
#include <stdint.h>
#include <stdlib.h>

#include "base/text.h"
#include "ctf/feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t sink;

static void on_value(void *arg, const struct ctf_value *v)
{
    uint64_t sum = v->name ? (uint8_t)*v->name : 0;
    for (size_t i = 0; v->s && i < v->len; i++)
        sum += (uint8_t)v->s[i];
    *(uint64_t *)arg += sum + v->v.u;
}

static void on_compound(void *arg, const struct ctf_value *v)
{
    *(uint64_t *)arg += v->len;
}

static void read_all(struct ctf_trace *t)
{
    struct ctf_source source = {.trace = t};
    struct ctf_merge *m;
    if (ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, NULL))
        return;
    struct ctf_print *print[] = {ctf_print_new(&source, 1, CTF_PRINT_TEXT), ctf_print_new(&source, 1, CTF_PRINT_JSON)};
    struct text out = {.fd = -1};
    struct ctf_event ev[16];
    uint64_t sum = 0;
    for (size_t k, total = 0; total < 1000 && (k = ctf_merge_next(m, ev, 16)) > 0; total += k)
        for (size_t i = 0; i < k; i++) {
            out.n = 0;
            ctf_print_event(print[0], m, &ev[i], &out);
            ctf_print_event(print[1], m, &ev[i], &out);
            for (int scope = 0; scope < CTF_SCOPES; scope++)
                ctf_visit(
                    &ev[i], (enum ctf_scope)scope, &(struct ctf_visitor){on_value, on_compound, on_compound, &sum});
        }
    sink += sum;
    text_fini(&out);
    ctf_print_free(print[0]);
    ctf_print_free(print[1]);
    ctf_merge_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t metadata = n < 2 ? 0 : (size_t)(data[0] | data[1] << 8);
    if (n < 2 || metadata > n - 2)
        return 0;
    struct ctf_feed *f = ctf_feed_new("fuzz", NULL);
    if (ctf_feed_metadata(f, data + 2, metadata, NULL) == 0) {
        uint32_t line = ctf_feed_line(f, "s");
        ctf_feed_packet(f, line, data + 2 + metadata, n - 2 - metadata, NULL);
        ctf_feed_end(f);
        read_all(ctf_feed_trace(f));
    }
    ctf_feed_free(f);
    return 0;
}
