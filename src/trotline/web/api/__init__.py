"""The JSON API: one file per subject, each with its lines of the route table."""

from trotline.web.api import (
    about,
    advice,
    alerts,
    control,
    events,
    graveyard,
    jobs,
    lanes,
    pools,
    progress,
    records,
    tasks,
    trace,
)
from trotline.web.route_table import Route

API: tuple[Route, ...] = (
    *about.ROUTES,
    *jobs.ROUTES,
    *control.ROUTES,
    *tasks.ROUTES,
    *progress.ROUTES,
    *lanes.ROUTES,
    *graveyard.ROUTES,
    *trace.ROUTES,
    *records.ROUTES,
    *pools.ROUTES,
    *advice.ROUTES,
    *alerts.ROUTES,
    *events.ROUTES,
)
