"""Logins of proxy gateways: user and password carry the session and the country.

A gateway has one address; a session id in the login selects the exit. Each member of a pool is a slot; its session id
is a hash of (salt, slot, lane, generation), so that all workers make the same id without asking each other, another
lane gets another exit, and a ban moves a slot to a new exit by raising its generation.
"""

import hashlib
import re
import string

import msgspec

SMALL_LETTERS = string.ascii_lowercase + string.digits
LETTERS = string.ascii_letters + string.digits

_FIELD = re.compile(r"\{([^{}]*)\}")
_FIELDS = frozenset({"user", "password", "session", "country", "minutes"})
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_COUNTRY = re.compile(r"[a-z]{2}")


class LoginTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """How a provider wants its parameters. A part in square brackets is left out if a field in it is empty."""

    user: str = "{user}"
    password: str = "{password}"  # noqa: S105 - a template
    alphabet: str = LETTERS
    """Characters of a session id."""
    length: int = 10
    """Characters of a session id."""
    longest_minutes: int = 0
    """The longest session that the provider accepts; 0: it has no parameter for it."""
    upper_country: bool = False

    def __post_init__(self) -> None:
        for template in (self.user, self.password):
            unknown = set(_FIELD.findall(template)) - _FIELDS
            if unknown:
                raise ValueError(
                    f"a login template has the unknown field {{{min(unknown)}}}; the fields are "
                    + ", ".join(f"{{{name}}}" for name in sorted(_FIELDS))
                )
        if not self.alphabet or len(set(self.alphabet)) != len(self.alphabet):
            raise ValueError("the alphabet of session ids must be different characters")
        if not 1 <= self.length <= 64:
            raise ValueError("a session id has 1 to 64 characters")
        if len(self.alphabet) ** self.length < 1_000:
            raise ValueError("fewer than 1,000 possible session ids: use a larger alphabet or length")


class Login(msgspec.Struct, frozen=True):
    user: str
    password: str

    def __repr__(self) -> str:
        return "Login((hidden))"


PROVIDERS = {
    "brightdata": LoginTemplate(user="{user}[-country-{country}][-session-{session}]", alphabet=SMALL_LETTERS),
    "oxylabs": LoginTemplate(
        user="customer-{user}[-cc-{country}][-sessid-{session}][-sesstime-{minutes}]",
        alphabet=SMALL_LETTERS,
        longest_minutes=1440,
        upper_country=True,
    ),
    "decodo": LoginTemplate(
        user="user-{user}[-country-{country}][-session-{session}][-sessionduration-{minutes}]",
        alphabet=SMALL_LETTERS,
        longest_minutes=1440,
    ),
    "thordata": LoginTemplate(
        user="td-customer-{user}[-country-{country}][-sessid-{session}][-sesstime-{minutes}]",
        alphabet=SMALL_LETTERS,
        longest_minutes=90,
    ),
    "iproyal": LoginTemplate(
        password="{password}[_country-{country}][_session-{session}][_lifetime-{minutes}m]",  # noqa: S106 - a template
        length=8,
        longest_minutes=7 * 24 * 60,
    ),
}
"""By provider, after their documentation. `{user}` is the contract's name (Bright Data: brd-customer-ID-zone-Z)."""


def session_id(template: LoginTemplate, *, salt: str, slot: int, lane: str, generation: int = 0) -> str:
    """The session of this slot for this lane. Another generation is another exit."""
    text = msgspec.json.encode((salt, slot, lane, generation))
    number = int.from_bytes(hashlib.blake2b(text, digest_size=64).digest())
    letters = []
    for _ in range(template.length):
        number, at = divmod(number, len(template.alphabet))
        letters.append(template.alphabet[at])
    return "".join(letters)


def login(
    template: LoginTemplate,
    user: str,
    password: str,
    *,
    session: str = "",
    country: str = "",
    minutes: int = 0,
) -> Login:
    """User and password to send; ValueError names a parameter that the provider does not take."""
    country = country.lower()
    if country and not _COUNTRY.fullmatch(country):
        raise ValueError("a country has two letters (ISO 3166), like us")
    if minutes < 0 or (minutes and minutes > template.longest_minutes):
        limit = template.longest_minutes
        raise ValueError(
            f"sessions of this provider last 1 to {limit} minutes" if limit else "this provider takes no session time"
        )
    if session and set(session) - set(template.alphabet):
        raise ValueError("a session id has characters that this provider does not take")
    both = template.user + template.password
    for name, value in (("session", session), ("country", country)):
        if value and f"{{{name}}}" not in both:
            raise ValueError(f"the login of this provider has no place for a {name}")
    values = {
        "user": user,
        "password": password,
        "session": session,
        "country": country.upper() if template.upper_country else country,
        # A session time without a session is an error at some providers.
        "minutes": str(minutes) if minutes and session else "",
    }
    return Login(_filled(template.user, values), _filled(template.password, values))


def _filled(template: str, values: dict[str, str]) -> str:
    """In one pass: braces and brackets in a password are not templates."""

    def part(optional: re.Match[str]) -> str:
        return optional[0] if all(values[name] for name in _FIELD.findall(optional[1])) else ""

    template = _OPTIONAL.sub(lambda found: part(found)[1:-1], template)
    return _FIELD.sub(lambda field: values[field[1]], template)


OWN_FIELDS = ("session", "country", "minutes")
"""Fields of a template that an operator writes, with user and password in it."""


def own_field_in(login: str) -> str:
    """The first of these fields in a login; empty if it has none."""
    return next((field for name in OWN_FIELDS if (field := f"{{{name}}}") in login), "") if "{" in login else ""


def places(template: str) -> set[str]:
    """The fields of an own template; ValueError if one is unknown. It is not quoted: it may be part of a password."""
    found = set(_FIELD.findall(template))
    if not found <= set(OWN_FIELDS):
        raise ValueError(f"an unknown placeholder; known are {', '.join(f'{{{name}}}' for name in OWN_FIELDS)}")
    return found


def filled(template: str, *, session: str, country: str, minutes: int) -> str:
    """An own template with its fields filled in."""
    values = {"session": session, "country": country, "minutes": str(minutes)}
    return _FIELD.sub(lambda field: values[field[1]], template)
