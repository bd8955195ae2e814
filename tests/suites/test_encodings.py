"""The encoding tests of html5lib and of the web platform, on the function that reads every page."""

import json
from collections.abc import Iterator

import webencodings

from tests.suites.accounts import check
from tests.suites.packages import TINYHTML5, TURBOHTML
from trotline.rules.charset import decode, encoding_of

SPOILER = b"\n\xff"
"""Not UTF-8: the suite assumes windows-1252 where nothing is declared, and so do we unless the bytes are UTF-8."""


def pages() -> Iterator[tuple[str, bytes, str]]:
    for file, content in TINYHTML5.files("tests/encoding"):
        for number, block in enumerate(content.split(b"#data\n")[1:]):
            data, _, name = block.partition(b"\n#encoding\n")
            yield f"{file}:{number}", data, webencodings.lookup(name.decode().strip()).name


def test_the_encoding_of_a_page_is_the_one_that_browsers_find() -> None:
    outcomes: dict[str, str] = {}
    for case, data, name in pages():
        got = encoding_of(data + SPOILER, None)
        assert decode(data + SPOILER, None)[1] == got
        outcomes[case] = "" if got == name else f"{data[:200]!r} is {name}: {got}"
    check("html5lib-encoding", outcomes)


def test_bytes_mean_the_characters_that_browsers_read() -> None:
    outcomes: dict[str, str] = {}
    for case in json.loads(TURBOHTML.read("tests/conformance/data/wpt_encoding.json"))["cases"]:
        name, coded = case["encoding"].lower(), case["bytes"]
        text = "\ufffd" if case["text"] is None else case["text"]
        got, _ = decode(bytes.fromhex(coded), f"text/html; charset={name}")
        outcomes[f"{name}:{coded}"] = "" if got == text else f"is {text!a}: {got!a}"
    check("wpt-encoding", outcomes)
