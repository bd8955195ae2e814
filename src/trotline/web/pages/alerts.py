"""The alerts of all jobs: what fires, what may fire soon, and what is over."""

from aiohttp import web

from trotline.model.alert import AlertState
from trotline.web.api import alerts as api
from trotline.web.openapi import PREFIX
from trotline.web.pages.page_frame import PageQuery
from trotline.web.route_table import HTML, Call, Role, Route

_PAGES = {
    "queue": ("/lanes", "its lanes"),
    "errors": ("#errors", "its errors"),
    "blocks": ("/graveyard?why=blocked", "what was blocked"),
    "stalled": ("/lanes", "its lanes"),
    "lanes": ("/lanes", "its lanes"),
    "empty": ("/graveyard", "its graveyard"),
    "deadline": ("#limits", "what limits it"),
    "proxies": ("/proxies", "its proxies"),
    "proxies_down": ("/proxies", "its proxies"),
    "proxies_file": ("/workers", "its workers"),
    "accounts": ("/accounts", "its accounts"),
    "accounts_down": ("/accounts", "its accounts"),
    "database": ("/workers", "its workers"),
    "sink": ("/workers", "its workers"),
    "archive": ("/workers", "its workers"),
    "archive_lost": ("", "the job"),
    "broker": ("", "the job"),
    "frontier": ("", "the job"),
    "coverage": ("#coverage", "its field coverage"),
    "worker": ("/workers", "its workers"),
}
"""Rule -> the page of the job that shows the cause."""


async def page(call: Call) -> web.Response:
    found = await api.all_alerts(call)
    groups = {state.value: [one for one in found.alerts if one.state is state] for state in AlertState}
    return call.site.pages.page(
        "alerts.html",
        call.who,
        here="alerts",
        stream=f"{PREFIX}/events",
        groups=groups,
        found=found,
        pages=_PAGES,
    )


ROUTES = (
    Route(
        method="GET",
        path="/alerts",
        role=Role.VIEW,
        summary="The alerts of all jobs.",
        handler=page,
        query=PageQuery,
        media=HTML,
    ),
)
