"""The client's cache of a job's task templates."""

from collections.abc import Iterable
from typing import Any

import msgspec

from trotline.adapters.redis import keys
from trotline.adapters.redis.lua_layouts import MOST_TEMPLATES
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server_calls import Server
from trotline.adapters.redis.task_codec import (
    HEAD,
    TEMPLATE,
    VERSION,
    TaskTemplate,
    decode_template,
    encode_template,
)
from trotline.errors import FrontierError
from trotline.model.task_json import Undecodable

_AT_ONCE = 500


class TaskTemplates:
    """Maps templates to numbers and back. They never change; a failover may lose some."""

    def __init__(self, server: Server, prefix: str) -> None:
        self._server = server
        self._prefix = prefix
        self._generation = server.generation
        self._numbers: dict[TaskTemplate, int] = {}
        self._templates: dict[int, TaskTemplate] = {}

    def has(self, templates: Iterable[TaskTemplate]) -> bool:
        """Were all of them learned?"""
        return self._generation == self._server.generation and self._numbers.keys() >= set(templates)

    async def learn(self, templates: Iterable[TaskTemplate]) -> dict[TaskTemplate, int]:
        """Numbers for all of these; one round trip if some are new, none otherwise."""
        if self._generation != self._server.generation:
            # The server may have lost some of them; they get the same numbers again.
            self._generation = self._server.generation
            self._numbers.clear()
        unknown = [template for template in dict.fromkeys(templates) if template not in self._numbers]
        for start in range(0, len(unknown), _AT_ONCE):
            some = unknown[start : start + _AT_ONCE]
            numbers = await self._server.run_timeless(
                script("task_templates"), keys.job(self._prefix), *(encode_template(template) for template in some)
            )
            for template, number in zip(some, numbers, strict=True):
                if not number:
                    raise FrontierError(
                        "too many task templates in one job",
                        hint="Each combination of route, site, pool and retries needs one, "
                        f"{MOST_TEMPLATES:,} at most. Use fewer sites.",
                    )
                self._numbers[template] = number
                self._templates[number] = template
        return self._numbers

    async def look_up(self, numbers: set[int]) -> None:
        """Fetch the templates of these numbers that are not cached."""
        missing = [number for number in numbers if number not in self._templates]
        if not missing:
            return
        found: list[Any] = await self._server.ask("HMGET", f"{self._prefix}forms", *missing)
        for number, packed in zip(missing, found, strict=True):
            if packed is None:
                continue
            try:
                template = decode_template(packed)
            except (msgspec.MsgspecError, ValueError):
                # Changed by another program: only its tasks are undecodable.
                continue
            self._templates[number] = template
            self._numbers[template] = number

    def template(self, number: int) -> TaskTemplate:
        try:
            return self._templates[number]
        except KeyError:
            raise Undecodable(f"its template {number} is missing or cannot be read") from None


def templates_in(blobs: list[Any]) -> set[int]:
    """The template numbers of these blobs."""
    numbers = {
        blob[TEMPLATE] for blob in blobs if isinstance(blob, bytes) and len(blob) >= HEAD.size and blob[0] == VERSION
    }
    return {int.from_bytes(number, "big") for number in numbers}
