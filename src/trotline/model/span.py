"""A span: what took how long, with its parts, for tracing tools."""

from collections.abc import Mapping

import msgspec

from trotline.model.time import Moment


class Span(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    began: Moment
    ended: Moment
    facts: Mapping[str, str | int | float | bool] = {}
    """Attributes, redacted."""
    error: str = ""
    """Why it failed; empty if it did not."""
    parts: tuple["Span", ...] = ()
