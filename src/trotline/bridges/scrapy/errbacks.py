"""Does a request have an errback that handles its failure?"""

from scrapy import Request
from scrapy.spiders import CrawlSpider


def has_errback(request: Request) -> bool:
    """CrawlSpider gives each request of a rule its own errback, which does nothing if the rule names none."""
    errback = request.errback
    if errback is None:
        return False
    if getattr(errback, "__func__", None) is not CrawlSpider._errback:
        return True
    try:
        return errback.__self__._rules[request.meta["rule"]].errback is not None  # type: ignore[attr-defined]
    except (LookupError, TypeError):
        # It raises the same when it is called, and its page is dead for that.
        return True
