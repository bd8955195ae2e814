"""`trotline fetch`: a list of URLs as JSON lines, by a normal run."""

import json
from pathlib import Path

from tests.e2e.running import call

from trotline.testing import DemoShop


async def test_a_list_of_urls_becomes_a_record_each(tmp_path: Path) -> None:
    async with DemoShop(products=6) as shop:
        lines = [f"{shop.url}/p/T{n}" for n in range(1, 4)] + [json.dumps({"url": f"{shop.url}/about"}), "# remark"]
        (tmp_path / "urls.txt").write_text("\n".join(lines))
        ended = await call(
            tmp_path, "fetch", f"{shop.url}/nothing", "nonsense", "--from", "urls.txt",
            "--fields", "title,links,markdown", "--pace", "200/s", "--allow-private",
        )  # fmt: skip
        stored = await call(tmp_path, "fetch", f"{shop.url}/p/T1", "--out", "pages.db", "--allow-private")
        private = await call(tmp_path, "fetch", f"{shop.url}/p/T1")
        unknown = await call(tmp_path, "fetch", "x", "--fields", "nothing")

    rows = {row["url"]: row for row in ended.events}
    assert ended.code == 0, ended
    assert set(rows) == {f"{shop.url}/{path}" for path in ("p/T1", "p/T2", "p/T3", "about", "nothing")}
    assert rows[f"{shop.url}/nothing"]["status"] == 404
    assert set(rows[f"{shop.url}/p/T1"]) == {"url", "final_url", "status", "type", "title", "links", "markdown"}
    assert "1 seed is not visited: not a URL, such as nonsense" in ended.err
    assert (stored.code, stored.out, (tmp_path / "pages.db").exists()) == (0, "", True)
    assert "is not a public address" in private.err
    assert private.out == ""
    assert unknown.code == 2
