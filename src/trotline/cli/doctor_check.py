"""One line of `trotline doctor`."""

import msgspec

from trotline.errors import TrotlineError
from trotline.rules import redaction


class Check(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    state: str
    """"ok", "warn" or "fail"."""
    found: str
    advice: str = ""
    next: tuple[str, ...] = ()
    """Commands that can be run now."""


def failed(what: str, error: TrotlineError) -> Check:
    first, *rest = redaction.text(error.what).splitlines()
    advice = "\n".join([*(part.strip() for part in rest), redaction.text(error.hint)]).strip()
    return Check(what=what, state="fail", found=first, advice=advice)
