"""Secret values: they can be sent, and are never printed, logged or serialized by accident."""

import base64
import contextlib
import json
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn, Self
from urllib.parse import quote, quote_plus

HIDDEN = "(hidden)"
LARGEST = 64 * 1024
"""Bytes of a secret's file."""
SHORTEST = 6
"""Characters; shorter values are not redacted, as they occur in too many other texts."""

MOUNTED = "/run/secrets"
"""Where Docker, Podman and our chart mount secrets. A runtime decides mode and owner of these files, and the users of a
container are its own processes: they may be readable by all, but writable by their owner only."""

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS = stat.S_IRGRP | stat.S_IROTH | _OTHERS_WRITE
_ESCAPE = re.compile("%[0-9A-F]{2}")
_URL_SAFE = str.maketrans("+/", "-_")
_known: set[str] = set()
"""Every secret of this process, in each of its forms: error messages, reports and output of child processes are
redacted as plain text."""
_longest_first: tuple[str, ...] | None = ()
"""The same forms, sorted: a form that contains another one is replaced before it. None: to be sorted when a text is
redacted, as a list of 10,000 proxies adds its logins one by one."""
_by_start: dict[str, list[str]] = {}
"""First characters -> forms; only if there are more than FEW."""
FEW = 200


class SecretMissing(ValueError):
    """The source of a secret has no value, or is readable by others."""


class Secret:
    """A value by reference: `Secret.env("SHOP_TOKEN")`, `Secret.file("token.txt")`.

    Printing, formatting, JSON and pickle never show it; code that sends it calls `reveal()`.
    """

    __slots__ = ("__value", "__whence")

    def __init__(self, value: str, *, whence: str = "") -> None:
        if not isinstance(value, str):
            raise TypeError("a secret is text")
        self.__value = value
        self.__whence = whence
        _remember(value)

    @classmethod
    def env(cls, name: str) -> Self:
        value = os.environ.get(name, "")
        if not value:
            raise SecretMissing(f"environment variable {name} is not set; a secret is read from it")
        return cls(value, whence=f"env:{name}")

    @classmethod
    def file(cls, path: str | os.PathLike[str]) -> Self:
        """The text of a file without its last line break. Only its owner may have access (chmod 600)."""
        return cls(_read(Path(path)), whence=f"file:{path}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """`env:NAME` or `file:PATH`, as settings files write it."""
        scheme, _, place = text.partition(":")
        if scheme not in ("env", "file") or not place:
            raise ValueError("a secret is written as env:NAME or file:PATH")
        return cls.env(place) if scheme == "env" else cls.file(place)

    def reveal(self) -> str:
        """The value. Call this only where it is sent."""
        return self.__value

    def current(self) -> str:
        """The value for a new connection: its file is read again, as passwords are rotated while we run. If that cannot
        be read, the last known value: the server decides whether it is still good."""
        scheme, _, place = self.__whence.partition(":")
        if scheme == "file":
            with contextlib.suppress(SecretMissing):
                self.__value = _read(Path(place))
                _remember(self.__value)
        return self.__value

    def __repr__(self) -> str:
        return f"Secret({self.__whence or HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a secret cannot be pickled; read it where it is needed (Secret.env, Secret.file)")


def is_reference(value: object) -> bool:
    """Is it written as `env:NAME` or `file:PATH`?"""
    return isinstance(value, str) and re.fullmatch(r"(?:env|file):.+", value) is not None


def is_private(path: str | os.PathLike[str], mode: int) -> bool:
    """Has only the owner access to a file with this mode? Mounted secrets may be readable by others."""
    # As it is written: what a link leads to may change between this and the opening of the file.
    mounted = Path(os.path.abspath(path)).is_relative_to(MOUNTED)  # noqa: PTH100
    return not mode & (_OTHERS_WRITE if mounted else _OTHERS)


def without_secrets(text: str) -> str:
    """The text with every known secret of this process redacted."""
    for value in _candidates(text):
        if value in text:
            text = text.replace(value, HIDDEN)
    return text


def _remember(value: str) -> None:
    global _longest_first
    if value in _known:
        return
    # Of "Bearer abc" a message may quote the last word alone.
    for part in {value, value.rpartition(" ")[2]}:
        if len(part) >= SHORTEST and part not in _known:
            _known.update(_forms(part))
            _longest_first = None


def _candidates(text: str) -> Iterable[str]:
    """The forms that may be in the text, longest first. Few are simply tried; of the logins of 10,000 proxies only
    those whose beginning is in the text: trying them all takes 20 ms for a line."""
    global _longest_first
    if _longest_first is None:
        # A copy: another thread may add one meanwhile.
        _longest_first = tuple(sorted(_known.copy(), key=len, reverse=True))
        _by_start.clear()
        for form in _longest_first if len(_longest_first) > FEW else ():
            _by_start.setdefault(form[:SHORTEST], []).append(form)
    if not _by_start:
        return _longest_first
    starts = {text[place : place + SHORTEST] for place in range(len(text) - SHORTEST + 1)}
    found = [form for start in starts & _by_start.keys() for form in _by_start[start]]
    return sorted(found, key=len, reverse=True)


def _forms(value: str) -> set[str]:
    """The value as it stands in a text or in a URL: percent-encoded, in base64, or both; escaped as in Python, JSON and
    HTML."""
    raw = value.encode("utf-8", "surrogatepass")
    found = {value, *_in_base64(raw)}
    if not value.isalnum() or not value.isascii():
        found |= {*_escaped(value), *map(quote, _percent_encoded(raw))}
    for each in tuple(found):
        if not each.isalnum() or not each.isascii():
            found |= _percent_encoded(each.encode("utf-8", "surrogatepass"))
    return {each for each in found if len(each) >= SHORTEST}


def _escaped(value: str) -> set[str]:
    found = {repr(value)[1:-1], repr(f"'\"{value}")[4:-1], ascii(value)[1:-1], json.dumps(value)[1:-1]}
    found.add(json.dumps(value, ensure_ascii=False)[1:-1])
    html = value
    for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#x27;")):
        html = html.replace(sign, name)
    return {*found, html, html.replace("&#x27;", "&#39;")}


def _percent_encoded(raw: bytes) -> set[str]:
    found = {quote(raw), quote(raw, safe=""), quote_plus(raw)}
    return found | {_ESCAPE.sub(lambda escape: escape[0].lower(), each) for each in found}


def _in_base64(raw: bytes) -> set[str]:
    """By itself, and with up to two bytes before it: that decides where its bits fall. What lies before and behind it
    shares a character with it at each end; such a character is not looked for."""
    found = {base64.b64encode(raw).decode()}
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode()
        found.add(encoded[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6])
    return found | {each.translate(_URL_SAFE) for each in found}


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            # Checked on the open file: the path may be replaced meanwhile.
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SecretMissing(f"{path} is not a regular file; a secret is read from it")
            if not is_private(path, status.st_mode):
                mode = stat.S_IMODE(status.st_mode)
                raise SecretMissing(
                    f"{path} holds a secret and others can read it (mode {mode:o}); try: chmod 600 {path}"
                )
            raw = file.read(LARGEST + 1)
    except OSError as error:
        raise SecretMissing(f"{path} cannot be read: {error.strerror}; a secret is read from it") from error
    if len(raw) > LARGEST:
        raise SecretMissing(f"{path} is larger than {LARGEST:,} bytes, too large for a secret")
    try:
        text = raw.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        # Not "from error": the cause would quote the bytes.
        raise SecretMissing(f"{path} is not UTF-8 text; a secret is read from it") from None
    if not text:
        raise SecretMissing(f"{path} is empty; a secret is read from it")
    return text
