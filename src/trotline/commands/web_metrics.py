"""The metrics of a web server. Their library is loaded at the first scrape."""

from collections.abc import Callable
from importlib.metadata import version

from trotline.errors import SettingsError
from trotline.model.metrics import WebFigures


def web_metrics(figures: Callable[[], WebFigures]) -> tuple[Callable[[], bytes], str]:
    """The text of a scrape, and its media type."""
    try:
        from trotline.adapters.prometheus.exposition import CONTENT_TYPE, Exposition
    except ModuleNotFoundError as error:
        raise SettingsError(
            "metrics need the package prometheus_client",
            hint="Install it, in your clone of Trotline: pip install '.[metrics]'",
        ) from error
    return Exposition(version=version("trotline"), web=figures).text, CONTENT_TYPE
