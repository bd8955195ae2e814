"""The members of a pool: their ids, and the way out through each."""

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b

import msgspec

from trotline.config.pool_table import Gateway
from trotline.config.proxy_lines import NAMED, Entry
from trotline.errors import SettingsError
from trotline.model.proxy import ApiGateway, Proxy, ProxyScheme, Way
from trotline.model.proxy_pool import PoolMember
from trotline.rules import proxy_logins

SESSIONS_PER_SLOT = 64
"""Lanes are distributed over so many sessions of a slot. A bound on the number of logins: providers, connection pools
and the redaction of output keep each of them."""

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_LENGTH = 8
"""Of a session's name: every known provider accepts eight letters and digits."""

Digest = Callable[[bytes], int]


def digest(data: bytes) -> int:
    """48 bits, never 0: that is a direct connection."""
    return int.from_bytes(blake2b(data, digest_size=6).digest()) or 1


class Members(msgspec.Struct, frozen=True, kw_only=True):
    members: tuple[PoolMember, ...]
    ways: dict[int, "Proxy | Slot"]
    regions: frozenset[str] = frozenset()
    """Of its members; empty if the pool and its list name none."""
    notes: tuple[str, ...] = ()

    def way(self, member: int, lane: str) -> Way | None:
        found = self.ways.get(member)
        return found.way(lane) if isinstance(found, Slot) else found

    def way_of(self, member: int, owner: str) -> Way | None:
        """For one owner only: a slot has a session for each."""
        found = self.ways.get(member)
        return found.way_of(owner) if isinstance(found, Slot) else found

    def __repr__(self) -> str:
        return f"Members({len(self.members)})"


class Slot(msgspec.Struct, frozen=True):
    """A session slot of a gateway."""

    gateway: Gateway
    member: int

    def way(self, lane: str) -> Way:
        return self.way_of(str(_group(lane)))

    def way_of(self, owner: str) -> Way:
        way = self.gateway.way
        if isinstance(way, ApiGateway) or way.one_request_per_tunnel:
            return way
        if (template := self.gateway.template) is not None:
            return self._provided(way, template, owner)
        values = {
            "session": _session(self.member, owner),
            "country": self.gateway.country,
            "minutes": self.gateway.minutes,
        }
        user, password = (proxy_logins.filled(text, **values) for text in (way.user, way.password))  # type: ignore[arg-type]
        return msgspec.structs.replace(way, user=user, password=password, secret=way.secret or way.password)

    def _provided(self, way: Proxy, template: proxy_logins.LoginTemplate, owner: str) -> Proxy:
        gateway = self.gateway
        session = proxy_logins.session_id(template, salt=str(self.member), slot=0, lane=owner)
        minutes = gateway.minutes if template.longest_minutes else 0
        login = proxy_logins.login(
            template, way.user, way.password, session=session, country=gateway.country, minutes=minutes
        )
        return msgspec.structs.replace(way, user=login.user, password=login.password, secret=way.password)


def of_list(entries: Iterable[Entry], weight: float, region: str, digest: Digest = digest) -> Members:
    """Each login once: some providers carry the session in the password. SettingsError if two different ones have the
    same id."""
    members: dict[int, PoolMember] = {}
    ways: dict[int, Proxy | Slot] = {}
    first: dict[int, Entry] = {}
    passwords: dict[tuple[str | int, ...], dict[str, Entry]] = {}
    """By address and user."""
    twice: list[tuple[int, int]] = []
    others: list[tuple[int, int]] = []
    regions: set[str] = set()
    for entry in entries:
        known = passwords.setdefault(_identity(entry.proxy, 0), {})
        if (same := known.get(entry.proxy.password)) is not None:
            twice.append((entry.line, same.line))
            continue
        if known:
            others.append((entry.line, next(iter(known.values())).line))
        # The first one keeps its id when its password changes; below 0, as slots of a gateway count up.
        number = _id(entry.proxy, -len(known), digest)
        if (collided := first.get(number)) is not None:
            raise _collision(collided, entry)
        known[entry.proxy.password] = first[number] = entry
        members[number] = PoolMember(number, entry.weight or weight)
        ways[number] = entry.proxy
        regions.add(entry.region or region)
    return Members(
        members=tuple(members.values()),
        ways=ways,
        regions=frozenset(regions - {""}),
        notes=_duplicates(twice) + _other_passwords(others),
    )


def of_gateway(gateway: Gateway, weight: float, region: str, digest: Digest = digest) -> Members:
    ids = {_id(gateway.way, slot, digest): slot for slot in range(1, gateway.slots + 1)}
    if len(ids) < gateway.slots:
        raise SettingsError(
            f"two of the {gateway.slots:,} slots of {gateway.way.public} have the same id",
            hint="Change the number of slots by one.",
        )
    return Members(
        members=tuple(PoolMember(number, weight) for number in ids),
        ways={number: Slot(gateway, number) for number in ids},
        regions=frozenset({region} - {""}),
    )


def trusting(members: Members, ca_file: str) -> Members:
    """https proxies with this authority. SettingsError if there is none, so that the file has no effect."""
    if not ca_file:
        return members
    ways = {member: _trusting(way, ca_file) for member, way in members.ways.items()}
    if ways == members.ways:
        raise SettingsError("ca has no effect: the pool has no https:// proxy", hint="Leave it out.")
    return msgspec.structs.replace(members, ways=ways)


def _trusting(way: Proxy | Slot, ca_file: str) -> Proxy | Slot:
    if isinstance(way, Slot):
        made = way.gateway.way
        if isinstance(made, ApiGateway) or made.scheme is not ProxyScheme.HTTPS:
            return way
        trusting = msgspec.structs.replace(made, ca_file=ca_file)
        return Slot(msgspec.structs.replace(way.gateway, way=trusting), way.member)
    return msgspec.structs.replace(way, ca_file=ca_file) if way.scheme is ProxyScheme.HTTPS else way


def weighted(members: Members, weights: Mapping[int, float]) -> Members:
    """With measured weights, which multiply those of the file. Unknown members are named in its notes."""
    if not weights:
        return members
    made = tuple(PoolMember(each.id, each.weight * weights.get(each.id, 1.0)) for each in members.members)
    unknown = [f"{member:012x}" for member in sorted(set(weights) - set(members.ways))]
    if not unknown:
        return msgspec.structs.replace(members, members=made)
    named = ", ".join(unknown[:NAMED]) + (f" and {len(unknown) - NAMED:,} more" if len(unknown) > NAMED else "")
    count = (
        "1 weight is for a proxy that is" if len(unknown) == 1 else f"{len(unknown):,} weights are for proxies that are"
    )
    return msgspec.structs.replace(members, members=made, notes=(*members.notes, f"{count} not in it: {named}"))


def session_of(member: int, lane: str) -> str:
    """The session of a slot for a lane: the same in every worker."""
    return _session(member, str(_group(lane)))


def _session(member: int, owner: str) -> str:
    number = _number(f"{member} {owner}".encode())
    letters = []
    for _ in range(_LENGTH):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)


def _group(lane: str) -> int:
    return _number(lane.encode("utf-8", "surrogatepass")) % SESSIONS_PER_SLOT


def _id(way: Way, slot: int, digest: Digest) -> int:
    return digest("\0".join(map(str, _identity(way, slot))).encode("utf-8", "surrogatepass"))


def _identity(way: Way, slot: int) -> tuple[str | int, ...]:
    if isinstance(way, ApiGateway):
        return "api", way.endpoint, 0, "", slot
    return way.scheme, way.host, way.port, way.user, slot


def _duplicates(twice: list[tuple[int, int]]) -> tuple[str, ...]:
    if not twice:
        return ()
    named = ", ".join(f"line {line} repeats line {first}" for line, first in twice[:NAMED])
    more = f", and {len(twice) - NAMED:,} more" if len(twice) > NAMED else ""
    count = "1 duplicate is" if len(twice) == 1 else f"{len(twice):,} duplicates are"
    return (f"{count} used once: {named}{more}",)


def _other_passwords(pairs: list[tuple[int, int]]) -> tuple[str, ...]:
    """Right for sessions in the password; a mistake if one of them is an old password."""
    if not pairs:
        return ()
    named = ", ".join(f"line {line} and line {first}" for line, first in pairs[:NAMED])
    more = f", and {len(pairs) - NAMED:,} more" if len(pairs) > NAMED else ""
    return (f"used as two logins, as their passwords differ: {named}{more}",)


def _collision(one: Entry, other: Entry) -> SettingsError:
    return SettingsError(
        f"lines {one.line} and {other.line} ({one.proxy.public} and {other.proxy.public}) are different proxies with"
        " the same id",
        hint="Remove one of them, or move it to another pool.",
    )


def _number(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest())
