"""The URL of a PostgreSQL sink: what may stand in it, and what a wrong one says."""

import pytest

from trotline.adapters.postgres.pool import dial
from trotline.adapters.postgres.sink_url import parse
from trotline.errors import SettingsError


def test_an_address_has_sane_defaults():
    address = parse("postgresql://db.example/scrapes")

    assert address.dsn == "postgresql://db.example/scrapes"
    assert (address.schema, address.freshness, address.visits, address.keep) == ("trotline", 0.0, "month", 0.0)
    assert address.password is None


def test_our_options_are_read_and_the_servers_own_are_handed_on():
    address = parse(
        "postgres://shop:s3cr%40t-word@db.example:6432/scrapes?schema=shop&sslmode=verify-full&freshness=6h"
        "&visits=week&keep=90d&retire=detach&pool=2&timeout=10s&patience=1m&target_session_attrs=read-write"
    )

    assert address.dsn == (
        "postgresql://shop@db.example:6432/scrapes?sslmode=verify-full&target_session_attrs=read-write"
    )
    assert address.password is not None
    assert address.password.reveal() == "s3cr@t-word"
    assert (address.schema, address.freshness, address.visits, address.keep) == ("shop", 21600.0, "week", 7_776_000.0)
    assert (address.retire, address.pool, address.timeout, address.patience) == ("detach", 2, 10.0, 60.0)


def test_several_hosts_and_a_socket_are_left_as_they_are():
    assert parse("postgresql://a:1,b:2/x").dsn == "postgresql://a:1,b:2/x"
    assert parse("postgresql:///x?host=/run/postgresql").dsn == "postgresql:///x?host=/run/postgresql"


@pytest.mark.parametrize("url", ["postgresql://u@h/x?password=env:SHOP_DB", "postgresql://u:env%3ASHOP_DB@h/x"])
def test_a_password_may_come_by_reference(monkeypatch, url):
    monkeypatch.setenv("SHOP_DB", "from-the-environment")
    address = parse(url)

    assert address.password is not None
    assert address.password.reveal() == "from-the-environment"
    assert "from-the-environment" not in repr(address)


def test_a_password_may_come_from_a_file(tmp_path):
    (tmp_path / "word").write_text("from-a-file\n")
    (tmp_path / "word").chmod(0o600)
    address = parse(f"postgresql://u@h/x?password=file:{tmp_path}/word")

    assert address.password is not None
    assert address.password.reveal() == "from-a-file"


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("shema=x", "did you mean 'schema'"),
        ("schema=", "is not a valid schema name"),
        ("schema=pg_catalog", "is not a valid schema name"),
        ("freshness=soon", "not a length of time"),
        ("keep=90d&keep=1d", "given twice"),
        ("keep=90", "'90' is 90 s, and a day is the shortest"),
        ("keep=0d", "leave the option out to keep everything"),
        ("keep_history=0", "leave the option out to keep everything"),
        ("keep_history=12m", "write it like 90d"),
        ("visits=year", "one of day, week, month"),
        ("pool=0", "from 1 to 20"),
        ("timeout=0", "longer than 0 s"),
        ("password=env:NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE is not set"),
        ("hunter2-hunter2", "must be name=value"),
    ],
)
def test_a_wrong_address_says_what_is_wrong_and_not_the_password(query, what):
    with pytest.raises(SettingsError, match=what) as told:
        parse(f"postgresql://shop:hunter2-hunter2@db.example/scrapes?{query}")

    assert told.value.hint
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize("host", ["127.0.0.1:x", "db:99999", "db:0", "db:-1", "a:1,b:x", "[::1]:x", "db:5\u0663"])
def test_a_port_that_is_not_a_number_is_named(host):
    with pytest.raises(SettingsError, match=r"the sink postgresql://.* must be an integer from 1 to 65,535"):
        parse(f"postgresql://shop:hunter2-hunter2@{host}/scrapes")


def test_a_port_may_be_left_out_or_stand_in_the_query():
    assert parse("postgresql://[::1]:5432,db:,db/x").dsn == "postgresql://[::1]:5432,db:,db/x"
    assert parse("postgresql://db/x?port=5432").dsn == "postgresql://db/x?port=5432"
    with pytest.raises(SettingsError, match="port 'x'"):
        parse("postgresql://db/x?port=x")


async def test_a_host_that_cannot_be_a_name_is_an_error_of_the_settings():
    with pytest.raises(SettingsError, match=r"postgresql://a\.\."):
        await dial(parse(f"postgresql://a..{'b' * 80}/scrapes"), "test")


def test_an_address_shows_no_password():
    address = parse("postgresql://shop:hunter2-hunter2@db.example/scrapes")

    assert "hunter2" not in repr(address) + address.dsn + address.public
    assert address.public == "postgresql://db.example/scrapes"


@pytest.mark.parametrize("mark", ["/", "#", "?"])
def test_a_password_that_should_have_been_quoted_is_not_shown(mark: str):
    with pytest.raises(SettingsError) as caught:
        parse(f"postgresql://anna:hun{mark}ter2@db/scrapes")
    assert "hun" not in str(caught.value)
    assert "ter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["postgresql://db/x?host=other", "postgresql://a@db/x?user=b", "postgresql://db/x?dbname=y"]
)
def test_a_part_that_is_given_twice_is_refused(url):
    """The client would use one of them, and nobody would know which."""
    with pytest.raises(SettingsError, match="given twice"):
        parse(url)


def test_the_same_part_twice_is_accepted():
    assert parse("postgresql://db:5433/x?host=db").dsn == "postgresql://db:5433/x?host=db"


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("visits=year", "Write visits=day, week or month."),
        ("keep=0d", "Write keep=90d, a day at least."),
        ("keep=9d&retire=burn", "Write retire=drop, detach or parquet."),
    ],
)
def test_the_hint_of_an_invalid_option_names_its_valid_values(query, hint):
    with pytest.raises(SettingsError) as told:
        parse(f"postgresql://db/x?{query}")
    assert told.value.hint == hint
