"""Headers of tasks that other programs may have written into a frontier."""

import pytest

from trotline.adapters.http.guard import Forbidden
from trotline.adapters.http.request_checks import checked_of_task


@pytest.mark.parametrize("name", ["Host", "Transfer-Encoding", "content-length", "Proxy-Authorization"])
def test_headers_of_the_client_are_not_sent(name: str) -> None:
    with pytest.raises(Forbidden, match=name) as refused:
        checked_of_task([("accept", "*/*"), (name, "geheim")])
    assert "geheim" not in refused.value.why


def test_other_headers_are_sent_as_they_are() -> None:
    assert checked_of_task([("accept", "*/*"), ("X-A", "1")]) == {"accept": "*/*", "X-A": "1"}
    with pytest.raises(Forbidden, match="line break"):
        checked_of_task([("X-A", "1\r\nHost: other")])
