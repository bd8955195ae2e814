"""Names of Scrapy's API that Trotline has under another one: AttributeErrors say so."""

from collections.abc import Mapping

PAGE: Mapping[str, str] = {
    "follow_all": 'page.follow("a[href]", to=route) follows all links that match; yield it',
    "selector": "page.css(...) and page.xpath(...)",
    "request": "page.url, page.meta, page.depth and page.route are those of the task",
    "cb_kwargs": "page.meta has the values that were given with meta={...}",
    "jmespath": "page.json() gives the data as dicts and lists",
    "text_content": "page.text",
    "certificate": "no equivalent: certificates are verified by the fetcher",
    "ip_address": "no equivalent: see `trotline trace URL` for how a page was fetched",
    "flags": "no equivalent: verdicts are in `trotline trace URL`",
    "replace": "pages do not change; build what you need from page.body or page.text",
    "copy": "pages do not change; there is no need to copy one",
    "urlencode": "urllib.parse.urlencode",
    "css_first": "page.css(query).get() is the first value",
}
"""Of a Response."""

SELECTION: Mapping[str, str] = {
    "extract": "getall() of all matches, get() of one match",
    "extract_first": "get()",
    "attrib": "attrs of one match, or attr(name)",
    "root": "nodes() are the parser's nodes",
    "jmespath": "page.json() gives the data as dicts and lists",
    "remove_namespaces": 'give namespaces={"prefix": "http://..."} to xpath()',
    "register_namespace": 'give namespaces={"prefix": "http://..."} to xpath()',
    "drop": "build what you need from the matches; pages do not change",
}
"""Of a Selector or a SelectorList."""

SPIDER: Mapping[str, str] = {
    "start_urls": "@spider.page(seeds=[...])",
    "start_requests": "@spider.page(seeds=function)",
    "start": "@spider.page(seeds=function)",
    "parse": "@spider.page makes a function the handler of a route",
    "allowed_domains": "Spider(hosts=[...]); by default the hosts of the seeds",
    "custom_settings": "arguments of Spider: pace, concurrency, retries, headers, ...",
    "settings": "arguments of Spider, and trotline.toml",
    "rules": "page.follow(query, to=route) in a handler; Spider(include=[...], exclude=[...])",
    "logger": "logging.getLogger(__name__)",
    "closed": "@spider.on_finish",
    "crawler": "no equivalent: spiders get pages, hooks are declared on the spider",
    "from_crawler": "no equivalent: a spider is an object of your file",
}
"""Of a Spider."""


def hinted(owner: object, name: str, known: Mapping[str, str]) -> AttributeError:
    """The error for a missing attribute, with our name if it is one of Scrapy's."""
    said = f"{type(owner).__name__!r} object has no attribute {name!r}"
    hint = known.get(name)
    return AttributeError(f"{said}: Scrapy's name; here: {hint}" if hint else said, name=name, obj=owner)
