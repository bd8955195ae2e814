"""The Lua scripts: one file per command, with the shared pieces that it names put in front of it."""

from functools import lru_cache
from hashlib import sha1
from importlib.resources import files

_FOLDER = files("trotline.adapters.redis") / "lua"
_NEEDS = "-- needs: "


class Script:
    """A script as the server gets it, and the name that the server knows it by."""

    __slots__ = ("name", "sha", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.sha = sha1(text.encode()).hexdigest()  # noqa: S324 - Redis names scripts so


@lru_cache
def script(name: str, *, seen: tuple[str, ...] = ("seen_exact",), even_when_full: bool = False) -> Script:
    """`seen`: the pieces that remember what was admitted. `even_when_full`: run it also when the server's memory is
    full; for calls that need no more of it."""
    first, _, rest = _read(name).partition("\n")
    if even_when_full:
        first = "#!lua flags=allow-oom"
    second = rest.partition("\n")[0]
    needs = second.removeprefix(_NEEDS).split() if second.startswith(_NEEDS) else []
    pieces = [_read(part) for piece in needs for part in (seen if piece == "seen" else (piece,))]
    return Script(name, "\n".join([first, *pieces, rest]))


def _read(name: str) -> str:
    return (_FOLDER / f"{name}.lua").read_text()
