/* Flow stores whose container is sound but whose content is not: opening looks at next to nothing, and all that is read
 * stays inside and comes to an end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/store.h"
#include "flow/flow.h"
#include "flow/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input: for each section a 16-bit item count and the items. */
static const uint8_t *take(const uint8_t **p, size_t *left, size_t item, size_t *count)
{
    *count = 0;
    if (*left < 2)
        return NULL;
    size_t n = (size_t)((*p)[0] | (*p)[1] << 8);
    *p += 2;
    *left -= 2;
    if (n > *left / item)
        n = *left / item;
    const uint8_t *items = *p;
    *p += n * item;
    *left -= n * item;
    *count = n;
    return items;
}

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
    for (int32_t row = -1; row < 128; row++) {
        size_t receives, n = flow_messages(s, row, &receives);
        bool is_send;
        for (size_t i = 0; i < n; i++)
            flow_message(s, row, i, &p, &is_send);
    }
    for (size_t i = 0; i < flow_replies(s); i++)
        flow_reply(s, i, &p);
    for (size_t i = 0; i < flow_wakes(s); i++) {
        struct flow_wake w;
        flow_wake(s, i, &w);
        if (flow_by_number(s, w.receive, &p, NULL)) {
            ask(s, &p, s);
            ask(s, &p, other);
            flow_key(s, p.flow, &key);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const char *name;
        size_t item;
    } sections[] = {{"flows", sizeof(struct flow_disk_flow)}, {"packets", sizeof(struct flow_disk_packet)},
        {"wakes", sizeof(struct flow_disk_wake)}, {"numbers", 4}, {"addresses", sizeof(struct flow_address)},
        {"keys", 4}, {"rows", sizeof(struct flow_disk_row)}, {"messages", 4}, {"replies", 4},
        {"peers", sizeof(struct flow_address)}, {"order", 4}, {"carriers", 4}};
    _Alignas(8) static uint8_t copy[1 << 16];
    char path[256];
    struct err e = {0};
    struct flow_store *s, *other;
    const char *directory = getenv("TMPDIR"); /* /dev/shm: a hundred times as fast, for a search */
    snprintf(path, sizeof path, "%s/weft-fuzz-flows-%d", directory ? directory : "/tmp", (int)getpid());
    struct store_writer *w = store_create(path, "flows", FLOW_VERSION, 1, sizeof sections / sizeof *sections);
    size_t used = 0;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        size_t n;
        const uint8_t *items = take(&data, &size, sections[i].item, &n);
        size_t bytes = n * sections[i].item;
        if (used + bytes + 8 > sizeof copy)
            n = bytes = 0;
        if (bytes)
            memcpy(copy + used, items, bytes);
        store_add(w, sections[i].name, copy + used, sections[i].item, n);
        used += (bytes + 7) & ~(size_t)7;
    }
    if (!store_commit(w, &e)) {
        bool sound = !flow_check(path, &e);
        if (!flow_open(path, &s, &e) && !flow_open(path, &other, &e)) {
            read_all(s, other);
            flow_close(s);
            flow_close(other);
        } else if (sound || !e.text[0]) {
            abort();
        }
    }
    unlink(path);
    return 0;
}
