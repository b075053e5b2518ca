/* SPDX-License-Identifier: MIT */
/* Opening reads little; later reads of a damaged file do no harm. */
#include <fcntl.h>

#include "read_all.h"
#include "state/cell.h"
#include "state/store.h"
#include "world.h"

enum { LATECOMER = 61 };

/* A store with something of everything. */
static void write_store(struct kernel_tracker *w)
{
    world_begin(w);
    int64_t ts = 1000;
    for (int i = 0; i < 400; i++) {
        int cpu = i % WORLD_CPUS;
        world_switch(
            w, ts += 7, cpu, w->on[cpu] < 0 ? cpu : w->on[cpu], i == 300 ? 60 : 4 + i * 5 % 40, KERNEL_LEAVE_BLOCKED);
        world_call(w, ts += 3, cpu, NAME_READ);
        world_irq(w, ts += 2, cpu, KERNEL_IRQ_ENTRY, 7, (uint32_t)i + 1);
        world_wake(w, ts, cpu, 50 + i % 7);
        world_irq(w, ts += 2, cpu, KERNEL_IRQ_EXIT, 7, (uint32_t)i + 1);
        world_return(w, ts += 5, cpu, NAME_READ, i % 9 ? i : (int64_t)i << 40);
        if (i == 299)
            world_wake(w, 1009, cpu, 60); /* late report */
        world_add(w,
            (struct kernel_record){.ts = ts,
                .cpu = (uint32_t)cpu,
                .kind = KERNEL_PAGE_ALLOC + i % 2,
                .row = w->on[cpu],
                .u.page.order = 2});
        world_add(w,
            (struct kernel_record){.ts = ts,
                .cpu = (uint32_t)cpu,
                .kind = KERNEL_FREQUENCY,
                .row = w->on[cpu],
                .u.frequency = {0, (uint32_t)i}});
        world_io(w, ts, cpu, KERNEL_IO_READ, i % 40, -1, 0, NULL);
        world_io_return(w, ts + 1, cpu, KERNEL_IO_READ, i);
        int64_t told = ts;
        state_builder_events(w->builder, &told, 1);
    }
    world_wake(w, ts, 0, LATECOMER);
    world_switch(w, ts += 3, 0, w->on[0], LATECOMER, KERNEL_LEAVE_BLOCKED);
    world_lost(w, ts, 2, ts, ts + 10, 5);
    world_end(w);
}

/* The sections as they are, with other bytes in one, under checksums that fit. */
static void write_changed(
    const char *from, const char *to, const char *section, size_t at, const void *bytes, size_t n_bytes)
{
    static const struct {
        const char *name;
        size_t item;
    } sections[] = {{"totals", sizeof(struct state_disk_totals)}, {"text", 1}, {"names", 4},
        {"codes", sizeof(struct state_disk_code)}, {"rows", sizeof(struct state_disk_row)},
        {"cells", sizeof(struct state_disk_cell)}, {"blocks", 4}, {"sums", 8}, {"grid", 4},
        {"tables", sizeof(struct state_disk_table)}, {"heads", sizeof(struct state_disk_head)}, {"far", 8},
        {"late", sizeof(struct state_disk_aside)}, {"open", sizeof(struct state_disk_open)},
        {"firsts", sizeof(struct state_disk_first)}, {"tiles", 8}, {"figures", sizeof(struct state_disk_figures)},
        {"losses", sizeof(struct state_disk_loss)}, {"bytes", 1}, {"files", sizeof(struct state_disk_file)},
        {"through", 4}};
    enum { SECTIONS = sizeof sections / sizeof *sections };
    struct err e = {0};
    struct store *s;
    assert_int_equal(store_open(from, "states", STATE_VERSION, NULL, &s, &e), 0);
    struct store_writer *w = store_create(to, "states", STATE_VERSION, 0, SECTIONS);
    uint8_t *copies[SECTIONS];
    for (size_t i = 0; i < SECTIONS; i++) {
        size_t n;
        const void *items = store_section(s, sections[i].name, sections[i].item, &n);
        copies[i] = malloc(n * sections[i].item + 1);
        assert_non_null(items);
        memcpy(copies[i], items, n * sections[i].item);
        if (!strcmp(section, sections[i].name) && at + n_bytes <= n * sections[i].item)
            memcpy(copies[i] + at, bytes, n_bytes);
        store_add(w, sections[i].name, copies[i], sections[i].item, n);
    }
    assert_int_equal(store_commit(w, &e), 0);
    for (size_t i = 0; i < SECTIONS; i++)
        free(copies[i]);
    store_close(s);
}

/* docs/formats/container.md: 48 bytes of the table per section from byte 64; name at 0, place at 16, items at 24, their
 * bytes at 32. */
static size_t find_section(const char *file, const char *name, size_t *bytes)
{
    for (const char *entry = file + 64;; entry += 48) {
        uint64_t offset, count;
        uint32_t item;
        if (strcmp(entry, name) != 0)
            continue;
        memcpy(&offset, entry + 16, sizeof offset);
        memcpy(&count, entry + 24, sizeof count);
        memcpy(&item, entry + 32, sizeof item);
        *bytes = (size_t)count * item;
        return (size_t)offset;
    }
}

static void damage_leads_nowhere(void **state)
{
    static const char *const sections[] = {"totals", "names", "codes", "rows", "cells", "blocks", "sums", "grid",
        "tables", "heads", "late", "firsts", "tiles", "figures", "losses", "bytes", "files", "through"};
    struct kernel_tracker w;
    size_t opened = 0, refused = 0, n, bytes;
    struct err e = {0};
    char *good;
    write_store(&w);
    assert_int_equal(file_read(w.path, 1 << 20, &good, &n, &e), 0);
    int fd = open(w.path, O_WRONLY);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        size_t offset = find_section(good, sections[i], &bytes);
        if (!bytes)
            fail_msg("%s is empty", sections[i]);
        for (size_t at = 0; at < bytes; at += 1 + bytes / 2000) {
            struct state_store *s;
            char bad = (char)(good[offset + at] ^ 1 << at % 8);
            assert_int_equal(pwrite(fd, &bad, 1, (off_t)(offset + at)), 1);
            assert_int_equal(store_check(w.path, &e), ERR_FORMAT);
            if (!state_open(w.path, &s, &e)) {
                read_all_states(s);
                state_close(s);
                opened++;
            } else {
                refused++;
            }
            assert_int_equal(pwrite(fd, &good[offset + at], 1, (off_t)(offset + at)), 1);
        }
    }
    assert_int_equal(store_check(w.path, &e), 0);
    assert_true(opened > 1000 && refused > 100);
    close(fd);
    free(good);
    world_close(&w);
}

/* Checks that contents and their checksums are not read on opening, only on request. */
static void contents_are_checked_when_asked(void **state)
{
    struct kernel_tracker w;
    struct state_store *s;
    struct err e = {0};
    write_store(&w);
    assert_int_equal(state_open(w.path, &s, &e), 0);
    const struct state_disk_row *r = s->parts->chunk->rows;
    while (r->idle || !r->n) /* row with summed time */
        r++;
    size_t sum = (size_t)r->first_block * sizeof(int64_t);
    const int64_t one = 1;
    state_close(s);
    write_changed(w.path, w.path, "sums", sum, &one, sizeof one); /* first block of a row: sum 0 */
    assert_int_equal(store_check(w.path, &e), 0);
    assert_int_equal(state_check(w.path, NULL, &e), ERR_FORMAT);
    assert_int_equal(state_open(w.path, &s, &e), 0);
    state_close(s);
    char *bytes;
    size_t n;
    assert_int_equal(file_read(w.path, 1 << 20, &bytes, &n, &e), 0);
    bytes[n - 1] ^= 1;
    assert_int_equal(file_write(w.path, bytes, n, &e), 0);
    assert_int_equal(store_check(w.path, &e), ERR_FORMAT);
    assert_int_equal(state_open(w.path, &s, &e), 0);
    state_close(s);
    free(bytes);
    world_close(&w);
}

/* The first cell of the row. */
static const struct state_disk_cell *cell_of(const struct state_chunk *s, const struct state_disk_row *r)
{
    return &s->cells[s->blocks[r->first_block]];
}

static void check_cell(const struct kernel_tracker *w, const struct state_disk_cell *at,
    const struct state_disk_cell *changed, int expected)
{
    char path[sizeof w->path + 8];
    struct state_store *s;
    struct err e = {0};
    snprintf(path, sizeof path, "%s-changed", w->path);
    write_changed(
        w->path, path, "cells", (size_t)(at - w->store->parts->chunk->cells) * sizeof *at, changed, sizeof *changed);
    assert_int_equal(state_check(path, NULL, &e), expected);
    assert_int_equal(state_open(path, &s, &e), 0);
    read_all_states(s);
    state_close(s);
    unlink(path);
}

/* Heads of paired cells: bits per duration, time and number, the number of pairs; and where such cells may be. */
static void pairs_are_checked(void **state)
{
    struct kernel_tracker w;
    write_store(&w);
    const struct state_chunk *s = w.store->parts->chunk;
    const struct state_disk_row *r = &s->rows[s->first[STATE_FILE_ROWS]];
    while (!(cell_of(s, r)->n & STATE_PAIRED))
        r++;
    const struct state_disk_cell *paired = cell_of(s, r);
    struct state_disk_cell c = *paired;
    check_cell(&w, paired, &c, 0);
    c.n |= 63;
    check_cell(&w, paired, &c, ERR_FORMAT);
    c = *paired;
    c.time_width |= 63;
    check_cell(&w, paired, &c, ERR_FORMAT);
    c = *paired;
    c.number_width |= 63;
    check_cell(&w, paired, &c, ERR_FORMAT);
    c = *paired;
    c.number_width |= 192;
    check_cell(&w, paired, &c, ERR_FORMAT);
    /* Paired cells are refused in rows of threads, even with the true contents: a wait for a CPU, then running. */
    r = &s->rows[LATECOMER];
    const struct state_disk_cell *plain = cell_of(s, r);
    struct cell_entry waits = cell_entry(plain, 0), runs = cell_entry(plain, 1);
    assert_true(r->n == 2 && waits.number == STATE_WAIT_FOR_CPU && runs.number == STATE_USERMODE);
    struct state_cell_pairs head = {.n = 1, .time_width = 8, .number_width = 8, .duration_width = 8, .rests = true};
    c = (struct state_disk_cell){.packed = {(uint8_t)(waits.end - waits.begin + 1),
                                     STATE_WAIT_FOR_CPU << 1 | STATE_USERMODE, (uint8_t)(waits.end - waits.begin)},
        .base = waits.begin};
    state_cell_pairs_head(&c, &head);
    check_cell(&w, plain, &c, ERR_FORMAT);
    world_close(&w);
}

static void check_block(
    const struct kernel_tracker *w, size_t block, const struct state_disk_head *changed, int expected)
{
    char path[sizeof w->path + 8];
    struct state_store *s;
    struct err e = {0};
    snprintf(path, sizeof path, "%s-changed", w->path);
    write_changed(w->path, path, "heads", block * sizeof *changed, changed, sizeof *changed);
    assert_int_equal(state_check(path, NULL, &e), expected);
    assert_int_equal(state_open(path, &s, &e), 0);
    read_all_states(s);
    state_close(s);
    unlink(path);
}

/* Heads of blocks of columns are not looked at on opening, either. */
static void blocks_are_checked_when_asked(void **state)
{
    struct kernel_tracker w;
    write_store(&w);
    const struct state_chunk *s = w.store->parts->chunk;
    const struct state_disk_table *calls = state_latency_table(s, STATE_LATENCY_SYSCALL);
    assert_int_not_equal(calls->n, 0);
    struct state_disk_head h = s->heads[calls->first_head];
    check_block(&w, calls->first_head, &h, 0);
    h.position = s->n_bytes + 1;
    check_block(&w, calls->first_head, &h, ERR_FORMAT);
    h = s->heads[calls->first_head];
    h.columns[STATE_DURATION].offset++; /* offset that differs from the begins' */
    check_block(&w, calls->first_head, &h, ERR_FORMAT);
    h = s->heads[calls->first_head];
    h.columns[STATE_BEGIN].way = COLUMN_SPLIT;
    check_block(&w, calls->first_head, &h, ERR_FORMAT);
    h = s->heads[0];
    h.columns[STATE_DURATION].width = 1; /* width of a column of events, of which there are none */
    check_block(&w, 0, &h, ERR_FORMAT);
    world_close(&w);
}

static void figures_are_checked_when_asked(void **state)
{
    struct kernel_tracker w;
    char path[sizeof w.path + 8];
    struct err e = {0};
    write_store(&w);
    assert_int_not_equal(w.store->parts->chunk->n_figures, 0);
    snprintf(path, sizeof path, "%s-changed", w.path);
    for (int what = 0; what < 5; what++) {
        struct state_disk_figures f = *w.store->parts->chunk->figures;
        f.n += what == 0;
        f.sum += what == 1;
        f.most += what == 2;
        f.least_at += what == 3;
        f.squares[0] += what == 4;
        write_changed(w.path, path, "figures", 0, &f, sizeof f);
        assert_int_equal(state_check(path, NULL, &e), ERR_FORMAT);
    }
    uint64_t first = 1;
    write_changed(w.path, path, "tiles", 0, &first, sizeof first);
    assert_int_equal(state_check(path, NULL, &e), ERR_FORMAT);
    unlink(path);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damage_leads_nowhere),
        cmocka_unit_test(contents_are_checked_when_asked),
        cmocka_unit_test(pairs_are_checked),
        cmocka_unit_test(blocks_are_checked_when_asked),
        cmocka_unit_test(figures_are_checked_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
