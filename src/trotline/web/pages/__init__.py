"""Pages for people. Each file has the view models of one page, and its lines of the route table."""

from trotline.web.pages import (
    actions,
    alerts,
    graveyard,
    in_flight,
    job,
    lanes,
    login,
    overview,
    pools,
    records,
    retries,
    trace,
    workers,
)
from trotline.web.route_table import Route

_PAGES = (login, overview, alerts, job, lanes, workers, in_flight, pools, retries, graveyard, records, trace, actions)
ROUTES: tuple[Route, ...] = tuple(route for page in _PAGES for route in page.ROUTES)
