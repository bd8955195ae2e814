"""URLs of SQS as a frontier: what they name, and that no message shows a secret."""

import pytest

from trotline.adapters.sqs.broker_url import Address, address_of, books_of, with_books
from trotline.config.backend_urls import frontier_url, has_password, public
from trotline.errors import SettingsError

BOOKS = "redis://reader:b00ks@books.example:6379/0?shards=4"


def test_an_address_has_all_parts_and_the_usual_ones_where_none_are_given() -> None:
    assert address_of("sqs://eu-central-1?books=redis://x") == Address("eu-central-1", "trotline")
    full = (
        "sqs://us-east-1/crawl?endpoint=http://127.0.0.1:4566/&key=env:K&secret=file:/run/s&token=env:T&books=redis://x"
    )
    assert address_of(full) == Address("us-east-1", "crawl", "http://127.0.0.1:4566", "env:K", "file:/run/s", "env:T")
    assert address_of(full).place == "SQS us-east-1 at 127.0.0.1:4566"


@pytest.mark.parametrize(
    "url", [f"sqs://eu-west-1?books={BOOKS}", with_books("sqs://eu-west-1?books=redis://x", BOOKS)]
)
def test_the_books_are_read_as_they_are_or_percent_encoded(url: str) -> None:
    assert books_of(url) == BOOKS
    assert books_of(with_books(url, books_of(url))) == BOOKS


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("sqs://u:s3cret@eu-west-1?books=redis://x", "do not belong"),
        ("sqs://eu-west-1:80?books=redis://x", "region"),
        ("sqs://eu-west-1?key=AKIA&secret=s3cret&books=redis://x", "reference"),
        ("sqs://eu-west-1?key=env:K&books=redis://x", "belong together"),
        ("sqs://eu-west-1?token=env:K&books=redis://x", "belong together"),
        ("sqs://eu-west-1?other=s3cret&books=redis://x", "unknown option other"),
        ("sqs://eu-west-1?endpoint=ftp://x&books=redis://x", "endpoint="),
        ("sqs://eu-west-1?endpoint=http://u:s3cret@x&books=redis://x", "endpoint="),
        ("sqs://eu-west-1/a/b?books=redis://x", "prefix"),
        ("sqs://eu-west-1/aaaaaaaaaaaaaaaaaaaaaaaaaa?books=redis://x", "prefix"),
    ],
)
def test_what_cannot_be_read_is_refused_without_its_secrets(url: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why) as refused:
        address_of(url)
    assert "s3cret" not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize("url", ["sqs://eu-west-1", "sqs://eu-west-1?books=sqlite:x.db", "sqs://eu-west-1?books=x"])
def test_a_frontier_without_usable_books_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="books"):
        frontier_url(url)


def test_what_is_shown_has_no_password_and_a_reference_is_none() -> None:
    url = frontier_url(f"sqs://eu-west-1/crawl?key=env:K&secret=env:S&books={BOOKS}")
    assert "eu-west-1/crawl" in public(url)
    for secret in ("b00ks", "reader"):
        assert secret not in public(url)
    assert has_password(url)
    assert not has_password(frontier_url("sqs://eu-west-1?key=env:K&secret=env:S&books=redis://books.example/0"))
    assert has_password("sqs://eu-west-1?key=AKIA&secret=s3cret&books=redis://books.example/0")
    assert "s3cret" not in public("sqs://eu-west-1?key=AKIA&secret=s3cret&books=redis://books.example/0")


def test_credentials_by_reference_are_read_and_a_missing_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQS_KEY", "AKIAEXAMPLE")
    monkeypatch.delenv("SQS_SECRET", raising=False)
    assert address_of("sqs://eu-west-1").credentials == {}
    address = address_of("sqs://eu-west-1?key=env:SQS_KEY&secret=env:SQS_SECRET")
    with pytest.raises(SettingsError, match="SQS_SECRET is not set"):
        _ = address.credentials
    monkeypatch.setenv("SQS_SECRET", "wJalrEXAMPLE")
    revealed = {name: secret.reveal() for name, secret in address.credentials.items()}
    assert revealed == {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "wJalrEXAMPLE"}
    assert "wJalrEXAMPLE" not in repr(address)
