"""Logins of gateways: templates with {session}, {country} and {minutes}."""

import re

PLACES = ("session", "country", "minutes")
_PLACE = re.compile(r"\{([^{}]*)\}")


def places(template: str) -> set[str]:
    """The names in braces; ValueError if one is unknown. It is not quoted, as it may be a part of a password."""
    found = set(_PLACE.findall(template))
    if not found <= set(PLACES):
        raise ValueError(f"an unknown placeholder; known are {', '.join(f'{{{name}}}' for name in PLACES)}")
    return found


def filled(template: str, *, session: str, country: str, minutes: int) -> str:
    values = {"session": session, "country": country, "minutes": str(minutes)}
    return _PLACE.sub(lambda place: values[place[1]], template)
