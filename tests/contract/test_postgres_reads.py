"""Commands that only read create nothing on a PostgreSQL server that no job has used."""

import asyncio

import pytest
from tests.contract.postgres_servers import ask
from tests.unit.cli.conftest import Call, call  # noqa: F401 - a fixture

from trotline.config.backends import notices
from trotline.errors import FrontierError

SCHEMAS = "SELECT count(*) FROM pg_namespace WHERE format('\"%s\"', nspname) = '{s}'"


def schemas(url: str) -> int:
    [[number]] = asyncio.run(ask(url, SCHEMAS))
    return int(number)


@pytest.mark.parametrize(
    "words",
    [
        ("jobs",),
        ("jobs", "shop"),
        ("status",),
        ("status", "shop"),
        ("watch", "shop", "--once"),
        ("trace", "https://shop.example/", "shop"),
        ("dead", "shop"),
        ("doctor",),
        ("proxies", "list"),
        ("jobs", "--forget", "shop-1"),
    ],
)
def test_a_command_that_reads_creates_nothing(
    call: Call,  # noqa: F811
    anywhere: str,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    monkeypatch.setenv("TROTLINE_FRONTIER", anywhere)
    code, out, err = call(*words)
    assert "refused a statement" not in out + err
    assert code in (0, 2), (out, err)
    assert schemas(anywhere) == 0


async def test_a_user_who_cannot_create_the_tables_of_a_frontier_learns_it_from_doctor(anywhere: str) -> None:
    place, _, schema = anywhere.partition("?schema=")
    login = f"reader_{schema}"
    await ask(anywhere, f"CREATE ROLE {login} LOGIN PASSWORD 'kept-by-the-tests'")
    url = place.replace("postgresql://trotline:", f"postgresql://{login}:") + f"?schema={schema}"
    try:
        with pytest.raises(FrontierError) as refused:
            await notices(url)
        assert f"the user {login} may not create the tables of a frontier" in refused.value.what
        await ask(anywhere, "CREATE SCHEMA {s}")
        with pytest.raises(FrontierError):
            await notices(url)
        await ask(anywhere, f"GRANT ALL ON SCHEMA {{s}} TO {login}")
        await notices(url)
    finally:
        await ask(anywhere, f"DROP OWNED BY {login}; DROP ROLE {login}")
