"""Results on their way from an outbox to a sink."""

from typing import NamedTuple

from trotline.model.record import Record
from trotline.model.time import Moment
from trotline.model.visit_row import VisitRow


class Taken(NamedTuple):
    """A parcel that one writer holds."""

    id: str
    job: str
    times: int
    """How often it was handed out."""
    records: list[Record]
    visits: list[VisitRow]
    damage: str = ""
    """Why this program cannot read it; then it is empty."""


class Waiting(NamedTuple):
    parcels: int = 0
    records: int = 0
    parked: int = 0


class Parked(NamedTuple):
    """What no writer could store."""

    at: Moment
    job: str
    records: int
    bytes: int
    why: str
