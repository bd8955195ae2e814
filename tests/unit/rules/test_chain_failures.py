"""The reason of steps that are buried because an earlier step of their chain failed."""

from trotline.rules import chain_failures

URL = "https://shop.example/0?password=s3same&page=2"


def test_the_reason_names_the_step_and_its_own_reason() -> None:
    assert (
        chain_failures.failed("https://shop.example/0", "gone: 404")
        == "chain: step https://shop.example/0 failed: gone: 404"
    )


def test_secrets_in_the_steps_url_are_not_shown() -> None:
    shown = chain_failures.shown(chain_failures.failed(URL, "gone: 404"), ("page",))

    assert "s3same" not in shown
    assert "page=2" not in shown
    assert shown.startswith("chain: step https://shop.example/0?")
    assert shown.endswith(" failed: gone: 404")


def test_other_reasons_are_shown_as_they_are() -> None:
    assert chain_failures.shown("broken: 500", ("page",)) == "broken: 500"
    assert chain_failures.shown("chain: step ", ()) == "chain: step "


def test_reasons_that_differ_in_secrets_only_are_counted_together() -> None:
    counts = {chain_failures.failed(f"https://shop.example/0?password={word}", "gone"): 2 for word in ("a", "b")}

    assert list(chain_failures.shown_counts(counts | {"broken": 1}, ()).values()) == [4, 1]


def test_a_long_url_is_cut() -> None:
    assert len(chain_failures.failed("https://shop.example/" + "x" * 9_000, "gone")) < 600
