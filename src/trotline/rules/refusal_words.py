"""The gate's reasons for refusing a URL, in plain words."""

_WORDS = {
    "host": "its host is not one of the spider's hosts",
    "another host": "it is on another host than the page, and the spider names no hosts",
    "excluded": "it matches a pattern of the spider's exclude",
    "not included": "it matches no pattern of the spider's include",
    "known": "duplicate",
}


def plain(why: str) -> str:
    return _WORDS.get(why, why)
