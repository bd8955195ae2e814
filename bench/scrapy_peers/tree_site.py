"""The site of `bench.scrapy_bridge`: prints its address, and serves until it is killed."""

import sys

from aiohttp import web

from trotline.testing.servers import listen

PAGES, LINKS = map(int, sys.argv[1:])


async def answer(request: web.Request) -> web.Response:
    number = int(request.match_info["number"])
    targets = [(number * 4 + offset) % PAGES for offset in range(1, 5)]
    targets += [(number * 7 + offset * 13) % PAGES for offset in range(LINKS - len(targets))]
    links = "".join(f'<li><a href="/{target}">page {target}</a></li>' for target in targets)
    texts = "<p>some text of a page</p>" * 20
    return web.Response(text=f"<html><h1>Page {number}</h1>{texts}<ul>{links}</ul></html>", content_type="text/html")


def main() -> None:
    (socket,) = listen(["127.0.0.1"])
    print(f"http://127.0.0.1:{socket.getsockname()[1]}", flush=True)
    app = web.Application()
    app.router.add_get("/{number}", answer)
    web.run_app(app, sock=socket, print=None, access_log=None)


if __name__ == "__main__":
    main()
