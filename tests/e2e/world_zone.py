"""The names of the world that tests of the guard live in."""

from trotline.testing.dns import CNAME, NXDOMAIN, SERVFAIL, A, Answer, Garbage, Silence, Slow, Turns

PUBLIC_V4, PUBLIC_V6 = "93.184.216.34", "2606:4700::34"
WEB = A(PUBLIC_V4)
REBINDING = 12
PROXY_PORT = 3128
LOGIN = "operator"
PROXY = f"http://{LOGIN}:{LOGIN}@127.0.0.1:{PROXY_PORT}"
PROXY_MODES = ("address", "forward", "name")

ZONE: dict[str, Answer] = {
    "shop.test": A(PUBLIC_V4, PUBLIC_V6),
    "maps.test": WEB,
    "links.test": WEB,
    "*.shop.test": CNAME("shop.test"),
    "*.test": WEB,
    # Names that stand for private addresses, in whole or in part.
    "private.test": A("10.0.0.1"),
    "private6.test": A("fd00:ec2::254"),
    "loop.test": A("127.0.0.1", "::1"),
    "wiki.corp.test": A("10.20.0.7"),
    "mixed.test": A(PUBLIC_V4, "192.168.1.1"),
    "mixed6.test": A(PUBLIC_V4, PUBLIC_V6, "fd00::1"),
    "mapped.test": A("::ffff:169.254.169.254"),
    "nat64.test": A("64:ff9b::a9fe:a9fe"),
    "last.test": A(*[PUBLIC_V4] * 12, "10.0.0.2"),
    "alias.test": CNAME("alias2.test"),
    "alias2.test": CNAME("private.test"),
    "metadata.google.internal": A("169.254.169.254"),
    # Public to whoever asks first, private to whoever asks again.
    **{f"rebind{number}.test": Turns(WEB, A("169.254.169.254")) for number in range(REBINDING)},
    **{f"again{number}.test": Turns(WEB, A("169.254.169.254")) for number in range(REBINDING)},
    "names.test": Turns(WEB, A("169.254.169.254")),
    "planted.test": Turns(WEB, WEB, A("169.254.169.254")),
    "twice.test": Turns(WEB, A("169.254.169.254")),
    # Trouble.
    "gone.test": NXDOMAIN,
    "empty.test": A(),
    "broken.test": SERVFAIL,
    "garbage.test": Garbage(),
    "silent.test": Silence(),
    "*.silent.test": Silence(),
    "late.test": Slow(0.3, WEB),
    "huge.test": A(*[f"93.184.{number // 250}.{number % 250 + 1}" for number in range(1_500)], PUBLIC_V4),
    "many.test": A(*[PUBLIC_V4] * 400),
    **{f"chain{number}.test": CNAME(f"chain{number + 1}.test") for number in range(8)},
    "chain8.test": WEB,
    "circle.test": CNAME("circle2.test"),
    "circle2.test": CNAME("circle.test"),
}
