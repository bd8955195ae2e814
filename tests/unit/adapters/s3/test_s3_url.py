"""Addresses of archives on S3."""

import pytest

from trotline.adapters.s3.s3_url import address_of


def test_all_parts_are_read():
    url = "s3://raw-pages/shop/a/?endpoint=http://127.0.0.1:8333/&region=eu-central-1&credentials=env:KEY"
    assert address_of(url) == ("raw-pages", "shop/a", "http://127.0.0.1:8333", "eu-central-1", "env:KEY")
    assert address_of("s3://raw-pages") == ("raw-pages", "", "", "", "")


@pytest.mark.parametrize(
    "odd",
    [
        "s3://", "s3://UPPER/x", "s3://a/x", "s3://pages/../x", "s3://pages/a b", "s3://key:secret@pages/x",
        "s3://pages/x?endpoint=127.0.0.1", "s3://pages/x?endpoint=ftp://h", "s3://pages/x?endpoint=http://u:p@h",
        "s3://pages/x?region=A", "s3://pages/x?credentials=key:topsecret", "s3://pages/x?other=1",
    ],
)  # fmt: skip
def test_odd_addresses_are_refused_without_a_secret_in_the_message(odd):
    with pytest.raises(ValueError, match=r"is not|it has|by reference") as refused:
        address_of(odd)
    assert "secret" not in str(refused.value)
