"""The history of a URL for machines: `trotline trace --json`, and the web API."""

from typing import Any

import msgspec

from trotline.commands.dead_reasons import BAD_RECORD
from trotline.config.backend_urls import public
from trotline.model.job import Job, LaneView, Progress
from trotline.model.time import iso
from trotline.rules.url_history import Facts, story_of


def facts_of(facts: Facts, job: Job) -> dict[str, Any]:
    story = story_of(facts)
    return {
        "url": public(facts.asked),
        "same_as": public(facts.same_as),
        "job": job.id,
        "spider": job.spider,
        "fate": story.fate,
        "why": story.why,
        "refusal": facts.refusal,
        "rule": facts.rule,
        "identities": [
            {"route": one.route, "id": one.id, **_named(one.whereabouts, "created_at")} for one in facts.identities
        ],
        "visits": [_named(visit, "leased_at", "found_at") for visit in facts.visits],
        "rows": [
            {"site": row.site, "kind": row.kind, "key": row.key, "url": public(row.url), "seen_at": iso(row.seen_at)}
            for row in facts.rows
        ],
        "rejected": [
            {"id": one.id, "route": one.route, "why": one.why.removeprefix(BAD_RECORD), "record": one.record}
            for one in facts.rejected
        ],
        "lane": _plain(facts.lane_view),
        "workers": facts.workers,
        "state": _state(facts.progress),
    }


def _named(thing: msgspec.Struct, *moments: str) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.structs.asdict(thing)
    for name in moments:
        plain[name] = iso(plain[name]) if plain[name] else None
    return plain


def _plain(view: LaneView | None) -> dict[str, Any] | None:
    return None if view is None else msgspec.structs.asdict(view)


def _state(progress: Progress) -> str:
    return "finished" if progress.finished_at is not None else str(progress.state)
