"""Which requests have an errback that handles their failure."""

from typing import Any

import pytest
from scrapy import Request
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule
from twisted.python.failure import Failure

from trotline.bridges.scrapy.errbacks import has_errback
from trotline.bridges.scrapy.visits import Visit
from trotline.model.lease import Lease
from trotline.model.outcome import Bury, Done
from trotline.model.task import Task

LEASE = Lease(Task(url="https://shop.example/p/1", route="item"), 1, 0.0, 0.0, 0.0, 0.0)


class Shop(CrawlSpider):
    name = "shop"
    rules = (
        Rule(LinkExtractor(allow="/p/"), callback="item"),
        Rule(LinkExtractor(allow="/q/"), callback="item", errback="failed"),
    )

    def item(self, response: Any) -> None: ...

    def failed(self, failure: Any) -> None: ...


class Careful(Shop):
    def _errback(self, failure: Any) -> Any:
        return ()


def of_rule(spider: CrawlSpider, number: Any) -> Request:
    return Request("https://shop.example/p/1", errback=spider._errback, meta={"rule": number})


def test_a_rule_without_an_errback_handles_no_failure() -> None:
    """CrawlSpider gives every request of a rule an errback of its own, which does nothing then."""
    shop = Shop()
    assert not has_errback(of_rule(shop, 0))
    assert has_errback(of_rule(shop, 1))
    assert has_errback(of_rule(Careful(), 0))
    # Whose number is wrong fails in it.
    assert has_errback(of_rule(shop, 7))
    assert has_errback(of_rule(shop, "x"))


def test_others_have_the_one_they_name() -> None:
    assert not has_errback(Request("https://shop.example/"))
    assert has_errback(Request("https://shop.example/", errback=Shop().failed))


@pytest.mark.parametrize(("rule", "outcome"), [(0, Bury), (1, Done)])
def test_a_page_of_a_rule_that_cannot_be_downloaded_is_dead(rule: int, outcome: type) -> None:
    visit = Visit(LEASE, of_rule(Shop(), rule))
    visit.failure = Failure(OSError("unreachable"))
    assert isinstance(visit.settlement().outcome, outcome)
