/* SPDX-License-Identifier: MIT */
/* CSV (RFC 4180): ts,host,cpu,name,fields; `fields` is the text format's part after the packet context. */
#include "base/shown.h"
#include "ctf/print_line.h"

void print_csv_header(struct text *out)
{
    text_puts(out, "ts,host,cpu,name,fields\n");
}

static void put_start(const struct print_source *s, int64_t ts, bool has_ts, int32_t cpu, struct text *out)
{
    if (has_ts)
        text_i64(out, ts);
    text_putc(out, ',');
    if (s->host)
        shown_cell(out, s->host);
    text_putc(out, ',');
    if (cpu >= 0)
        text_u64(out, (uint64_t)cpu);
    text_putc(out, ',');
}

void print_csv_event(struct ctf_print *p, const struct print_source *s, const struct print_plan *plan,
    const struct ctf_event *ev, struct text *out)
{
    put_start(s, ev->ts, plan->has_clock, ev->cpu, out);
    if (ev->cls->name)
        shown_cell(out, ev->cls->name);
    text_putc(out, ',');
    p->scratch.n = 0;
    print_plan_run(plan, ev, &p->scratch);
    shown_cell_n(out, p->scratch.v, p->scratch.n);
    text_putc(out, '\n');
}

void print_csv_loss(const struct print_source *s, const struct ctf_event *ev, struct text *out)
{
    const struct ctf_loss *loss = (const void *)ev->data;
    put_start(s, ev->ts, loss->begin_known || loss->end_known, ev->cpu, out);
    text_puts(out, ev->cls->item == CTF_LOST_EVENTS ? "lost_events," : "lost_packets,");
    text_u64(out, loss->count);
    text_putc(out, '\n');
}
