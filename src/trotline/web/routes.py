"""All routes of the server."""

from trotline.web import metrics, pages
from trotline.web.api import API
from trotline.web.route_table import Route

ROUTES: tuple[Route, ...] = (*API, *metrics.ROUTES, *pages.ROUTES)
