"""Counters of a job in plain words, the same in the summary of a run and in `trotline status`."""

_PLAIN = {
    "links known": "duplicate links",
    "links refused: host": "links to other hosts",
    "links refused: another host": "links to other hosts",
    "links refused: excluded": "links that match exclude",
    "links refused: not included": "links that match no include pattern",
    "links refused: scheme": "links that are not http or https",
    "links refused: not a URL": "links that are not URLs",
    "links refused: bad host": "links with a host name that DNS cannot resolve",
    "links refused: user-info": "links with a user name or password",
    "dropped: refused: robots.txt": "disallowed by robots.txt",
    "dropped: gone: 404": "404 not found",
    "dropped: gone: 410": "410 gone",
    "dropped: sitemap: lists no URL": "sitemaps that list no URL",
    "links refused: sitemap: URL of another host": "URLs of sitemaps on other hosts",
    "links refused: sitemap: URL does not match": "URLs of sitemaps that do not match the pattern of the seed",
    "links refused: sitemap: not an http(s) URL": "URLs of sitemaps that are not http or https",
    "snooze: missed its start time": "starts that came too late, reserved again",
}


def plain(name: str) -> str:
    """The counter as a person reads it; those without words of their own stay as they are stored."""
    return _PLAIN.get(name, name)
