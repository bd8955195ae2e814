"""Answers that are well-formed and still lie: when to come back, what they are, in which letters, and for whom."""

from email.utils import formatdate

from trotline.testing.torture.faults import Call, Faults, answer, page

rests = Faults("retry-after")
types = Faults("type")
charsets = Faults("charset")
challenges = Faults("challenge")

FORMS = {
    "seconds": "120",
    "zero": "0",
    "negative": "-30",
    "fraction": "1.5",
    "years": str(10 * 365 * 24 * 3600),
    "huge": "9" * 400,
    "garbage": "soon, I hope",
    "empty": "",
    "nan": "nan",
    "infinite": "inf",
    "iso": "2031-05-06T07:08:09Z",
    "past": formatdate(0, usegmt=True),
    "far": "Fri, 31 Dec 9999 23:59:59 GMT",
    "no-date": "Xyz, 99 Foo 0000 99:99:99 GMT",
    "digits": "١٢٠",
}
"""Retry-After in every form; "date" is made when it is asked for."""


def _rest(form: str, value: str) -> None:
    @rests.add(form, f"429 with {value[:40]!r}; /retry-after/{form}/503 gives another status")
    async def act(call: Call) -> None:
        status = int(call.number(429))
        said = f"HTTP/1.1 {status} Later\r\nContent-Length: 0\r\nRetry-After: {value}\r\n\r\n"
        await call.send(said.encode())


for _form, _value in FORMS.items():
    _rest(_form, _value)


@rests.add("date", "429 with a date, in 60 s or /retry-after/date/N s")
async def date(call: Call) -> None:
    import time

    when = formatdate(time.time() + call.number(60), usegmt=True)
    await call.send(answer(b"", f"Retry-After: {when}", status="429 Too Many Requests"))


rests.say("none", "429 and no word about when", answer(b"", status="429 Too Many Requests"), stay=True)

_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(200)

for _name, _about, _header, _body in (
    ("image", "an image", "image/png", _PNG),
    ("image-as-html", "an image that says it is a page", "text/html", _PNG),
    ("html-as-image", "a page that says it is an image", "image/png", page()),
    ("pdf", "a PDF", "application/pdf", b"%PDF-1.7\n" + bytes(200)),
    ("zip", "a zip file", "application/zip", b"PK\3\4" + bytes(200)),
    ("bytes", "nothing in particular", "application/octet-stream", bytes(range(256))),
    ("nonsense", "a type that is none", "<script>; charset=;;; boundary", page()),
    ("json", "JSON", "application/problem+json; charset=utf-8", b'{"a": 1}'),
    ("feed", "a feed", "application/atom+xml", b"<feed/>"),
    ("upper", "a page, in capitals", "TEXT/HTML; CHARSET=UTF-8", page()),
):
    types.say(_name, _about, answer(_body, f"Content-Type: {_header}"), stay=True)

types.say("none", "a page without a type", answer(page()), stay=True)


@types.add("video", "a video of 2 GiB")
async def video(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 2147483648\r\n\r\n")
    while True:
        await call.send(b"\0" * 65536)


_WORDS = "<title>Grüße</title><p>Grüße, Ελλάδα"

for _name, _about, _header, _body in (
    (
        "header-lies",
        "the header says latin-1, the page is UTF-8 with a meta",
        "text/html; charset=iso-8859-1",
        f"<meta charset=utf-8>{_WORDS}".encode(),
    ),
    (
        "meta-lies",
        "the header says UTF-8, the meta latin-1",
        "text/html; charset=utf-8",
        f"<meta charset=iso-8859-1>{_WORDS}".encode(),
    ),
    (
        "bom-wins",
        "a byte order mark against both",
        "text/html; charset=iso-8859-1",
        b"\xef\xbb\xbf" + f"<meta charset=koi8-r>{_WORDS}".encode(),
    ),
    ("unknown", "an unknown charset", "text/html; charset=klingon", _WORDS.encode()),
    ("utf-7", "UTF-7, with a script in it", "text/html; charset=utf-7", b"+ADw-script+AD4-alert(1)+ADw-/script+AD4-"),
    ("utf-16", "UTF-16 without a byte order mark", "text/html; charset=utf-16", _WORDS.encode("utf-16-le")),
    (
        "iso-2022-kr",
        "an encoding that only attacks still use",
        "text/html; charset=iso-2022-kr",
        b"\x0e<script>alert(1)</script>",
    ),
    ("broken", "UTF-8 with wrong bytes", "text/html; charset=utf-8", b"<p>a\xff\xfe\xc3(b"),
    ("codec", "the name of a Python codec that is not a charset", "text/html; charset=rot13", b"<p>uryyb"),
    ("zip-codec", "the name of a Python codec that undoes zlib", "text/html; charset=zlib", b"<p>x"),
):
    charsets.say(_name, _about, answer(_body, f"Content-Type: {_header}"), stay=True)

_MARKS = {
    "cloudflare": "<title>Just a moment...</title><script>window._cf_chl_opt={}</script>"
    "<script src='/cdn-cgi/challenge-platform/h/b/x'></script>",
    "datadome": "<script>var dd={'rt':'c'}</script><script src='https://ct.captcha-delivery.com/c.js'></script>",
    "imperva": "<iframe src='/_Incapsula_Resource?SWUDNSAI=31'></iframe>",
    "human": '<title>Access to this page has been denied</title><div id="px-captcha"></div>',
    "captcha": "<title>Are you a robot?</title><script src='https://www.google.com/recaptcha/api.js'></script>",
}

for _name, _mark in _MARKS.items():
    challenges.say(
        _name,
        "a challenge page with 200",
        answer(f"<html>{_mark}</html>".encode(), "Content-Type: text/html"),
        stay=True,
    )

challenges.say(
    "login",
    "a login page with 200, where a page should be",
    answer(b"<title>Sign in</title><form action=/login><input type=password></form>", "Content-Type: text/html"),
    stay=True,
)
challenges.say(
    "captive",
    "a network's own page with 200, where a page should be",
    answer(b"<title>Welcome to the hotel</title><p>Accept our terms to go on.", "Content-Type: text/html"),
    stay=True,
)
