"""Google's robots.txt tests and thousands of real files, on the two steps that decide about every URL."""

import ast
from collections.abc import Iterator
from urllib.parse import urlsplit

from protego import Protego

from tests.suites.accounts import check
from tests.suites.packages import PROTEGO, ROBOTSPY
from trotline.rules.charset import decode
from trotline.rules.robots import Prefilter, for_agent

GIVEN = {"ALLOWED": True, "DISALLOWED": False, "FOOBOT_AGENT": "FooBot"}
"""Names that the suite's missing helper file defines."""
EVERY = 12
"""Of the real files, every so many is read in `make test`; `python -m tests.fuzz` reads them all."""


def allowed(text: str, agent: str, url: str) -> bool:
    """As `RobotsTxt` decides: the quick look, then the matcher."""
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    quick = Prefilter(text).surely_allowed(path)
    closer: bool = Protego.parse(for_agent(text, agent)).can_fetch(url, agent)
    assert closer or not quick, f"the quick look allows {url}, the matcher does not"
    return closer


def google_cases() -> Iterator[tuple[str, str, str, str, bool]]:
    """Name, file, agent, URL, allowed. The suite is Python: its tables are read, its code is not run."""
    known: dict[str, object] = dict(GIVEN)
    for node in ast.parse(ROBOTSPY.read("tests/test_google.py")).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        if not isinstance(node.value, ast.Tuple):
            known[name] = ast.literal_eval(node.value)
            continue
        for number, row in enumerate(node.value.elts):
            assert isinstance(row, ast.List)
            values = [known[part.id] if isinstance(part, ast.Name) else ast.literal_eval(part) for part in row.elts]
            if len(values) == 4:
                text, agent, url, may = values
                yield f"{name}:{number}", str(text), str(agent), str(url), bool(may)


def test_googles_cases_come_out_as_google_says() -> None:
    outcomes: dict[str, str] = {}
    for name, text, agent, url, may in google_cases():
        got = allowed(text, agent, url)
        outcomes[name] = "" if got == may else f"{agent} and {url!r} under {text!r}: {'allowed' if got else 'not'}"
    check("google-robots", outcomes)


def real_files(every: int) -> Iterator[tuple[str, str]]:
    """robots.txt files of the ten thousand largest sites, decoded as we decode them."""
    for number, (site, body) in enumerate(PROTEGO.files("tests/test_data")):
        if number % every == 0:
            yield site, decode(body, None)[0]


def difference_in(site: str, text: str) -> str:
    """Empty if the quick look never allows what the matcher forbids, on the paths that the file itself names."""
    rules, quick = Protego.parse(for_agent(text, "trotline")), Prefilter(text)
    paths = ["/", "/index.html", "/search?q=tea&page=2", "/a/b/c.php?id=1"]
    named = [line.partition(":")[2].strip() for line in text.splitlines()[:400] if ":" in line]
    paths += [path.replace("*", "x").replace("$", "") for path in named if path.startswith("/")][:60]
    for path in paths:
        if (quick.empty or quick.surely_allowed(path)) and not rules.can_fetch(f"https://{site}{path}", "trotline"):
            return f"{path} is allowed by the quick look and forbidden by the matcher"
    return ""


def test_the_quick_look_agrees_with_the_matcher_on_real_files() -> None:
    check("real-robots", {site: difference_in(site, text) for site, text in real_files(EVERY)})
