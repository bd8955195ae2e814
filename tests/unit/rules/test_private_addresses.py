"""Which addresses and ports may be dialled."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.private_addresses import why_not_address, why_not_port

FORBIDDEN = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 127.0.0.1 127.255.0.1 168.63.129.16
169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1
198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:0:127.0.0.1 ::ffff:169.254.169.254
64:ff9b::a9fe:a9fe 64:ff9b::7f00:1 64:ff9b:1::7f00:1 64:ff9b:1::808:808 100::1
2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:db8::1 2001:10::1 2002:7f00:1:: 2002:a9fe:a9fe::1 2002:c0a8:101::
3fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1
2606:4700::5efe:7f00:1 2606:4700::200:5efe:a9fe:a9fe
""".split()  # noqa: SIM905

ALLOWED = """
1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 192.0.1.1 192.169.0.1 223.255.255.255
2606:4700:4700::1111 2a00:1450:4001:810::200e ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1 2606:4700::5efe:808:808
""".split()  # noqa: SIM905


@pytest.mark.parametrize("address", FORBIDDEN)
def test_a_special_address_is_not_dialled(address: str) -> None:
    assert why_not_address(address)


@pytest.mark.parametrize("address", ALLOWED)
def test_a_public_address_is_dialled(address: str) -> None:
    assert why_not_address(address) == ""


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "①②⑦.0.0.1", "[::1]"])
def test_what_is_no_address_is_not_dialled(text: str) -> None:
    assert why_not_address(text) == "not an address"


@given(st.ip_addresses(v=4))
def test_every_form_that_carries_a_forbidden_address_is_forbidden(inner: IPv4Address) -> None:
    number = int(inner)
    forms = [0xFFFF << 32 | number, (0x64FF9B << 96) | number, (0x2002 << 112) | (number << 80), number]
    for form in forms:
        if why_not_address(str(inner)):
            assert why_not_address(str(IPv6Address(form)))


@given(st.ip_addresses(v=6))
def test_only_global_unicast_and_translations_of_public_addresses_are_dialled(address: IPv6Address) -> None:
    translated = int(address) >> 32 in (0xFFFF, 0x64FF9B << 64)
    if not why_not_address(str(address)):
        assert int(address) >> 125 == 1 or translated


@pytest.mark.parametrize("port", [0, -1, 22, 25, 3306, 5432, 5672, 6379, 11211, 65536, 99999])
def test_a_port_that_is_no_web_port_is_not_dialled(port: int) -> None:
    assert why_not_port(port)


@pytest.mark.parametrize("port", [80, 443, 8000, 8080, 8443, 3000, 65535])
def test_a_web_port_is_dialled(port: int) -> None:
    assert why_not_port(port) == ""
