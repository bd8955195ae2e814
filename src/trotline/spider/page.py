"""The page that a handler gets. Text, tree and encoding are computed on first use."""

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from trotline.model.answer import Answer
from trotline.model.harvest import Artifact, Follow
from trotline.model.record import Record
from trotline.model.task import NORMAL, Task
from trotline.rules import artifacts, charset, urls
from trotline.rules.session_pinning import name_of
from trotline.rules.task_checks import PLAIN, checked, shown
from trotline.rules.task_checks import url as url_text
from trotline.spider import embedded_json
from trotline.spider.css_query import ResultKind, parse
from trotline.spider.css_selection import Pattern, Selection, found
from trotline.spider.form_request import form_request
from trotline.spider.forms import Values
from trotline.spider.headers import Headers
from trotline.spider.scrapy_name_hints import PAGE, hinted
from trotline.spider.task_drafts import Draft, draft

if TYPE_CHECKING:
    from lxml.etree import _Element

    from trotline.spider.route import Route
    from trotline.spider.xpath_selection import XPathSelection

T = TypeVar("T")

_UTF8_MARK = b"\xef\xbb\xbf"
_JSON_LD = 'script[type^="application/ld+json" i]'


class BadJson(ValueError):
    """The page is not the JSON that the handler expected."""


class Page:
    """One page: final URL, status, headers, body, selectors, links."""

    __slots__ = (
        "_base",
        "_encoding",
        "_kept",
        "_route",
        "_task",
        "_text",
        "_tree",
        "_xpath_root",
        "account",
        "body",
        "file",
        "headers",
        "status",
        "url",
    )

    def __init__(self, task: Task, answer: Answer, route: "Route | None" = None, account: str = "") -> None:
        self.url = answer.url
        """The final URL, after redirects."""
        self.status = answer.status
        self.headers = Headers(answer.headers)
        self.body = answer.body
        self.file = answer.file
        """Of a download: where its body is stored; None for pages."""
        self.account = account
        """The account that the page was visited with; empty without one."""
        self._task = task
        self._route = route
        self._tree: LexborHTMLParser | None = None
        self._xpath_root: _Element | None = None
        self._text: str | None = None
        self._encoding: str | None = None
        self._base: str | None = None
        self._kept: list[Artifact] | None = None

    # The task

    @property
    def route(self) -> str:
        """The name of the route that reads this page."""
        return self._task.route

    @property
    def meta(self) -> dict[str, Any]:
        """The task's `meta`."""
        return self._task.meta

    @property
    def depth(self) -> int:
        """Links from a seed; a seed has 0."""
        return self._task.depth

    @property
    def attempt(self) -> int:
        """Attempts already spent: 0 at the first one."""
        return self._task.attempt

    @property
    def site(self) -> str:
        """Whose data this is: the seed's `site_id`, the spider's name by default. Its links inherit it."""
        return self._task.site

    @property
    def chain(self) -> str:
        """The chain of this page's task; empty without one. Give it to the tasks that follow in it."""
        return self._task.chain

    @property
    def session(self) -> str:
        """The session whose cookies were sent; pass it on with `session=page.session`."""
        return name_of(self._task.session)

    @property
    def pool(self) -> str:
        """The pool of the page's task. With `pool=page.pool` a task of one account (`@buyers/anna`) leads to others."""
        return self._task.pool

    @property
    def task_id(self) -> str:
        """The id of the page's task in the CLI."""
        return self._task.id

    def keep(self, name: str, data: bytes | str, content_type: str = "application/octet-stream") -> str:
        """Keep a file in the archive (`--archive`); its address is for a field of the record. `trotline archive get
        ADDRESS` gives it back."""
        kept = artifacts.artifact(name, data, content_type)
        self._kept = [*(self._kept or ()), kept]
        artifacts.check_total(self._kept)
        return kept.address

    @property
    def kept(self) -> "list[Artifact]":
        """What `keep` has got so far."""
        return self._kept or []

    def of(self, route: "Route") -> "Page":
        """The page with its route: the default of the links that it follows."""
        self._route = route
        return self

    def with_body(self, body: bytes | str) -> "Page":
        """The same page with another body, for `after_answer` hooks that decode or repair it."""
        made = copy(self)
        made.body = body.encode(self.encoding, "replace") if isinstance(body, str) else body
        made._tree = made._xpath_root = made._text = made._encoding = made._base = None
        return made

    # Text

    @property
    def encoding(self) -> str:
        """The encoding of the body, detected as browsers do."""
        if self._encoding is None:
            self._encoding = charset.encoding_of(self.body, self.headers.get("content-type"))
        return self._encoding

    @property
    def text(self) -> str:
        """The body as text. Invalid bytes become U+FFFD, never an error."""
        if self._text is None:
            self._text, self._encoding = charset.decode(self.body, self.headers.get("content-type"))
        return self._text

    def re(self, pattern: Pattern) -> list[str]:
        """The groups of each match in the text, or the whole match if the pattern has no groups."""
        return list(found(pattern, self.text))

    def re_first(self, pattern: Pattern) -> str | Any:
        return next(found(pattern, self.text), None)

    # HTML

    def css(self, query: str) -> Selection:
        """What a CSS selector finds; `::text` and `::attr(name)` at its end give values instead of nodes."""
        return Selection((self._tree or self._parsed(),), parse(query))

    def xpath(self, query: str, namespaces: Mapping[str, str] | None = None, **variables: Any) -> "XPathSelection":
        """What an XPath query finds, also in XML; `$name` in it is the argument `name`. Needs the extra `xpath`."""
        from trotline.spider import xpath_selection, xpath_tree

        if self._xpath_root is None:
            read = xpath_tree.xml_tree if xpath_tree.is_xml(self.headers.get("content-type", "")) else None
            self._xpath_root = (read or xpath_tree.html_tree)(self.text, self.url)
        return xpath_selection.select(self._xpath_root, query, namespaces, variables)

    @property
    def title(self) -> str | Any:
        """The page's title with white space normalised; None if it has none."""
        node = (self._tree or self._parsed()).css_first("title")
        return None if node is None else " ".join(node.text().split())

    def _parsed(self) -> LexborHTMLParser:
        # UTF-8, as nearly all pages are, goes to the parser as bytes: decoding would be wasted.
        source = self.body.removeprefix(_UTF8_MARK) if self.encoding == "utf-8" else self.text
        try:
            self._tree = LexborHTMLParser(source)
        except SelectolaxError as error:
            # The parser accepts any input, so this is out of memory.
            raise MemoryError(f"{self.url} needs more memory than this process may use ({error})") from error
        return self._tree

    # Links

    def links(self, query: str = "a[href]") -> list[str]:
        """Absolute URLs of the links that match, in page order, each once.

        A match without `href` stands for the links inside it; `::attr(name)` reads another attribute.
        """
        return list(dict.fromkeys(urls.join_all(self.base, self._hrefs(query))))

    @property
    def base(self) -> str:
        """What relative links are relative to: the first <base href>, else the page's URL."""
        if self._base is None:
            self._base = self._find_base()
        return self._base

    def follow(
        self,
        query: str = "a[href]",
        to: "Route | str | None" = None,
        priority: int | None = None,
        meta: dict[str, Any] | None = None,
        pool: str | None = None,
        chain: str | None = None,
    ) -> Follow:
        """The links that match, as tasks of this route or of the route `to`."""
        name, usual, usual_pool = self._target(to)
        return Follow(
            route=name,
            urls=self._followed(query),
            priority=usual if priority is None else checked("priority of follow", priority, PLAIN["priority"]),
            pool=usual_pool if pool is None else checked("pool of follow", pool, PLAIN["pool"]),
            meta={} if meta is None else checked("meta of follow", meta, PLAIN["meta"]),
            chain="" if chain is None else checked("chain of follow", chain, PLAIN["chain"]),
            query=query,
        )

    def _followed(self, query: str) -> list[str]:
        return self.links(query)

    def task(self, href: str, to: "Route | str | None" = None, **fields: Unpack[Draft]) -> Task:
        """One task, its URL relative to this page, for this route or the route `to`."""
        absolute = urls.join_all(self.base, [checked("the link of a task", href, url_text)])
        if not absolute:
            raise ValueError(f"{shown(href)} on {self.url} is not a link that can be fetched")
        route = self._named(to)
        if isinstance(route, str):
            return draft(absolute[0], route, fields)
        return route.task(absolute[0], **fields)

    def form(
        self,
        query: str = "form",
        values: Values | None = None,
        to: "Route | str | None" = None,
        *,
        click: str | bool | None = None,
        extra: Values | None = None,
        **fields: Unpack[Draft],
    ) -> Task:
        """A form with all its fields, some of them filled in, as the task that a browser would make of it.

        `values`: field name -> value; None leaves a field out, True or False ticks a box. `click`: the selector of the
        submit button, by default the first one; False: none. `extra`: fields that the form does not have.
        """
        url, request = form_request(self, query, values or {}, extra or {}, click)
        return self.task(url, to, **{**request, **fields})

    def download(self, href: str, **fields: Unpack[Draft]) -> Task:
        """A task that stores the file behind a link in the folder of `Spider(files=...)`. Yield it; its record has kind
        "file", and the file's path, type, size and checksum."""
        from trotline.spider import downloads

        if self._route is not None and self._route.spider.files is None:
            name = self._route.spider.name
            raise ValueError(f'spider {name!r} has no place for files: give Spider({name!r}, files="downloads")')
        return downloads.download(self, href, fields)

    def urljoin(self, href: str) -> str:
        """The absolute URL of a link of this page; ValueError if it is none."""
        absolute = urls.resolve(self.base, checked("the link", href, url_text))
        if absolute is None:
            raise ValueError(f"{shown(href)} on {self.url} is not a link")
        return absolute

    def _target(self, to: "Route | str | None") -> tuple[str, int, str]:
        """Name, priority and proxy pool of the route `to`."""
        route = self._named(to)
        return (route, NORMAL, "") if isinstance(route, str) else (route.name, route.priority, route.pool)

    def _named(self, to: "Route | str | None") -> "Route | str":
        """The route `to`, or its name if the page has no spider (in tests)."""
        if to is not None and not isinstance(to, str) and not hasattr(to, "spider"):
            raise TypeError(f"to is {shown(to)}; give a route, or its name")
        if self._route is None:
            return to or self._task.route
        if isinstance(to, str):
            return self._route.spider.routes.get(to, to)
        return to or self._route

    def _find_base(self) -> str:
        for node in (self._tree or self._parsed()).tags("base"):
            href = node.attrs.sget("href").strip()
            if href:
                return next(iter(urls.join_all(self.url, [href])), self.url)
        return self.url

    def _hrefs(self, query: str) -> list[str]:
        parsed = parse(query)
        selection = Selection((self._tree or self._parsed(),), parsed)
        if parsed.want is ResultKind.ATTR:
            return selection.getall()
        if parsed.want is not ResultKind.NODE:
            raise ValueError(f"{query!r} asks for text; links need elements or an attribute")
        # The most frequent query, at a third of the cost without a selector.
        nodes = self._tree.tags("a") if parsed.css == "a[href]" and self._tree else selection.nodes()
        try:
            return [node.attrs["href"] or "" for node in nodes]
        except KeyError:
            return [href for node in nodes for href in _hrefs_of(node)]

    # JSON

    @overload
    def json(self) -> Any: ...
    @overload
    def json(self, model: type[T]) -> T: ...
    def json(self, model: Any = Any) -> Any:
        """The body as JSON, checked against `model` if one is given (dataclass, msgspec.Struct, TypedDict, ...)."""
        try:
            return self._json(model)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            kind = self.headers.get("content-type", "no content type")
            raise BadJson(f"{self.url} is not the JSON expected: {error} ({kind}, {len(self.body)} bytes)") from error

    def _json(self, model: Any) -> Any:
        # JSON is UTF-8 by its standard; the declared encoding is used only if that fails.
        try:
            return msgspec.json.decode(self.body.removeprefix(_UTF8_MARK), type=model)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError):
            if self.encoding == "utf-8":
                raise
            return msgspec.json.decode(self.text.encode(), type=model)

    def json_ld(self) -> list[dict[str, Any]]:
        """The page's JSON-LD objects, @graph flattened; blocks that cannot be read are skipped."""
        return embedded_json.json_ld(self._scripts(_JSON_LD))

    def embedded(self, name: str) -> Any:
        """The JSON of `<script id="name">`, or the one assigned to the variable `name`; None if there is none."""
        for node in (self._tree or self._parsed()).css("script[id]"):
            if node.attrs.sget("id") == name:
                return embedded_json.script_json(node.text())
        return embedded_json.assigned(name, self._scripts("script:not([src])"))

    def _scripts(self, query: str) -> list[str]:
        return [node.text() for node in (self._tree or self._parsed()).css(query)]

    def record(self, kind: str, key: str, data: dict[str, Any]) -> Record:
        """A record with a kind and key of your own; site and time are filled in when the page is harvested.

        An invalid one is rejected there, and the page's other records are stored.
        """
        return Record(kind=kind, key=key, data=data, url=self.url, site=self._task.site, seen_at=0.0)

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise hinted(self, name, PAGE)


def visible_text(page: Page) -> bytes | None:
    """The text of a page that was parsed as HTML; None if it was not."""
    tree = page._tree
    body = None if tree is None else tree.body
    return None if body is None else body.text().encode("utf-8", "surrogatepass")


def pictures(page: Page) -> bytes:
    """The URLs of a page's images, frames and media: a scanned book has no other content."""
    tree = page._tree
    found = [] if tree is None else tree.css("[src]")
    return "\n".join(node.attrs.sget("src") for node in found if node.tag != "script").encode("utf-8", "surrogatepass")


def _hrefs_of(node: LexborNode) -> list[str]:
    return [link.attrs.sget("href") for link in ([node] if "href" in node.attrs else node.css("a[href]"))]
