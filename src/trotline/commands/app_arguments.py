"""What programs give to `App` and `trotline.run`: a wrong type is refused at once, with what to write instead."""

import os
from collections.abc import Iterable
from typing import Any

from trotline.config.setting_types import MOST_SLOTS
from trotline.errors import SettingsError
from trotline.model.proxy import Proxy
from trotline.rules.task_checks import shown
from trotline.spider.spider import Spider


def check_places(*, sink: Any, allow: Any, proxy: Any, proxies: Any) -> None:
    if sink is not None and not isinstance(sink, str) and not callable(getattr(sink, "write", None)):
        raise SettingsError(
            f"sink is {shown(sink)}", hint='Give a URL (sink="rows.jsonl"), or an object with write(batch) and close().'
        )
    if isinstance(allow, str) or not isinstance(allow, Iterable):
        raise SettingsError(f"allow is {shown(allow)}", hint='Write a list: allow=["10.0.0.0/8"].')
    if proxy is not None and not isinstance(proxy, Proxy):
        # Not quoted: it may have a password.
        raise SettingsError(
            "proxy is not a Proxy",
            hint='Write proxy=Proxy.parse("http://proxy.example:3128"), with: from trotline.model.proxy import Proxy',
        )
    if not isinstance(proxies, str | os.PathLike):
        raise SettingsError(f"proxies is {shown(proxies)}", hint='Give the path of a file: proxies="proxies.toml".')


def check_work(spider: Any, *, slots: Any = 1, max_pages: Any = None) -> None:
    if not isinstance(spider, Spider):
        raise SettingsError(f"{shown(spider)} is not a Spider", hint="Import it and give it: from shop import shop")
    if not _is_whole(slots) or not 1 <= slots <= MOST_SLOTS:
        raise SettingsError(f"slots is {shown(slots)}", hint=f"It must be an integer from 1 to {MOST_SLOTS:,}.")
    if max_pages is not None and (not _is_whole(max_pages) or max_pages < 1):
        raise SettingsError(f"max_pages is {shown(max_pages)}", hint="It must be an integer >= 1; None: no limit.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
