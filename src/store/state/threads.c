/* SPDX-License-Identifier: MIT */
/* States of threads. */
#include "state/builder.h"
#include "state/files.h"

_Static_assert((int)STATE_NO_PRIORITY == (int)KERNEL_NO_PRIORITY, "stored as the tracker has it");

/* Rows of idle threads are marked by the tracker's entry. */
void state_builder_add_threads(struct state_builder *b, size_t n)
{
    const struct kernel_thread *known;
    size_t n_known = kernel_tracker_threads(b->tracker, &known);
    while (b->threads.n < n) {
        size_t row = b->threads.n;
        struct builder_thread t = {.series = {.sum = SERIES_RUNNING, .lead = STATE_UNKNOWN},
            .cpu = -1,
            .left = -1,
            .moved_from = -1,
            .mode_since = INT64_MAX};
        t.idle_cpu = row < n_known ? known[row].idle_cpu : -1;
        t.idle = t.mode_known = t.idle_cpu >= 0;
        if (t.idle)
            t.series.sum = SERIES_NO_SUM;
        vec_push(&b->threads, t);
        while (b->pool.flags[SERIES_BUSY].n <= row + 1)
            vec_push(&b->pool.flags[SERIES_BUSY], 0);
        b->pool.flags[SERIES_BUSY].v[row + 1] = !t.idle;
    }
}

static inline void show(struct state_builder *b, struct builder_thread *t, int64_t ts, uint32_t code)
{
    if (__builtin_expect(b->n_losses, 0))
        state_builder_gap_settle(b, t, ts, code);
    series_push(&b->pool, &t->series, ts, code);
}

static uint32_t mode(const struct builder_thread *t)
{
    return t->call ? t->call : t->idle ? STATE_IDLE : STATE_USERMODE;
}

static void drop_call(struct state_builder *b, struct builder_thread *t)
{
    if (t->call_latency)
        state_latency_drop(&b->latencies[STATE_LATENCY_SYSCALL], t->call_latency);
    if (t->lock_latency)
        state_latency_drop(&b->latencies[STATE_LATENCY_LOCK], t->lock_latency);
    t->call_latency = t->lock_latency = 0;
    t->call = 0;
}

/* Ends any call at ts, without a known end. */
static void forget_call(struct state_builder *b, struct builder_thread *t, int64_t ts)
{
    state_builder_futex_cut(b, &t->futex, ts);
    drop_call(b, t);
}

/* Marks from ts on that the thread may have left its call. */
static void doubt_call(struct state_builder *b, struct builder_thread *t, int64_t ts)
{
    state_builder_futex_doubt(b, &t->futex, ts);
    drop_call(b, t);
}

/* Marks that the mode (user or which call) is only likely when it runs next. */
static void forget_mode(struct builder_thread *t)
{
    t->mode_known = t->idle;
    t->mode_since = INT64_MAX;
}

static void forget_wake(struct state_builder *b, struct builder_thread *t)
{
    if (t->wake_latency)
        state_latency_drop(&b->latencies[STATE_LATENCY_SCHED], t->wake_latency);
    t->wake_latency = 0;
}

/* ---- losses ---- */

/* Returns whether it may have run unseen since it last left a CPU. Some losses become known only when they are over, so
 * this errs towards true. */
static bool doubtful(const struct state_builder *b, const struct builder_thread *t)
{
    return t->losses != b->n_losses || series_last(&t->series) < b->suspect_until;
}

static void rest(struct state_builder *b, struct builder_thread *t, uint8_t state)
{
    t->state = state;
    t->cpu = -1;
    t->losses = b->n_losses;
}

static void doubt_latency(struct latency_series *l, uint64_t *handle, int64_t end)
{
    if (!*handle || state_latency_of(l, *handle)->begin >= end)
        return;
    state_latency_drop(l, *handle);
    *handle = 0;
}

void state_builder_thread_doubt(struct state_builder *b, struct builder_thread *t, int64_t begin, int64_t end)
{
    if (t->futex.since < end)
        state_builder_futex_doubt(b, &t->futex, begin);
    doubt_latency(&b->latencies[STATE_LATENCY_SYSCALL], &t->call_latency, end);
    doubt_latency(&b->latencies[STATE_LATENCY_LOCK], &t->lock_latency, end);
    doubt_latency(&b->latencies[STATE_LATENCY_SCHED], &t->wake_latency, end);
}

void state_builder_thread_lose(struct state_builder *b, int32_t row, int32_t cpu, int64_t ts)
{
    struct builder_thread *t = builder_thread(b, row);
    if (!t || t->state != THREAD_RUNNING || t->cpu != cpu)
        return;
    show(b, t, ts, STATE_UNKNOWN);
    doubt_call(b, t, ts);
    forget_mode(t);
    rest(b, t, THREAD_UNKNOWN);
}

/* ---- arriving and leaving of CPUs ---- */

static void run(struct state_builder *b, struct builder_thread *t, int32_t cpu, int64_t ts)
{
    t->state = THREAD_RUNNING;
    t->cpu = cpu;
    if (t->mode_since > ts)
        t->mode_since = ts > series_last(&t->series) ? ts : series_last(&t->series);
    show(b, t, ts, mode(t));
}

/* Handles a thread that was not seen to leave its CPU. Either the record of that follows in the same ns, or it left
 * unseen at some time since the CPU's last record. */
static void move(struct state_builder *b, struct builder_thread *t, int32_t cpu, int64_t ts)
{
    const struct state_builder_cpu *from = &b->cpus.v[t->cpu];
    t->moved_from = t->cpu;
    t->moved_ts = ts;
    int64_t last = series_last(&t->series),
            sure = from->last_ts > last ? from->last_ts : last + 1; /* state before lasted a moment */
    if (sure < ts)
        show(b, t, sure, STATE_UNKNOWN);
    forget_mode(t);
    run(b, t, cpu, ts);
}

/* Corrects a move: it left in the ns in which it came to the other CPU. */
static void mend_move(struct builder_thread *t, int64_t ts)
{
    if (t->moved_ts != ts)
        return;
    t->moved_from = -1;
    if (t->series.n > 1 && t->series.v[t->series.n - 2].number == STATE_UNKNOWN)
        state_series_mend(&t->series);
}

void state_builder_thread_arrive(struct state_builder *b, int32_t row, int32_t cpu, int64_t ts, int32_t priority)
{
    struct builder_thread *t = builder_thread(b, row);
    if (!t)
        return;
    if (t->state == THREAD_RUNNING && t->cpu != cpu) {
        move(b, t, cpu, ts);
        return;
    }
    if (__builtin_expect(b->n_losses, 0)) {
        if (doubtful(b, t))
            forget_mode(t);
        state_builder_gap_settle(b, t, ts, mode(t)); /* may leave out the time until now */
    }
    state_latency_fetch(&b->latencies[STATE_LATENCY_SYSCALL], t->call_latency); /* the call that it returns from */
    state_files_arrive(b, row);
    if (t->wake_latency)
        state_latency_close(&b->latencies[STATE_LATENCY_SCHED], t->wake_latency, ts, priority, cpu);
    t->wake_latency = 0;
    run(b, t, cpu, ts);
}

/* Handles a thread that leaves a CPU without having been seen to come: it did not wait as it seemed, where events are
 * missing. */
static void came_unseen(struct state_builder *b, struct builder_thread *t, int64_t ts)
{
    show(b, t, ts, STATE_UNKNOWN);
    forget_wake(b, t);
    doubt_call(b, t, ts);
    forget_mode(t);
    rest(b, t, THREAD_UNKNOWN);
}

void state_builder_thread_leave(struct state_builder *b, int32_t row, int32_t cpu, int64_t ts, uint8_t leave)
{
    struct builder_thread *t = builder_thread(b, row);
    if (t && t->state == THREAD_RUNNING && t->moved_from == cpu)
        mend_move(t, ts);
    if (t && b->n_losses && (t->state == THREAD_BLOCKED || t->state == THREAD_READY))
        came_unseen(b, t, ts);
    if (!t || (t->state == THREAD_RUNNING ? t->cpu != cpu : t->state != THREAD_UNSEEN && t->state != THREAD_UNKNOWN))
        return;
    if (leave == KERNEL_LEAVE_DEAD) {
        forget_call(b, t, ts);
        rest(b, t, THREAD_GONE);
        return;
    }
    bool ready = leave == KERNEL_LEAVE_RUNNABLE;
    t->left = cpu;
    show(b, t, ts, ready ? STATE_WAIT_FOR_CPU : STATE_WAIT_BLOCKED);
    rest(b, t, ready ? THREAD_READY : THREAD_BLOCKED);
}

void state_builder_thread_was_there(
    struct state_builder *b, int32_t row, int32_t cpu, int64_t since, uint32_t first_call)
{
    struct builder_thread *t = builder_thread(b, row);
    if (!t || t->state == THREAD_RUNNING || t->state == THREAD_GONE)
        return;
    state_series_cut(&t->series, since);
    forget_wake(b, t);
    doubt_call(b, t, since);
    forget_mode(t);
    t->call = first_call;
    t->mode_known |= first_call != 0;
    run(b, t, cpu, since);
}

void state_builder_thread_interrupt(struct state_builder *b, int32_t row, int32_t cpu, int64_t ts, bool interrupted)
{
    struct builder_thread *t = builder_thread(b, row);
    if (t && t->state == THREAD_RUNNING && t->cpu == cpu)
        show(b, t, ts, interrupted ? STATE_INTERRUPTED : mode(t));
}

/* ---- system calls ---- */

/* Handles the futex of the call. */
static void call_futex(
    struct state_builder *b, struct builder_thread *t, int32_t row, int64_t ts, uint64_t futex, uint8_t operation)
{
    uint8_t value = operation < STATE_FUTEX_OPERATIONS ? state_futex_operations[operation].value : STATE_NONE;
    if (value == STATE_NONE)
        return;
    uint32_t code = state_builder_lock_code(b, row, futex);
    state_builder_futex_call(b, &t->futex, row, ts, code, operation);
    if (value == STATE_FUTEX_WAIT)
        t->lock_latency = state_latency_open(&b->latencies[STATE_LATENCY_LOCK], ts, row, code);
}

void state_builder_thread_call(
    struct state_builder *b, int32_t row, int32_t cpu, int64_t ts, uint32_t code, uint64_t futex, uint8_t operation)
{
    struct builder_thread *t = builder_thread(b, row);
    if (!t || t->state != THREAD_RUNNING || t->cpu != cpu)
        return;
    if (!t->mode_known && t->call) /* user mode all the while, then */
        state_series_rename(&t->series, t->mode_since, t->call, STATE_USERMODE);
    forget_call(b, t, ts); /* return may be missing, as for rt_sigreturn */
    t->call = code;
    t->mode_known = true;
    t->call_latency = state_latency_open(&b->latencies[STATE_LATENCY_SYSCALL], ts, row, code);
    if (futex)
        call_futex(b, t, row, ts, futex, operation);
    show(b, t, ts, code);
}

void state_builder_thread_return(
    struct state_builder *b, int32_t row, int32_t cpu, int64_t ts, uint32_t code, int64_t ret)
{
    struct builder_thread *t = builder_thread(b, row);
    if (!t || t->state != THREAD_RUNNING || t->cpu != cpu)
        return;
    if (!t->mode_known && t->call != code) /* in that call all the while, then */
        state_series_rename(&t->series, t->mode_since, mode(t), code);
    t->mode_known = true;
    if (t->call_latency && t->call == code) {
        state_builder_futex_return(b, &t->futex, ts, ret);
        state_latency_close(&b->latencies[STATE_LATENCY_SYSCALL], t->call_latency, ts, ret, cpu);
        if (t->lock_latency)
            state_latency_close(&b->latencies[STATE_LATENCY_LOCK], t->lock_latency, ts, ret, cpu);
        t->call_latency = t->lock_latency = 0;
    }
    forget_call(b, t, ts);
    show(b, t, ts, mode(t));
}

/* ---- wakes and births ---- */

static void measure_wake(struct state_builder *b, struct builder_thread *t, int32_t row, int64_t ts)
{
    t->wake_latency = state_latency_open(&b->latencies[STATE_LATENCY_SCHED], ts, row, 0);
    rest(b, t, THREAD_READY);
}

void state_builder_thread_wake(struct state_builder *b, const struct kernel_record *r)
{
    int32_t row = r->u.wake.row;
    int64_t ts = r->ts;
    uint8_t kind = r->kind;
    /* Besides sched_waking, the event of the run queue repeats a known wake. */
    bool queued = kind == KERNEL_WAKEUP && kernel_tracker_has(b->tracker, KERNEL_WAKE);
    struct builder_thread *t = builder_thread(b, row);
    if (!t || t->state == THREAD_RUNNING || t->state == THREAD_GONE)
        return;
    if (kind == KERNEL_WAKE_NEW && t->state == THREAD_READY && !t->wake_latency) {
        measure_wake(b, t, row, ts); /* ready since its fork, and now on a run queue */
        return;
    }
    if (t->state == THREAD_READY) {
        if (queued || !b->n_losses || !doubtful(b, t))
            return;
        state_series_amend(&t->series, STATE_UNKNOWN); /* ran and waited again unseen */
        forget_wake(b, t);
    }
    /* sched_waking names the last CPU of the thread. */
    t->stayed = t->state == THREAD_BLOCKED && kind == KERNEL_WAKE && !r->u.wake.by_wakeup && t->left >= 0 &&
        t->left == r->u.wake.target_cpu && !b->cpus.v[t->left].absent;
    show(b, t, ts, STATE_WAIT_FOR_CPU);
    t->stayed = false;
    measure_wake(b, t, row, ts);
}

/* A child starts in the call of its parent, whose return it will show. */
void state_builder_thread_fork(struct state_builder *b, int32_t parent, int32_t child, int64_t ts)
{
    struct builder_thread *t = builder_thread(b, child);
    if (!t || t->state != THREAD_UNSEEN)
        return;
    show(b, t, ts, STATE_WAIT_FOR_CPU);
    if (parent >= 0 && (size_t)parent < b->threads.n)
        t->call = b->threads.v[parent].call;
    t->mode_known = true;
    rest(b, t, THREAD_READY);
}

/* Ends any wait of the thread. */
void state_builder_thread_exit(struct state_builder *b, int32_t row, int64_t ts)
{
    struct builder_thread *t = builder_thread(b, row);
    if (t)
        state_builder_futex_cut(b, &t->futex, ts);
}

void state_builder_thread_free(struct state_builder *b, int32_t row, int64_t ts)
{
    struct builder_thread *t = builder_thread(b, row);
    if (!t || t->state == THREAD_GONE || t->state == THREAD_RUNNING)
        return;
    if (b->n_losses)
        state_builder_gap_settle(b, t, ts, STATE_NONE);
    forget_call(b, t, ts);
    forget_wake(b, t);
    t->state = THREAD_GONE;
}

void state_builder_thread_dumped(struct state_builder *b, int32_t row, int64_t ts, uint8_t status)
{
    struct builder_thread *t = builder_thread(b, row);
    if (!t || t->idle || (t->state != THREAD_UNSEEN && t->state != THREAD_UNKNOWN))
        return;
    if (status == KERNEL_DUMPED_WAITING) {
        show(b, t, ts, STATE_WAIT_UNKNOWN);
        rest(b, t, THREAD_BLOCKED);
    } else if (status == KERNEL_DUMPED_QUEUED) {
        show(b, t, ts, STATE_WAIT_FOR_CPU);
        rest(b, t, THREAD_READY);
    } else if (status == KERNEL_DUMPED_ZOMBIE || status == KERNEL_DUMPED_DEAD) {
        show(b, t, ts, STATE_NONE); /* still unknown: it may be leaving a CPU */
    }
}
