"""The name of a Scrapy spider's job."""

import re

import pytest

from trotline.rules.scrapy_job_owner import SpiderNote, crawl_command, digests, job_name, other_arguments

LETTERS = re.compile(r"[A-Za-z0-9_-]{1,64}")


@pytest.mark.parametrize(
    ("one", "other"),
    [("shop.de", "shop-de"), ("shop.de", "shop de"), ("магазин", "книги"), ("商店", "-"), ("a" * 65, "a" * 66)],
)
def test_two_spiders_never_have_one_job(one: str, other: str) -> None:
    names = job_name(one), job_name(other)
    assert names[0] != names[1]
    assert all(LETTERS.fullmatch(name) for name in names)


def test_a_name_in_our_letters_stays_as_it_is() -> None:
    assert job_name("shop_de-2") == "shop_de-2"
    assert job_name("shop.de").startswith("shop-de-")


def test_arguments_are_compared_without_keeping_their_values() -> None:
    there = SpiderNote("shop", digests({"category": "shoes", "password": "hunter2"}))
    here = SpiderNote("shop", digests({"category": "hats", "password": "hunter2", "day": "1"}))
    assert other_arguments(there, here) == ["category", "day"]
    assert "hunter2" not in str(there)
    assert other_arguments(SpiderNote("shop"), here) == []


@pytest.mark.parametrize(
    ("spider", "job", "command"),
    [
        ("shop", "shop", "scrapy crawl shop"),
        ("shop.de", job_name("shop.de"), "scrapy crawl shop.de"),
        ("shop.de", "monday", "scrapy crawl shop.de -s TROTLINE_JOB=monday"),
        ("my shop; ls", job_name("my shop; ls"), "scrapy crawl 'my shop; ls'"),
    ],
)
def test_the_command_that_goes_on_has_the_name_that_scrapy_knows(spider: str, job: str, command: str) -> None:
    assert crawl_command(spider, job) == command
