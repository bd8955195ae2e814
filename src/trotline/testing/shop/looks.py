"""How every page of the demo shop looks: one layout, a little inline CSS, accessible HTML."""

from collections.abc import Iterable
from html import escape

__all__ = ["escape", "layout", "link", "list_of", "pager"]

_CSS = (
    "*{box-sizing:border-box}body{margin:0 auto;max-width:64rem;padding:0 1rem 3rem;color:#1d2a33;background:#fbfaf7;"
    "font:1rem/1.55 system-ui,sans-serif}a{color:#0b5a7a}a:focus-visible{outline:3px solid #e0a526}"
    "header,footer{display:flex;gap:1.2rem;flex-wrap:wrap;align-items:baseline;padding:1rem 0}"
    "header{border-bottom:2px solid #1d2a33}footer{border-top:1px solid #cbd2d6;margin-top:3rem;font-size:.9rem}"
    ".brand{font-weight:700;font-size:1.2rem;text-decoration:none;color:inherit}"
    ".cards{display:grid;gap:1rem;padding:0;list-style:none;grid-template-columns:repeat(auto-fill,minmax(14rem,1fr))}"
    ".card,.quote,.box{background:#fff;border:1px solid #dde2e4;border-radius:.5rem;padding:1rem}"
    ".card a{display:block;font-weight:600}.price{font-variant-numeric:tabular-nums;color:#8a3b12}"
    ".pager,.pager ul{display:flex;gap:.4rem;flex-wrap:wrap;list-style:none;padding:0}.pager a{padding:.2rem .6rem;"
    "border:1px solid #cbd2d6;border-radius:.3rem;text-decoration:none}"
    ".pager a[aria-current]{background:#1d2a33;color:#fff}"
    ".quote{margin:0 0 1rem}.author{font-style:normal;font-weight:600}.error{color:#a11}"
    "label{display:block;margin:.6rem 0}"
)
_NAVIGATION = (("/catalog", "Catalog"), ("/c/", "Categories"), ("/quotes/", "Quotes"), ("/about", "About"))


def layout(title: str, main: str, *, head: str = "") -> str:
    """A whole page. `title` is text; `main` and `head` are HTML."""
    navigation = "".join(link(path, text) for path, text in _NAVIGATION)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)} · Trotline demo shop</title><link rel="icon" href="data:,">'
        f"<style>{_CSS}</style>{head}</head>\n<body>"
        f'<header><a class="brand" href="/">Demo shop</a><nav aria-label="Main">{navigation}</nav></header>\n'
        f"<main>{main}</main>\n"
        "<footer><span>Nothing here is for sale: this shop exists to be scraped.</span></footer></body></html>\n"
    )


def link(path: str, text: str, *, attributes: str = "") -> str:
    return f'<a href="{escape(path)}"{attributes}>{escape(text)}</a> '


def list_of(items: Iterable[str], *, css: str = "") -> str:
    inside = "".join(f"<li>{item}</li>\n" for item in items)
    return f'<ul class="{css}">{inside}</ul>' if css else f"<ul>{inside}</ul>"


def pager(base: str, page: int, last: int) -> str:
    """Links to the pages near this one, to the first and to the last: the last link's text is the page count."""
    near = {1, last, *range(max(1, page - 2), min(last, page + 2) + 1)}
    links = "".join(
        link(f"{base}?page={number}", str(number), attributes=' aria-current="page"' if number == page else "")
        for number in sorted(near)
    )
    return f'<nav class="pager" aria-label="Pages">{links}</nav>'
