"""Response headers with case-insensitive names."""

from collections.abc import Iterator, Mapping


class Headers(Mapping[str, str]):
    """The first value of each name; `getall` gives the repeats (Set-Cookie)."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: tuple[tuple[str, str], ...]) -> None:
        self._pairs = pairs

    def __getitem__(self, name: str) -> str:
        wanted = name.lower()
        for known, value in self._pairs:
            if known == wanted:
                return value
        raise KeyError(name)

    def getall(self, name: str) -> list[str]:
        """Every value of that name, in the order received; empty when there is none."""
        wanted = name.lower()
        return [value for known, value in self._pairs if known == wanted]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for name, _ in self._pairs))

    def __len__(self) -> int:
        return len({name for name, _ in self._pairs})

    def __repr__(self) -> str:
        return f"Headers({self._pairs!r})"
