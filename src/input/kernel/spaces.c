/* SPDX-License-Identifier: MIT */
/* Namespaces of threads, as shown by forks, system calls, state dumps and contexts, and the containers that they form.
 * Unreported ones are unknown: nothing is derived from names or neighbours. */
#include "kernel/spaces.h"

#include <stdlib.h>
#include <string.h>

#include "base/carry.h"
#include "kernel/tracker.h"

/* Linux' numbers of the machine's own namespaces (PROC_PID_INIT_INO and others); its network has no fixed one. */
enum { KTHREADD = 2 };
static const uint32_t first_inum[KERNEL_SPACE_KINDS] = {
    [KERNEL_SPACE_PID] = 0xeffffffc, [KERNEL_SPACE_UTS] = 0xeffffffe, [KERNEL_SPACE_CGROUP] = 0xeffffffb};
/* CLONE_NEW… */
static const uint32_t new_flag[KERNEL_SPACE_KINDS] = {[KERNEL_SPACE_PID] = 0x20000000,
    [KERNEL_SPACE_NET] = 0x40000000,
    [KERNEL_SPACE_UTS] = 0x04000000,
    [KERNEL_SPACE_CGROUP] = 0x02000000};

/* ---- namespaces ---- */

static struct kernel_space *space(struct kernel_tracker *t, int32_t number)
{
    return &t->spaces.v[number];
}

static uint64_t key_of(uint8_t kind, uint32_t inum)
{
    return (uint64_t)kind << 32 | inum;
}

static int32_t find(const struct kernel_tracker *t, uint8_t kind, uint32_t inum)
{
    const uint64_t *found = map_find(&t->space_by_inum, key_of(kind, inum));
    return found && t->spaces.v[*found].bound ? (int32_t)*found : KERNEL_SPACE_UNKNOWN;
}

/* Binds a number to a namespace; its former owner is gone, since numbers are unique at a time. */
static void bind(struct kernel_tracker *t, int32_t number, uint32_t inum)
{
    struct kernel_space *s = space(t, number);
    int32_t before = find(t, s->kind, inum);
    if (before)
        space(t, before)->bound = false;
    *map_put(&t->space_by_inum, key_of(s->kind, inum), NULL) = (uint64_t)number;
    s->inum = inum;
    s->bound = true;
}

static int32_t make(struct kernel_tracker *t, uint8_t kind, bool created)
{
    if (!t->spaces.n)
        vec_push(&t->spaces, ((struct kernel_space){.first = KERNEL_NO_ROW}));
    if (t->spaces.n >= INT32_MAX)
        return KERNEL_SPACE_UNKNOWN;
    vec_push(
        &t->spaces, ((struct kernel_space){.since = t->now, .first = KERNEL_NO_ROW, .kind = kind, .created = created}));
    return (int32_t)t->spaces.n - 1;
}

/* Returns whether it is surely not the machine's. */
static bool is_own(const struct kernel_tracker *t, int32_t number)
{
    if (number <= KERNEL_SPACE_UNKNOWN)
        return false;
    const struct kernel_space *s = &t->spaces.v[number];
    uint32_t first = s->kind == KERNEL_SPACE_NET ? t->first_net : first_inum[s->kind];
    return s->created || (s->inum && first && s->inum != first);
}

/* A cgroup namespace is within a pid namespace, which is within a network: at most two steps. */
static int32_t outermost(const struct kernel_tracker *t, int32_t number)
{
    for (int step = 0; step < 2 && is_own(t, t->spaces.v[number].within); step++)
        number = t->spaces.v[number].within;
    return number;
}

static int32_t container_of(const struct kernel_tracker *t, const struct kernel_spaces_of *of)
{
    static const uint8_t kinds[] = {KERNEL_SPACE_PID, KERNEL_SPACE_NET, KERNEL_SPACE_CGROUP};
    for (size_t i = 0; i < sizeof kinds; i++)
        if (is_own(t, of->in[kinds[i]]))
            return outermost(t, of->in[kinds[i]]);
    return KERNEL_SPACE_UNKNOWN;
}

/* Updates the container of a row whose namespaces have changed. */
static void settle(struct kernel_tracker *t, int32_t row)
{
    const struct kernel_spaces_of *of = &t->lives.v[row].spaces;
    int32_t pid = of->in[KERNEL_SPACE_PID], net = of->in[KERNEL_SPACE_NET], uts = of->in[KERNEL_SPACE_UTS],
            cgroup = of->in[KERNEL_SPACE_CGROUP];
    if (is_own(t, cgroup) && space(t, cgroup)->first == row)
        space(t, cgroup)->within = is_own(t, pid) ? pid : net;
    if (is_own(t, pid) && space(t, pid)->first == row) {
        space(t, pid)->within = net;
        if (net && !space(t, net)->pid)
            space(t, net)->pid = pid;
    }
    int32_t container = container_of(t, of);
    if (container && !space(t, container)->uts && is_own(t, uts))
        space(t, container)->uts = uts;
}

static void leave(struct kernel_tracker *t, int32_t row, uint8_t kind)
{
    int32_t number = t->lives.v[row].spaces.in[kind];
    struct kernel_space *s = number ? space(t, number) : NULL;
    if (!s)
        return;
    s->members--;
    if (s->first == row) {
        s->first = KERNEL_NO_ROW;
        s->first_name = t->threads.v[row].name;
    }
    if (kind == KERNEL_SPACE_PID && s->members <= 0)
        s->bound = false; /* a pid namespace ends with its first process; nobody can enter it any more */
}

static void go(struct kernel_tracker *t, int32_t row, uint8_t kind, int32_t number)
{
    int32_t *in = &t->lives.v[row].spaces.in[kind];
    if (*in == number)
        return;
    leave(t, row, kind);
    *in = number;
    if (!number)
        return;
    struct kernel_space *s = space(t, number);
    s->members++;
    if (!s->tid) {
        s->tid = t->threads.v[row].tid;
        s->first = row;
    }
}

static void go_new(struct kernel_tracker *t, int32_t row, uint8_t kind)
{
    go(t, row, kind, make(t, kind, true));
}

/* Joins two namespaces that are one: its creation in the row was seen, but its number was first reported for others in
 * it. Knowledge of it moves to the one with the number, and so does each thread when it is reported. */
static void join(struct kernel_tracker *t, int32_t row, uint8_t kind, int32_t into)
{
    const struct kernel_space from = *space(t, t->lives.v[row].spaces.in[kind]);
    go(t, row, kind, into);
    struct kernel_space *s = space(t, into);
    s->created = true;
    s->name = s->name ? s->name : from.name;
    s->uts = s->uts ? s->uts : from.uts;
    s->pid = s->pid ? s->pid : from.pid;
    if (from.first == row)
        s->first = row;
}

void kernel_spaces_tell(struct kernel_tracker *t, int32_t row, uint8_t kind, uint32_t inum)
{
    struct kernel_spaces_of *of = &t->lives.v[row].spaces;
    int32_t now = of->in[kind];
    if (!inum || (now && space(t, now)->inum == inum))
        return;
    const struct kernel_thread *k = &t->threads.v[row];
    if (k->died)
        return;
    if (kind == KERNEL_SPACE_NET && (k->tid == KTHREADD || k->idle_cpu >= 0))
        t->first_net = inum; /* the kernel's own threads never leave it */
    int32_t known = find(t, kind, inum);
    if (now && !space(t, now)->inum && inum != first_inum[kind] && inum != t->first_net) {
        bool same = known && space(t, known)->members && space(t, known)->since >= space(t, now)->since;
        if (same)
            join(t, row, kind, known);
        else
            bind(t, now, inum);
    } else {
        if (!known && (known = make(t, kind, false)))
            bind(t, known, inum);
        go(t, row, kind, known);
    }
    settle(t, row);
}

/* ---- lives ---- */

static int32_t pid_space_of_child(struct kernel_tracker *t, const struct kernel_spaces_of *from, uint32_t inum,
    int32_t vtid, size_t levels, bool is_new)
{
    int32_t expected = from->children ? from->children : from->in[KERNEL_SPACE_PID];
    bool first = levels > 1 && vtid == 1, told = inum != 0 && inum != first_inum[KERNEL_SPACE_PID];
    if (is_new || (first && (expected <= 0 || space(t, expected)->tid))) {
        expected = make(t, KERNEL_SPACE_PID, true);
    } else if (inum && (expected <= 0 || (space(t, expected)->inum && space(t, expected)->inum != inum))) {
        int32_t known = find(t, KERNEL_SPACE_PID, inum);
        expected = known ? known : make(t, KERNEL_SPACE_PID, told);
    }
    if (inum && expected > 0 && !space(t, expected)->inum)
        bind(t, expected, inum);
    return expected > 0 ? expected : KERNEL_SPACE_UNKNOWN;
}

void kernel_spaces_fork(
    struct kernel_tracker *t, int32_t parent, int32_t child, uint32_t inum, int32_t vtid, size_t levels)
{
    static const struct kernel_spaces_of nowhere;
    const struct kernel_spaces_of from = parent >= 0 ? t->lives.v[parent].spaces : nowhere;
    uint32_t flags = from.call == KERNEL_SPACE_CLONE ? from.argument : 0;
    int32_t pid = pid_space_of_child(t, &from, inum, vtid, levels, flags & new_flag[KERNEL_SPACE_PID]);
    bool made = pid && pid != from.children && !space(t, pid)->tid;
    /* A call that made one namespace may have made others, if it does not report its flags. */
    bool hidden = made && !(flags & new_flag[KERNEL_SPACE_PID]) &&
        (from.call == KERNEL_SPACE_CLONE3 || !t->binding->tells_spaces);
    go(t, child, KERNEL_SPACE_PID, pid);
    t->lives.v[child].spaces.level = (int16_t)(levels > 1 ? levels - 1 : 0);
    for (uint8_t kind = KERNEL_SPACE_NET; kind < KERNEL_SPACE_KINDS; kind++) {
        if (flags & new_flag[kind])
            go_new(t, child, kind);
        else
            go(t, child, kind, hidden ? KERNEL_SPACE_UNKNOWN : from.in[kind]);
    }
    settle(t, child);
}

void kernel_spaces_die(struct kernel_tracker *t, int32_t row)
{
    struct kernel_spaces_of *of = &t->lives.v[row].spaces;
    if (t->threads.v[row].died)
        return;
    of->container = container_of(t, of);
    if (of->container)
        space(t, of->container)->lasting = true;
    for (uint8_t kind = 0; kind < KERNEL_SPACE_KINDS; kind++)
        leave(t, row, kind);
}

/* ---- system calls ---- */

uint8_t kernel_space_call(const char *name, const char *fields[2], const char **text)
{
    static const struct {
        const char *name, *fields[2], *text;
        uint8_t call;
    } calls[] = {{"clone", {"clone_flags|flags", NULL}, NULL, KERNEL_SPACE_CLONE},
        {"clone3", {NULL, NULL}, NULL, KERNEL_SPACE_CLONE3},
        {"unshare", {"unshare_flags|flags", NULL}, NULL, KERNEL_SPACE_UNSHARE},
        {"setns", {"nstype|flags", "fd"}, NULL, KERNEL_SPACE_SETNS},
        {"sethostname", {"len", NULL}, "name", KERNEL_SPACE_SETHOSTNAME}};
    for (size_t i = 0; name && i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i].name, name)) {
            memcpy(fields, calls[i].fields, sizeof calls[i].fields);
            *text = calls[i].text;
            return calls[i].call;
        }
    return KERNEL_SPACE_NO_CALL;
}

/* Validates a name, which any process may write: printable and without blanks, as host names are. Returns
 * KERNEL_NO_STRING if invalid. */
static uint32_t name_of(struct kernel_tracker *t, const char *text, size_t n)
{
    if (!n || n > KERNEL_MOST_NAME)
        return KERNEL_NO_STRING;
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return KERNEL_NO_STRING;
    return strings_intern(&t->names, text, n);
}

void kernel_spaces_entry(struct kernel_tracker *t, int32_t row, const struct ctf_event *ev, const struct kernel_plan *p,
    int64_t first, int64_t second)
{
    struct kernel_spaces_of *of = &t->lives.v[row].spaces;
    of->call = p->space_call;
    of->argument = (uint32_t)first;
    if (of->call != KERNEL_SPACE_SETHOSTNAME)
        return;
    size_t n;
    const char *text = kernel_text(ev, p, 0, &n);
    of->argument = name_of(t, text, first >= 0 && (uint64_t)first < n ? (size_t)first : n);
}

/* Records that the row has entered unknown namespaces of these kinds. */
static void enter(struct kernel_tracker *t, int32_t row, uint32_t kinds)
{
    struct kernel_spaces_of *of = &t->lives.v[row].spaces;
    for (uint8_t kind = KERNEL_SPACE_NET; kind < KERNEL_SPACE_KINDS; kind++)
        if (!kinds || (kinds & new_flag[kind]))
            go(t, row, kind, KERNEL_SPACE_UNKNOWN);
    if (!kinds || (kinds & new_flag[KERNEL_SPACE_PID]))
        of->children = -1;
}

static void unshare(struct kernel_tracker *t, int32_t row, uint32_t flags)
{
    for (uint8_t kind = KERNEL_SPACE_NET; kind < KERNEL_SPACE_KINDS; kind++)
        if (flags & new_flag[kind])
            go_new(t, row, kind);
    if (flags & new_flag[KERNEL_SPACE_PID])
        t->lives.v[row].spaces.children = make(t, KERNEL_SPACE_PID, true);
}

void kernel_spaces_exit(struct kernel_tracker *t, int32_t row, int64_t ret)
{
    struct kernel_spaces_of *of = &t->lives.v[row].spaces;
    uint8_t call = of->call;
    uint32_t argument = of->argument;
    of->call = KERNEL_SPACE_NO_CALL;
    of->argument = 0;
    if (ret < 0 || t->threads.v[row].died)
        return;
    if (call == KERNEL_SPACE_UNSHARE)
        unshare(t, row, argument);
    else if (call == KERNEL_SPACE_SETNS)
        enter(t, row, argument);
    else if (call == KERNEL_SPACE_SETHOSTNAME && of->in[KERNEL_SPACE_UTS])
        space(t, of->in[KERNEL_SPACE_UTS])->name = argument;
    else
        return;
    settle(t, row);
}

void kernel_spaces_said(struct kernel_tracker *t, int32_t row, const char *text, size_t n)
{
    static const char says[] = "weft-container ";
    size_t before = sizeof says - 1;
    while (n && text[n - 1] == '\n')
        n--;
    if (n <= before || memcmp(text, says, before))
        return;
    int32_t container = container_of(t, &t->lives.v[row].spaces);
    uint32_t name = container ? name_of(t, text + before, n - before) : KERNEL_NO_STRING;
    if (name)
        space(t, container)->name = name;
}

/* ---- public functions ---- */

int32_t kernel_tracker_container(const struct kernel_tracker *t, int32_t row)
{
    const struct kernel_spaces_of *of = &t->lives.v[row].spaces;
    return t->threads.v[row].died ? of->container : container_of(t, of);
}

int32_t kernel_tracker_containers(const struct kernel_tracker *t)
{
    return t->spaces.n ? (int32_t)t->spaces.n : 1;
}

static uint32_t inum_of(const struct kernel_tracker *t, int32_t number)
{
    return t->spaces.v[number].inum;
}

void kernel_tracker_container_is(const struct kernel_tracker *t, int32_t container, struct kernel_container *out)
{
    const struct kernel_space *s = &t->spaces.v[container], *of = s->pid ? &t->spaces.v[s->pid] : s;
    *out = (struct kernel_container){.since = s->since,
        .tid = s->tid,
        .kind = s->kind,
        .lasting = s->lasting,
        .net_ns = s->kind == KERNEL_SPACE_NET ? s->inum : inum_of(t, s->within),
        .pid_ns = s->kind == KERNEL_SPACE_PID ? s->inum : inum_of(t, s->pid),
        .uts_ns = inum_of(t, s->uts),
        .cgroup_ns = s->kind == KERNEL_SPACE_CGROUP ? s->inum : 0,
        .name = s->name ? s->name : t->spaces.v[s->uts].name,
        .first = of->first >= 0 ? t->threads.v[of->first].name : of->first_name};
}

/* ---- cuts ---- */

static void keep(struct kernel_tracker *t, int32_t number, bool *kept)
{
    if (number <= 0 || kept[number])
        return;
    kept[number] = true;
    keep(t, space(t, number)->within, kept);
    keep(t, space(t, number)->uts, kept);
    keep(t, space(t, number)->pid, kept);
}

/* Numbers the namespaces of continuing rows, and the latest of the empty ones that can still be entered, of which a
 * trace may have any number. Keeps their order. */
static void number_spaces(struct kernel_tracker *t)
{
    enum { MOST_EMPTY = 4096 };
    bool *kept = mem_zalloc(t->spaces.n + 1);
    for (size_t i = 0; i < t->leaving.n; i++) {
        const struct kernel_spaces_of *of = &t->lives.v[t->leaving.v[i]].spaces;
        for (int kind = 0; kind < KERNEL_SPACE_KINDS; kind++)
            keep(t, of->in[kind], kept);
        keep(t, of->container, kept);
        keep(t, of->children, kept);
    }
    t->leaving_spaces.n = 0;
    t->n_leaving_spaces = 0;
    for (size_t i = t->spaces.n, empty = 0; i-- > 1;)
        if (t->spaces.v[i].bound && (t->spaces.v[i].members > 0 || empty++ < MOST_EMPTY))
            keep(t, (int32_t)i, kept);
    for (size_t i = 0; i < t->spaces.n; i++)
        vec_push(&t->leaving_spaces, 0);
    for (size_t i = 1; i < t->spaces.n; i++)
        if (kept[i])
            t->leaving_spaces.v[i] = (int32_t)++t->n_leaving_spaces;
    free(kept);
}

/* Visits a number of a namespace; least: -1 or 0. */
static void visit_number(struct kernel_tracker *t, struct carry *c, int32_t *number, int32_t least)
{
    int32_t n = *number;
    if (c->way == CARRY_SAVE && n > 0)
        n = t->leaving_spaces.v[n];
    carry_number(c, &n);
    if (c->way != CARRY_LOAD)
        return;
    bool known = n >= least && n <= (int32_t)t->n_leaving_spaces;
    c->damaged |= !known;
    *number = known ? n : 0;
}

static void visit_space(struct kernel_tracker *t, struct carry *c, struct kernel_space *s)
{
    int32_t first = s->first;
    uint32_t name = s->first_name;
    carry_number(c, &s->since);
    carry_number(c, &s->tid);
    carry_row(c, &first);
    carry_string(c, &t->names, &name);
    carry_number(c, &s->inum);
    carry_string(c, &t->names, &s->name);
    visit_number(t, c, &s->within, 0);
    visit_number(t, c, &s->uts, 0);
    visit_number(t, c, &s->pid, 0);
    carry_below(c, &s->kind, KERNEL_SPACE_KINDS);
    carry_bool(c, &s->created);
    carry_bool(c, &s->bound);
    carry_bool(c, &s->lasting);
    if (c->way != CARRY_LOAD)
        return;
    s->first = first;
    s->first_name = name;
}

void kernel_spaces_carry(struct kernel_tracker *t, struct carry *c)
{
    carry_number(c, &t->first_net);
    if (c->way == CARRY_MARK)
        return;
    if (c->way == CARRY_SAVE)
        number_spaces(t);
    size_t n = carry_count(c, t->n_leaving_spaces, sizeof(struct kernel_space) / 2);
    if (c->way == CARRY_SAVE) {
        for (size_t i = 1; i < t->spaces.n; i++)
            if (t->leaving_spaces.v[i])
                visit_space(t, c, space(t, (int32_t)i));
        return;
    }
    t->n_leaving_spaces = n;
    for (size_t i = 0; i < n && !c->damaged; i++) {
        int32_t number = make(t, 0, false);
        visit_space(t, c, space(t, number));
        const struct kernel_space *s = space(t, number);
        if (s->bound)
            *map_put(&t->space_by_inum, key_of(s->kind, s->inum), NULL) = (uint64_t)number;
    }
    if (c->damaged) { /* references to missing namespaces */
        t->spaces.n = 0;
        map_fini(&t->space_by_inum);
    }
}

/* Visits a carried row; a living one is a member. */
void kernel_spaces_carry_life(struct kernel_tracker *t, struct carry *c, struct kernel_spaces_of *of, bool lives)
{
    for (uint8_t kind = 0; kind < KERNEL_SPACE_KINDS; kind++) {
        visit_number(t, c, &of->in[kind], 0);
        struct kernel_space *s = c->way == CARRY_LOAD && of->in[kind] && !c->damaged ? space(t, of->in[kind]) : NULL;
        if (s && s->kind != kind)
            c->damaged = true;
        else if (s && lives)
            s->members++;
    }
    visit_number(t, c, &of->container, 0);
    visit_number(t, c, &of->children, -1);
    carry_below(c, &of->call, KERNEL_SPACE_CALLS);
    carry_number(c, &of->level);
    if (of->call == KERNEL_SPACE_SETHOSTNAME)
        carry_string(c, &t->names, &of->argument);
    else
        carry_number(c, &of->argument);
}

void kernel_spaces_fini(struct kernel_tracker *t)
{
    vec_free(&t->spaces);
    vec_free(&t->leaving_spaces);
    map_fini(&t->space_by_inum);
}
