/* SPDX-License-Identifier: MIT */
/* A trace fed in any order: each input is a list of steps (a byte each, then what they need), with a merge that reads
 * behind. What was given must stay readable, and everything must come to an end. */
#include <stdint.h>
#include <stdlib.h>

#include "ctf/feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char metadata[] =
    "/* CTF 1.8 */\n"
    "typealias integer { size = 8; align = 8; } := uint8_t; typealias integer { size = 32; align = 8; } := uint32_t;\n"
    "typealias integer { size = 64; align = 8; } := uint64_t; clock { name = c; freq = 1000000000; };\n"
    "typealias integer { size = 64; align = 8; map = clock.c.value; } := time;\n"
    "trace { major = 1; minor = 8; byte_order = le; "
    " packet.header := struct { uint32_t magic; uint8_t stream_id; }; };\n"
    "stream { id = 0; event.header := struct { uint8_t id; time timestamp; };\n"
    " packet.context := struct { time timestamp_begin; time timestamp_end; uint64_t content_size; uint64_t packet_size;"
    " uint8_t events_discarded; uint8_t packet_seq_num; uint8_t cpu_id; }; };\n"
    "event { name = \"a\"; id = 0; stream_id = 0; fields := struct { uint8_t n; uint8_t l[n]; }; };\n";

struct input {
    const uint8_t *p, *end;
};
static uint8_t next(struct input *in)
{
    return in->p < in->end ? *in->p++ : 0;
}

static uint64_t read_some(struct ctf_merge *m, size_t most)
{
    struct ctf_event ev[64];
    uint64_t sum = 0;
    size_t n = ctf_merge_next(m, ev, most);
    for (size_t i = 0; i < n; i++) {
        sum += (uint64_t)ev[i].ts + ev[i].data[ev[i].cls->item == CTF_EVENT ? ev[i].payload_bits / 8 : 0];
        uint32_t source;
        sum += ctf_merge_stream(m, ev[i].stream, &source);
    }
    return sum + n;
}

static void step(struct ctf_feed *feed, struct ctf_merge *m, struct input *in)
{
    uint32_t line = next(in) % 8;
    size_t n = next(in);
    uint32_t what = line >= 6 ? line : next(in) % 6;
    size_t left = (size_t)(in->end - in->p);
    n = n < left ? n : left;
    switch (what) {
    case 0: ctf_feed_line(feed, n % 2 ? "x" : "y"); break;
    case 1:
    case 2:
        ctf_feed_packet(feed, line, in->p, n, NULL);
        in->p += n;
        break;
    case 3: ctf_feed_quiet(feed, line, (int64_t)n * 16); break;
    case 4: ctf_feed_line_end(feed, line); break;
    case 5: ctf_feed_hold(feed, n == 255 ? INT64_MAX : (int64_t)n * 16); break;
    case 6:
        ctf_feed_metadata(feed, in->p, n, NULL);
        in->p += n;
        break;
    default: read_some(m, 1 + n % 64);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct ctf_feed *feed = ctf_feed_new("fuzz", NULL);
    struct ctf_merge *m;
    struct input in = {data, data + n};
    if (ctf_feed_metadata(feed, metadata, sizeof metadata - 1, NULL))
        abort();
    struct ctf_source source = {.trace = ctf_feed_trace(feed)};
    if (ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, NULL))
        abort();
    while (in.p < in.end)
        step(feed, m, &in);
    ctf_feed_end(feed);
    while (read_some(m, 64) > 0 || !ctf_merge_ended(m))
        ;
    ctf_merge_free(m);
    ctf_feed_free(feed);
    return 0;
}
