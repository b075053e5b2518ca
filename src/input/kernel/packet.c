/* SPDX-License-Identifier: MIT */
/* Network headers of net_dev_queue and net_if_receive_skb (lttng-modules >= 2.8): the fields of the packet's headers,
 * behind variants' tags. The position of each in its header, its size and byte order are found once per class: they
 * differ with the tracer's version, the machine and the tool that wrote the trace. Events are read at these offsets,
 * without comparing names or walking types. */
#include <string.h>

#include "kernel/binding.h"

enum { IPV6_BYTES = 40, PROTO_TCP = 6, PROTO_UDP = 17, MOST_LEAF_BITS = 32, MOST_ADDRESS_BITS = 128 };

struct leaf { /* integer at a fixed offset in its struct; no bits: absent */
    uint32_t at;
    uint8_t bits;
    bool big_endian, is_signed;
};

struct address { /* array of whole bytes */
    struct leaf element;
    uint32_t n, stride;
};

struct transport {
    uint32_t align; /* alignment of the struct */
    struct leaf sport, dport, seq, ack, data_offset, flags, len;
};

/* Choice of a variant's option: the first range that contains the tag. */
struct choice {
    int64_t lo, hi;
    const void *option; /* NULL: an option without information */
};
struct choices {
    uint32_t n, align; /* options of the variant */
    struct choice *v;
};

struct network {
    uint32_t align;
    struct leaf ihl, total, payload_len, ip_id, protocol, next_header, tag;
    struct address source, target;
    uint64_t transport_at;
    struct choices transports;
};

struct kernel_header_plan {
    const struct ctf_type *payload;
    struct ctf_access string;     /* last field of varying size before the header, if any */
    uint32_t first, tag, variant; /* offsets of the first field behind that string, tag, header */
    struct choices networks;
};

/* ---- offsets ---- */

static const char *plain(const char *name)
{
    return name[0] == '_' ? name + 1 : name;
}

static uint64_t align_up(uint64_t bits, uint32_t align)
{
    return align > 1 ? (bits + align - 1) & ~((uint64_t)align - 1) : bits;
}

static const struct ctf_type *field_type(const struct ctf_type *t, const char *name)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (!strcmp(plain(t->u.fields[i].name), name))
            return t->u.fields[i].type;
    return NULL;
}

/* Position of a field in a struct in bits, -1 if it is absent or not fixed. */
static int64_t field_bits(const struct ctf_type *t, const char *name)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct ctf_type *f = t->u.fields[i].type;
        bits = align_up(bits, f->align_bits);
        if (!strcmp(plain(t->u.fields[i].name), name))
            return bits <= INT32_MAX ? (int64_t)bits : -1;
        if (f->size_bits < 0)
            return -1;
        bits += (uint64_t)f->size_bits;
    }
    return -1;
}

static struct leaf leaf_of(const struct ctf_type *t, int64_t at)
{
    const struct ctf_type *number = t && t->kind == CTF_ENUM ? t->u.enumeration.container : t;
    if (!number || number->kind != CTF_INT || at < 0 || number->size_bits < 1 || number->is_reversed ||
        number->size_bits > MOST_LEAF_BITS)
        return (struct leaf){0};
    bool byte = number->size_bits == 8 && at % 8 == 0; /* single bytes have no order */
    return (struct leaf){(uint32_t)at, (uint8_t)number->size_bits, number->big_endian || byte, number->is_signed};
}

static struct leaf leaf(const struct ctf_type *t, const char *name)
{
    return leaf_of(field_type(t, name), field_bits(t, name));
}

static struct address address(const struct ctf_type *t, const char *name)
{
    const struct ctf_type *list = field_type(t, name);
    if (!list || list->kind != CTF_ARRAY)
        return (struct address){0};
    const struct ctf_type *el = list->u.list.element;
    struct address a = {.element = leaf_of(el, field_bits(t, name)), .n = list->n};
    if (!a.element.bits || a.element.bits % 8 || a.n * (uint64_t)a.element.bits > MOST_ADDRESS_BITS)
        return (struct address){0};
    a.stride = (uint32_t)align_up(a.element.bits, el->align_bits);
    return a;
}

static unsigned address_bytes(const struct address *a)
{
    return a->n * a->element.bits / 8;
}

/* ---- binding ---- */

typedef const void *bind_option(struct arena *, const struct ctf_type *option);

static struct choices bind_choices(struct arena *a, const struct ctf_type *variant, bind_option *bind)
{
    const struct ctf_choice *of;
    uint32_t n = ctf_variant_choices(variant, &of);
    struct choices c = {.align = variant->align_bits};
    c.v = arena_new(a, struct choice, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct ctf_type *t = variant->u.fields[of[i].option].type;
        c.v[c.n++] = (struct choice){of[i].lo, of[i].hi, t->kind == CTF_STRUCT ? bind(a, t) : NULL};
    }
    return c;
}

static const void *bind_transport(struct arena *a, const struct ctf_type *t)
{
    struct transport *p = arena_new(a, struct transport, 1);
    *p = (struct transport){.align = t->align_bits,
        .sport = leaf(t, "source_port"),
        .dport = leaf(t, "dest_port"),
        .seq = leaf(t, "seq"),
        .ack = leaf(t, "ack_seq"),
        .data_offset = leaf(t, "data_offset"),
        .flags = leaf(t, "flags"),
        .len = leaf(t, "len")};
    return p->sport.bits ? p : NULL;
}

/* Tag in a struct that selects its field `variant`; absent if it is elsewhere. */
static struct leaf tag_leaf(const struct ctf_type *t, const struct ctf_type *variant)
{
    const struct ctf_type *tag = ctf_variant_tag(variant);
    for (uint32_t i = 0; tag && i < t->n; i++)
        if (t->u.fields[i].type == tag)
            return leaf(t, plain(t->u.fields[i].name));
    return (struct leaf){0};
}

static const void *bind_network(struct arena *a, const struct ctf_type *t)
{
    struct network *p = arena_new(a, struct network, 1);
    *p = (struct network){.align = t->align_bits,
        .ihl = leaf(t, "ihl"),
        .total = leaf(t, "tot_len"),
        .payload_len = leaf(t, "payload_len"),
        .ip_id = leaf(t, "id"),
        .protocol = leaf(t, "protocol"),
        .next_header = leaf(t, "nexthdr"),
        .source = address(t, "saddr"),
        .target = address(t, "daddr")};
    const struct ctf_type *variant = field_type(t, "transport_header");
    int64_t at = field_bits(t, "transport_header");
    if (variant && variant->kind == CTF_VARIANT && at >= 0) {
        p->tag = tag_leaf(t, variant);
        p->transport_at = (uint64_t)at;
        p->transports = bind_choices(a, variant, bind_transport);
    }
    return p->source.n ? p : NULL;
}

/* Finds the offsets of the tag and the header: behind the last string before them, or behind fields of fixed size
 * only. */
static bool bind_offsets(struct kernel_header_plan *p, const struct ctf_event_class *c)
{
    const struct ctf_type *payload = p->payload = c->scope[CTF_PAYLOAD];
    while (p->variant < payload->n && strcmp(plain(payload->u.fields[p->variant].name), "network_header"))
        p->variant++;
    if (p->variant == payload->n || payload->u.fields[p->variant].type->kind != CTF_VARIANT)
        return false;
    const struct ctf_type *tag = ctf_variant_tag(payload->u.fields[p->variant].type);
    p->tag = p->variant;
    for (uint32_t i = 0; i < p->variant; i++) {
        const struct ctf_field *f = &payload->u.fields[i];
        if (f->type == tag)
            p->tag = i;
        if (f->type->size_bits >= 0)
            continue;
        if (f->type->kind != CTF_STRING || !ctf_access_find(c, CTF_PAYLOAD, f->name, &p->string))
            return false;
        p->first = i + 1;
    }
    return p->tag < p->variant && p->tag >= p->first && leaf_of(payload->u.fields[p->tag].type, 0).bits;
}

const struct kernel_header_plan *kernel_header_bind(struct arena *a, const struct ctf_event_class *c)
{
    struct kernel_header_plan *p = arena_new(a, struct kernel_header_plan, 1);
    *p = (struct kernel_header_plan){0};
    if (!c->scope[CTF_PAYLOAD] || !bind_offsets(p, c))
        return NULL;
    p->networks = bind_choices(a, p->payload->u.fields[p->variant].type, bind_network);
    return p;
}

/* ---- reading ---- */

/* `base`: begin of the leaf's struct, in bits of the packet; 8 bytes beyond a packet's end can be read. */
static int64_t value(const uint8_t *data, uint64_t base, const struct leaf *l)
{
    if (!l->bits)
        return 0;
    uint64_t at = base + l->at, v;
    unsigned before = at & 7, behind = 64 - l->bits;
    memcpy(&v, data + (at >> 3), 8);
    v = l->big_endian ? __builtin_bswap64(v) << before : v << (behind - before);
    return l->is_signed ? (int64_t)v >> behind : (int64_t)(v >> behind);
}

static void read_address(const uint8_t *data, uint64_t base, const struct address *a, uint8_t to[16])
{
    for (uint32_t i = 0; i < a->n; i++) {
        uint64_t v = (uint64_t)value(data, base + (uint64_t)i * a->stride, &a->element);
        for (unsigned bits = a->element.bits; bits; bits -= 8)
            *to++ = (uint8_t)(v >> (bits - 8));
    }
}

static const void *chosen(const struct choices *c, int64_t tag)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (tag >= c->v[i].lo && tag <= c->v[i].hi)
            return c->v[i].option;
    return NULL;
}

/* `transport`: bytes from the transport header on, according to the packet; 0: unknown. */
static void set_payload(struct kernel_packet *out, uint64_t transport, uint64_t header)
{
    out->has_length = transport >= header;
    out->payload_bytes = out->has_length && transport - header <= UINT32_MAX ? (uint32_t)(transport - header) : 0;
}

static void read_transport(
    const struct transport *p, const uint8_t *data, uint64_t at, uint64_t bytes, struct kernel_packet *out)
{
    out->sport = (uint16_t)value(data, at, &p->sport);
    out->dport = (uint16_t)value(data, at, &p->dport);
    if (p->seq.bits) {
        out->protocol = PROTO_TCP;
        out->seq = (uint32_t)value(data, at, &p->seq);
        out->ack = (uint32_t)value(data, at, &p->ack);
        out->flags = (uint16_t)(value(data, at, &p->flags) & 0x1ff);
        set_payload(out, bytes, (uint64_t)value(data, at, &p->data_offset) * 4);
    } else if (p->len.bits) {
        out->protocol = PROTO_UDP;
        set_payload(out, (uint64_t)value(data, at, &p->len), 8);
    }
}

static void read_network(
    const struct network *p, const uint8_t *data, uint64_t at, uint64_t len, struct kernel_packet *out)
{
    uint64_t header = (uint64_t)value(data, at, &p->ihl) * 4, transport = 0;
    uint64_t length = (uint64_t)value(data, at, p->total.bits ? &p->total : &p->payload_len);
    read_address(data, at, &p->source, out->saddr);
    read_address(data, at, &p->target, out->daddr);
    out->ip_id = (uint16_t)value(data, at, &p->ip_id);
    out->protocol = (uint8_t)value(data, at, p->protocol.bits ? &p->protocol : &p->next_header);
    if (address_bytes(&p->source) == 4) {
        out->family = 4;
        uint64_t total = length ? length : len; /* segmentation offload beyond 64 KiB */
        transport = total > header ? total - header : 0;
    } else if (address_bytes(&p->source) == 16) {
        out->family = 6;
        transport = length ? length : len > IPV6_BYTES ? len - IPV6_BYTES : 0;
    }
    const struct transport *t = p->tag.bits ? chosen(&p->transports, value(data, at, &p->tag)) : NULL;
    if (t)
        read_transport(
            t, data, align_up(align_up(at + p->transport_at, p->transports.align), t->align), transport, out);
    uint64_t headers = (out->family == 4 ? header : IPV6_BYTES) + transport - out->payload_bytes;
    out->header_bytes = transport && headers <= UINT16_MAX ? (uint16_t)headers : 0;
}

void kernel_header_read(
    const struct kernel_header_plan *p, const struct ctf_event *ev, uint64_t len, struct kernel_packet *out)
{
    uint64_t at = ev->payload_bits;
    int64_t tag = 0;
    if (p->first) {
        size_t n;
        const char *s = ctf_read_string(ev, &p->string, &n);
        if (!s)
            return;
        at = 8 * (uint64_t)((const uint8_t *)s + n + 1 - ev->data);
    }
    for (uint32_t i = p->first; i < p->variant; i++) {
        const struct ctf_type *f = p->payload->u.fields[i].type;
        at = align_up(at, f->align_bits);
        if (i == p->tag) {
            struct leaf l = leaf_of(f, 0);
            tag = value(ev->data, at, &l);
        }
        at += (uint64_t)f->size_bits;
    }
    const struct network *n = chosen(&p->networks, tag);
    if (n)
        read_network(n, ev->data, align_up(align_up(at, p->networks.align), n->align), len, out);
}
