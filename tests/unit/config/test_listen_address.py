from typing import Any

import pytest

from trotline.config.listen_address import host_and_port, listen_address


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("9400", "127.0.0.1:9400"),
        (9400, "127.0.0.1:9400"),
        (":9400", "127.0.0.1:9400"),
        ("localhost:9400", "127.0.0.1:9400"),
        ("0.0.0.0:80", "0.0.0.0:80"),
        (" 10.0.0.7:65535 ", "10.0.0.7:65535"),
        ("[::1]:9400", "[::1]:9400"),
        ("[0:0::]:9400", "[::]:9400"),
    ],
)
def test_an_address_is_loopback_unless_another_is_given(given: Any, address: str):
    assert listen_address(given) == address
    assert listen_address(address) == address
    host, port = host_and_port(address)
    assert address.endswith(str(port)) and host in address


@pytest.mark.parametrize(
    "given", ["", "0", "65536", "-1", "x", "9400/", "1.2.3.4", "host:9400", "1.2.3:9400", "²", "1e3", True, None, 9.5]
)
def test_anything_else_is_refused_with_an_example(given: Any):
    with pytest.raises(ValueError, match=r"write \"9400\""):
        listen_address(given)
