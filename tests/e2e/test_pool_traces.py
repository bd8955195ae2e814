"""A page that is blocked through every proxy: `trace` names the proxy of each visit, `dead` all of them."""

import json
import re
from pathlib import Path

from tests.e2e.proxied import world
from tests.e2e.running import call

from trotline.testing.ban_site import BanRules

GENEROUS = BanRules(rate=1000.0, burst=1000.0, ban_for=600.0)


async def test_a_blocked_page_is_shown_with_the_proxies_that_it_was_blocked_through(tmp_path: Path) -> None:
    async with world(GENEROUS, pages=40, proxies=6, first=60) as sites:
        [site] = sites.sites
        site.forbidden = {"/p/7"}
        sites.write(tmp_path, pace="20/s per proxy", pool='kind = "datacenter"\nrest = "2s"')
        ended = await call(tmp_path, "run", "site.py", "--allow-private", "--proxies", "proxies.toml")
        assert ended.code == 3, ended
        dead = await call(tmp_path, "dead", "site")
        [grave] = [json.loads(line) for line in (await call(tmp_path, "dead", "site", "--json")).out.splitlines()]
        story = await call(tmp_path, "dead", "site", grave["id"])
        traced = await call(tmp_path, "trace", site.url("/p/7"), "site.py")
        facts = json.loads((await call(tmp_path, "trace", site.url("/p/7"), "site.py", "--json")).out)

    known = {proxy.url.removeprefix("http://") for proxy in sites.proxies}
    blocked = {request.address for request in site.log if request.path == "/p/7"}
    named = grave["detail"].removeprefix("through 4 proxies: ").split(", ")
    assert (len(blocked), len(named)) == (4, 4)
    by_address = dict(zip(sites.addresses, (proxy.url.removeprefix("http://") for proxy in sites.proxies), strict=True))
    assert set(named) == {by_address[address] for address in blocked} <= known
    assert f"through 4 proxies: {named[0]}" in dead.out
    assert all(name in story.out for name in named)
    assert [visit["proxy"] for visit in facts["visits"]] == named, "in the order of the visits"
    assert len(re.findall(r"through 127\.0\.0\.1:\d+", traced.out)) == 4, traced.out
