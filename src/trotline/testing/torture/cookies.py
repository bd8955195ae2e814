"""Cookies that reach too far, or are too much."""

from trotline.testing.torture.faults import Call, Faults, answer

cookies = Faults("cookie")


def _set(name: str, about: str, *said: str) -> None:
    lines = [f"Set-Cookie: {one}" for one in said]
    cookies.say(name, about, answer(b"set", "Content-Type: text/plain", *lines), stay=True)


_set("good", "a cookie as it should be", "good=1; Path=/")
_set("top-level", "for a whole top-level domain", "evil=1; Domain=com; Path=/", "evil=1; Domain=localhost.; Path=/")
_set(
    "public-suffix", "for registries", *(f"evil=1; Domain={name}; Path=/" for name in ("co.uk", ".com.au", "github.io"))
)
_set("other-domain", "for another site", "evil=1; Domain=shop.example; Path=/", "evil=1; Domain=127.0.0.2; Path=/")
_set(
    "prefixes",
    "__Host- and __Secure- without what they promise",
    "__Host-evil=1; Path=/",
    "__Host-evil=1; Path=/; Secure; Domain=localhost",
    "__Host-evil=1; Path=/cookie; Secure",
    "__Secure-evil=1; Path=/",
    "__host-evil=1; Path=/",
)
_set("large", "one cookie of 1 MB", f"evil={'x' * 1_000_000}")
_set("largish", "one cookie of 5 KB", f"evil={'x' * 5000}; Path=/")
_set("hundred", "a hundred cookies", *(f"evil{number}={number}; Path=/" for number in range(100)))
_set("odd", "no name, no value, no sense", "=evil", ";;;", "evil", 'evil="a;b"; Path=/', "évil=1; Path=/")


@cookies.add("more", "a hundred other cookies each time: /cookie/more/7")
async def more(call: Call) -> None:
    start = 100 * int(call.number(0))
    lines = [f"Set-Cookie: many{start + number}=1; Path=/" for number in range(100)]
    await call.send(answer(b"set", "Content-Type: text/plain", *lines))


@cookies.add("ten-thousand", "ten thousand cookies in one answer")
async def ten_thousand(call: Call) -> None:
    await call.send(answer(b"set", *(f"Set-Cookie: c{number}=1" for number in range(10_000))))
