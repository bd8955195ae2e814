"""Redacts graveyard entries for output. The stored task keeps its full URL, and is revived with it."""

from collections.abc import Collection
from typing import Any

import msgspec

from trotline.model import task_json
from trotline.model.job import Grave
from trotline.model.secret import HIDDEN
from trotline.model.task import Task
from trotline.rules import chain_failures, redaction
from trotline.rules.session_pinning import name_of


def seed_of(task: Task) -> dict[str, Any]:
    """The task in the JSON form of seeds, without headers and body, which may contain secrets."""
    meta = {name: HIDDEN if redaction.is_secret_header(name) else value for name, value in task.meta.items()}
    plain = msgspec.structs.replace(task, headers=(), body=b"", meta=meta, session=name_of(task.session))
    return task_json.to_seed(plain)


def shown(grave: Grave, keys: Collection[str]) -> Grave:
    """`keys`: the job's additional query keys whose values are redacted."""
    hidden = {name: redaction.url(grave.task[name], keys) for name in ("url", "parent") if name in grave.task}
    return msgspec.structs.replace(
        grave,
        url=redaction.url(grave.url, keys),
        parent=redaction.url(grave.parent, keys),
        why=chain_failures.shown(grave.why, keys),
        task={**grave.task, **hidden},
    )


def task_grave(fingerprint: int, body: bytes, why: str, detail: str | None, attempt: int, died_at: float) -> Grave:
    """Of the row of a buried task; not redacted yet."""
    about: dict[str, Any] = {"url": "(undecodable)", "route": ""}
    try:
        task = task_json.decode(body)
        about = {"url": task.url, "route": task.route, "lane": task.lane, "parent": task.parent}
        about["task"] = seed_of(msgspec.structs.replace(task, attempt=attempt))
    except task_json.Undecodable as error:
        about["detail"] = str(error)
    return Grave(
        id=f"{fingerprint & 0xFFFFFFFFFFFFFFFF:016x}",
        why=why,
        attempt=attempt,
        died_at=died_at,
        **{"detail": detail or "", **about},
    )
