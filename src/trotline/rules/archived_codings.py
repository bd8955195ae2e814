"""Which bodies are archived as they came: those that are gzip-coded, which every reader of WARC files undoes."""

from collections.abc import Iterable


def is_gzip(headers: Iterable[tuple[str, str]]) -> bool:
    """Is gzip the only coding? Not under another name: warcio and others know this one."""
    return [value for name, value in headers if name == "content-encoding"] == ["gzip"]


def is_one_member(wire: bytes, size: int) -> bool:
    """Is it one gzip member and nothing else, if all of it decodes to so many bytes? The last four bytes of a member
    are its own size: of several members, or before zeros, they are another one."""
    return 0 < size == int.from_bytes(wire[-4:], "little")
