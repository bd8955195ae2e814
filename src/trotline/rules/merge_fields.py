"""The fields of a thing: of all values that its sources have, which one, and whose it is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trotline.model.merge import EVERY_FIELD, LONGEST, MOST_FREQUENT, NEWEST, SITE, MergeRule, Source, Thing, thing_id

PRECEDENCES = (NEWEST, LONGEST, MOST_FREQUENT)
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode
_canonical = msgspec.json.Encoder(order="sorted").encode
_EMPTY: tuple[Any, ...] = (None, "", [], {})

Found = tuple[Source, Any]


def thing_of(sources: Sequence[Source], rule: MergeRule) -> Thing:
    """The same for any order of the sources."""
    first = min(sources, key=lambda one: (one.first_seen_at, one.site, one.key))
    ordered = sorted(sources, key=_age)
    data, provenance = _fused(ordered, rule.prefer)
    return Thing(
        id=thing_id(first.id),
        kind=first.kind,
        data=_encode(data).decode(),
        provenance=_encode(provenance).decode(),
        sources=tuple(sorted(one.id for one in sources)),
        sites=tuple(sorted({one.site for one in sources})),
        first_seen_at=first.first_seen_at,
        seen_at=max(one.seen_at for one in sources),
    )


def check_precedence(text: str) -> str:
    """ValueError if it is not one."""
    if text in PRECEDENCES or (text.startswith(f"{SITE}:") and all(_sites(text))):
        return text
    known = ", ".join(repr(name) for name in PRECEDENCES)
    raise ValueError(f'{text!r} is not known; write {known} or "site:A,B" (the first of these sites that has a value)')


def _age(source: Source) -> tuple[float, str, str]:
    return source.seen_at, source.site, source.key


def _fused(sources: Sequence[Source], prefer: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """`sources`: the oldest first. The order of the fields is that of the newest source that has them."""
    found: dict[str, list[Found]] = {}
    decoded = [(source, _decode(source.data)) for source in sources]
    for source, fields in reversed(decoded):
        for name, value in fields.items():
            found.setdefault(name, []).append((source, value))
    data: dict[str, Any] = {}
    provenance: dict[str, str] = {}
    for name, values in found.items():
        precedence = prefer.get(name) or prefer.get(EVERY_FIELD, NEWEST)
        source, data[name] = _chosen([one for one in values if one[1] not in _EMPTY] or values, precedence)
        provenance[name] = source.name
    return data, provenance


def _chosen(values: Sequence[Found], precedence: str) -> Found:
    """`values`: the newest first, which decides where the precedence does not."""
    if precedence == LONGEST:
        return max(values, key=lambda one: _length(one[1]))
    if precedence == MOST_FREQUENT:
        counts = Counter(_canonical(value) for _, value in values)
        return max(values, key=lambda one: counts[_canonical(one[1])])
    for site in _sites(precedence):
        for one in values:
            if one[0].site == site:
                return one
    return values[0]


def _sites(precedence: str) -> list[str]:
    return precedence[len(SITE) + 1 :].split(",") if precedence.startswith(f"{SITE}:") else []


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(_encode(value))
