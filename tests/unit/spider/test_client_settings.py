"""The arguments `client` and `when_blocked`: what is refused, and with which words."""

import sys

import pytest

from trotline.errors import SpiderRefused
from trotline.model.client_kind import Client
from trotline.spider.page import Page
from trotline.spider.spider import Spider

pytest.importorskip("wreq")


def nothing(page: Page) -> None:
    return None


def test_a_route_has_the_client_of_its_spider_unless_it_names_one() -> None:
    spider = Spider("s", client="browser")
    assert spider.page(name="a")(nothing).client is Client.BROWSER
    assert spider.page(name="b", client="plain")(nothing).client is Client.PLAIN
    assert spider.clients == {Client.BROWSER, Client.PLAIN}
    assert Spider("s").clients == {Client.PLAIN}
    assert Spider("s", when_blocked="browser").clients == {Client.PLAIN, Client.BROWSER}


@pytest.mark.parametrize("given", ["chrome", "", 5, None])
def test_an_unknown_client_is_refused(given: object) -> None:
    with pytest.raises(SpiderRefused, match="client is ") as refused:
        Spider("s", client=given)  # type: ignore[arg-type]
    assert refused.value.hint == "Give one of: plain, browser."


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"when_blocked": "plain"}, "when_blocked='plain' has no effect as it is the default client"),
        ({"when_blocked": "browser", "client": "browser"}, "when_blocked='browser' has no effect with client"),
        ({"client": "browser", "user_agent": "mine/1"}, 'user_agent has no effect with client="browser"'),
        ({"client": "browser", "headers": {"user-agent": "mine/1"}}, 'user-agent has no effect with client="browser"'),
        ({"client": "browser", "headers": {"Sec-CH-UA": "x"}}, 'Sec-CH-UA has no effect with client="browser"'),
    ],
)
def test_a_setting_without_effect_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(SpiderRefused) as refused:
        Spider("s", **options)  # type: ignore[arg-type]
    assert words in refused.value.what
    assert refused.value.hint


def test_with_the_default_client_first_a_user_agent_has_its_effect() -> None:
    assert Spider("s", when_blocked="browser", user_agent="mine/1").user_agent == "mine/1"


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wreq", None)
    with pytest.raises(SpiderRefused, match="needs the package wreq") as refused:
        Spider("s", client="browser")
    assert refused.value.hint == "Install it, in your clone of Trotline: pip install '.[browser]'"
