/* SPDX-License-Identifier: MIT */
/* Notes on spans that were read: left out, repaired, or contradictory. */
#include "span/analysis.h"

#include "base/mem.h"

static void add(struct spans_notes *out, struct spans_note note)
{
    vec_push(out, note);
}

static const char *plural(uint64_t n)
{
    return n > 1 ? "s" : "";
}

void spans_note_file(const char *path, const struct span_told *told, struct arena *a, struct spans_notes *out)
{
    const char *file = arena_strdup(a, path);
    if (told->refused)
        add(out,
            (struct spans_note){file,
                arena_printf(
                    a, "%llu span%s left out: %s", (unsigned long long)told->refused, plural(told->refused), told->why),
                "Correct the program that wrote them; all other spans are shown", NULL, told->refused, true});
    if (told->repaired)
        add(out,
            (struct spans_note){file,
                arena_printf(a, "%llu span%s put right (texts that are no UTF-8, ends before begins)",
                    (unsigned long long)told->repaired, plural(told->repaired)),
                "Nothing; all spans are shown", NULL, told->repaired, false});
    if (*told->warning)
        add(out,
            (struct spans_note){
                file, arena_strdup(a, told->warning), "Get the spans again from where they are stored", NULL, 1, true});
}

static void note_clocks(const struct spans_told *t, struct arena *a, struct spans_notes *out)
{
    struct text far = {.fd = -1};
    if (!t->skewed)
        return;
    text_duration(&far, t->skew_most_ns);
    add(out,
        (struct spans_note){NULL,
            arena_printf(a,
                "clocks differ: %zu server span%s as recorded cannot be right beside %s caller's; moved into it, by up "
                "to %s",
                t->skewed, plural(t->skewed), t->skewed > 1 ? "their" : "its", text_cstr(&far)),
            "Synchronise the clocks of these machines (NTP or PTP)", NULL, t->skewed, false});
    text_fini(&far);
}

void spans_note_settled(const struct spans *s, struct arena *a, struct spans_notes *out)
{
    const struct spans_told *t = spans_told(s);
    note_clocks(t, a, out);
    if (t->circles)
        add(out,
            (struct spans_note){NULL,
                arena_printf(a, "%zu span%s named as forebears of themselves: each begins a tree", t->circles,
                    t->circles > 1 ? "s were" : " was"),
                "Give each span an id of its own", NULL, t->circles, false});
    if (t->doubtful)
        add(out,
            (struct spans_note){NULL,
                arena_printf(a, "%zu stage%s could belong to another job as well", t->doubtful, plural(t->doubtful)),
                "Give each job an attribute of its own", "give each job an attribute of its own (--group KEY)",
                t->doubtful, false});
}
