"""URLs of RabbitMQ as a frontier: what they name, and that no message shows a password."""

import pytest

from trotline.adapters.amqp.broker_url import Address, address_of, books_of, with_books
from trotline.config.backend_urls import frontier_url, has_password, public
from trotline.errors import SettingsError

BOOKS = "redis://reader:b00ks@books.example:6379/0?shards=4"


def test_an_address_has_all_parts_and_the_usual_ones_where_none_are_given() -> None:
    assert address_of("amqp://u:p%2F@h:1/v%2F1?books=redis://x") == Address("h", 1, "u", "p/", "v/1", False, "")
    assert address_of("amqp://h?books=redis://x") == Address("h", 5672, "guest", "guest", "/", False, "")
    assert address_of("amqps://h?ca=a.pem&books=redis://x") == Address("h", 5671, "guest", "guest", "/", True, "a.pem")
    assert address_of("amqp://[::1]:7/").url == "amqp://guest:guest@[::1]:7/%2F"


@pytest.mark.parametrize("url", [f"amqp://h?books={BOOKS}", with_books("amqp://h?books=redis://x", BOOKS)])
def test_the_books_are_read_as_they_are_or_percent_encoded(url: str) -> None:
    assert books_of(url) == BOOKS
    assert books_of(with_books(url, books_of(url))) == BOOKS


def test_other_options_stay_where_they_are() -> None:
    url = with_books("amqps://h?ca=a.pem&books=redis://x", BOOKS)
    assert url.startswith("amqps://h?ca=a.pem&books=redis%3A")
    assert address_of(url).ca == "a.pem"


@pytest.mark.parametrize(
    "url",
    [
        "amqp://u:s3cret@h:port?books=redis://x",
        "amqp://u:s3cret@?books=redis://x",
        "amqp://u:s3cret@h?other=1&books=redis://x",
        "amqp://h?ca=a.pem&books=redis://x",
    ],
)
def test_what_cannot_be_read_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match="cannot be read") as refused:
        address_of(url)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("amqp://u:s3cret@h", "names no books"),
        ("amqp://u:s3cret@h?books=x", "books="),
        ("amqp://u:s3cret@h?books=sqlite:x.db", "books="),
        ("amqp://u:s3cret@h?books=nonsense://x", "books="),
        ("amqp://u:s3cret@h?books=amqp://h?books=redis://x", "books="),
        ("amqp://u:s3cret@?books=redis://x", "cannot be read|names no server"),
    ],
)
def test_a_frontier_that_cannot_work_is_refused_without_its_password(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        frontier_url(url)
    assert "s3cret" not in str(refused.value)


def test_what_is_shown_has_neither_password() -> None:
    url = frontier_url(f"amqp://u:s3cret@rabbit.example/v?books={BOOKS}")
    assert "rabbit.example/v" in public(url)
    for secret in ("s3cret", "b00ks", "reader"):
        assert secret not in public(url)
    assert has_password(url)
    assert has_password(frontier_url(f"amqp://rabbit.example?books={BOOKS}"))
    assert not has_password(frontier_url("amqp://rabbit.example?books=redis://books.example/0"))
    assert "s3cret" not in repr(address_of(url))
