"""Pages and links dropped by a limit or a trap rule: how many, an example, and the setting to change.

Used by every output: summary, `status`, `watch`, `--json`, `try` and `trace`. Links out of scope, forbidden by
robots.txt or not found are not cuts: no setting brings them back.
"""

from collections.abc import Mapping

import msgspec

from trotline.model.job import Progress
from trotline.model.limits import MIB, Limits
from trotline.rules import sitemaps
from trotline.rules.traps import TrapRules

LINKS = "links refused: "
"""Prefix of the counters of refused links."""


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """Pages or links dropped by one limit."""

    name: str
    """The counter."""
    count: int
    what: str
    """"links deeper than max_depth=20"."""
    setting: str
    """"max_depth", "Limits(links)", "TrapRules(same_text)"; empty for a limit that no setting changes."""
    advice: str
    """"raise max_depth"."""
    example: str = ""
    own: bool = False
    """The spider set this limit itself, so the cut is intended."""


class _Kind(msgspec.Struct, frozen=True):
    tally: str
    """Prefix of its counters."""
    what: str
    """With {value} for the limit."""
    limit: str
    """Its name in `Limits` or `TrapRules`, or `max_depth`; empty: fixed."""


_KINDS = (
    _Kind("links refused: depth", "links deeper than max_depth={value}", "max_depth"),
    _Kind("links refused: too many links", "links after the first {value} of a page", "links"),
    _Kind("links refused: too long", "links longer than {value} characters", "url"),
    _Kind(f"links refused: {sitemaps.URLS}", "URLs after the first {value} of a sitemap", "sitemap_urls"),
    _Kind(f"links refused: {sitemaps.INDEX}", "sitemaps after the first {value} of an index", "sitemap_urls"),
    _Kind(f"links refused: {sitemaps.SIZE}", "sitemaps longer than {value}, read up to there", "sitemap"),
    _Kind(
        f"links refused: {sitemaps.EXPANSION}",
        "sitemaps that decompress to more than {value} times their size",
        "expansion",
    ),
    _Kind(f"links refused: {sitemaps.DEPTH}", "sitemaps below {value} levels of indexes", "sitemap_depth"),
    _Kind(f"links refused: {sitemaps.FILES}", "sitemaps after the first {value} of a seed", "sitemap_files"),
    _Kind(f"links refused: {sitemaps.LONG}", "URLs of a sitemap longer than {value} characters", "seed_url"),
    _Kind(
        f"links refused: {sitemaps.ROBOTS}",
        "robots.txt files over {value}, searched for sitemaps up to there",
        "robots",
    ),
    _Kind(
        f"links refused: {sitemaps.CROWDED}",
        f"sitemaps with more than {sitemaps.ELEMENTS} elements for each of sitemap_urls={{value}}, read up to there",
        "sitemap_urls",
    ),
    _Kind(
        f"links refused: {sitemaps.NESTED}",
        f"sitemaps with more than {sitemaps.NESTING} elements inside each other, read up to there",
        "",
    ),
    _Kind(
        f"links refused: {sitemaps.NAMED}",
        f"sitemaps with more than {sitemaps.NAMES:,} names of elements and attributes, read up to there",
        "",
    ),
    _Kind(
        f"links refused: {sitemaps.PIECES}",
        f"sitemaps of more than {sitemaps.MEMBERS} gzip members, read up to there",
        "",
    ),
    _Kind(
        f"links refused: {sitemaps.BLOCK}",
        f"sitemaps with a tag or text over {sitemaps.LONGEST_TAG // MIB} MiB, read only for plain <loc>",
        "",
    ),
    _Kind("links refused: trap: deep path", "links with more than {value} path segments", "segments"),
    _Kind("links refused: trap: repeated segments", "links whose path repeats itself", "same_segment"),
    _Kind("links refused: trap: repeated groups", "links whose path repeats a group of segments", "cycles"),
    _Kind("links refused: trap: endless calendar", "links into an endless calendar", "calendar_pages"),
    _Kind("links refused: trap: far future date", "links to dates more than {value} years ahead", "years_ahead"),
    _Kind("links refused: trap: far past date", "links to dates more than {value} years back", "years_back"),
    _Kind("links refused: trap: query values", "links after the first {value} queries of a path", "query_values"),
    _Kind("links refused: trap: query variants", "links that only recombine query parameters", "query_variants"),
    _Kind("links refused: trap: session id", "links to the same page under new session ids", "session_variants"),
    _Kind("links refused: trap: same text", "links on pages that all have the same text", "same_text"),
    _Kind("links refused: trap: soft 404", 'links on pages that all say "not found"', "soft_404"),
    _Kind("dead: refused: body over", "pages with a body over {value}", "wire_body"),
    _Kind("dead: refused: decoded body", "pages with a decompressed body over {value}", "decoded_body"),
    _Kind("dead: refused: body expands", "pages that decompress to more than {value} times their size", "expansion"),
    _Kind("dead: refused: head over", "answers with headers over {value}", "header_bytes"),
    _Kind("dead: refused: head with more than", "answers with more than {value} header fields", "header_fields"),
    _Kind("dead: refused: trailers", "answers with trailers and framing over {value}", "header_bytes"),
    _Kind("dead: refused: content-encodings", "pages with more than {value} content-encodings", "encodings"),
    _Kind("dead: refused: redirect to a URL over", "pages that redirect to a URL over {value} characters", "url"),
    _Kind("dead: refused: more than", "pages behind more than {value} redirects", "redirects"),
)
_DEAD = "dead: "
_LIMITS, _TRAPS = Limits(), TrapRules()
_FIXED = "a fixed limit: give the pages that are missing as seeds"
_BYTES = frozenset({"sitemap", "robots", "wire_body", "decoded_body", "header_bytes"})


def cuts(progress: Progress, own: Mapping[str, float]) -> list[Cut]:
    """The cuts of a job, the largest first. `own`: the limits that its spider set itself."""
    # Revived tasks stay in the counters of buried ones, so these are used only while tasks are dead.
    counted = {n: c for n, c in progress.tallies.items() if c and (progress.dead or not n.startswith(_DEAD))}
    found: dict[str, Cut] = {}
    for name, count in counted.items():
        kind = next((kind for kind in _KINDS if name.startswith(kind.tally)), None)
        if kind is None:
            continue
        before = found.get(kind.tally)
        found[kind.tally] = _cut(
            kind,
            own,
            count=count + (before.count if before else 0),
            example=progress.examples.get(name, "") or (before.example if before else ""),
        )
    return sorted(found.values(), key=lambda cut: -cut.count)


def cut_by(reason: str, own: Mapping[str, float], *, count: int = 1, example: str = "") -> Cut | None:
    """The cut behind a refusal of the gate ("depth", "trap: session id"); None if it was not a limit."""
    kind = next((kind for kind in _KINDS if kind.tally == LINKS + reason), None)
    return None if kind is None else _cut(kind, own, count=count, example=example)


def cut_page(why: str, own: Mapping[str, float]) -> Cut | None:
    """The limit behind the reason of a buried page ("refused: body over 10 MiB"); None if it was not a limit."""
    name = f"{_DEAD}{why}"
    kind = next((kind for kind in _KINDS if kind.tally.startswith(_DEAD) and name.startswith(kind.tally)), None)
    return None if kind is None else _cut(kind, own, count=1, example="")


def is_cut(tally: str) -> bool:
    return any(tally.startswith(kind.tally) for kind in _KINDS)


def unwanted(found: list[Cut]) -> bool:
    """Is there a cut by a default limit?"""
    return any(not cut.own for cut in found)


def own_limits(max_depth: int | None, limits: Limits | None, traps: TrapRules | None) -> dict[str, float]:
    """The limits that a spider sets to something else than the default."""
    own: dict[str, float] = {} if max_depth is None else {"max_depth": max_depth}
    for given, default in ((limits, _LIMITS), (traps, _TRAPS)):
        for name in default.__struct_fields__ if given is not None else ():
            if getattr(given, name) != getattr(default, name):
                own[name] = getattr(given, name)
    return own


def _cut(kind: _Kind, own: Mapping[str, float], *, count: int, example: str) -> Cut:
    limit = kind.limit
    value = own.get(limit, getattr(_LIMITS, limit, None) or getattr(_TRAPS, limit, None))
    setting = _setting(limit)
    return Cut(
        name=kind.tally,
        count=count,
        what=kind.what.format(value="?" if value is None else _shown(limit, value)),
        setting=setting,
        advice=f"raise {setting}" if setting else _FIXED,
        example=example,
        own=limit in own,
    )


def _setting(limit: str) -> str:
    if limit in _LIMITS.__struct_fields__:
        return f"Limits({limit})"
    return f"TrapRules({limit})" if limit in _TRAPS.__struct_fields__ else limit


def _shown(limit: str, value: float) -> str:
    if limit in _BYTES and value % 1024 == 0:
        return f"{value // MIB:,} MiB" if value % MIB == 0 else f"{value // 1024:,} KiB"
    return f"{value:,}"
