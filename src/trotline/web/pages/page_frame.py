"""What every page of a job has around it: the job's figures, the place in the rail, the note about the last action."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from trotline.web.api.types import JobPath
from trotline.web.job_snapshots import Snapshot
from trotline.web.openapi import PREFIX
from trotline.web.pages.formatting import part
from trotline.web.route_table import HTML, Call, Handler, Role, Route

Said = Annotated[str, Meta(max_length=40)]

_SAID = {
    "pause": "Paused: what is leased is finished, and nothing else is leased.",
    "resume": "Resumed.",
    "drain": "Draining: what waits is visited, new links are not admitted.",
    "cancel": "Cancelled: its workers leave it. Nothing is deleted; resume goes on.",
    "lane-pause": "The lane is paused.",
    "lane-resume": "The lane is resumed; if it rested, one probe goes out now.",
    "lane-cancel": "The lane is cancelled: what waited in it is in the graveyard, and can be revived.",
    "pace": "The pace is set, for every job of this frontier.",
    "pace-lifted": "The pace of the spider holds again.",
    "released": "Quarantines are ended.",
    "login": "Logged in.",
}
"""Texts of the server, by name: an address never carries a text of its own to a page."""


class PageQuery(msgspec.Struct, frozen=True):
    said: Said = ""


async def framed(call: Call, here: str) -> tuple[Snapshot, dict[str, Any]]:
    """The job's snapshot, and what the frame needs of it. 404 if there is no such job."""
    job: str = call.path.job
    snapshot = await call.site.snapshots.of(job)
    return snapshot, {
        "here": here,
        "job": snapshot.view,
        "job_id": job,
        "stream": f"{PREFIX}/jobs/{part(job)}/events",
        "said": said(call.query.said),
    }


def said(name: str) -> str:
    return _SAID.get(name, "")


def job_page(path: str, summary: str, handler: Handler, query: type[msgspec.Struct] = PageQuery) -> Route:
    """A page under /jobs/{job} for all who may look."""
    return Route(
        method="GET",
        path=f"/jobs/{{job}}{path}",
        role=Role.VIEW,
        summary=summary,
        handler=handler,
        takes=JobPath,
        query=query,
        media=HTML,
        errors=(404,),
    )
