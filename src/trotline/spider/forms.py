"""A form of a page, filled in and submitted as a browser does it: which fields it has, and what they send."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from trotline.rules.task_checks import shown

Value = str | int | float | bool | None | list[str] | tuple[str, ...]
Values = Mapping[str, Value]

_BUTTONS = frozenset(("submit", "image"))
_NOT_SENT = frozenset(("button", "reset", "file"))
_TICKED = frozenset(("checkbox", "radio"))
_CONTROLS = "input, select, textarea, button"


class Field(NamedTuple):
    """One control of a form with a name."""

    name: str
    kind: str
    """The type of an input ("text", "checkbox"), or "select", "textarea"."""
    values: tuple[str, ...]
    """What it sends as it stands; empty: nothing (a box that is not ticked)."""
    choices: tuple[str, ...] = ()
    """What it may send: the options of a select, the value of a box."""


class Form(NamedTuple):
    """What a form says; the button that is clicked may say otherwise."""

    action: str
    """As written; empty: the page's own URL."""
    method: str
    enctype: str
    charset: str
    """Of `accept-charset`; empty: the page's."""
    fields: list[Field]


def find(nodes: list[LexborNode], every: list[LexborNode], query: str, url: str) -> LexborNode:
    """The form that a selector means: the match, the form around it, or the first one in it."""
    for node in nodes:
        form = node if node.tag == "form" else _around(node) or node.css_first("form")
        if form is not None:
            return form
    known = ", ".join(_described(form) for form in every[:10]) or "none"
    raise ValueError(f"no form matches {query!r} on {url}; its forms: {known}")


def read(form: LexborNode, root: LexborNode, click: str | bool | None) -> Form:
    """The form with the button `click`: a selector, None for the first one, False for none."""
    controls = [node for node in _controls(form, root) if not _is_disabled(node)]
    button = _button(controls, form, click)
    clicked = 0 if button is None else button.mem_id
    fields = [field for node in controls for field in _fields(node, node.mem_id == clicked)]
    return Form(
        action=_said(button, "formaction") or _said(form, "action"),
        method=(_said(button, "formmethod") or _said(form, "method") or "get").lower(),
        enctype=(_said(button, "formenctype") or _said(form, "enctype")).lower(),
        charset=(_said(form, "accept-charset").replace(",", " ").split() or [""])[0],
        fields=fields,
    )


def filled(form: Form, values: Values, extra: Values, url: str) -> list[tuple[str, str]]:
    """Names and values in the order of the form. A name that it does not have is refused: it would be a typing error
    that no one notices; `extra` adds such fields."""
    known = {field.name for field in form.fields}
    if unknown := [name for name in values if name not in known]:
        names = ", ".join(dict.fromkeys(field.name for field in form.fields)) or "none"
        raise ValueError(
            f"the form on {url} has no field {shown(unknown[0])}; it has {names}. To send it all the same: "
            f"extra={{{shown(unknown[0])}: ...}}"
        )
    pairs: list[tuple[str, str]] = []
    given: set[str] = set()
    for field in form.fields:
        if field.name not in values:
            pairs += [(field.name, value) for value in field.values]
        elif isinstance(values[field.name], bool) and field.kind in _TICKED:
            pairs += [(field.name, value) for value in field.choices if values[field.name]]
        elif field.name not in given:
            # Boxes and buttons of one name are one field with several values.
            given.add(field.name)
            pairs += [(field.name, value) for value in _chosen(form, field.name, values[field.name], url)]
    return pairs + [(name, value) for name, one in extra.items() for value in _listed(name, one)]


def _chosen(form: Form, name: str, value: Value, url: str) -> list[str]:
    listed = _listed(name, value)
    fields = [field for field in form.fields if field.name == name]
    choices = [choice for field in fields for choice in field.choices]
    if choices and all(field.kind in _TICKED or field.kind == "select" for field in fields):
        for one in listed:
            if one not in choices:
                offered = ", ".join(map(repr, choices[:20]))
                raise ValueError(f"the field {name!r} on {url} has no choice {shown(one)}; it offers {offered}")
    return listed


def _listed(name: str, value: Value) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [text for one in value for text in _listed(name, one)]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        allowed = "text, a number, a list of texts, or None to leave it out; True and False are for checkboxes"
        raise TypeError(f"the value of the form's field {name!r} is {shown(value)}; give {allowed}")
    return [str(value)]


def _controls(form: LexborNode, root: LexborNode) -> Iterator[LexborNode]:
    """In page order: those inside, and those elsewhere that name the form by its id."""
    name = _said(form, "id")
    for node in root.css(_CONTROLS) if name else form.css(_CONTROLS):
        owner = _said(node, "form")
        if owner == name if owner else _is_inside(node, form):
            yield node


def _button(controls: list[LexborNode], form: LexborNode, click: str | bool | None) -> LexborNode | None:
    buttons = [node for node in controls if _kind(node) in _BUTTONS]
    if click is False:
        return None
    if click is None or click is True:
        return buttons[0] if buttons else None
    wanted = {node.mem_id for node in form.css(click)}
    for button in buttons:
        if button.mem_id in wanted:
            return button
    known = ", ".join(_described(button) for button in buttons) or "none"
    raise ValueError(f"click={click!r} is no submit button of the form; its buttons: {known}")


def _fields(node: LexborNode, clicked: bool) -> list[Field]:
    """Empty: it sends nothing, whatever is filled in."""
    name, kind = _said(node, "name"), _kind(node)
    if kind in _NOT_SENT or (kind in _BUTTONS and not clicked):
        return []
    if kind == "image":
        prefix = f"{name}." if name else ""
        return [Field(f"{prefix}{axis}", "hidden", ("0",)) for axis in "xy"]
    if not name:
        return []
    if kind == "select":
        return [_select(name, node)]
    if kind == "textarea":
        return [Field(name, kind, (node.text().removeprefix("\n"),))]
    value = node.attrs.sget("value") or ""
    if kind in _TICKED:
        value = value if "value" in node.attrs else "on"
        return [Field(name, kind, (value,) if "checked" in node.attrs else (), (value,))]
    return [Field(name, kind, (value,))]


def _select(name: str, node: LexborNode) -> Field:
    options = [option for option in node.css("option") if not _is_disabled(option)]
    values = [(option, _option_value(option)) for option in options]
    selected = [value for option, value in values if "selected" in option.attrs]
    if "multiple" not in node.attrs:
        # A browser shows the first one where none is selected, and the last of several.
        selected = selected[-1:] or [value for _, value in values[:1]]
    return Field(name, "select", tuple(selected), tuple(value for _, value in values))


def _option_value(option: LexborNode) -> str:
    return option.attrs.sget("value") or "" if "value" in option.attrs else " ".join(option.text().split())


def _kind(node: LexborNode) -> str:
    tag = node.tag or ""
    if tag == "button":
        return _said(node, "type").lower() or "submit"
    return _said(node, "type").lower() or "text" if tag == "input" else tag


def _is_disabled(node: LexborNode) -> bool:
    if "disabled" in node.attrs:
        return True
    around = node.parent
    while around is not None:
        if around.tag in ("fieldset", "optgroup") and "disabled" in around.attrs:
            return True
        around = around.parent
    return False


def _is_inside(node: LexborNode, form: LexborNode) -> bool:
    owner = _around(node)
    return owner is not None and owner.mem_id == form.mem_id


def _around(node: LexborNode) -> LexborNode | None:
    around = node.parent
    while around is not None and around.tag != "form":
        around = around.parent
    return around


def _said(node: LexborNode | None, name: str) -> str:
    return "" if node is None else (node.attrs.sget(name) or "").strip()


def _described(node: LexborNode) -> str:
    parts = [f"#{_said(node, 'id')}" if _said(node, "id") else ""]
    parts += [f'[{name}="{_said(node, name)}"]' for name in ("name", "action", "value") if _said(node, name)]
    return f"{node.tag}{''.join(parts)}"[:120]
