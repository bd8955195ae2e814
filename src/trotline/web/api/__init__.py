"""The JSON API: one file per subject, each with its lines of the route table."""

from trotline.web.api import about, advice, jobs
from trotline.web.route_table import Route

API: tuple[Route, ...] = (*about.ROUTES, *jobs.ROUTES, *advice.ROUTES)
