"""`import` takes over a queue of scrapy-redis."""

from tests.unit.cli.conftest import Call
from trotline.cli.import_queue import _lines
from trotline.commands.import_scrapy_redis import Imported


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
