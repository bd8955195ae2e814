"""The forms of one job's tasks, as this client knows them."""

from collections.abc import Iterable
from typing import Any

import msgspec

from trotline.adapters.redis import keys
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server import Server
from trotline.adapters.redis.task_codec import VERSION, Form, decode_form, encode_form
from trotline.errors import FrontierError
from trotline.model.task_json import Undecodable

_FORM = slice(14, 16)
"""Where a blob names its form."""
_SMALLEST = 21


class Forms:
    """Numbers of forms, and the forms behind numbers. They never change; a server may forget some of them."""

    def __init__(self, server: Server, prefix: str) -> None:
        self._server = server
        self._prefix = prefix
        self._generation = server.generation
        self._numbers: dict[Form, int] = {}
        self._forms: dict[int, Form] = {}

    async def learn(self, forms: Iterable[Form]) -> dict[Form, int]:
        """Numbers for all of these; one round trip if some are new, none otherwise."""
        if self._generation != self._server.generation:
            # Whoever is there now may not know all of them. They get the numbers that they had.
            self._generation = self._server.generation
            self._numbers.clear()
        unknown = [form for form in dict.fromkeys(forms) if form not in self._numbers]
        for start in range(0, len(unknown), 500):
            some = unknown[start : start + 500]
            numbers = await self._server.run_timeless(
                script("forms"), keys.job(self._prefix), *(encode_form(form) for form in some)
            )
            for form, number in zip(some, numbers, strict=True):
                if not number:
                    raise FrontierError(
                        "too many kinds of tasks in one job",
                        hint="Routes, sites, pools and numbers of retries make kinds, 58,500 at most. Use fewer sites.",
                    )
                self._numbers[form] = number
                self._forms[number] = form
        return self._numbers

    async def look_up(self, numbers: set[int]) -> None:
        """Fetch the forms of these numbers, as far as they are not known yet."""
        missing = [number for number in numbers if number not in self._forms]
        if not missing:
            return
        found: list[Any] = await self._server.ask("HMGET", f"{self._prefix}forms", *missing)
        for number, packed in zip(missing, found, strict=True):
            if packed is None:
                continue
            try:
                form = decode_form(packed)
            except (msgspec.MsgspecError, ValueError):
                # Changed by another program: its tasks are undecodable, the others are not.
                continue
            self._forms[number] = form
            self._numbers[form] = number

    def form(self, number: int) -> Form:
        try:
            return self._forms[number]
        except KeyError:
            raise Undecodable(f"its form {number} is not known to this job or cannot be read") from None


def forms_in(blobs: list[Any]) -> set[int]:
    """The numbers of the forms that these blobs name."""
    numbers = {
        blob[_FORM] for blob in blobs if isinstance(blob, bytes) and len(blob) >= _SMALLEST and blob[0] == VERSION
    }
    return {int.from_bytes(number, "big") for number in numbers}
