"""Parcels: batches of results in an outbox, on their way to a sink."""

from typing import NamedTuple

from trotline.model.record import Record
from trotline.model.time import Moment
from trotline.model.visit_row import VisitRow


class Taken(NamedTuple):
    """A parcel that one writer holds."""

    id: str
    job: str
    times: int
    """How often it was delivered."""
    records: list[Record]
    visits: list[VisitRow]
    damage: str = ""
    """Why it cannot be decoded; then it is empty."""


class Waiting(NamedTuple):
    parcels: int = 0
    records: int = 0
    parked: int = 0


class Parked(NamedTuple):
    """A parcel that could not be stored."""

    at: Moment
    job: str
    records: int
    bytes: int
    why: str
