"""What requests of one route have of their own: headers and cookies."""

from collections.abc import Mapping

import msgspec

from trotline.model.secret import Secret

NO_COOKIES = "\0none"
"""As the name of a jar: none are sent or kept."""


class RouteRequest(msgspec.Struct, frozen=True, kw_only=True):
    headers: Mapping[str, str] = {}
    """Instead of the spider's of the same name."""
    secret_headers: Mapping[str, Secret] = {}
    """Sent to the spider's own hosts only."""
    jar: str = ""
    """The cookie jar of tasks without a session; empty: the spider's. It begins with \\0: no session has its name."""


def own_jar(route: str) -> str:
    """The name of the jar of one route."""
    return f"\0route {route}"
