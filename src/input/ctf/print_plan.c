/* SPDX-License-Identifier: MIT */
/* Compiles the declarations of an event class into a print plan. */
#include "base/map.h"
#include "base/mem.h"
#include "ctf/layout.h"
#include "ctf/print.h"

struct print_compiler {
    bool json, silent; /* silent: only moves the cursor and stores slots */
    VEC(struct print_op) ops;
    struct text literals;
    VEC(uint32_t) ranges; /* ranges of the plan */
    size_t pending;       /* literals from here on precede the next operation that writes */
    bool aligned;         /* the cursor is known to be at a whole byte */
    size_t barrier;       /* operations before this one belong to another branch and must not be extended */
    uint64_t remembered;  /* bit per slot */
    bool missing;         /* a slot was read before it was set */
    struct map scope_of;  /* JSON: hash of a name in contexts -> innermost context that shows it */
};

static void lit(struct print_compiler *c, const char *s)
{
    if (!c->silent)
        text_puts(&c->literals, s);
}

static void lit_name(struct print_compiler *c, const char *name)
{
    if (c->silent)
        return;
    if (!c->json) {
        text_puts(&c->literals, name);
        text_puts(&c->literals, " = ");
        return;
    }
    size_t n = strlen(name);
    char *o = text_room(&c->literals, 6 * n + 2);
    c->literals.n += (size_t)(print_json_string(o, name, n) - o);
    text_putc(&c->literals, ':');
}

/* Emits an operation that writes nothing itself. */
static struct print_op *move(struct print_compiler *c, enum print_code code, uint32_t a)
{
    struct print_op op = {.code = (uint8_t)code, .a = a};
    vec_push(&c->ops, op);
    return &c->ops.v[c->ops.n - 1];
}

/* Emits an operation that writes the waiting literal first. */
static struct print_op *emit(struct print_compiler *c, enum print_code code, const struct ctf_type *type)
{
    struct print_op *op = move(c, code, 0);
    op->type = type;
    op->literal = (uint32_t)c->pending;
    op->literal_n = (uint32_t)(c->literals.n - c->pending);
    c->pending = c->literals.n;
    return op;
}

static void flush(struct print_compiler *c)
{
    if (!c->silent && c->literals.n > c->pending)
        emit(c, PRINT_LITERAL, NULL);
}

static void align(struct print_compiler *c, uint32_t bits)
{
    if (bits > 8 || (bits > 1 && !c->aligned))
        move(c, PRINT_ALIGN, bits);
    c->aligned |= bits >= 8;
}

static void skip(struct print_compiler *c, uint32_t bits)
{
    struct print_op *last = c->ops.n > c->barrier ? &c->ops.v[c->ops.n - 1] : NULL;
    if (last && last->code == PRINT_SKIP && last->a <= UINT32_MAX - bits)
        last->a += bits;
    else
        move(c, PRINT_SKIP, bits);
    c->aligned &= bits % 8 == 0;
}

static void use_slot(struct print_compiler *c, uint32_t slot)
{
    if (!(c->remembered >> slot & 1))
        c->missing = true;
}

static bool is_text_element(const struct ctf_type *t)
{
    return t->kind == CTF_INT && t->is_text && t->size_bits == 8 && t->align_bits == 8;
}

bool print_has_clock(const struct ctf_type *t)
{
    if (!t)
        return false;
    switch (t->kind) {
    case CTF_INT: return t->clock >= 0;
    case CTF_ENUM: return t->clock >= 0 || print_has_clock(t->u.enumeration.container);
    case CTF_ARRAY:
    case CTF_SEQUENCE: return print_has_clock(t->u.list.element);
    case CTF_STRUCT:
    case CTF_VARIANT:
        for (uint32_t i = 0; i < t->n; i++)
            if (print_has_clock(t->u.fields[i].type))
                return true;
        return false;
    default: return false;
    }
}

/* Returns whether the type is shown. babeltrace2 hides time stamps (unless something depends on their value) and types
 * that consist of nothing else. */
static bool is_shown(const struct ctf_type *t)
{
    switch (t->kind) {
    case CTF_INT:
    case CTF_ENUM:
        return t->shown_as == CTF_SHOWN_BY_RULE ? !print_has_clock(t) || t->slot != 0 : t->shown_as == CTF_SHOWN;
    case CTF_ARRAY:
    case CTF_SEQUENCE: return is_shown(t->u.list.element);
    case CTF_STRUCT:
    case CTF_VARIANT:
        for (uint32_t i = 0; i < t->n; i++)
            if (is_shown(t->u.fields[i].type))
                return true;
        return t->kind == CTF_STRUCT && (t->n == 0 || t->shown_as == CTF_SHOWN);
    default: return true;
    }
}

/* Returns whether a field of the packet context describes the packet, not its events. */
static bool is_packet_field(const struct ctf_field *f)
{
    enum {
        OF_PACKET = 1u << CTF_ROLE_BEGIN | 1u << CTF_ROLE_END | 1u << CTF_ROLE_CONTENT_SIZE |
            1u << CTF_ROLE_PACKET_SIZE | 1u << CTF_ROLE_DISCARDED | 1u << CTF_ROLE_SEQUENCE
    };
    return f->type->roles & OF_PACKET && !f->type->slot;
}

static bool field_is_shown(const struct ctf_field *f, enum ctf_scope scope, bool json)
{
    if (scope == CTF_PACKET_CONTEXT && (is_packet_field(f) || (json && strcmp(f->name, "cpu_id") == 0)))
        return false;
    return is_shown(f->type);
}

static void compile(struct print_compiler *c, const struct ctf_type *t);

static void compile_hidden(struct print_compiler *c, const struct ctf_type *t)
{
    bool was = c->silent;
    c->silent = true;
    compile(c, t);
    c->silent = was;
}

/* Returns whether only CTF 2 has types of this kind. Integers are left to compile_int. */
static bool is_other(const struct ctf_type *t)
{
    switch (t->kind) {
    case CTF_INT:
    case CTF_ENUM:
        t = print_int_type(t);
        return t->is_leb || t->is_reversed || t->look == CTF_LOOK_FLAGS || t->look == CTF_LOOK_BOOL;
    case CTF_FLOAT: return t->is_reversed || t->size_bits == 16;
    case CTF_STRING: return t->encoding != CTF_UTF8;
    case CTF_ARRAY:
    case CTF_SEQUENCE: return t->is_blob || t->encoding != CTF_UTF8;
    default: return t->kind == CTF_WIDE;
    }
}

static struct print_op *compile_other(struct print_compiler *c, const struct ctf_type *t)
{
    struct print_op *op = c->silent ? move(c, PRINT_SKIP_OTHER, 0) : emit(c, PRINT_OTHER, t);
    op->type = t;
    c->barrier = c->ops.n;
    return op;
}

static void compile_int(struct print_compiler *c, const struct ctf_type *t)
{
    const struct ctf_type *i = print_int_type(t);
    bool other = is_other(t), whole = c->aligned && !i->big_endian && t->kind == CTF_INT;
    if (t->slot && t->slot < CTF_SLOTS) {
        move(c, other ? PRINT_REMEMBER_ANY : PRINT_REMEMBER, t->slot)->type = t;
        c->remembered |= (uint64_t)1 << t->slot;
    }
    if (other) {
        compile_other(c, t);
        c->aligned &= i->is_leb || i->size_bits % 8 == 0;
        return;
    }
    if (c->silent) {
        skip(c, (uint32_t)i->size_bits);
        return;
    }
    int base = c->json ? 10 : i->base;
    int step = i->size_bits == 8 ? 0 : i->size_bits == 16 ? 1 : i->size_bits == 32 ? 2 : i->size_bits == 64 ? 3 : -1;
    if (whole && step >= 0 && base == 10)
        emit(c, (enum print_code)((i->is_signed ? PRINT_S8 : PRINT_U8) + step), t);
    else if (whole && step >= 0 && base == 16)
        emit(c, (enum print_code)(PRINT_X8 + step), t);
    else
        emit(c, t->kind == CTF_ENUM ? PRINT_ENUM : PRINT_INT, t)->a = (uint32_t)i->size_bits;
    c->aligned &= i->size_bits % 8 == 0;
}

/* Groups ranges by label, labels in the order of their first range. True if a label has several. */
static bool order_ranges(const struct ctf_type *t, uint32_t *order)
{
    struct map labels = {0};
    uint32_t *next = mem_alloc(sizeof *next * (t->n + 1)), *last = mem_alloc(sizeof *last * (t->n + 1)), n = 0;
    bool *is_first = mem_zalloc(t->n + 1), repeated = false;
    for (uint32_t i = 0; i < t->n; i++) {
        const char *label = t->u.enumeration.ranges[i].label;
        uint64_t key = map_hash(label, strlen(label)), *first;
        bool fresh;
        while (
            first = map_put(&labels, key, &fresh), !fresh && strcmp(t->u.enumeration.ranges[*first].label, label) != 0)
            key++; /* hash collision */
        if (fresh)
            *first = i;
        else
            next[last[*first]] = i;
        last[*first] = i;
        next[i] = UINT32_MAX;
        is_first[i] = fresh;
        repeated |= !fresh;
    }
    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t k = i; is_first[i] && k != UINT32_MAX; k = next[k])
            order[n++] = k;
    map_fini(&labels);
    free(next);
    free(last);
    free(is_first);
    return repeated;
}

static void compile_enum(struct print_compiler *c, const struct ctf_type *t)
{
    compile_int(c, t);
    if (c->silent)
        return;
    struct print_op *op = &c->ops.v[c->ops.n - 1];
    vec_reserve(&c->ranges, t->n);
    op->flag = order_ranges(t, c->ranges.v + c->ranges.n);
    op->b = (uint32_t)c->ranges.n;
    c->ranges.n += op->flag ? t->n : 0;
}

/* Compiles the body of a loop, whose position at the start of a round is unknown: first tries whole bytes
 * throughout. */
static void compile_body(struct print_compiler *c, const struct ctf_type *element)
{
    bool aligned = c->aligned;
    size_t ops = c->ops.n, literals = c->literals.n, pending = c->pending;
    uint64_t remembered = c->remembered;
    for (;;) {
        bool start = c->aligned;
        c->barrier = c->ops.n;
        compile(c, element);
        flush(c);
        if (c->aligned == start || !start)
            break;
        c->ops.n = ops;
        c->literals.n = literals;
        c->pending = pending;
        c->remembered = remembered;
        c->aligned = false;
    }
    c->aligned &= aligned;
    c->barrier = c->ops.n;
}

static void compile_list(struct print_compiler *c, const struct ctf_type *t)
{
    const struct ctf_type *element = t->u.list.element;
    bool fixed = t->kind == CTF_ARRAY;
    uint32_t length = fixed ? t->n : t->u.list.length->slot;
    if (!fixed)
        use_slot(c, length);
    if (is_other(t)) {
        struct print_op *op = compile_other(c, t);
        op->flag = !fixed;
        *(fixed ? &op->a : &op->b) = length;
        return;
    }
    if (is_text_element(element) && !c->silent) {
        struct print_op *op = emit(c, PRINT_CHARS, t);
        op->flag = !fixed;
        *(fixed ? &op->a : &op->b) = length;
        return;
    }
    if (c->silent && element->kind == CTF_INT && element->size_bits > 0 &&
        element->size_bits % element->align_bits == 0 && !element->slot) {
        struct print_op *op = move(c, PRINT_SKIP_MANY, (uint32_t)element->size_bits);
        op->b = length;
        op->flag = !fixed;
        c->aligned &= element->size_bits % 8 == 0;
        return;
    }
    lit(c, "[");
    size_t at = c->ops.n;
    struct print_op *op = c->silent ? move(c, PRINT_LOOP, 0) : emit(c, PRINT_LOOP, t);
    op->flag = !fixed;
    op->a = length;
    compile_body(c, element);
    c->ops.v[at].b = (uint32_t)c->ops.n;
    lit(c, c->json ? "]" : " ]");
}

static void compile_variant(struct print_compiler *c, const struct ctf_type *t)
{
    use_slot(c, t->tag->slot);
    bool optional = t->is_optional;
    if (!optional)
        lit(c, c->json ? "{" : "{ ");
    size_t at = c->ops.n;
    struct print_op *op = c->silent ? move(c, PRINT_CHOOSE, 0) : emit(c, PRINT_CHOOSE, t);
    op->type = t;
    op->a = t->n;
    op->flag = optional && !c->silent;
    for (uint32_t i = 0; i < t->n; i++)
        move(c, PRINT_OPTION, 0);
    bool start = c->aligned, end = true;
    uint64_t remembered = c->remembered;
    for (uint32_t i = 0; i < t->n; i++) {
        c->ops.v[at + 1 + i].a = (uint32_t)c->ops.n;
        c->aligned = start;
        c->barrier = c->ops.n;
        if (optional)
            lit(c, c->json ? "" : "{ ");
        else if (c->json)
            lit_name(c, t->u.fields[i].shown);
        if (is_shown(t->u.fields[i].type) || t->shown_as == CTF_SHOWN_BY_RULE)
            compile(c, t->u.fields[i].type);
        else
            compile_hidden(c, t->u.fields[i].type);
        if (optional)
            lit(c, c->json ? "" : " }");
        flush(c);
        c->ops.v[at + 1 + i].b = (uint32_t)c->ops.n;
        end &= c->aligned;
        remembered |= c->remembered;
    }
    c->barrier = c->ops.n;
    c->remembered = remembered;
    c->aligned = end && ((t->n > 0 && !optional) || start);
    c->ops.v[at].b = (uint32_t)c->ops.n;
    if (!optional)
        lit(c, c->json ? "}" : " }");
}

/* Writes the name of a context field. JSON has the fields of all contexts in one object: the innermost one has the
 * plain name, others are prefixed by their scope. */
static void lit_context_name(struct print_compiler *c, const struct ctf_field *f, enum ctf_scope scope)
{
    const uint64_t *innermost = scope < CTF_PAYLOAD ? map_find(&c->scope_of, map_hash(f->shown, strlen(f->shown)))
                                                    : NULL;
    if (!innermost || *innermost == (uint64_t)scope) {
        lit_name(c, f->shown);
        return;
    }
    struct text name = {.fd = -1};
    text_puts(&name, scope == CTF_PACKET_CONTEXT ? "stream.packet.context." : "stream.event.context.");
    text_puts(&name, f->shown);
    lit_name(c, text_cstr(&name));
    text_fini(&name);
}

/* Compiles the fields of a struct with separators between. Returns whether any was shown; `first`: none came before. */
static bool compile_fields(struct print_compiler *c, const struct ctf_type *t, enum ctf_scope scope, bool first)
{
    align(c, t->align_bits);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct ctf_field *f = &t->u.fields[i];
        if (!field_is_shown(f, scope, c->json)) {
            compile_hidden(c, f->type);
            continue;
        }
        lit(c, c->json ? (first ? "" : ",") : (first ? " " : ", "));
        lit_context_name(c, f, scope);
        compile(c, f->type);
        first = false;
    }
    return first;
}

static void compile_struct(struct print_compiler *c, const struct ctf_type *t, enum ctf_scope scope)
{
    lit(c, "{");
    compile_fields(c, t, scope, true);
    lit(c, c->json ? "}" : " }");
}

static void compile(struct print_compiler *c, const struct ctf_type *t)
{
    if (t->kind != CTF_STRUCT)
        align(c, t->align_bits);
    switch (t->kind) {
    case CTF_INT: compile_int(c, t); break;
    case CTF_ENUM: compile_enum(c, t); break;
    case CTF_WIDE:
        compile_other(c, t);
        c->aligned &= t->size_bits % 8 == 0;
        break;
    case CTF_FLOAT:
        if (is_other(t))
            compile_other(c, t);
        else if (c->silent)
            skip(c, (uint32_t)t->size_bits);
        else
            emit(c, PRINT_FLOAT, t);
        c->aligned &= t->size_bits % 8 == 0;
        break;
    case CTF_STRING:
        align(c, 8);
        if (is_other(t))
            compile_other(c, t);
        else if (c->silent)
            move(c, PRINT_SKIP_STRING, 0);
        else
            emit(c, PRINT_STRING, t);
        break;
    case CTF_STRUCT: compile_struct(c, t, CTF_PAYLOAD); break;
    case CTF_ARRAY:
    case CTF_SEQUENCE: compile_list(c, t); break;
    case CTF_VARIANT: compile_variant(c, t); break;
    default: break;
    }
}

/* ---- scopes ---- */

/* Moves to the start of a scope. Contexts of the event are adjacent, so the event's own starts at the end of the
 * stream's. */
static void go_to(struct print_compiler *c, const struct ctf_event_class *cls, enum ctf_scope scope)
{
    static const enum print_code codes[] = {
        [CTF_PACKET_HEADER] = PRINT_AT_PACKET,
        [CTF_PACKET_CONTEXT] = PRINT_AT_PACKET,
        [CTF_EVENT_HEADER] = PRINT_AT_HEADER,
        [CTF_STREAM_EVENT_CONTEXT] = PRINT_AT_CONTEXT,
        [CTF_EVENT_CONTEXT] = PRINT_AT_CONTEXT,
        [CTF_PAYLOAD] = PRINT_AT_PAYLOAD,
    };
    bool was = c->silent;
    c->silent = true;
    move(c, codes[scope], 0);
    c->aligned = scope <= CTF_PACKET_CONTEXT ||
        (scope == CTF_PAYLOAD && cls->scope[scope] && cls->scope[scope]->align_bits >= 8);
    if (scope == CTF_PACKET_CONTEXT && cls->scope[CTF_PACKET_HEADER])
        compile(c, cls->scope[CTF_PACKET_HEADER]);
    if (scope == CTF_EVENT_CONTEXT && cls->scope[CTF_STREAM_EVENT_CONTEXT])
        compile(c, cls->scope[CTF_STREAM_EVENT_CONTEXT]);
    c->silent = was;
}

static bool scope_is_shown(const struct ctf_event_class *cls, enum ctf_scope scope, bool json)
{
    const struct ctf_type *t = cls->scope[scope];
    if (!t)
        return false;
    for (uint32_t i = 0; i < t->n; i++)
        if (field_is_shown(&t->u.fields[i], scope, json))
            return true;
    return t->n == 0;
}

/* Reads values that later parts refer to and that no printed part before them contains. */
static void compile_slots(struct print_compiler *c, const struct ctf_event_class *cls)
{
    c->silent = true;
    for (int scope = CTF_PACKET_HEADER; scope < CTF_PAYLOAD; scope++)
        if (cls->scope[scope]) {
            go_to(c, cls, (enum ctf_scope)scope);
            compile(c, cls->scope[scope]);
        }
    c->silent = false;
}

static void compile_text(struct print_compiler *c, const struct ctf_event_class *cls, bool line)
{
    bool first = true;
    if (line) {
        bool named = cls->name && (*cls->name || cls->layout->plan->sc->is_ctf2);
        lit(c, named ? cls->name : "<unknown>");
        lit(c, ": ");
    }
    for (int scope = line ? CTF_PACKET_CONTEXT : CTF_STREAM_EVENT_CONTEXT; scope < CTF_SCOPES; scope++) {
        if (scope == CTF_EVENT_HEADER || !scope_is_shown(cls, (enum ctf_scope)scope, false))
            continue;
        lit(c, first ? "" : ", ");
        first = false;
        go_to(c, cls, (enum ctf_scope)scope);
        compile_struct(c, cls->scope[scope], (enum ctf_scope)scope);
    }
    if (line)
        lit(c, "\n");
    flush(c);
}

static void find_context_names(struct print_compiler *c, const struct ctf_event_class *cls)
{
    for (int scope = CTF_EVENT_CONTEXT; scope >= CTF_PACKET_CONTEXT; scope--) {
        const struct ctf_type *t = scope == CTF_EVENT_HEADER ? NULL : cls->scope[scope];
        for (uint32_t i = 0; t && i < t->n; i++) {
            const struct ctf_field *f = &t->u.fields[i];
            bool fresh;
            if (!field_is_shown(f, (enum ctf_scope)scope, true))
                continue;
            uint64_t *innermost = map_put(&c->scope_of, map_hash(f->shown, strlen(f->shown)), &fresh);
            if (fresh)
                *innermost = (uint64_t)scope;
        }
    }
}

static void compile_json(struct print_compiler *c, const struct ctf_event_class *cls)
{
    if (cls->name && *cls->name) {
        lit_name(c, cls->name);
        c->literals.n--; /* values have no colon, unlike names */
    } else {
        lit(c, "null");
    }
    lit(c, ",\"fields\":");
    if (cls->scope[CTF_PAYLOAD]) {
        go_to(c, cls, CTF_PAYLOAD);
        compile_struct(c, cls->scope[CTF_PAYLOAD], CTF_PAYLOAD);
    } else {
        lit(c, "{}");
    }
    lit(c, ",\"context\":{");
    find_context_names(c, cls);
    bool first = true;
    for (int scope = CTF_PACKET_CONTEXT; scope < CTF_PAYLOAD; scope++) {
        if (scope == CTF_EVENT_HEADER || !scope_is_shown(cls, (enum ctf_scope)scope, true))
            continue;
        go_to(c, cls, (enum ctf_scope)scope);
        first = compile_fields(c, cls->scope[scope], (enum ctf_scope)scope, first);
    }
    map_fini(&c->scope_of);
    c->scope_of = (struct map){0};
    lit(c, "}}\n");
    flush(c);
}

struct print_plan *print_plan_new(const struct ctf_event_class *cls, enum ctf_print_format format, bool has_clock)
{
    struct print_compiler c = {.json = format == CTF_PRINT_JSON, .literals = {.fd = -1}};
    for (bool slots_first = false;; slots_first = true) {
        c.ops.n = c.ranges.n = c.literals.n = c.pending = c.barrier = 0;
        c.missing = false;
        c.remembered = 0;
        if (slots_first)
            compile_slots(&c, cls);
        if (c.json)
            compile_json(&c, cls);
        else
            compile_text(&c, cls, format == CTF_PRINT_TEXT);
        if (!c.missing || slots_first)
            break;
    }
    memset(text_room(&c.literals, PRINT_SHORT), 0, PRINT_SHORT);
    struct print_plan *p = mem_zalloc(sizeof *p);
    p->ops = c.ops.v;
    p->n = (uint32_t)c.ops.n;
    p->literals = text_take(&c.literals);
    p->ranges = c.ranges.v;
    p->json = c.json;
    p->has_clock = has_clock;
    return p;
}

void print_plan_free(struct print_plan *p)
{
    if (!p)
        return;
    free(p->ops);
    free(p->literals);
    free(p->ranges);
    free(p);
}
