"""Pages, links, blocks: what can be checked without running a crawl."""

import ast
import re
import shlex
import textwrap
import tomllib
from pathlib import Path

import click
import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, Block, all_blocks, anchors, blocks, links, prose
from trotline import Spider
from trotline.cli.main import trotline as command_line

PYTHON = all_blocks("python")
SPIDERS = [block for block in PYTHON if "from trotline import" in block.text and "Spider(" in block.text]


def name(thing: Block | Path) -> str:
    return thing.place if isinstance(thing, Block) else str(thing.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        if re.match(r"https?://|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_index() -> None:
    listed = {(DOCS / link).resolve() for link in links(DOCS / "README.md")}

    assert {page for page in PAGES if page.is_relative_to(DOCS)} - {DOCS / "README.md"} == listed


@pytest.mark.parametrize("block", PYTHON, ids=name)
def test_every_python_block_compiles(block: Block) -> None:
    """As a module or as the body of a function: some blocks show only a few lines."""
    text = textwrap.indent(textwrap.dedent(block.text), "    ")
    problems = []
    for form in (block.text, f"def handler():\n{text}", f"async def handler():\n{text}"):
        try:
            compile(form, block.place, "exec")
            return
        except SyntaxError as error:
            problems.append(error)
    raise problems[0]


@pytest.mark.parametrize("block", SPIDERS, ids=name)
def test_every_spider_in_the_docs_loads(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP_TOKEN", "a token that the docs have nowhere")
    (tmp_path / "session.txt").touch(mode=0o600)
    (tmp_path / "session.txt").write_text("a session\n")
    module: dict[str, object] = {"__name__": "docs_spider"}
    exec(compile(block.text, block.place, "exec"), module)  # noqa: S102 - our own pages
    assert any(isinstance(value, Spider) for value in module.values())


def commands() -> list[tuple[str, list[str]]]:
    """(where, words) of every `trotline ...` line that a reader could type."""
    found = []
    for block in all_blocks("console", "", "sh"):
        for line in block.text.splitlines():
            typed = re.match(r"(?:\$ |[^|]*\| )?(?:[A-Z_]+=\S+ )?(trotline [a-z].*)", line)
            if typed and "[" not in line:
                words = shlex.split(typed[1].split(" | ")[0], comments=True)
                found.append((f"{block.place}: {typed[1]}", words[1:]))
    return found


@pytest.mark.parametrize(("place", "words"), commands(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_command_in_the_docs_exists_with_its_options(place: str, words: list[str]) -> None:
    with command_line.make_context("trotline", [], resilient_parsing=True) as context:
        command = command_line.get_command(context, words[0])
    assert command is not None, place
    if isinstance(command, click.Group) and len(words) > 1:
        assert words[1] in command.commands, place
        command = command.commands[words[1]]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"} <= known


def test_every_file_that_is_named_is_there() -> None:
    """A path like `rules/pace.py` in a page must exist."""
    missing = set()
    for page in PAGES:
        for path in re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|lua|sql|md|toml|txt))`", prose(page)):
            places = (ROOT / path, ROOT / "src" / "trotline" / path, DOCS / path, page.parent / path)
            if not any(place.exists() for place in places):
                missing.add(f"{page.relative_to(ROOT)}: {path}")
    # Files that readers make themselves, and what `make` writes.
    assert {one for one in missing if not one.endswith(("spiders/shop.py", "dist/flaky-tests.txt"))} == set()


def test_every_document_that_the_code_cites_is_there() -> None:
    """By path or file name, and decisions by number."""
    there = {page.name for page in PAGES}
    decisions = {page.name[:3] for page in (DOCS / "decisions").glob("*.md")}
    missing = set()
    for file in [
        file
        for folder in ("src", "bench")
        for ending in ("py", "lua", "sql")
        for file in ROOT.glob(f"{folder}/**/*.{ending}")
        # The environments of peers, and what they wrote.
        if ".work" not in file.parts
    ]:
        text = file.read_text()
        for path in re.findall(r"\b((?:[\w-]+/)*[\w-]+\.md)\b", text):
            if not ((ROOT / path).exists() or ("/" not in path and path in there)):
                missing.add(f"{file.relative_to(ROOT)}: {path}")
        missing |= {
            f"{file.relative_to(ROOT)}: decision {number}"
            for number in re.findall(r"\bdecision (\d{3})\b", text)
            if number not in decisions
        }
    assert missing == set()


def test_every_make_verb_that_is_named_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = {verb for page in PAGES for verb in re.findall(r"(?:^|`)make ([a-z]+)\b", page.read_text(), re.M)}

    assert {"demo", "test"} <= named
    assert {verb for verb in named if not re.search(rf"^{verb}:", makefile, re.M)} == set()


def test_every_decision_has_a_number_of_its_own_a_status_and_its_three_parts() -> None:
    pages = sorted((DOCS / "decisions").glob("*.md"))

    assert len({page.name[:3] for page in pages}) == len(pages)
    for page in pages:
        text = page.read_text()
        assert text.startswith(f"# {page.name[:3]}: "), page.name
        assert re.search(r"^Status: (accepted|replaced by \d{3})\.$", text, re.M), page.name
        for part in ("**Choice.**", "**What it costs.**", "**How we would notice that it was wrong.**"):
            assert part in text, f"{page.name} has no {part}"


def test_the_changelog_has_the_current_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_the_first_spider_has_nine_lines_and_the_catalog_24() -> None:
    first, catalog = blocks(ROOT / "README.md", "python")[:2]

    assert len(first.text.splitlines()) == 9
    assert len([line for line in catalog.text.splitlines() if line.strip()]) == 24


def test_the_example_of_the_package_docstring_is_that_of_the_readme() -> None:
    first = blocks(ROOT / "README.md", "python")[0].text
    docstring = ast.get_docstring(ast.parse((ROOT / "src/trotline/__init__.py").read_text())) or ""

    assert re.sub(r'"https?://[^"]+"', "SEED", first).strip() in re.sub(r'"https?://[^"]+"', "SEED", docstring)
