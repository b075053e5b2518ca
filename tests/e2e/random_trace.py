# SPDX-License-Identifier: MIT
"""Random traces: declarations and contents with every kind of field, any alignment, both byte orders, clocks of any
width and frequency."""
import os
import random
import struct


class Bits:
    """Packet under construction. Bit k of a little-endian byte is its k-th lowest, of a big-endian one its k-th
    highest."""

    def __init__(self, big, clock=0):
        self.big, self.bits = big, []
        self.clock = clock # state left by the fields before

    def align(self, n):
        while len(self.bits) % n:
            self.bits.append(0)

    def put(self, value, size, big=None):
        if big is not None and big != self.big: # whole bytes in the other order
            for byte in value.to_bytes(size // 8, "big" if big else "little"):
                self.put(byte, 8)
            return
        digits = [value >> i & 1 for i in range(size)]
        self.bits += digits[::-1] if self.big else digits

    def bytes(self):
        self.align(8)
        out = bytearray()
        for i in range(0, len(self.bits), 8):
            byte = self.bits[i:i + 8]
            out.append(sum(b << (7 - k if self.big else k) for k, b in enumerate(byte)))
        return bytes(out)

    def overwrite(self, at, value, size):
        digits = [value >> i & 1 for i in range(size)]
        self.bits[at:at + size] = digits[::-1] if self.big else digits


class Int:
    def __init__(self, dice, whole=False):
        self.align = dice.choice((1, 1, 8, 8, 8, 16, 32, 64))
        if whole or self.align > 1:
            self.align = max(self.align, 8)
            self.size = dice.choice((8, 16, 32, 64))
            self.order = dice.choice(("", "", " byte_order = be;", " byte_order = le;"))
        else:
            self.size, self.order = dice.randint(1, 64), ""
        self.signed = dice.random() < 0.5
        self.base = dice.choice((2, 8, 10, 10, 10, 16))
        if self.base == 16 and 60 < self.size < 64: # babeltrace2 2.0.4 shows 0x0 whatever the value (it shifts by 64)
            self.size = 60

    def text(self, name):
        signed = str(self.signed).lower()
        return (f"integer {{ size = {self.size}; align = {self.align}; signed = {signed}; base = {self.base};"
                f"{self.order} }} {name};")

    def write(self, bits, dice, value=None):
        bits.align(self.align)
        if value is None:
            value = dice.choice((0, 1, (1 << self.size) - 1, 1 << (self.size - 1), dice.getrandbits(self.size)))
        bits.put(value & ((1 << self.size) - 1), self.size,
                 {"": None, " byte_order = be;": True, " byte_order = le;": False}[self.order])
        return value


class Time(Int):
    """Low bits of the clock, which they advance."""

    def __init__(self, dice, size=None):
        super().__init__(dice)
        self.size = size or (self.size if self.align > 1 else dice.randint(4, 64))
        if size and self.align == 1:
            self.align, self.order = dice.choice((8, 32)), dice.choice(("", " byte_order = be;"))
        self.signed, self.base = False, 10

    def text(self, name):
        return super().text(name).replace("signed = false;", "map = clock.c.value;")

    def write(self, bits, dice, value=None):
        if value is None:
            value = bits.clock + dice.choice((0, 1, dice.randrange(min(1 << self.size, 10**6))))
        bits.clock = value
        return super().write(bits, dice, value)


class Float:
    align = 8

    def __init__(self, dice):
        self.double = dice.random() < 0.5

    def text(self, name):
        return (f"floating_point "
                f"{{ exp_dig = {11 if self.double else 8}; mant_dig = {53 if self.double else 24}; align = 8; }} "
                f"{name};")

    def write(self, bits, dice):
        bits.align(8)
        value = dice.choice((0.0, -1.5, 1e300 if self.double else 1e30, 1 / 3, float("inf"), dice.uniform(-1e6, 1e6)))
        raw = struct.pack(">d" if self.double else ">f", value)
        bits.put(int.from_bytes(raw, "big"), 8 * len(raw))


def some_text(dice, n):
    """Returns a text, never empty: babeltrace2 2.0.4 shows the string of an earlier event in place of an empty one."""
    return bytes(dice.randint(1, 255) for _ in range(n))


class String:
    align = 8

    def __init__(self, dice):
        pass

    def text(self, name):
        return f"string {name};"

    def write(self, bits, dice):
        bits.align(8)
        for c in some_text(dice, dice.randint(1, 20)) + b"\0":
            bits.put(c, 8)


class Chars:
    """Array of bytes that is shown as text."""
    align = 8

    def __init__(self, dice):
        self.n = dice.randint(1, 20)

    def text(self, name):
        return f"integer {{ size = 8; align = 8; encoding = {'UTF8' if self.n % 2 else 'ASCII'}; }} {name}[{self.n}];"

    def write(self, bits, dice):
        bits.align(8)
        n = dice.randint(1, self.n)
        for c in some_text(dice, n) + bytes(self.n - n):
            bits.put(c, 8)


class Enum:
    def __init__(self, dice):
        self.of = Int(dice)
        low, high = (-(1 << self.of.size - 1),
                     (1 << self.of.size - 1) - 1) if self.of.signed else (0, (1 << self.of.size) - 1)
        self.labels = []
        for i in range(dice.randint(1, 6)):
            a, b = sorted((dice.randint(low, high), dice.randint(low, high)))
            a, b = max(low, min(a, 20)), max(low, min(b, 40))
            self.labels.append((f'"label {i}\\"?"' if i % 3 == 2 else f"L{dice.randint(0, 4)}", min(a, b), max(a, b)))
        self.align = self.of.align

    def text(self, name):
        container = self.of.text("")[:-2].strip()
        return "enum : %s { %s } %s;" % (container, ", ".join(f"{n} = {a} ... {b}" for n, a, b in self.labels), name)

    def write(self, bits, dice):
        if dice.random() < 0.8:
            _, a, b = dice.choice(self.labels)
            self.of.write(bits, dice, dice.randint(a, b))
        else:
            self.of.write(bits, dice)


class Struct:
    def __init__(self, dice, depth, fixed=False):
        # Limits of babeltrace2 2.0.4 are respected. It confuses lengths and tags of the same name, so names are unique
        # in a trace; it does not find all names that begin with an underscore; it aborts on lists whose elements are
        # only times, which it hides.
        self.fields = []
        for _ in range(dice.randint(0 if depth else 1, 5)):
            t = one(dice, depth + 1, fixed=fixed)
            first = "" if isinstance(t, (Sequence, Variant)) else dice.choice(("", "_"))
            self.fields.append((f"{first}f{dice.getrandbits(40):x}", t))
        if self.fields and all(isinstance(t, Time) for _, t in self.fields):
            self.fields.append((f"f{dice.getrandbits(40):x}", Int(dice)))
        self.align = max([1] + [t.align for _, t in self.fields])
        self.name = f"s{dice.getrandbits(40):x} " if dice.random() < 0.2 else ""

    def body(self):
        return f"struct {self.name}{{ " + " ".join(t.text(n) for n, t in self.fields) + " }"

    def text(self, name):
        return f"{self.body()} {name};"

    def write(self, bits, dice):
        bits.align(self.align)
        for _, t in self.fields:
            t.write(bits, dice)


class Array:
    def __init__(self, dice, depth):
        self.n, self.of = dice.randint(0, 4), one(dice, depth + 1, plain=True)
        self.align = self.of.align

    def text(self, name):
        return self.of.text(f"{name}[{self.n}]")

    def write(self, bits, dice):
        bits.align(self.align)
        for _ in range(self.n):
            self.of.write(bits, dice)


class Sequence:
    """Pair of fields: a length and the sequence."""

    def __init__(self, dice, depth):
        self.length = Int(dice)
        self.length.signed = False
        self.length.size = max(self.length.size, 3)
        self.of = Chars(dice) if dice.random() < 0.3 else one(dice, depth + 1, plain=True)
        self.align = max(self.length.align, self.of.align)
        self.by_name = dice.random() < 0.3

    def text(self, name):
        if isinstance(self.of, Chars):
            return (f"{self.length.text(name + '_n')} integer {{ size = 8; align = 8; encoding = UTF8; }} "
                    f"{name}[{name}_n];")
        if self.by_name:
            return f"{self.length.text(name + '_n')} typedef {self.of.text(f'{name}_t[{name}_n]')} {name}_t {name};"
        return f"{self.length.text(name + '_n')} {self.of.text(f'{name}[{name}_n]')}"

    def write(self, bits, dice):
        n = dice.randint(1 if isinstance(self.of, Chars) else 0, 5)
        self.length.write(bits, dice, n)
        bits.align(self.of.align)
        if isinstance(self.of, Chars):
            for c in some_text(dice, n):
                bits.put(c, 8)
            return
        for _ in range(n):
            self.of.write(bits, dice)


class Variant:
    """Pair of fields: a tag and the variant."""

    def __init__(self, dice, depth):
        self.tag = Int(dice)
        self.tag.size = max(self.tag.size, 8)
        self.options = [one(dice, depth + 1, plain=True) for _ in range(dice.randint(1, 3))]
        self.align = self.tag.align

    def text(self, name):
        labels = ", ".join(f"o{i} = {10 * i} ... {10 * i + 9}" for i in range(len(self.options)))
        options = " ".join(t.text(f"o{i}") for i, t in enumerate(self.options))
        return (f"enum : {self.tag.text('')[:-2].strip()} {{ {labels} }} {name}_tag; variant <{name}_tag> "
                f"{{ {options} }} {name};")

    def write(self, bits, dice):
        i = dice.randrange(len(self.options))
        self.tag.write(bits, dice, 10 * i + dice.randint(0, 9))
        self.options[i].write(bits, dice)


def one(dice, depth, plain=False, fixed=False):
    """Returns a random type. plain: one field, which can be an element or an option. fixed: without reference to a
    length or tag, on which babeltrace2 2.0.4 aborts in contexts."""
    if fixed:
        return dice.choice((Int, Int, Float, Enum, String,
                            Chars))(dice) if dice.random() < 0.8 else Struct(dice, 3, True)
    simple = [Int, Int, Int, Float, Enum] + ([] if plain else [String, Chars, Time])
    deep = [Struct, Struct] if plain else [Struct, Array, Sequence, Variant, Array, Sequence]
    if depth < 4 and dice.random() < 0.45:
        return dice.choice(deep)(dice, depth)
    if plain and dice.random() < 0.2:
        return String(dice)
    return dice.choice(simple)(dice)


class Header:
    """Header of events: as LTTng writes it, or an id and a time of any width in any order."""

    def __init__(self, dice):
        self.shape = dice.choice(("any", "any", "compact", "large"))
        self.id, self.time = Int(dice, True), Time(dice)
        self.id.signed = False
        if dice.random() < 0.5: # whole bytes
            self.id.align = self.time.align = 8
            self.id.order = self.time.order = ""
            self.time.size = dice.choice((8, 16, 32, 64))
        self.fields = [("id", self.id), ("timestamp", self.time)][::dice.choice((1, -1))]
        self.width = {"any": self.time.size, "compact": 27, "large": 32}[self.shape]

    def text(self):
        if self.shape == "any":
            return "struct { " + " ".join(t.text(name) for name, t in self.fields) + " }"
        small, last = (5, 30) if self.shape == "compact" else (16, 65534)
        align = 1 if self.shape == "compact" else 8
        short = f"integer {{ size = {self.width}; align = {align}; map = clock.c.value; }}"
        long = "integer { size = 32; align = 8; } id; integer { size = 64; align = 8; map = clock.c.value; }"
        return (f"struct {{ enum : integer {{ size = {small}; align = {align}; }} "
                f"{{ compact = 0 ... {last}, extended = {last + 1} }} id; variant <id> {{ struct {{ {short} timestamp; "
                f"}} compact; struct {{ {long} timestamp; }} extended; }} v; }} align(8)")

    def write(self, bits, dice, number, time):
        bits.align(max(8, self.id.align, self.time.align) if self.shape == "any" else 8)
        if self.shape == "any":
            for name, t in self.fields:
                t.write(bits, dice, number if name == "id" else time)
            return
        wide = time - bits.clock >= 1 << self.width or dice.random() < 0.1
        bits.clock = time
        small = 5 if self.shape == "compact" else 16
        if not wide:
            bits.put(number, small)
            bits.put(time & ((1 << self.width) - 1), self.width)
            return
        bits.put((1 << small) - 1, small)
        bits.align(8)
        bits.put(number, 32)
        bits.put(time, 64)


class Clock:
    def __init__(self, dice):
        self.freq = 10**9 if dice.random() < 0.7 else dice.choice((1000, 32768, 2399999999, dice.randint(1, 10**10)))
        self.seconds, self.offset = dice.randint(-10**6, 2 * 10**9), dice.randrange(3 * self.freq)

    def text(self):
        return f"clock {{ name = c; freq = {self.freq}; offset_s = {self.seconds}; offset = {self.offset}; }};"

    def ns(self, cycles):
        return self.seconds * 10**9 + (self.offset + cycles) * 10**9 // self.freq


def write(path, seed):
    """Writes a trace of some hundred events; returns the clock's frequency and the events' times in ns."""
    dice = random.Random(seed)
    big = dice.random() < 0.5
    clock, header = Clock(dice), Header(dice)
    context = Struct(dice, 1, True) if dice.random() < 0.5 else None
    classes = [(Struct(dice, 1, True) if dice.random() < 0.3 else None, Struct(dice, 0)) for _ in range(4)]
    bounds = dice.choice(((), ("timestamp_end",), ("timestamp_begin", "timestamp_end")))
    whole = "integer { size = 64; align = 8; map = clock.c.value; }"
    text = ["/* CTF 1.8 */", f"trace {{ major = 1; minor = 8; byte_order = {'be' if big else 'le'};",
            "  packet.header := struct { integer { size = 32; align = 8; base = 16; } magic; }; };",
            "env { hostname = \"h\"; };", clock.text(),
            "stream { packet.context := struct { integer { size = 32; align = 8; } content_size; integer { size = 32; "
            "align = 8; } packet_size; " + "".join(f"{whole} {name}; " for name in bounds) + "};",
            f"  event.header := {header.text()};"]
    if context:
        text.append(f"  event.context := {context.body()};")
    text.append("};")
    for i, (own, payload) in enumerate(classes):
        text.append(f"event {{ name = \"e{i}\"; id = {i};" + (f" context := {own.body()};" if own else "")
                    + f" fields := {payload.body()}; }};")
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "metadata"), "w", encoding="utf-8") as f:
        f.write("\n".join(text) + "\n")
    times, now = [], 0
    with open(os.path.join(path, "stream"), "wb") as f:
        for _ in range(dice.randint(1, 3)):
            now += dice.randrange(1 << 20) if "timestamp_begin" in bounds else 0
            bits = Bits(big, now)
            bits.put(0xC1FC1FC1, 32)
            bits.put(0, 64)
            for name in bounds:
                bits.put(now, 64)
            for _ in range(dice.randint(1, 60)):
                i = dice.randrange(len(classes))
                time = bits.clock + dice.choice((0, 1, dice.randrange(min(1 << header.width, 10**6))))
                header.write(bits, dice, i, time)
                times.append(clock.ns(time))
                for scope in (context, *classes[i]):
                    if scope:
                        scope.write(bits, dice)
            now = bits.clock + dice.randrange(1 << 20) if bounds else bits.clock
            if bounds:
                bits.overwrite(96 + 64 * bounds.index("timestamp_end"), now, 64)
            bits.overwrite(32, len(bits.bits), 32)
            bits.align(8 * dice.choice((8, 512)))
            bits.overwrite(64, len(bits.bits), 32)
            f.write(bits.bytes())
    return clock.freq, times
