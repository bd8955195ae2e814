"""The URL of a frontier in PostgreSQL: what is taken, and what is refused with a reason."""

import pytest

from trotline.adapters.postgres.frontier.frontier_url import CONNECTIONS, SCHEMA, parse
from trotline.config.backend_urls import frontier_url
from trotline.errors import SettingsError


def test_a_bare_url_has_its_own_schema_beside_that_of_the_sink() -> None:
    address = parse("postgresql://shop@db.example/scrapes")

    assert (address.schema, address.pool, address.prepare) == (SCHEMA, CONNECTIONS, None)
    assert address.dsn == "postgresql://shop@db.example/scrapes"


def test_options_are_ours_or_the_servers() -> None:
    url = "postgresql://db.example/x?schema=shop&pool=7&timeout=5s&prepare=yes&sslmode=require"

    address = parse(url)

    assert (address.schema, address.pool, address.timeout, address.prepare) == ("shop", 7, 5.0, True)
    assert address.dsn.endswith("?sslmode=require")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("freshness=6h", "not an option of this frontier"),
        ("schemas=x", "did you mean 'schema'"),
        ("pool=0", "integer from 1 to 20"),
        ("prepare=maybe", "yes or no"),
        ("schema=pg_mine", "not a valid schema name"),
        ("timeout=0s", "longer than 0 s"),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_right(option: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse(f"postgresql://shop:canary-pw@db.example/x?{option}")

    assert said in refused.value.what
    assert "canary-pw" not in refused.value.what + refused.value.hint


@pytest.mark.parametrize("option", ["seen=bloom", "shards=8", "seen_scope=site", "forget=7d"])
def test_options_of_redis_are_refused_where_settings_are_read(option: str) -> None:
    with pytest.raises(ValueError, match="option of Redis") as refused:
        frontier_url(f"postgresql://shop:canary-pw@db.example/x?{option}")

    assert "canary-pw" not in str(refused.value)


def test_a_scheme_in_capitals_is_known() -> None:
    assert frontier_url("PostgreSQL://db.example/x") == "postgresql://db.example/x"
