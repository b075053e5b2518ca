/* SPDX-License-Identifier: MIT */
/* Completes the packets once all packets of a trace are found: their order, copies, corrected times, losses between
 * them, and the CPU of each stream. */
#include <stdlib.h>

#include "base/order.h"
#include "base/text.h"
#include "ctf/trace.h"

/* ---- order ---- */

int ctf_packet_by_time(const void *a, const void *b)
{
    const struct ctf_packet *p = a, *q = b;
    int order = order_of(p->begin, q->begin);
    order = order ? order : order_of(p->seq, q->seq);
    order = order ? order : order_of(p->file, q->file);
    return order ? order : order_of(p->offset, q->offset);
}

/* Drops copies, which begin at the same time: sorted, they are neighbours. */
static void drop_copies(struct ctf_trace *t, struct ctf_stream *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->packets.n; i++) {
        const struct ctf_packet *p = &s->packets.v[i];
        if (!ctf_packet_is_copy(t, p, s->packets.v, n))
            s->packets.v[n++] = *p;
    }
    s->packets.n = n;
}

/* ---- time that steps back between packets ---- */

bool ctf_stream_steps_back(struct ctf_trace *t, struct ctf_stream *s, const struct ctf_packet *p)
{
    struct ctf_steps_back *b = &s->back;
    bool back = b->has_last && b->last_file == p->file && p->begin < b->last_begin;
    if (back) {
        uint64_t step = (uint64_t)b->last_begin - (uint64_t)p->begin;
        if (!b->count++) {
            b->path = t->files.v[p->file].path;
            b->first_at = p->offset;
        }
        if (step > (uint64_t)b->most_ns)
            b->most_ns = step < INT64_MAX ? (int64_t)step : INT64_MAX;
    }
    b->has_last = true;
    b->last_file = p->file;
    b->last_begin = p->begin;
    return back;
}

void ctf_stream_tell_steps(struct ctf_trace *t, struct ctf_stream *s)
{
    const struct ctf_steps_back *b = &s->back;
    struct text most = {.fd = -1};
    if (!b->count)
        return;
    text_duration(&most, b->most_ns);
    ctf_problem_renew(&t->problems, &s->back.problem,
        "%s: time runs back %llu time%s between packets of the stream, by %s%s, first at byte %llu; packets are read "
        "in the order of their times",
        b->path, (unsigned long long)b->count, b->count == 1 ? "" : "s", b->count == 1 ? "" : "up to ",
        text_cstr(&most), (unsigned long long)b->first_at);
    text_fini(&most);
}

static int by_recording(const void *a, const void *b)
{
    const struct ctf_packet *p = a, *q = b;
    return order_of(p->file, q->file) ?: order_of(p->offset, q->offset);
}

/* Counts steps back. `ascend`: none in the order of finding. */
static void find_steps_back(struct ctf_trace *t, struct ctf_stream *s, bool ascend)
{
    size_t n = s->packets.n;
    if (ascend) { /* copies may have been dropped, which keeps the order */
        ctf_stream_steps_back(t, s, &s->packets.v[n - 1]);
        return;
    }
    struct ctf_packet *recorded = mem_alloc(n * sizeof *recorded);
    memcpy(recorded, s->packets.v, n * sizeof *recorded);
    qsort(recorded, n, sizeof *recorded, by_recording);
    for (size_t i = 0; i < n; i++)
        ctf_stream_steps_back(t, s, &recorded[i]);
    free(recorded);
    ctf_stream_tell_steps(t, s);
}

static void set_order(struct ctf_trace *t, struct ctf_stream *s)
{
    bool ascend = true;
    for (size_t i = 1; i < s->packets.n; i++)
        ascend &= s->packets.v[i - 1].begin <= s->packets.v[i].begin;
    qsort(s->packets.v, s->packets.n, sizeof *s->packets.v, ctf_packet_by_time);
    drop_copies(t, s);
    find_steps_back(t, s, ascend);
}

/* ---- wrong times ---- */

static int64_t env_number(const struct ctf_trace *t, const char *name)
{
    const struct ctf_env *env;
    size_t n = ctf_trace_env(t, &env);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(env[i].name, name))
            return env[i].is_string ? strtoll(env[i].string, NULL, 10) : env[i].number;
    return 0;
}

static bool older(int64_t a0, int64_t a1, int64_t a2, int64_t b0, int64_t b1, int64_t b2)
{
    return a0 != b0 ? a0 < b0 : a1 != b1 ? a1 < b1 : a2 < b2;
}

/* Returns the quirks by tracer version, according to babeltrace2's release notes and the documentation of its ctf
 * plugin. */
struct ctf_quirks ctf_quirks_of(const struct ctf_trace *t)
{
    struct ctf_quirks q = {0};
    const char *tracer = ctf_trace_env_string(t, "tracer_name");
    int64_t major = env_number(t, "tracer_major"), minor = env_number(t, "tracer_minor"),
            patch = env_number(t, "tracer_patch");
    if (!patch)
        patch = env_number(t, "tracer_patchlevel");
    if (!tracer)
        return q;
    if (!strcmp(tracer, "lttng-ust")) {
        q.no_end = true;
        q.event_after_packet = older(major, minor, patch, 2, 11, 0);
    } else if (!strcmp(tracer, "lttng-modules")) {
        q.no_end = true;
        q.event_after_packet = older(major, minor, patch, 2, 11, 0) && !(major == 2 && minor == 10 && patch >= 10) &&
            !(major == 2 && minor == 9 && patch >= 13);
    } else if (!strcmp(tracer, "barectf")) {
        q.event_before_packet = older(major, minor, patch, 2, 3, 1);
    }
    return q;
}

/* Reads the first and last event times of a packet; false if it has no events. */
static bool event_times(struct ctf_trace *t, const struct ctf_stream *s, const struct ctf_packet *p, bool only_first,
    int64_t *first, int64_t *last)
{
    struct ctf_event ev[64];
    static const struct ctf_decoder fresh;
    struct ctf_decoder d = fresh;
    struct file_map window = {0};
    const uint8_t *data = ctf_packet_data(t, p, &window, &t->why);
    size_t n, total = 0;
    if (data)
        ctf_packet_open(t, s, p, data, &d);
    while (data && (n = ctf_decode(&d, ev, only_first ? 1 : 64)) > 0) {
        if (total == 0)
            *first = ev[0].ts;
        *last = ev[n - 1].ts;
        total += n;
        if (only_first)
            break;
    }
    file_map_close(&window);
    return total > 0;
}

void ctf_packet_mend_begin(
    struct ctf_trace *t, const struct ctf_stream *s, struct ctf_packet *p, struct ctf_packet *before)
{
    int64_t first, last;
    if (!t->quirks.event_before_packet || !before || !event_times(t, s, p, true, &first, &last))
        return;
    if (first < p->begin)
        p->begin = first;
    before->end = p->begin;
    before->flags |= CTF_PACKET_MENDED;
}

void ctf_packet_mend_end(
    struct ctf_trace *t, const struct ctf_stream *s, struct ctf_packet *p, const struct ctf_packet *next)
{
    int64_t first, last;
    if (!t->quirks.event_after_packet && !(p->flags & CTF_PACKET_OPEN_END))
        return;
    if (next) {
        if (next->begin > p->end)
            p->end = next->begin;
    } else if (event_times(t, s, p, false, &first, &last) && last > p->end) {
        p->end = last;
    }
    p->flags = (uint8_t)((p->flags & ~CTF_PACKET_OPEN_END) | CTF_PACKET_MENDED);
}

static void mend_times(struct ctf_trace *t, struct ctf_stream *s)
{
    for (size_t i = 0; i < s->packets.n; i++) {
        struct ctf_packet *p = &s->packets.v[i];
        ctf_packet_mend_begin(t, s, p, i ? p - 1 : NULL);
        ctf_packet_mend_end(t, s, p, i + 1 < s->packets.n ? p + 1 : NULL);
    }
}

/* ---- losses ---- */

/* Returns the increase of a counter of `bits` bits; 0 if it went back (another run of the tracer, packets out of
 * order). */
static uint64_t counter_delta(uint64_t from, uint64_t to, unsigned bits)
{
    uint64_t mask = bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1, delta = (to - from) & mask;
    return delta > mask / 2 ? 0 : delta;
}

static void add_loss(struct ctf_stream *s, struct ctf_packet *p, enum ctf_item item, struct ctf_loss loss)
{
    struct ctf_loss_item l = {.loss = loss, .item = (uint8_t)item, .ts = loss.begin};
    if (p->flags & CTF_PACKET_TIMED && l.ts > p->begin)
        l.ts = p->begin;
    if (s->growth && l.ts < s->growth->quiet)
        l.ts = s->growth->quiet;
    if (!p->n_losses)
        p->loss = (uint32_t)s->losses.n;
    p->n_losses++;
    vec_push(&s->losses, l);
    *(item == CTF_LOST_EVENTS ? &s->lost_events : &s->lost_packets) += loss.count;
}

/* Adds the losses before a packet. The first packet's counter counts only if nothing was recorded before it. */
void ctf_packet_losses(struct ctf_stream *s, size_t i)
{
    struct ctf_packet *p = &s->packets.v[i];
    const struct ctf_packet *before = i ? p - 1 : NULL;
    bool known = before != NULL && s->timed;
    int64_t begin = known ? before->end : p->begin;
    uint64_t count = 0;
    if (p->flags & CTF_PACKET_HAS_DISCARDED) {
        if (before)
            count = counter_delta(before->discarded, p->discarded, s->plan->discarded_bits);
        else if (!(p->flags & CTF_PACKET_HAS_SEQ) || p->seq == 0)
            count = p->discarded;
    } else if (before) {
        p->discarded = before->discarded; /* base for the next packet */
    }
    int64_t end = p->flags & CTF_PACKET_LOST_BEFORE ? p->begin : p->end;
    if (count)
        add_loss(s, p, CTF_LOST_EVENTS, (struct ctf_loss){begin, end > begin ? end : begin, count, known, s->timed});
    if (before && p->flags & before->flags & CTF_PACKET_HAS_SEQ &&
        (count = counter_delta(before->seq, p->seq, s->plan->seq_bits)) > 1)
        add_loss(s, p, CTF_LOST_PACKETS,
            (struct ctf_loss){begin, p->begin > begin ? p->begin : begin, count - 1, known, s->timed});
}

/* ---- tracks ---- */

/* Assigns a packet to the first track that has ended when it begins; beyond CTF_TRACKS_MAX overlapping packets, times
 * may step back. */
void ctf_packet_track(struct ctf_stream *s, struct ctf_packet *p, int64_t ends[CTF_TRACKS_MAX])
{
    uint32_t track = 0;
    while (track < s->tracks && ends[track] > p->begin)
        track++;
    if (track == s->tracks) {
        if (s->tracks < CTF_TRACKS_MAX)
            s->tracks++;
        else
            track = 0;
    }
    ends[track] = p->end;
    p->track = (uint8_t)track;
}

static void assign_tracks(struct ctf_stream *s)
{
    int64_t own[CTF_TRACKS_MAX], *ends = s->growth ? s->growth->ends : own;
    s->tracks = 1;
    ends[0] = INT64_MIN;
    for (size_t i = 0; i < s->packets.n && s->timed; i++)
        ctf_packet_track(s, &s->packets.v[i], ends);
}

/* ---- CPUs ---- */

/* Sets one CPU for the stream if its tracer numbers streams: it is one CPU's buffer, so a packet with another number is
 * damaged. In any stream, a number that no machine has is damaged, too. The majority of packets decides. */
static void agree_on_cpu(struct ctf_trace *t, struct ctf_stream *s)
{
    size_t votes = 0, differ = 0;
    for (size_t i = 0; i < s->packets.n; i++) {
        int32_t cpu = s->packets.v[i].cpu;
        if (votes == 0)
            s->cpu = cpu;
        votes = s->cpu == cpu ? votes + 1 : votes - 1;
    }
    for (size_t i = 0; i < s->packets.n; i++)
        differ += s->packets.v[i].cpu != s->cpu;
    if (!differ || differ * 2 >= s->packets.n)
        return;
    for (size_t i = 0; i < s->packets.n; i++) {
        struct ctf_packet *p = &s->packets.v[i];
        if (p->cpu == s->cpu || (!s->has_instance && p->cpu >= 0 && p->cpu < CTF_MOST_CPUS))
            continue;
        ctf_problem_add(&t->problems,
            "%s: packet at byte %llu: its cpu_id is %d, that of the other packets of the stream %d, which is taken",
            t->files.v[p->file].path, (unsigned long long)p->offset, p->cpu, s->cpu);
        p->cpu = s->cpu;
    }
}

/* ---- all streams ---- */

/* Holds back the last packet of a growing stream if its end depends on the next one. */
static void keep_back(struct ctf_trace *t, struct ctf_stream *s)
{
    s->growth = ctf_stream_growth_new();
    if (!s->timed || !ctf_packet_waits(t->quirks, &s->packets.v[s->packets.n - 1]))
        return;
    s->growth->next = s->packets.v[--s->packets.n];
    s->growth->has_next = true;
}

void ctf_stream_settle(struct ctf_stream *s)
{
    s->losses.n = 0;
    s->lost_events = s->lost_packets = 0;
    for (size_t i = 0; i < s->packets.n; i++) {
        s->packets.v[i].n_losses = 0;
        ctf_packet_losses(s, i);
    }
    assign_tracks(s);
    s->begin = INT64_MAX;
    s->end = INT64_MIN;
    s->begins_ascend = s->ends_ascend = s->timed;
    for (size_t i = 0; i < s->packets.n && s->timed; i++) {
        ctf_stream_note_order(s, i);
        const struct ctf_packet *p = &s->packets.v[i];
        s->begin = p->begin < s->begin ? p->begin : s->begin;
        s->end = p->end > s->end ? p->end : s->end;
    }
}

static void finish_stream(struct ctf_trace *t, struct ctf_stream *s)
{
    agree_on_cpu(t, s);
    s->timed = s->packets.n > 0;
    for (size_t i = 0; i < s->packets.n; i++)
        if (!(s->packets.v[i].flags & CTF_PACKET_TIMED))
            s->timed = false;
    if (s->timed)
        set_order(t, s);
    if (t->growing)
        keep_back(t, s);
    if (s->timed)
        mend_times(t, s);
    ctf_stream_settle(s);
}

/* Comparison of streams at equal times, as in babeltrace2: by class, then by instance id; streams without one by
 * path. */
int ctf_stream_order(const void *a, const void *b)
{
    const struct ctf_stream *p = a, *q = b;
    int order = order_of(p->plan->sc->id, q->plan->sc->id);
    if (!order && p->has_instance && q->has_instance)
        order = order_of(p->instance_id, q->instance_id);
    return order ? order : strcmp(p->path, q->path);
}

int ctf_packets_finish(struct ctf_trace *t, struct err *e)
{
    t->quirks = ctf_quirks_of(t);
    ctf_streams_drop_copies(t);
    for (size_t i = 0; i < t->streams.n; i++)
        finish_stream(t, &t->streams.v[i]);
    if (t->streams.n > 1)
        qsort(t->streams.v, t->streams.n, sizeof *t->streams.v, ctf_stream_order);
    map_fini(&t->stream_by);
    if (t->why.code && e)
        *e = t->why;
    return t->why.code;
}
