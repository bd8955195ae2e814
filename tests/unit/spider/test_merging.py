"""What `@spider.merge` accepts and refuses."""

import pytest

from trotline.errors import SpiderRefused
from trotline.spider.spider import Spider


def test_the_rule_is_known_by_its_text_and_its_options():
    shop, other = Spider("shop"), Spider("shop")

    @shop.merge
    def same(record):
        return record.key

    @other.merge(by=["text", "url"], prefer={"price": "longest"}, text="label")
    def alike(record):
        return record.key

    assert shop.merging is not None
    assert other.merging is not None
    assert shop.merging.rule.by == ()
    assert other.merging.rule.by == ("url", "text")
    assert other.merging.rule.text == ("label",)
    assert shop.merging.rule.fingerprint != other.merging.rule.fingerprint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "colour"}, "cannot merge by 'colour'"),
        ({"prefer": {"price": "cheapest"}}, "'cheapest' is not known"),
        ({"prefer": {"price": 3}}, "prefer"),
        ({"merge_from": 0.5, "review_from": 0.7}, "cannot be used"),
        ({"merge_from": True}, "cannot be used"),
    ],
)
def test_options_that_cannot_work_are_refused(options, words):
    with pytest.raises(SpiderRefused, match=words):
        Spider("shop").merge(**options)


def test_an_async_function_is_refused():
    with pytest.raises(SpiderRefused, match="cannot be its merge rule"):

        @Spider("shop").merge
        async def same(record):
            return None
