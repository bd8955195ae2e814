"""`import` takes over a queue of scrapy-redis."""

from tests.unit.cli.conftest import Call
from trotline.cli.import_queue import _lines, _preview_lines
from trotline.commands.import_scrapy_redis import Imported, Preview


def test_no_host_is_visited_at_full_speed_because_nobody_said_a_pace(call: Call) -> None:
    """The job keeps its pace until it ends: DOWNLOAD_DELAY of the project would not slow it down."""
    code, _, err = call("import", "scrapy-redis", "shop", "--from", "redis://127.0.0.1:1/0")
    assert code == 2
    assert "--delay is missing" in err
    assert "--delay 0.5" in err


def test_a_crawl_of_which_nothing_was_moved_is_not_continued() -> None:
    refused = {"it names datetime.date, and only plain values are read": 7}
    nothing = "\n".join(
        _lines(Imported("shop-1", refused=refused, refused_key="shop:requests:trotline-refused"), "shop")
    )
    assert "7 requests not moved" in nothing
    assert "does not visit them" in nothing
    assert "scrapy crawl" not in nothing
    assert "scrapy crawl shop" in "\n".join(_lines(Imported("shop-1", new=1, refused=refused), "shop"))
    assert "scrapy crawl shop" in "\n".join(_lines(Imported("shop-1"), "shop"))


def test_an_import_into_a_new_job_after_one_that_has_ended_says_so() -> None:
    said = "\n".join(_lines(Imported("shop-2", ended="shop-1", new=1), "shop"))
    assert "shop-1 had ended, and shop-2 is a new job" in said


def test_a_dry_run_says_what_cannot_be_moved_and_what_to_do(call: Call) -> None:
    refused = {"it names shop.items.Product, and only plain values are read": 7}
    said = "\n".join(_preview_lines(Preview(5, refused, "shop:requests:trotline-refused", 12)))
    assert said.startswith("dry run: nothing was moved\n  5 requests can be moved, 12 fingerprints known")
    assert "7 requests cannot be moved: it names shop.items.Product" in said
    assert "Let the old workers visit them before" in said
    assert "old workers" not in "\n".join(_preview_lines(Preview(5)))


def test_a_dry_run_needs_no_pace(call: Call) -> None:
    code, _, err = call("import", "scrapy-redis", "shop", "--from", "redis://127.0.0.1:1/0", "--dry-run")
    assert code == 2
    assert "cannot reach redis 127.0.0.1:1" in err
