"""URLs of archives."""

import pytest

from trotline.rules import archive_urls


def test_options_are_read():
    url = archive_urls.read("file:pages?roll=256MiB&roll_time=1h")
    assert (url.place, url.roll_size, url.roll_time) == ("file:pages", 256 << 20, 3600.0)
    assert archive_urls.read("s3://b/p").roll_size is None


@pytest.mark.parametrize("odd", ["?rol=1", "?roll=0MiB", "?roll=2GiB", "?roll=5", "?roll_time=0s", "?roll_time=x"])
def test_odd_options_are_refused(odd):
    with pytest.raises(ValueError, match=r"roll|option"):
        archive_urls.read(f"file:pages{odd}")
