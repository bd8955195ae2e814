"""Pages for people. Each file has the view models of one page, and its lines of the route table."""

from trotline.web.pages import job, login, overview
from trotline.web.route_table import Route

ROUTES: tuple[Route, ...] = (*login.ROUTES, *overview.ROUTES, *job.ROUTES)
