"""The tree tests of html5lib, on the parser that pages are read with: what selectors see is what browsers see."""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tests.suites.accounts import check
from tests.suites.packages import TINYHTML5

SECTION = re.compile(r"\n#(errors|new-errors|document-fragment|script-on|script-off|document)(?=\n)")


def cases() -> Iterator[tuple[str, str, str]]:
    """Name, page and tree. Pieces of a page (fragments) and pages whose scripts run are not what we parse."""
    for file, content in TINYHTML5.files("tests/tree-construction"):
        for number, block in enumerate(re.split(r"(?:^|\n)#data\n", content.decode())[1:]):
            page, *rest = SECTION.split("\n" + block)
            sections = dict(zip(rest[::2], rest[1::2], strict=True))
            if "document-fragment" not in sections and "script-on" not in sections:
                yield f"{file}:{number}", page[1:], sections["document"]


def wanted(tree: str) -> list[str]:
    """The tree's lines without what no selector can name: doctype, comments, namespaces, what a template holds."""
    lines: list[str] = []
    template: int | None = None
    for line in re.split(r"(?:^|\n)\| ", tree.rstrip("\n"))[1:]:
        text = line.lstrip(" ")
        depth = len(line) - len(text)
        if template is not None and depth >= template:
            continue
        template = depth if text == "content" else None
        if template is not None:
            continue
        if text.startswith(("<!DOCTYPE", "<!-- ", "<?")):
            continue
        lines.append(re.sub(r"^( *<)(?:svg|math) ", r"\1", line) if text.startswith("<") else line)
    return lines


def seen(node: LexborNode | None, depth: int = 0) -> Iterator[str]:
    """The tree as the suite writes it."""
    while node is not None:
        indent = "  " * depth
        if node.tag == "-text":
            yield f'{indent}"{node.text_content}"'
        elif node.tag and node.tag[0] not in "-!":
            yield f"{indent}<{node.tag}>"
            for name, value in sorted(node.attributes.items()):
                yield f'{indent}  {name}="{value or ""}"'
            yield from seen(node.child, depth + 1)
        node = node.next


def test_trees_are_built_as_browsers_build_them() -> None:
    outcomes: dict[str, str] = {}
    for name, page, tree in cases():
        got, right = list(seen(LexborHTMLParser(page).root)), wanted(tree)
        outcomes[name] = "" if got == right else f"{page!r} is {right}: {got}"
    check("html5lib-tree", outcomes)
