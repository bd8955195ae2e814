"""The site that the spiders visit. It forgets nothing between requests: each run has a new one."""

from collections import Counter

from aiohttp import web

PAGES = 4
PER_PAGE = 5
CSRF = "a hidden field"


def site() -> web.Application:
    made = _Site()
    app = web.Application()
    for path, answer in (
        ("/robots.txt", made.robots),
        ("/sitemap.xml", made.sitemap),
        ("/catalog", made.catalog),
        ("/product/{number}", made.product),
        ("/old/{number}", made.old),
        ("/flaky/{number}", made.flaky),
        ("/wall", made.wall),
        ("/login", made.login),
        ("/members", made.members),
        ("/jar/{name}", made.jar),
        ("/whoami", made.whoami),
        ("/count/{name}", made.count),
        ("/script", made.script),
        ("/quotes/{page}", made.quotes),
        ("/author/{name}", made.author),
        ("/slow/{number}", made.slow),
        ("/status/{code}", made.status),
    ):
        app.router.add_route("*", path, answer)
    return app


def _page(body: str, **more: str) -> web.Response:
    return web.Response(text=f"<html><body>{body}</body></html>", content_type="text/html", headers=more)


class _Site:
    def __init__(self) -> None:
        self._visits: Counter[str] = Counter()

    async def robots(self, request: web.Request) -> web.Response:
        return web.Response(text=f"User-agent: *\nSitemap: {request.url.origin()}/sitemap.xml\n")

    async def sitemap(self, request: web.Request) -> web.Response:
        urls = "".join(f"<url><loc>{request.url.origin()}/product/{n}</loc></url>" for n in range(PAGES * PER_PAGE))
        namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
        return web.Response(text=f'<urlset xmlns="{namespace}">{urls}</urlset>', content_type="application/xml")

    async def catalog(self, request: web.Request) -> web.Response:
        page = int(request.query.get("page", "0"))
        links = "".join(
            f'<a class="product" href="/product/{n}">Product {n}</a>'
            for n in range(page * PER_PAGE, (page + 1) * PER_PAGE)
        )
        more = f'<a class="next" href="/catalog?page={page + 1}">next</a>' if page + 1 < PAGES else ""
        return _page(f'{links}{more}<a class="home" href="/catalog">home</a>')

    async def product(self, request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        return _page(f'<h1>Product {number}</h1><b class="price">{number}.50</b><a href="/catalog">home</a>')

    async def old(self, request: web.Request) -> web.Response:
        raise web.HTTPFound(f"/product/{request.match_info['number']}")

    async def wall(self, request: web.Request) -> web.Response:
        """Shows its page to those who come back with its cookie."""
        if "seen" in request.cookies:
            return _page("<h1>Behind the wall</h1>")
        answer = web.HTTPFound("/wall")
        answer.set_cookie("seen", "yes")
        raise answer

    async def flaky(self, request: web.Request) -> web.Response:
        """Each page answers at the second try."""
        self._visits[request.path] += 1
        if self._visits[request.path] == 1:
            raise web.HTTPServiceUnavailable
        return await self.product(request)

    async def login(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            fields = f'<input type="hidden" name="csrf" value="{CSRF}"><input name="user"><input name="password">'
            return _page(f'<form method="post" action="/login">{fields}</form>')
        form = await request.post()
        if form.get("csrf") != CSRF or form.get("password") != "secret":
            raise web.HTTPForbidden
        answer = web.HTTPFound("/members")
        answer.set_cookie("session", f"of {form['user']}".replace(" ", "-"))
        raise answer

    async def members(self, request: web.Request) -> web.Response:
        if "session" not in request.cookies:
            raise web.HTTPForbidden
        links = "".join(f'<a class="whoami" href="/whoami?page={n}">{n}</a>' for n in range(3))
        return _page(f"<h1>members</h1>{links}")

    async def jar(self, request: web.Request) -> web.Response:
        answer = _page("<h1>a cookie</h1>")
        answer.set_cookie("session", request.match_info["name"])
        return answer

    async def whoami(self, request: web.Request) -> web.Response:
        return _page(f"<h1>{request.cookies.get('session', 'a stranger')}</h1>")

    async def count(self, request: web.Request) -> web.Response:
        self._visits[request.path] += 1
        return _page(f"<h1>{self._visits[request.path]}</h1>")

    async def script(self, _: web.Request) -> web.Response:
        return _page('<h1>empty</h1><script>document.querySelector("h1").textContent = "written by a script"</script>')

    async def quotes(self, request: web.Request) -> web.Response:
        page = int(request.match_info["page"])
        quotes = "".join(
            f'<div class="quote"><span class="text">Quote {page}.{n}</span><small class="author">Author {n}</small>'
            f'<a href="/author/{n}">(about)</a><div class="tags"><a class="tag">tag {n}</a></div></div>'
            for n in range(3)
        )
        more = f'<li class="next"><a href="/quotes/{page + 1}">Next</a></li>' if page < 3 else ""
        return _page(quotes + more)

    async def author(self, request: web.Request) -> web.Response:
        return _page(f'<h3 class="author-title">Author {request.match_info["name"]}</h3>')

    async def slow(self, request: web.Request) -> web.Response:
        import asyncio

        await asyncio.sleep(float(request.query.get("seconds", "0.05")))
        return await self.product(request)

    async def status(self, request: web.Request) -> web.Response:
        return web.Response(status=int(request.match_info["code"]), text="an error")
