"""URL normalisation and identity: what is fetched, and which URLs are the same page.

`read` alone decides identity. Parsing is WHATWG's (as in browsers), by ada.
docs/explain/url-identity.md gives the rules with examples.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any, Literal

import can_ada
import msgspec
import xxhash

from trotline.model.keyword_structs import NamedValues
from trotline.model.proxy_pool import names_account
from trotline.model.task import Task

TRACKING = frozenset((
    "_ga", "_gac", "_gl", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "gad_campaignid", "srsltid",
    "fbclid", "igsh", "igshid", "msclkid", "twclid", "ttclid", "li_fat_id", "epik", "rdt_cid", "sccid", "irclickid",
    "yclid", "ymclid", "_openstat", "pk_campaign", "pk_kwd", "pk_source", "pk_medium", "pk_content",
    "mc_cid", "mc_eid", "_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp", "hsctatracking", "mkt_tok", "_ke", "_kx",
    "vero_id", "vero_conv", "oly_anon_id", "oly_enc_id", "wickedid",
    "jsessionid", "phpsessid",
))  # fmt: skip
"""Query parameters for tracking or sessions, which do not select a page."""

TRACKING_PREFIXES = ("utm_", "mtm_", "hsa_", "aspsessionid")

LONGEST_TEXT = 65_536
"""Longer text is refused without parsing: a megabyte of `data:` must cost nothing."""


class UrlRules(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedValues):
    """Which differences between two URLs do not make two pages."""

    tracking: Collection[str] = TRACKING
    """Parameter names left out of the identity, in any case."""
    tracking_prefixes: tuple[str, ...] = TRACKING_PREFIXES
    sort_query: bool = True
    trailing_slash: Literal["keep", "strip"] = "keep"
    """"keep": /a and /a/ are two pages. Merging too much would lose pages silently."""
    max_length: int = 2_083

    def __post_init__(self) -> None:
        if self.trailing_slash not in ("keep", "strip"):
            raise ValueError(f'trailing_slash {self.trailing_slash!r} is not known; write "keep" or "strip"')
        for name in ("tracking", "tracking_prefixes"):
            if isinstance(getattr(self, name), str):
                raise ValueError(f"{name} is one text; write a list of names: {name}=[{getattr(self, name)!r}]")
            if not isinstance(getattr(self, name), Collection):
                raise ValueError(f"{name} is {getattr(self, name)!r}; write a list of names")
        msgspec.structs.force_setattr(self, "tracking", frozenset(name.lower() for name in self.tracking))
        prefixes = tuple(prefix.lower() for prefix in self.tracking_prefixes)
        msgspec.structs.force_setattr(self, "tracking_prefixes", prefixes)


class Address(msgspec.Struct, frozen=True):
    """A URL that can be fetched."""

    url: str
    """What is fetched: normalised by WHATWG, without the fragment."""
    identity: str
    """Equal for URLs of the same page. Itself a URL, whose identity is itself."""
    host: str
    """In lower case, IDNA, without the root dot."""
    lane: str
    """The host, with the port if it is not the scheme's default."""


class Refusal(msgspec.Struct, frozen=True):
    """The reason why a text is not a URL that can be fetched."""

    why: str


NOT_A_URL = Refusal("not a URL")
SCHEME = Refusal("scheme")
TOO_LONG = Refusal("too long")
USER_INFO = Refusal("user-info")
"""http://name:password@host/ would put a secret into logs and lanes; send an Authorization header instead."""
BAD_HOST = Refusal("bad host")
"""Not a DNS name: an empty label, one over 63 characters, or more than 253 in total."""

DEFAULTS = UrlRules()


def read(url: str, rules: UrlRules = DEFAULTS) -> Address | Refusal:
    """The address of `url` (absolute), or why it is refused. Never raises."""
    if len(url) > LONGEST_TEXT:
        return TOO_LONG
    try:
        href: str = can_ada.parse(url).href
    except ValueError:
        return NOT_A_URL
    except TypeError:
        return read(_without_surrogates(url), rules) if _SURROGATES.search(url) else NOT_A_URL
    if href.startswith("https://"):
        start = 8
    elif href.startswith("http://"):
        start = 7
    else:
        return SCHEME
    if "#" in href:
        href = href[: href.index("#")]
    if len(href) > rules.max_length:
        return TOO_LONG
    end = href.index("/", start)
    host, port = href[start:end], ""
    if "@" in host:
        return USER_INFO
    # Most URLs are plain: their identity is the URL itself.
    plain = "?" not in href and "%" not in href and ";" not in href and rules.trailing_slash == "keep"
    if ":" in host:
        host, port = _host_and_port(host)
    if host[-1] == ".":
        host, plain = host[:-1], False
    if ".." in f".{host}." or (len(host) > 63 and _outgrows_dns(host)):
        return BAD_HOST
    lane = host + port if port else host
    return Address(href, href if plain else href[:start] + lane + _page(href[end:], rules), host, lane)


def fingerprint(route: str, identity: str) -> int:
    """Identity as a signed 64-bit number, never 0; stored by frontiers."""
    number = xxhash.xxh3_64_intdigest(f"{route}\0{identity}".encode("utf-8", "surrogatepass"))
    return (number - (1 << 64) if number >> 63 else number) or 1


def task_identity(task: Task, address: Address) -> str:
    """The identity of a task within its route: its key; else its URL, and method and body unless a GET.

    Without the body a search that is paged by POST would be one page. A task for one account also has the account.
    """
    identity = address.identity if task.key is None else _key_identity(task.key)
    if names_account(task.pool):
        # Every account has its own page.
        identity = f"{identity}\0{task.pool}"
    if task.key is not None or (task.method == "GET" and not task.body):
        return identity
    return f"{identity}\0{task.method}\0{xxhash.xxh3_128_hexdigest(task.body)}"


def _key_identity(key: str) -> str:
    """Never that of a URL: a task with a key must not make a page vanish as a duplicate. Other keys stay as they are,
    so that jobs keep their identities."""
    return f"\0{key}" if key.startswith(("http://", "https://", "\0")) else key


def resolve(base: str, href: str) -> str | None:
    """The target of a link `href` on the page `base`, as in a browser; None if it is invalid."""
    start = _parse(base)
    if start is None:
        return None
    try:
        target: str = (start + _without_surrogates(href)).href
    except ValueError:
        return None
    return target


def join_all(base: str, hrefs: Iterable[str]) -> list[str]:
    """The links of one page made absolute by prepending text, without parsing: most are duplicates.

    The result is not normalised, but `read` of it equals `read` of what `resolve` returns. Links to no other page
    (empty, a fragment, javascript:, mailto:, tel:, data:) are dropped.
    """
    origin, path = _origin_and_path(base)
    if not origin:
        return [href for href in hrefs if _WEB.match(href)]
    folder = path[: path.rindex("/") + 1]
    # "#main" is on most pages, and needs no other care.
    hrefs = [href if "#" not in href else _cut_fragment(href) for href in hrefs]
    if not _all_plain(hrefs):
        return [joined for href in hrefs if (joined := _join(origin, path, folder, href))]
    above = folder if len(folder) <= len(origin) + 1 else folder[: folder.rindex("/", 0, -1) + 1]
    absolute = [
        origin + href
        if href[:1] == "/"
        else above + href[3:]
        if href[:3] == "../"
        else _join(origin, path, folder, href)
        for href in hrefs
    ]
    return list(filter(None, absolute))


def _all_plain(hrefs: list[str]) -> bool:
    """Can links that begin with / or ../ be joined without parsing? Checked for all links at once: a page has about a
    hundred, nearly all plain."""
    together = "\n".join(hrefs)
    if "#" in together or " " in together or "\\" in together or "\n//" in together or "\n../." in together:
        return False
    if together.count("\n") + 1 != len(hrefs) or not together.replace("\n", "").isprintable():
        return False
    return together[:2] != "//" and together[:4] != "../."


def _join(origin: str, path: str, folder: str, href: str) -> str:
    """One link made absolute; empty if it leads to no other page."""
    if not href.isprintable() or href[-1:] == " " or href[:1] == " ":
        href = _tidy(href)
    if "#" in href:
        href = _cut_fragment(href)
    if not href:
        return ""
    first = href[0]
    scheme = origin[: origin.index(":") + 1]
    if first not in _RELATIVE_STARTS and (named := _SCHEME.match(href)):
        if named[1].lower() in _NO_PAGES:
            return ""
        # "https:x" on an https page is relative in WHATWG's parser.
        if named[0].lower() != scheme or href.startswith("//", named.end()):
            return href
        href = href[named.end() :]
        if not href:
            return ""
        first = href[0]
    if first == "/" or first == "\\":
        return (scheme if href[1:2] in _SLASHES else origin) + href
    if first == "?":
        return path + href
    return _climbed(folder, len(origin) + 1, href) if first == "." else folder + href


def _climbed(folder: str, root: int, href: str) -> str:
    """`../x` and `./x` resolved, so that one page linked from many folders is one text in the cache."""
    at = 0
    while True:
        if href.startswith("../", at):
            at += 3
            if len(folder) > root:
                folder = folder[: folder.rindex("/", 0, -1) + 1]
        elif href.startswith("./", at):
            at += 2
        else:
            return folder + href[at:]


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_WEB = re.compile(r"[\x00-\x20]*https?:", re.IGNORECASE)
_NO_PAGES = frozenset(("javascript", "mailto", "tel", "data"))
_RELATIVE_STARTS = frozenset("/\\?.")
_SLASHES = frozenset("/\\")
_EDGES = "".join(map(chr, range(0x21)))
_TABS_AND_BREAKS = str.maketrans("", "", "\t\n\r")
_SURROGATES = re.compile("[\ud800-\udfff]")

_ESCAPE = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])%([0-9A-Fa-f]{2})")
"""Not after a broken escape: in `%%37e` decoding `%37` would make a new escape, and identity would not be stable."""
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PATH_SESSION = re.compile(r"(?<!/\.)(?<!/\.\.);jsessionid=[^/;]*", re.IGNORECASE)
"""Not after a segment of dots: `..;jsessionid=1` would become `..`."""


def _parse(url: str) -> Any | None:
    try:
        return can_ada.parse(url)
    except ValueError:
        return None
    except TypeError:
        return _parse(_without_surrogates(url)) if _SURROGATES.search(url) else None


def _without_surrogates(text: str) -> str:
    """Lone surrogates become U+FFFD, as WHATWG requires; the parser refuses them."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _host_and_port(authority: str) -> tuple[str, str]:
    cut = authority.rindex("]") + 1 if authority[0] == "[" else authority.index(":")
    return authority[:cut], authority[cut:]


def _outgrows_dns(host: str) -> bool:
    return len(host) > 253 or max(map(len, host.split("."))) > 63


def _page(rest: str, rules: UrlRules) -> str:
    """Path and query of the identity."""
    if "%" in rest:
        rest = _ESCAPE.sub(_plain_escape, rest)
    path, _, query = rest.partition("?")
    if ";" in path:
        path = _PATH_SESSION.sub("", path)
    if rules.trailing_slash == "strip":
        path = path.rstrip("/") or "/"
    if query:
        query = _query(query, rules)
    return f"{path}?{query}" if query else path


def _plain_escape(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return chr(code) if code in _UNRESERVED else match[0].upper()


def _query(query: str, rules: UrlRules) -> str:
    kept = [(name, part) for part in query.split("&") if part and not _tracks(name := part.partition("=")[0], rules)]
    if rules.sort_query and len(kept) > 1:
        # By name only: the order of repeated names can be significant.
        kept.sort(key=_name_of)
    return "&".join([part for _, part in kept])


def _name_of(pair: tuple[str, str]) -> str:
    return pair[0]


def _tracks(name: str, rules: UrlRules) -> bool:
    name = name.lower()
    return name in rules.tracking or name.startswith(rules.tracking_prefixes)


def _origin_and_path(base: str) -> tuple[str, str]:
    """`https://host:port` and the base without query and fragment; empty if `base` is not http(s)."""
    parsed = _parse(base)
    href: str = parsed.href if parsed is not None else ""
    if not href.startswith(("http://", "https://")):
        return "", ""
    path = href.partition("#")[0].partition("?")[0]
    return path[: path.index("/", 8)], path


def _tidy(href: str) -> str:
    """Without the white space that WHATWG ignores: at the edges, and tabs and line breaks anywhere."""
    return href.strip(_EDGES).translate(_TABS_AND_BREAKS)


def _cut_fragment(href: str) -> str:
    """Without the fragment, so that /a#x and /a#y are one text. A space before the # belongs to the path."""
    cut = href.index("#")
    return href[:cut] if cut == 0 or href[cut - 1] > " " else href
