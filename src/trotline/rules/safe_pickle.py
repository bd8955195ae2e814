"""Pickles of plain values, read without running anything: no class, no function and no module is looked up.

Python's own reader is not used: a few bytes make it fill the memory (places in its memo), or hash a tuple that has
itself many times over. Protocols from 2 on, which programs of today write.

A few names are known: lxml's class of texts, which is in each request that a link extractor has made, and stands for
text; and values of the standard library that the add-on stores too (pickled_values).
"""

import struct
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from trotline.rules import pickled_values

LARGEST = 4 * 1024 * 1024
"""Bytes of a pickle; and of its value, with a value that is referred to twice counted twice."""
MOST_STEPS = 1_000_000
"""Instructions of a pickle: each of them may make a value."""
MOST_OTHER_KEYS = 2_000
"""Keys that are neither text nor bytes: those can be chosen so that each collides with all others."""
DEEPEST = 200
"""Nesting of values: hash(), repr() and encoders call themselves."""
_OF_A_VALUE = 8
"""Bytes that a value counts, besides its text."""
_STOP = ord(".")
_SMALL = frozenset((bool, float, date, datetime, time, timedelta, UUID))


class NotPlain(ValueError):
    """A pickle that is damaged, that names code, or whose value is too large."""


class _Known:
    """Stands for a class."""

    def __init__(self, make: Callable[[tuple[Any, ...]], Any]) -> None:
        self.make = make


def _lxml_text(given: tuple[Any, ...]) -> str:
    if len(given) > 1 or (given and type(given[0]) is not str):
        raise NotPlain("a text in it is no text")
    return given[0] if given else ""


_KNOWN = {
    ("lxml.etree", "_ElementUnicodeResult"): _Known(_lxml_text),
    **{name: _Known(make) for name, make in pickled_values.MAKERS.items()},
}


def read(data: bytes) -> Any:
    """The value: text, bytes, numbers, dates, UUIDs, None, lists, tuples, sets and dicts. NotPlain says why there is
    none."""
    if len(data) > LARGEST:
        raise NotPlain(f"it has {len(data):,} bytes; {LARGEST:,} are read")
    try:
        value = _Reader(data).load()
    except NotPlain:
        raise
    except Exception as error:
        # A damaged pickle raises anything.
        raise NotPlain(f"it is damaged: {type(error).__name__}") from error
    _measured(value, LARGEST)
    return value


def _measured(value: Any, room: int) -> int:
    """The bytes that are left of `room`. NotPlain: there are too few, it is nested too deeply, or has other values."""
    left = [(value, 0)]
    room -= _OF_A_VALUE
    while left:
        one, depth = left.pop()
        kind = type(one)
        if kind in (str, bytes, bytearray):
            room -= len(one)
        elif kind is int:
            room -= one.bit_length() // 8
        elif kind in (list, tuple, set, frozenset, dict):
            room -= len(one) * _OF_A_VALUE * (2 if kind is dict else 1)
            if depth >= DEEPEST:
                raise NotPlain(f"it is nested more than {DEEPEST} deep")
            if room >= 0:
                left.extend((inner, depth + 1) for inner in one)
                if kind is dict:
                    left.extend((inner, depth + 1) for inner in one.values())
        elif kind is Decimal:
            # Almost all of its text are its digits.
            room -= len(str(one))
        elif one is not None and kind not in _SMALL:
            raise NotPlain("it has a value that is not plain")
        if room < 0:
            raise NotPlain(f"its value is too large: {LARGEST:,} bytes are read, values that it repeats included")
    return room


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        """Places in the stack."""
        self.memo: dict[int, Any] = {}
        self._key_room = LARGEST
        self._other_keys = 0

    def load(self) -> Any:
        data = self.data
        for _ in range(MOST_STEPS):
            code = data[self.at]
            self.at += 1
            if code == _STOP:
                return self.stack.pop()
            step = _STEPS.get(code)
            if step is None:
                raise NotPlain(f"it is damaged, or of an old protocol: instruction {code:#04x}")
            step(self)
        raise NotPlain(f"it has more than {MOST_STEPS:,} instructions")

    # Arguments

    def taken(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if len(found) != size:
            raise NotPlain("it is damaged: it ends early")
        self.at += size
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.taken(size), "little")

    def sized(self, size: int) -> bytes:
        """What follows its length, which has `size` bytes."""
        return self.taken(self.number(size))

    def line(self) -> str:
        end = self.data.index(b"\n", self.at)
        found, self.at = self.data[self.at : end], end + 1
        return found.decode()

    # Stack

    def popped(self, count: int) -> list[Any]:
        if count > len(self.stack) - (self.marks[-1] if self.marks else 0):
            raise NotPlain("it is damaged: its stack is too short")
        found = self.stack[-count:]
        del self.stack[-count:]
        return found

    def since_mark(self) -> list[Any]:
        place = self.marks.pop()
        found = self.stack[place:]
        del self.stack[place:]
        return found

    def pop(self) -> None:
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self.stack.pop()

    # Containers

    def append(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise NotPlain("it is damaged: it appends to what is no list")
        target.extend(values)

    def set_items(self, flat: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(flat) % 2:
            raise NotPlain("it is damaged: it sets items of what is no dict")
        self._fill(target, flat)

    def push_dict(self, flat: list[Any]) -> None:
        if len(flat) % 2:
            raise NotPlain("it is damaged: a key has no value")
        self.stack.append(self._fill({}, flat))

    def _fill(self, target: dict[Any, Any], flat: list[Any]) -> dict[Any, Any]:
        for key, value in zip(flat[::2], flat[1::2], strict=True):
            target[self._key(key)] = value
        return target

    def add_items(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not set:
            raise NotPlain("it is damaged: it adds to what is no set")
        target.update(map(self._key, values))

    def push_frozenset(self, values: list[Any]) -> None:
        self.stack.append(frozenset(map(self._key, values)))

    def _key(self, key: Any) -> Any:
        """It may be hashed."""
        if type(key) is str or type(key) is bytes:
            return key
        self._other_keys += 1
        if self._other_keys > MOST_OTHER_KEYS:
            raise NotPlain(f"it has more than {MOST_OTHER_KEYS:,} keys that are neither text nor bytes")
        self._key_room = _measured(key, self._key_room)
        return key

    # Names

    def named(self, module: Any, name: Any) -> None:
        known = _KNOWN.get((module, name)) if type(module) is type(name) is str else None
        if known is None:
            raise NotPlain(f"it names {str(module)[:60]}.{str(name)[:60]}, and only plain values are read")
        self.stack.append(known)

    def made(self, kind: Any, given: Any, more: Any = None) -> None:
        if type(kind) is not _Known or type(given) is not tuple or more:
            raise NotPlain("it is damaged: it calls what is no class")
        self.stack.append(kind.make(given))

    def filled(self, state: Any) -> None:
        pickled_values.fill(self.stack[-1], state)


def _outside(reader: _Reader) -> None:
    raise NotPlain("it names an object outside of it, or code by its number")


def _memoized(reader: _Reader) -> None:
    reader.memo[len(reader.memo)] = reader.stack[-1]


def _short_text(reader: _Reader) -> None:
    """As `sized`, in one piece: most instructions are this one and `_memoized`."""
    begin = reader.at + 1
    reader.at = end = begin + reader.data[reader.at]
    if end > len(reader.data):
        raise NotPlain("it is damaged: it ends early")
    reader.stack.append(reader.data[begin:end].decode("utf-8", "surrogatepass"))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _integer(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


Step = Callable[[_Reader], object]
_STEPS: dict[int, Step] = {
    0x80: lambda r: r.taken(1),  # PROTO
    0x95: lambda r: r.taken(8),  # FRAME
    ord("N"): lambda r: r.stack.append(None),
    0x88: lambda r: r.stack.append(True),
    0x89: lambda r: r.stack.append(False),
    # Numbers
    ord("J"): lambda r: r.stack.append(_integer(r.taken(4))),
    ord("K"): lambda r: r.stack.append(r.number(1)),
    ord("M"): lambda r: r.stack.append(r.number(2)),
    0x8A: lambda r: r.stack.append(_integer(r.sized(1))),
    0x8B: lambda r: r.stack.append(_integer(r.sized(4))),
    ord("G"): lambda r: r.stack.append(struct.unpack(">d", r.taken(8))[0]),
    # Text and bytes; T and U are those of Python 2
    ord("X"): lambda r: r.stack.append(_text(r.sized(4))),
    0x8C: _short_text,
    0x8D: lambda r: r.stack.append(_text(r.sized(8))),
    ord("T"): lambda r: r.stack.append(r.sized(4).decode("ascii")),
    ord("U"): lambda r: r.stack.append(r.sized(1).decode("ascii")),
    ord("B"): lambda r: r.stack.append(r.sized(4)),
    ord("C"): lambda r: r.stack.append(r.sized(1)),
    0x8E: lambda r: r.stack.append(r.sized(8)),
    0x96: lambda r: r.stack.append(bytearray(r.sized(8))),
    # Containers
    ord("("): lambda r: r.marks.append(len(r.stack)),
    ord("]"): lambda r: r.stack.append([]),
    ord("l"): lambda r: r.stack.append(r.since_mark()),
    ord("a"): lambda r: r.append(r.popped(1)),
    ord("e"): lambda r: r.append(r.since_mark()),
    ord(")"): lambda r: r.stack.append(()),
    ord("t"): lambda r: r.stack.append(tuple(r.since_mark())),
    0x85: lambda r: r.stack.append(tuple(r.popped(1))),
    0x86: lambda r: r.stack.append(tuple(r.popped(2))),
    0x87: lambda r: r.stack.append(tuple(r.popped(3))),
    ord("}"): lambda r: r.stack.append({}),
    ord("d"): lambda r: r.push_dict(r.since_mark()),
    ord("s"): lambda r: r.set_items(r.popped(2)),
    ord("u"): lambda r: r.set_items(r.since_mark()),
    0x8F: lambda r: r.stack.append(set()),
    0x90: lambda r: r.add_items(r.since_mark()),
    0x91: lambda r: r.push_frozenset(r.since_mark()),
    # Stack and memo
    ord("0"): lambda r: r.pop(),
    ord("1"): lambda r: r.since_mark(),
    ord("2"): lambda r: r.stack.append(r.stack[-1]),
    0x94: _memoized,
    ord("q"): lambda r: r.memo.__setitem__(r.number(1), r.stack[-1]),
    ord("r"): lambda r: r.memo.__setitem__(r.number(4), r.stack[-1]),
    ord("h"): lambda r: r.stack.append(r.memo[r.number(1)]),
    ord("j"): lambda r: r.stack.append(r.memo[r.number(4)]),
    # Names
    ord("c"): lambda r: r.named(r.line(), r.line()),
    0x93: lambda r: r.named(*r.popped(2)),
    0x81: lambda r: r.made(*r.popped(2)),
    0x92: lambda r: r.made(*r.popped(3)),
    ord("R"): lambda r: r.made(*r.popped(2)),
    ord("b"): lambda r: r.filled(*r.popped(1)),
    **dict.fromkeys((ord("P"), ord("Q"), 0x82, 0x83, 0x84), _outside),
}
"""By the number of the instruction, as in the module pickletools."""
