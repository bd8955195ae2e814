"""Every road to a private address that we know: numbers, IPv6 forms, names, redirects, robots files, odd spellings."""

from urllib.parse import quote

from tests.e2e.world_zone import REBINDING

NUMBERS = """
127.0.0.1 127.1 127.0.1 0 0.0.0.0 2130706433 0x7f000001 0x7f.1 0x7f.0.0.1 017700000001 0177.0.0.1 0177.0.0.01 127.0.0.1.
①②⑦.⓪.⓪.① １２７.0.0.1 127。0。0。1 %31%32%37.0.0.1 2852039166 0xa9fea9fe 0251.0376.0251.0376 0xa9.0xfe.0xa9.0xfe
169.254.169.254 169.254.43518 10.0.0.1 10.1 167772161 172.16.0.1 192.168.1.1 192.168.257 3232235777 100.64.0.1
100.100.100.200 168.63.129.16 192.0.0.192 198.18.0.1 192.88.99.1 240.0.0.1 224.0.0.1 255.255.255.255
""".split()  # noqa: SIM905
SIXES = """
:: ::1 0:0:0:0:0:0:0:1 ::127.0.0.1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
::ffff:0:127.0.0.1 ::ffff:0:a9fe:a9fe 64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::7f00:1 64:ff9b:1::a9fe:a9fe
2002:7f00:1:: 2002:a9fe:a9fe::1 2002:c0a8:101::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2
2001:0:a9fe:a9fe:0:0:5601:5601 2606:4700::5efe:7f00:1 2606:4700::200:5efe:a9fe:a9fe fe80::1 fe80::5efe:7f00:1 fec0::1
fd00:ec2::254 fd20:ce::254 fc00::1 100::1 2001:db8::1 3fff::1 5f00::1 4000::1 ff02::1 ff0e::1
""".split()  # noqa: SIM905
NAMES = """
localhost loop.test private.test private6.test mixed.test mixed6.test mapped.test nat64.test last.test alias.test
metadata.google.internal
""".split()  # noqa: SIM905
LITERALS = [*NUMBERS, *(f"[{address}]" for address in SIXES)]
DIRECT = [f"http://{host}/direct{number}" for number, host in enumerate([*LITERALS, *NAMES])]
MORE = [
    "http://10.0.0.1:8080/port", "http://10.0.0.1:8000/port", "http://[fd00::1]:9200/port", "https://10.0.0.1/tls",
    "https://[fd00::1]:8443/tls", "https://mixed.test/tls", "http://shop.test:22/", "http://shop.test:6379/",
    "http://shop.test:11211/", "http://shop.test:25/", "http://10.0.0.1:5432/", "http://169.254.169.254:3306/",
    "http://me:pass@10.0.0.1/user", "http://shop.test@10.0.0.1/user", "http://shop.test:80\\@127.0.0.1/backslash",
    "http://10.0.0.1\t/tab", "http://10.0.\n0.1/break", " http://10.0.0.1/space", "http://10.0.0.1#@shop.test/",
    "http://10.0.0.1?@shop.test/", "file:///etc/passwd", "gopher://10.0.0.1/x", "ftp://10.0.0.1/", "dict://10.0.0.1:6379/",
]  # fmt: skip
INNER = ["169.254.169.254", "[fd00:ec2::254]", "2130706433", "private.test", "mixed.test", "[::ffff:10.0.0.1]"]


def hops(target: str, count: int) -> str:
    """A public URL that leads to `target` in so many redirects, over as many hosts."""
    for number in range(count):
        target = f"http://hop{number}.test/go?to={quote(target, safe='')}"
    return target


REDIRECTS = [
    hops(f"http://{host}/hop{count}", count) for host in INNER for count in (1, 2, 3)
] + [hops("file:///etc/passwd", 1), hops("//10.0.0.1/slashes", 1), hops("http:\\\\10.0.0.1\\back", 1)]  # fmt: skip
ROBOTS = {"robots4.test": "10.0.0.1", "robots6.test": "[fd00::1]"}
"""Public host -> where it says that its robots file is. Its pages are read, as if it had none."""
REBIND = [f"http://rebind{number}.test/page" for number in range(REBINDING)]
AGAIN = [f"http://again{number}.test/page" for number in range(REBINDING)]
"""The same for those who come through a proxy."""
PLAIN = ["http://shop.test/plain", "http://www.shop.test/plain"]
LINKS = [f"{url}-link" for url in [*DIRECT, *MORE]]
