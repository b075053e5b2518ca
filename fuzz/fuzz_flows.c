/* SPDX-License-Identifier: MIT */
/* Flow stores whose container is sound but whose content is not: opening looks at next to nothing, and all that is read
 * stays inside and comes to an end. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/chunks.h"
#include "flow/flow.h"
#include "flow/store.h"
#include "sections.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_pair(void *arg, int64_t sent, int64_t received)
{
    *(int64_t *)arg ^= sent ^ received;
}

static void ask(const struct flow_store *receiver, const struct flow_packet *p, const struct flow_store *sender)
{
    struct flow_message_key m;
    struct flow_packet send;
    struct flow_window any = flow_window_any(), then;
    flow_message_key_of(receiver, p, &m);
    then = flow_window_at(&m, p->ts, p->bytes);
    flow_find_send(sender, &m, &any, &send);
    flow_find_send(sender, &m, &then, &send);
}

/* The input as a store. later: with numbers that no chunk has before. */
static int write_input(const char *path, const uint8_t *data, size_t size, bool later, struct err *e)
{
    static const struct section sections[] = {{"head", sizeof(struct flow_disk_head)},
        {"flows", sizeof(struct flow_disk_flow)}, {"packets", sizeof(struct flow_disk_packet)},
        {"wakes", sizeof(struct flow_disk_wake)}, {"numbers", 4}, {"addresses", sizeof(struct flow_address)},
        {"keys", 4}, {"rows", sizeof(struct flow_disk_row)}, {"messages", 4}, {"replies", 4},
        {"peers", sizeof(struct flow_address)}, {"order", 4}, {"carriers", 4}, {"asks", sizeof(struct flow_disk_ask)},
        {"own", sizeof(struct flow_disk_own)}};
    enum { OF_ALL = sizeof sections / sizeof *sections - 1 };
    const uint8_t *left = data;
    size_t n_left = size, n;
    for (size_t i = 0; i < OF_ALL; i++)
        take_section(&left, &n_left, sections[i].item, &n);
    n = n_left ? OF_ALL + 1 : OF_ALL; /* an extract has one more */
    struct store_writer *w = store_create(path, "flows", FLOW_VERSION, 1, n);
    add_sections(w, sections, n, data, size, later ? 2 * sizeof(uint64_t) : 0);
    return store_commit(w, e);
}

static void on_near(void *arg, const struct flow_near *found)
{
    *(int64_t *)arg ^= found->sent ^ found->received;
}

/* Of all there is, and of what lies behind one of the first packets. */
static void near(const struct flow_store *const both[2], int64_t *sum)
{
    for (int k = 0; k < 2; k++) {
        struct flow_packet p;
        struct flow_own_address *own;
        struct flow_link *links;
        struct flow_store *tails[2];
        int64_t since = k && flow_by_number(both[0], 3, &p, NULL) ? p.ts : INT64_MIN;
        for (int i = 0; i < 2; i++)
            flow_tail(both[i], since, &tails[i]);
        const struct flow_store *v[] = {tails[0], tails[1]};
        size_t n = flow_near_links(v, 2, 1, &links);
        for (size_t i = 0; i < n; i++)
            flow_near_pairs(v[links[i].a], v[links[i].b], &links[i], 1, since, on_near, sum);
        free(links);
        flow_own_addresses(both[k], &own);
        free(own);
        flow_close(tails[0]);
        flow_close(tails[1]);
    }
}

/* What a store gives away of which everybody has every other flow is a sound one, unless the flows are not. */
static void extract(const struct flow_store *s, bool sound)
{
    char path[256];
    struct err e = {0};
    struct flow_own_address *own;
    uint64_t *hashes;
    uint32_t *needed;
    const char *directory = getenv("TMPDIR");
    size_t n_own = flow_own_addresses(s, &own), n_hashes = flow_hashes(s, &hashes);
    struct flow_other other = {hashes, n_hashes / 2, own, n_own};
    size_t n = flow_needed(s, &other, 1, &needed);
    snprintf(path, sizeof path, "%s/weft-fuzz-extract-%d", directory ? directory : "/tmp", (int)getpid());
    int rc = flow_extract(s, needed, n, path, &e) ?: flow_check(path, NULL, &e);
    if (rc && sound)
        abort();
    unlink(path);
    free(own);
    free(hashes);
    free(needed);
}

/* other: the same store as another host's. */
static void read_all(struct flow_store *s, struct flow_store *other)
{
    struct flow_packet p;
    struct flow_key key;
    char buf[64];
    for (size_t f = 0; f < flow_count(s); f++) {
        flow_key(s, f, &key);
        flow_format_endpoint(&key, true, buf, sizeof buf);
        flow_lookup(s, &key);
        for (size_t i = 0; i < flow_receives(s, f); i++) {
            flow_receive(s, f, i, &p);
            ask(s, &p, s);
            ask(s, &p, other);
        }
        for (size_t i = 0; i < flow_sends(s, f); i++)
            flow_send(s, f, i, &p);
        flow_connection(s, f);
    }
    int64_t sum = 0;
    struct flow_link *links;
    const struct flow_store *both[] = {s, other};
    size_t n_links = flow_links(both, 2, 1, &links);
    for (size_t i = 0; i < n_links; i++)
        flow_pairs(both[links[i].a], both[links[i].b], &links[i], 1, on_pair, &sum);
    free(links);
    near(both, &sum);
    for (int32_t row = -1; row < 128; row++) {
        size_t receives, n = flow_messages(s, row, &receives);
        bool is_send;
        for (size_t i = 0; i < n; i++)
            flow_message(s, row, i, &p, &is_send);
        struct flow_ask a;
        for (size_t i = 0; i < flow_asks(s, row); i++)
            flow_ask(s, row, i, &a);
    }
    for (size_t i = 0; i < flow_replies(s); i++)
        flow_reply(s, i, &p);
    uint64_t wakes = flow_wakes(s);
    for (uint64_t i = wakes < 1000 ? 0 : wakes - 1000; i < wakes; i++) {
        struct flow_wake w;
        flow_wake(s, i, &w);
        if (flow_by_number(s, w.receive, &p, NULL)) {
            ask(s, &p, s);
            ask(s, &p, other);
            flow_key(s, p.flow, &key);
        }
    }
}

static void read_list(const char *const *paths)
{
    static const int32_t rows[] = {3, 2, 1, 0, 7, -1, 9};
    struct chunk chunks[2];
    struct flow_store *list;
    struct err e = {0};
    for (int i = 0; i < 2; i++)
        chunks[i] = (struct chunk){.path = paths[i], .begin = i, .end = i + 1, .rows = rows, .n_rows = 7 - (size_t)i};
    if (flow_open_list(chunks, 2, &list, &e))
        return;
    read_all(list, list);
    extract(list, false);
    flow_close(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[256], later[272];
    struct err e = {0};
    struct flow_store *s, *other;
    const char *directory = getenv("TMPDIR"); /* /dev/shm: a hundred times as fast, for a search */
    snprintf(path, sizeof path, "%s/weft-fuzz-flows-%d", directory ? directory : "/tmp", (int)getpid());
    snprintf(later, sizeof later, "%s-later", path);
    if (!write_input(path, data, size, false, &e)) {
        bool sound = !flow_check(path, NULL, &e);
        if (!flow_open(path, &s, &e) && !flow_open(path, &other, &e)) {
            read_all(s, other);
            extract(s, sound);
            flow_close(s);
            flow_close(other);
            if (!write_input(later, data, size, true, &e))
                read_list((const char *const[]){path, later});
            unlink(later);
        } else if (sound || !e.text[0]) {
            abort();
        }
    }
    unlink(path);
    return 0;
}
