"""A filled form as the request of a task."""

from typing import TYPE_CHECKING, Any

from trotline.spider import form_encoding, forms

if TYPE_CHECKING:
    from trotline.spider.page import Page


def form_request(
    page: "Page", query: str, values: forms.Values, extra: forms.Values, click: str | bool | None
) -> tuple[str, dict[str, Any]]:
    """The URL, and the fields of the task."""
    every = page.css("form").nodes()
    found = forms.find(page.css(query).nodes(), every, query, page.url)
    form = forms.read(found, page.css(":root").nodes()[0], click)
    pairs = forms.filled(form, values, extra, page.url)
    charset = form.charset or page.encoding
    url = page.urljoin(form.action) if form.action else page.url
    # The hidden token of a form belongs to the cookies with which it came.
    fields: dict[str, Any] = {"session": page.session} if page.session else {}
    if form.method not in ("get", "post"):
        raise ValueError(f"the form on {page.url} has method={form.method!r}: it is for scripts, and sends nothing")
    if form.method == "get":
        return form_encoding.with_query(url, form_encoding.urlencoded(pairs, charset)), fields
    body, kind = form_encoding.body_of(pairs, form.enctype, charset)
    return url, {**fields, "method": "POST", "body": body, "headers": {"content-type": kind}}
