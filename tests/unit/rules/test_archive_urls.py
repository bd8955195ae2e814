"""URLs of archives."""

import pytest

from trotline.rules import archive_urls


def test_options_are_read():
    url = archive_urls.read("file:pages?roll=256MiB&roll_time=1h")
    assert (url.place, url.roll_size, url.roll_time) == ("file:pages", 256 << 20, 3600.0)
    assert archive_urls.read("s3://b/p").roll_size is None


@pytest.mark.parametrize(
    "odd", ["?rol=1", "?roll=0MiB", "?roll=2GiB", "?roll=5", "?roll_time=0s", "?roll_time=x", "?keep=90d&keep=1d"]
)
def test_odd_options_are_refused(odd):
    with pytest.raises(ValueError, match=r"roll|option"):
        archive_urls.read(f"file:pages{odd}")


def test_keep_is_a_time_of_an_hour_or_more():
    assert archive_urls.read("file:pages?keep=90d").keep == archive_urls.keep_of("s3://b/x?keep=90d") == 90 * 86_400
    assert archive_urls.keep_of("file:pages") is None
    for odd in ("0", "59m", "soon", ""):
        with pytest.raises(ValueError, match="an hour or more"):
            archive_urls.read(f"file:pages?keep={odd}")
