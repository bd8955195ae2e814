"""`@spider.merge`: the author's own rule for which records are one thing."""

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from trotline.errors import SpiderRefused
from trotline.model.merge import CRITERIA, AuthorKey, Criterion, MergeRule
from trotline.model.record import Record
from trotline.rules.merge_fields import check_precedence
from trotline.spider.handler_failed import HandlerFailed, is_interrupt

_BETWEEN = "Similarities are from 0 to 1, and review_from is at most merge_from: merge_from=0.8, review_from=0.7."


class Merging(msgspec.Struct, frozen=True):
    rule: MergeRule
    author: AuthorKey


def merge_rule(
    whose: str,
    *,
    by: str | Iterable[str],
    prefer: Mapping[str, str],
    text: str | Iterable[str] = (),
    merge_from: float | None = None,
    review_from: float | None = None,
    within_site: bool = False,
) -> MergeRule:
    """SpiderRefused if it cannot work."""
    usual = MergeRule()
    high = usual.merge_from if merge_from is None else merge_from
    low = min(usual.review_from, high) if review_from is None else review_from
    if (
        not all(isinstance(one, int | float) and not isinstance(one, bool) for one in (low, high))
        or not 0 < low <= high <= 1
    ):
        raise SpiderRefused(f"{whose}: merge_from={high!r} and review_from={low!r} cannot be used", hint=_BETWEEN)
    fields = (text,) if isinstance(text, str) else tuple(text)
    return MergeRule(
        by=_criteria(whose, (by,) if isinstance(by, str) else tuple(by)),
        prefer=_precedences(whose, prefer),
        text=fields or usual.text,
        merge_from=float(high),
        review_from=float(low),
        within_site=bool(within_site),
    )


def merging(whose: str, rule: MergeRule, handler: Callable[[Record], Any]) -> Merging:
    if not callable(handler) or inspect.iscoroutinefunction(handler):
        raise SpiderRefused(
            f"{whose}: {handler!r} cannot be its merge rule",
            hint="Write a plain function: def same(record): return record.data.get('gtin')",
        )

    def author(record: Record) -> Any:
        try:
            return handler(record)
        except Exception as error:
            if is_interrupt(error):
                raise
            raise HandlerFailed.of(error, handler) from error

    return Merging(msgspec.structs.replace(rule, author=_version(handler)), author)


def _criteria(whose: str, given: tuple[str, ...]) -> tuple[Criterion, ...]:
    unknown = [name for name in given if name not in CRITERIA]
    if unknown:
        raise SpiderRefused(f"{whose}: cannot merge by {unknown[0]!r}", hint=f"Known are {', '.join(CRITERIA)}.")
    return tuple(one for one in CRITERIA if one in given)


def _precedences(whose: str, given: Mapping[str, str]) -> dict[str, str]:
    try:
        return {str(field): check_precedence(how) for field, how in given.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise SpiderRefused(f"{whose}: prefer: {error}", hint='For example prefer={"price": "newest"}.') from error


def _version(handler: Callable[..., Any]) -> str:
    """Another text is another rule: everything is merged again."""
    try:
        source = inspect.getsource(handler)
    except (OSError, TypeError):
        source = repr(getattr(handler, "__code__", handler))
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:16]
