"""Every regular expression that meets foreign text takes time in proportion to its size.

A pattern that backtracks holds the GIL: no timeout of ours would end it, and only the supervisor could, with a kill.
"""

import importlib
import re
from typing import Any

import pytest

from tests.unit.cost_growth import SOURCE, against, patterns, pumps
from tests.unit.linear_parsers import PARSERS

AUTHOR = "author"
"""Meets only what the author, the operator or we ourselves wrote."""

PATTERNS = {
    "adapters/files/abandoned_downloads.py:_NAME": "fullmatch",
    "adapters/files/abandoned_downloads.py:module": AUTHOR,
    "adapters/files/table_cells.py:_FORMULA": "match",
    "adapters/files/table_cells.py:_NUMBER": "fullmatch",
    "adapters/browser_like/errors.py:_BODY_REASON": "search",
    "adapters/browser_like/errors.py:_HTTP2_REASON": "search",
    "adapters/browser_like/errors.py:_PARSER_REASON": "search",
    "adapters/browser_like/errors.py:_TLS_REASON": "search",
    "adapters/browser_like/relay.py:_CONNECT": AUTHOR,
    "adapters/browser_like/client_resources.py:_HASHED": AUTHOR,
    "adapters/browser_like/client_resources.py:_SECURE_ONLY": AUTHOR,
    "adapters/http/cookies.py:_WHOLE": "fullmatch",
    "adapters/http/fast_path.py:_NOT_PLAIN": AUTHOR,
    "adapters/http/failures.py:_UNPRINTABLE": "sub",
    "adapters/http/fetcher.py:_NOT_NORMALISED": "search",
    "adapters/http/request_checks.py:_BREAKS_A_HEADER": "search",
    "adapters/http/request_checks.py:_TOKEN": "fullmatch",
    "adapters/http/http_tunnel.py:_CARRIES_A_PAGE": "search",
    "adapters/http/http_tunnel.py:_STATUS": "match",
    "adapters/http/response_reader.py:_CONTROL": "search",
    "adapters/postgres/frontier/errors.py:_OF_A_JOB": "search",
    "adapters/postgres/frontier/broker_books.py:_ID": "fullmatch",
    "adapters/postgres/frontier/jobs.py:_ID": "fullmatch",
    "adapters/postgres/frontier/storable_text.py:_UNSTORABLE": "sub",
    "adapters/postgres/sink_url.py:_connections": AUTHOR,
    "adapters/postgres/sink_url.py:_place": AUTHOR,
    "bridges/scrapy/way_out.py:_TUNNEL": "search",
    "rules/cdxj.py:_PLAIN": "fullmatch",
    "adapters/postgres/partition_periods.py:_NAME": AUTHOR,
    "adapters/redis/errors.py:_LUA": "sub",
    "adapters/redis/keys.py:_JOB_ID": AUTHOR,
    "adapters/redis/inbox_url.py:NAME": AUTHOR,
    "adapters/redis/outbox.py:_NAME": AUTHOR,
    "adapters/redis/scripts.py:_PART_OF": AUTHOR,
    "adapters/redis/scripts.py:_USES": AUTHOR,
    "adapters/redis/script_assembly.py:_CAPITALS": AUTHOR,
    "adapters/redis/script_assembly.py:_COMMENT": AUTHOR,
    "adapters/redis/script_assembly.py:_EXPORTS": AUTHOR,
    "adapters/redis/script_assembly.py:_FUNCTION": AUTHOR,
    "adapters/redis/script_assembly.py:_LOCAL": AUTHOR,
    "adapters/redis/script_assembly.py:_NUMBERS": AUTHOR,
    "adapters/redis/script_assembly.py:_ONCE": AUTHOR,
    "adapters/redis/script_assembly.py:_WORDS": AUTHOR,
    "config/alert_settings.py:_ADDRESS": AUTHOR,
    "config/alert_settings.py:_NAME": AUTHOR,
    "config/proxy_lines.py:REGION": "fullmatch",
    "rules/log_lines.py:EVENT": "fullmatch",
    "config/proxy_lines.py:_BARE": "fullmatch",
    "config/spider_loader.py:_MODULE": AUTHOR,
    "config/spider_loader.py:_NAME": AUTHOR,
    "adapters/redis/__init__.py:_OUTBOX": AUTHOR,
    "adapters/sqlite/__init__.py:_look": AUTHOR,
    "config/backend_urls.py:_PASSWORD": AUTHOR,
    "rules/backend_urls.py:_SCHEME": AUTHOR,
    "rules/broker_urls.py:_BOOKS": AUTHOR,
    "adapters/sqs/broker_url.py:_REGION": AUTHOR,
    "adapters/sqs/broker_url.py:_PREFIX": AUTHOR,
    "adapters/sqs/queues.py:_FOREIGN": AUTHOR,
    "adapters/sqs/inbox_url.py:_NAME": AUTHOR,
    "adapters/amqp/inbox_url.py:_NAME": AUTHOR,
    "config/setting_types.py:bandwidth": AUTHOR,
    "config/settings.py:file_name": AUTHOR,
    "config/setting_types.py:size": AUTHOR,
    "cli/archive.py:_CONTROLS": "search",
    "model/archive.py:_ID": "fullmatch",
    "rules/warc_reader.py:_STATUS": "fullmatch",
    "cli/dead.py:_ID": AUTHOR,
    "cli/export.py:_span": AUTHOR,
    "cli/new.py:_address": AUTHOR,
    "cli/new.py:_variable": AUTHOR,
    "cli/new.py:_private": AUTHOR,
    "cli/try_page.py:choose": AUTHOR,
    "model/time.py:seconds": AUTHOR,
    "model/pace.py:_FORM": AUTHOR,
    "model/pace.py:_PER_PROXY": AUTHOR,
    "model/record_row.py:_LONE_SURROGATE": "sub",
    "model/secret.py:_ESCAPE": AUTHOR,
    "model/secret.py:is_reference": AUTHOR,
    "model/task_json.py:_in_seed_names": "seeds",
    "rules/private_addresses.py:_ENDS_IN_A_NUMBER": "search",
    "rules/private_addresses.py:_NAME": AUTHOR,
    "rules/challenge_pages.py:_ASKS_FOR_A_HUMAN": "search",
    "rules/challenge_pages.py:_TITLE": "search",
    "rules/charset.py:_CHARSET": "search",
    "rules/conditional_requests.py:_DATE": "fullmatch",
    "rules/proxy_echo.py:_NOT_ADDRESS": "sub",
    "rules/proxy_echo.py:_REGION": "fullmatch",
    "rules/provider_errors.py:_NOT_PLAIN": "sub",
    "rules/provider_errors.py:_PROXY_STATUS_ERROR": "search",
    "rules/proxy_logins.py:_COUNTRY": AUTHOR,
    "rules/proxy_logins.py:_FIELD": AUTHOR,
    "rules/proxy_logins.py:_OPTIONAL": AUTHOR,
    "rules/conditional_requests.py:_ETAG": "fullmatch",
    "rules/bounded_toml.py:_ASIDE": "sub",
    "rules/bounded_toml.py:_LONG_KEY": "search",
    "rules/task_checks.py:_ADDRESS": "match",
    "rules/task_checks.py:_HALVES": "search",
    "rules/task_checks.py:METHOD": "fullmatch",
    "rules/task_checks.py:_NOT_IN_A_NAME": "search",
    "rules/content_types.py:_PATTERN": AUTHOR,
    "rules/content_types.py:_TYPE": "match",
    "rules/content_types.py:_any_of": "content types",
    "rules/charset_prescan.py:_ATTRIBUTE": "prescan",
    "rules/charset_prescan.py:_ATTRIBUTES": "match",
    "rules/charset_prescan.py:_CHARSET": "search",
    "rules/charset_prescan.py:_TAG": "search",
    "rules/pool_names.py:NAME": "fullmatch",
    "rules/pool_names.py:ACCOUNT_NAME": "fullmatch",
    "rules/pool_names.py:POOL": "fullmatch",
    "rules/pool_names.py:SERVED": AUTHOR,
    "config/account_table.py:_SECRET_KEY": AUTHOR,
    "config/account_table.py:_USES": AUTHOR,
    "rules/redaction.py:_BOOKS": "search",
    "rules/redaction.py:_PAIR": "sub",
    "rules/redaction.py:_SCHEME": "search",
    "rules/redaction.py:_SECRET": "search",
    "rules/redaction.py:_USER_INFO": "sub",
    "rules/redaction.py:_WORD": "sub",
    "rules/robots.py:_PRODUCT": "match",
    "rules/robots.py:_SIMPLE": "fullmatch",
    "rules/robots.py:_SIMPLE_PATTERN": "fullmatch",
    "rules/robots.py:_learn": "robots",
    "rules/scope.py:_pattern": AUTHOR,
    "rules/sitemaps.py:_LINE": "search",
    "rules/sitemaps.py:_LOC": "search",
    "rules/sitemaps.py:_LONG_TAG": "search",
    "rules/url_history.py:rule_behind": AUTHOR,
    "rules/traps.py:_CALENDAR_WORD": "search",
    "rules/traps.py:_DATE_PART": "sub",
    "rules/traps.py:_PATH_DATE": "search",
    "rules/traps.py:_QUERY_DATE": "search",
    "rules/session_ids.py:_SESSION": "sub",
    "rules/session_ids.py:_TOKEN": "search",
    "rules/near_duplicate_pages.py:_NUMBER": "sub",
    "rules/near_duplicate_pages.py:_SAYS_NOT_FOUND": "search",
    "rules/urls.py:_ESCAPE": "sub",
    "rules/urls.py:_PATH_SESSION": "sub",
    "rules/urls.py:_SCHEME": "match",
    "rules/urls.py:_SURROGATES": "search",
    "rules/urls.py:_WEB": "match",
    "spider/spider_checks.py:_BREAKS": AUTHOR,
    "spider/spider_checks.py:_HOST": AUTHOR,
    "spider/spider_checks.py:_NAME": AUTHOR,
    "spider/embedded_json.py:_BLANK": "match",
    "spider/embedded_json.py:_OPENING": "search",
    "spider/embedded_json.py:_PARSE_CALL": "match",
    "spider/embedded_json.py:assigned": "embedded JSON",
    "spider/css_query.py:_BREAKS": AUTHOR,
    "spider/css_query.py:_PSEUDO": AUTHOR,
    "spider/records.py:_AT": "match",
    "spider/records.py:_WORD": AUTHOR,
    "spider/seeds.py:_sitemap_task": AUTHOR,
    "spider/css_selection.py:found": AUTHOR,
    "adapters/archive/archive.py:__init__": AUTHOR,
    "adapters/archive/folder_store.py:_NOT_IN_A_NAME": "sub",
    "adapters/archive/roll_files.py:_NAME": "fullmatch",
    "adapters/archive/roll_files.py:_ODD": "sub",
    "adapters/s3/s3_url.py:_BUCKET": AUTHOR,
    "adapters/s3/s3_url.py:_PREFIX": AUTHOR,
    "adapters/s3/s3_url.py:_REGION": AUTHOR,
    "adapters/s3/errors.py:_LOOKUP": "search",
    "adapters/s3/errors.py:_SAID": "search",
    "adapters/s3/errors.py:_STATUS": "search",
    "adapters/s3/errors.py:_UNREADABLE": "search",
    "rules/scrapy_job_owner.py:_NOT_IN_A_NAME": AUTHOR,
    "config/setting_types.py:ROUTE": AUTHOR,
    "config/backend_urls.py:_USER": AUTHOR,
    "rules/archive_choice.py:_SHARE": AUTHOR,
    "rules/archive_urls.py:_SIZE": AUTHOR,
    "rules/artifacts.py:_NAME": "fullmatch",
    "rules/artifacts.py:_TYPE": "fullmatch",
    "rules/merge_text.py:_APOSTROPHE": "sub",
    "rules/merge_text.py:_DECIMAL_COMMA": "sub",
    "rules/merge_text.py:_INCHES": "sub",
    "rules/merge_text.py:_PACK_OF": "sub",
    "rules/merge_text.py:_QUANTITY": "sub",
    "rules/merge_text.py:_SHARP": "sub",
    "rules/merge_text.py:_THOUSANDS": "sub",
    "rules/merge_text.py:_TIMES": "sub",
    "rules/merge_text.py:_TOKEN": "search",
    "spider/html_for_markdown.py:_SCHEME": "match",
    "spider/html_for_markdown.py:_UNSEEN": "sub",
    "spider/recipe.py:_BRACES": AUTHOR,
    "spider/recipe.py:_RANGE": AUTHOR,
    "spider/recipe.py:_check_rule": AUTHOR,
    "spider/recipe_values.py:found": AUTHOR,
    "spider/recipe_values.py:number": "recipe numbers",
    "spider/xpath_tree.py:_XML": "match",
    "spider/xpath_tree.py:_DECLARATION": "sub",
    "worker/sitemaps.py:_wants": AUTHOR,
}
"""How each pattern is used, or the parser below that covers it, or AUTHOR."""

PREFIXES = {
    "rules/private_addresses.py:_ENDS_IN_A_NUMBER": (".0x", "."),
    "rules/charset.py:_CHARSET": ('charset="', "charset=", "charset"),
    "rules/charset_prescan.py:_ATTRIBUTES": ('a="', "a=", "a "),
    "rules/charset_prescan.py:_CHARSET": ('charset="', "charset"),
    "rules/redaction.py:_USER_INFO": ("://",),
    "rules/sitemaps.py:_LOC": ("<loc>",),
    "rules/session_ids.py:_TOKEN": ("/1", "/a"),
    "rules/session_ids.py:_SESSION": ("?sid=", "?sessid=1", "/(s("),
    "rules/bounded_toml.py:_ASIDE": ('"""', "'''", '"', "'"),
    "spider/records.py:_AT": ("x - at `$.",),
}
"""Beginnings that lead a pattern to its repetitions."""

USES = ("match", "fullmatch", "search", "sub")


def test_every_pattern_has_a_growth_case_or_is_marked_as_author_side() -> None:
    found = set(patterns())
    missing, stale = sorted(found - set(PATTERNS)), sorted(set(PATTERNS) - found)

    assert not missing, f"add a growth case or mark as author-side: {missing}"
    assert not stale, f"no longer in {SOURCE}: {stale}"
    assert set(PATTERNS.values()) <= {AUTHOR, *USES, *PARSERS}


@pytest.mark.parametrize("place", [place for place, how in PATTERNS.items() if how in USES])
def test_a_pattern_takes_linear_time(place: str) -> None:
    file, _, name = place.partition(":")
    module = importlib.import_module("trotline." + file.removesuffix(".py").replace("/", "."))
    pattern: re.Pattern[Any] = getattr(module, name)
    for prefix in ("", *PREFIXES.get(place, ())):
        for pump in pumps(pattern):
            assert not (grown := against(pattern, PATTERNS[place], pump, prefix)), f"{prefix!r} + {pump!r}: {grown}"


def test_a_pattern_without_a_case_is_noticed(tmp_path: Any) -> None:
    (tmp_path / "new.py").write_text(
        "import re\n\n_A = re.compile('a')\n\ndef f(text):\n    return re.sub('a', '', text)\n"
    )

    assert list(patterns(tmp_path)) == ["new.py:_A", "new.py:f"]
