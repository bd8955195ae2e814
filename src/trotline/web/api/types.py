"""Types that several routes share. Lengths are limited: what is longer is no name, URL or reason of ours."""

from typing import Annotated

import msgspec
from msgspec import Meta

JobId = Annotated[str, Meta(min_length=1, max_length=300)]
Name = Annotated[str, Meta(max_length=300)]
Url = Annotated[str, Meta(max_length=10_000)]
Limit = Annotated[int, Meta(ge=1, le=1000)]


class JobPath(msgspec.Struct, frozen=True):
    job: JobId


class Empty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A body without fields: `{}`, or none."""
