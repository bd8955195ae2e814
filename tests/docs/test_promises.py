"""Every sentence of the README's promises is listed in docs/reference/promises.md with tests that exist."""

import re

import pytest

from tests.docs.pages import REFERENCE, ROOT

PAGE = (REFERENCE / "promises.md").read_text()
ROWS = re.findall(r"^\| (?!promise|---)(.+?) \| (.+) \|$", PAGE, re.M)


def sentences() -> list[str]:
    """The sentences of the section "What it promises", without headings and links."""
    section = re.search(r"^## What it promises\n(.*?)^## ", (ROOT / "README.md").read_text(), re.M | re.S)
    assert section is not None
    text = re.sub(r"\*\*.*?\*\*", "", section[1])
    text = re.sub(r"(?<=\. )\[[^\]]*\]\([^)]*\)\n|\n  \[[^\]]*\]\([^)]*\)\n", "\n", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    items = [" ".join(item.split()) for item in re.split(r"^- |\n\n", text, flags=re.M)]
    return [one.strip() for item in items for one in re.split(r"(?<=\.) (?=[A-Zw\"r`])", item) if one.strip()]


def proofs(cell: str) -> list[tuple[str, str]]:
    return re.findall(r"`([\w/.]+\.py)`(?: (test_\w+))?", cell)


@pytest.mark.parametrize("sentence", sentences())
def test_every_sentence_of_the_promises_has_its_tests(sentence: str) -> None:
    told = sentence.removeprefix("How they are tested: ")
    if told.startswith("`make test` runs them all"):
        return
    assert told in dict(ROWS), f"docs/reference/promises.md does not say what proves: {told}"


@pytest.mark.parametrize("promise", [promise for promise, _ in ROWS])
def test_every_promise_that_is_listed_is_one_of_the_readme(promise: str) -> None:
    command, printed, _ = promise.partition(" and what it prints")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", (ROOT / "README.md").read_text())
    assert (command.strip("`") if printed else promise) in " ".join(text.split())


@pytest.mark.parametrize(("promise", "cell"), ROWS)
def test_every_test_that_is_named_is_there(promise: str, cell: str) -> None:
    named = proofs(cell)

    assert named, f"nothing proves: {promise}"
    for path, test in named:
        text = (ROOT / path).read_text()
        assert not test or re.search(rf"def {test}\(", text), f"{path} has no {test}"
