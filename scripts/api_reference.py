"""Write docs/reference/api.md from the route table.

    python -m scripts.api_reference            # replace what is generated in it
    python -m scripts.api_reference --check    # exit code 1 if it is not up to date

Only what stands between the two marks is generated; the text before them is written by hand.
"""

import ast
import inspect
import sys
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from trotline.web.openapi import PREFIX
from trotline.web.route_table import JSON, Route
from trotline.web.routes import ROUTES

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "api.md"
BEGIN, END = "<!-- generated: python -m scripts.api_reference -->", "<!-- end of what is generated -->"


def generated() -> str:
    listed = [route for route in ROUTES if route.path.startswith(f"{PREFIX}/")]
    rows = [
        "| route | role | what it does |",
        "|---|---|---|",
        *(f"| `{route.method} {_short(route)}` | {route.role.name.lower()} | {route.summary} |" for route in listed),
    ]
    parts = ["\n".join(rows), *filter(None, map(_details, listed))]
    return "\n\n".join(parts)


def _short(route: Route) -> str:
    return route.path.removeprefix(PREFIX)


def _details(route: Route) -> str:
    tables = [
        _table("parameter", route.query),
        _table("field of the body", route.body) if route.body is not None else "",
    ]
    notes = []
    if route.media != JSON:
        notes.append(f"Answers {', '.join(f'`{media}`' for media in (route.media, *route.other_media))}.")
    if route.streams_body:
        notes.append(f"Takes `{route.body_media}`.")
    if not any(tables) and not notes:
        return ""
    return "\n\n".join([f"### {route.method} {_short(route)}", *notes, *filter(None, tables)])


def _table(head: str, fields: type[msgspec.Struct]) -> str:
    meanings = _meanings(fields)
    rows = [_row(field, meanings.get(field.name, "")) for field in msgspec.structs.fields(fields)]
    if not rows:
        return ""
    return "\n".join([f"| {head} | type | default | meaning |", "|---|---|---|---|", *rows])


def _row(field: msgspec.structs.FieldInfo, meaning: str) -> str:
    default = "required" if field.required else f"`{msgspec.json.encode(field.default).decode()}`"
    return f"| `{field.encode_name}` | {_type(msgspec.json.schema(field.type))} | {default} | {meaning} |"


def _meanings(fields: type[msgspec.Struct]) -> dict[str, str]:
    """The string below a field in the source: Python keeps none at run time."""
    [found] = ast.parse(textwrap.dedent(inspect.getsource(fields))).body
    body = found.body if isinstance(found, ast.ClassDef) else []
    return {
        field.target.id: " ".join(below.value.value.split())
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}, at most {schema['maxItems']:,}"
    limits = [
        f"{word} {schema[name]:,}"
        for name, word in (("minimum", ">="), ("maximum", "<="), ("maxLength", "at most"))
        if name in schema
    ]
    unit = " characters" if "maxLength" in schema else ""
    return str(schema.get("type", "anything")) + (f", {', '.join(limits)}{unit}" if limits else "")


def updated(page: str) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} has no marks: {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n\n{generated()}\n\n{END}{after}"


def main() -> int:
    page = PAGE.read_text()
    if "--check" in sys.argv:
        return int(page != updated(page))
    PAGE.write_text(updated(page))
    print(f"{len([route for route in ROUTES if route.path.startswith(PREFIX)])} routes in {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
