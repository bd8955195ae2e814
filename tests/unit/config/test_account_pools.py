"""Account pools in a proxies file: what is accepted and refused, secrets, hot reload, and the proxy of each account."""

from collections.abc import Callable
from pathlib import Path

import pytest

from trotline.config import account_table
from trotline.config.proxy_pools import PoolBook, load
from trotline.config.spider_loader import check_pools
from trotline.errors import SettingsError, SpiderRefused
from trotline.model.account import Account
from trotline.model.proxy import Proxy
from trotline.model.proxy_pool import account_id
from trotline.model.secret import without_secrets
from trotline.spider.spider import Spider

SECRET = "s3cret-canary-77"  # noqa: S105 - of an account that does not exist
HOME = '[pools.home]\nregion = "eu"\nproxies = ["http://192.0.2.1:80", "http://192.0.2.2:80", "http://192.0.2.3:80"]\n'
LOGINS = f"""
[accounts.buyers.logins]
anna = {{ user = "anna@example.com", password = "{SECRET}" }}
bert = {{ password = "env:BERT_PASSWORD", totp = "env:BERT_TOTP" }}
"""
BUYERS = '[accounts.buyers]\nproxies = "home"\n' + LOGINS
ANNA = account_id("@buyers/anna")
Write = Callable[..., str]


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERT_PASSWORD", "bert-secret-1")
    monkeypatch.setenv("BERT_TOTP", "bert-totp-seed")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(text: str, name: str = "proxies.toml", mode: int = 0o600) -> str:
        new = tmp_path / f".{name}"
        new.write_text(text)
        new.chmod(mode)
        new.rename(tmp_path / name)
        return str(tmp_path / name)

    return make


def account(book: PoolBook, name: str) -> Account:
    found = book.account(name.partition("/")[0], account_id(name))
    assert found is not None
    return found


def test_accounts_have_their_logins_and_the_frontier_gets_ids_and_rules(write: Write) -> None:
    book = load(
        write(
            HOME
            + '[accounts.buyers]\nproxies = "home"\nuses = "500/d"\npace = "1/s"\nrate = "30/m"\nrest = "10m"\n'
            + 'longest_rest = "2h"\ntimeout = "90s"\n'
            + LOGINS
        )
    )
    assert book.names == ("home", "@buyers")
    anna, bert = account(book, "@buyers/anna"), account(book, "@buyers/bert")
    assert (anna.name, anna.user, anna.password.reveal(), anna.proxies) == ("anna", "anna@example.com", SECRET, "home")
    assert (bert.user, bert.password.reveal()) == ("bert", "bert-secret-1")
    assert {key: secret.reveal() for key, secret in bert.secrets.items()} == {"totp": "bert-totp-seed"}
    pool = book.pool("@buyers")
    assert [member.id for member in pool.members] == [ANNA, account_id("@buyers/bert")]
    rules = pool.rules
    assert (rules.member_concurrency, rules.member_uses, rules.uses_window) == (1, 500, 86400.0)
    assert (rules.interval, rules.member_interval, rules.rest_of_dead) == (1.0, 2.0, 90.0)
    assert (rules.rest, rules.longest_rest) == (600.0, 7200.0)
    assert [each.name for each in book.pools()] == ["home", "@buyers"]
    assert book.notes == ()


def test_slots_are_sessions_without_a_login(write: Write) -> None:
    book = load(write('[accounts.guests]\nproxies = "direct"\nslots = 3\n'))
    assert [account(book, f"@guests/{number}").name for number in (1, 2, 3)] == ["1", "2", "3"]
    guest = account(book, "@guests/1")
    assert (guest.user, guest.password.reveal(), guest.proxies) == ("", "", "direct")
    assert book.size("@guests") == 3
    assert book.proxy_of(guest, 0) is None
    rules = book.pool("@guests").rules
    assert (rules.member_concurrency, rules.member_uses, rules.rest_of_dead) == (1, 0, 60.0)


def test_no_secret_is_in_output(write: Write) -> None:
    book = load(write(HOME + BUYERS))
    shown = " ".join(map(repr, (account(book, "@buyers/anna"), account(book, "@buyers/bert"), book.lines())))
    for hidden in (SECRET, "bert-secret-1", "bert-totp-seed", "anna@example.com"):
        assert hidden not in shown
    assert SECRET not in without_secrets(f"password={SECRET} bert-totp-seed")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[accounts.buyers]\nproxies = "home"\n', "accounts.buyers: it has no accounts"),
        ('[accounts.buyers]\nproxies = "home"\nslots = 3\n' + LOGINS, "logins and slots are given"),
        ("[accounts.buyers]\nslots = 3\n", "does not say through which proxies"),
        ('[accounts.buyers]\nproxies = "s3cret-canary-77"\nslots = 3\n', "proxies: there is no such proxy pool"),
        ("[accounts.buyers]\nproxies = 3\nslots = 3\n", "proxies: must be text"),
        ('[accounts.buyers]\nproxies = "api"\nslots = 3\n', "'api' is an API gateway"),
        ('[accounts.buyers]\nproxies = "home"\nslots = 0\n', "slots: must be an integer from 1"),
        ('[accounts.buyers]\nproxies = "home"\nslots = 3\nconcurrency = 2\n', "concurrency has no effect"),
        ('[accounts.buyers]\nproxies = "home"\nslots = 3\nuse = "5/d"\n', "unknown key 'use'"),
        ('[accounts.buyers]\nproxies = "home"\nslots = 3\nuses = "0/d"\n', "uses: must be a number of visits"),
        ('[accounts.buyers]\nproxies = "home"\nslots = 3\nuses = "5/s3cret-canary-77"\n', "uses: must be a number"),
        ('[accounts.buyers]\nproxies = "home"\nslots = 3\npace = "fast"\n', "pace: must be a rate"),
        ('[accounts.buyers]\nproxies = "home"\nslots = 3\nrest = "2h"\nlongest_rest = "1h"\n', "shorter than rest"),
        ('[accounts.buyers]\nproxies = "gate"\nslots = 3\ntimeout = "60s"\n', "shorter than that of its proxy pool"),
        ('[accounts."a b"]\nproxies = "home"\nslots = 3\n', "cannot be the name of an account pool"),
        ("accounts = 3\n", "accounts is not a table"),
        ("[accounts]\nbuyers = 3\n", "accounts.buyers is not a table"),
        ('[accounts.b]\nproxies = "home"\nlogins = 3\n', "logins is not a table"),
        ('[accounts.b]\nproxies = "home"\n[accounts.b.logins]\n', "logins is not a table"),
        ('[accounts.b]\nproxies = "home"\n[accounts.b.logins]\nanna = "s3cret-canary-77"\n', "anna is not a table"),
        ('[accounts.b]\nproxies = "home"\n[accounts.b.logins]\nanna = { user = "x" }\n', "anna has no password"),
        ('[accounts.b]\nproxies = "home"\n[accounts.b.logins]\n"a@b" = { password = "x" }\n', "name of an account"),
        (
            '[accounts.b]\nproxies = "home"\n[accounts.b.logins]\nanna = { usr = "x", password = "s3cret-77" }\n',
            "unknown key 'usr'",
        ),
        (
            '[accounts.b]\nproxies = "home"\n[accounts.b.logins]\nanna = { T-1 = "x", password = "s3cret-77" }\n',
            "'T-1' cannot be the name of a secret",
        ),
        ('[accounts.b]\nproxies = "home"\n[accounts.b.logins]\nanna = { password = 7 }\n', "password: must be text"),
        (
            '[accounts.b]\nproxies = "home"\n[accounts.b.logins]\nanna = { password = "env:NOT_SET_ANYWHERE" }\n',
            "logins.anna: password: environment variable NOT_SET_ANYWHERE is not set",
        ),
        (
            '[accounts.b]\nproxies = "home"\n[accounts.b.logins]\nanna = { password = "file:/nowhere/anna" }\n',
            "logins.anna: password: /nowhere/anna cannot be read",
        ),
        (
            '[accounts.b]\nproxies = "home"\n[accounts.b.logins]\n'
            'anna = { password = "s3cret-canary-77" }\nbert = { user = "anna", password = "s3cret-canary-77" }\n',
            "logins.anna and logins.bert have the same user",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_without_quoting_it(write: Write, text: str, says: str) -> None:
    pools = (
        '\n[pools.api]\nendpoint = "https://api.example/"\nkey = "key-of-the-api"\n'
        '[pools.gate]\nendpoint = "http://gate.example:1"\nuser = "u-{session}"\npassword = "p"\ntimeout = "120s"\n'
    )
    with pytest.raises(SettingsError) as refused:
        load(write(text + HOME + pools))
    assert says in refused.value.what
    assert refused.value.hint
    assert "s3cret" not in str(refused.value) + refused.value.hint


def test_two_accounts_with_one_id_are_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_table, "account_id", lambda _: 7)
    with pytest.raises(SettingsError, match=r"logins.anna and logins.bert have the same id"):
        load(write(HOME + BUYERS))


def test_a_password_in_a_file_that_every_user_can_read_gets_a_warning(write: Write) -> None:
    [note] = load(write(HOME + BUYERS, mode=0o644)).notes
    assert "proxies.toml has logins, and every user of this machine can read it" in note
    only_references = BUYERS.replace(f'"{SECRET}"', '"env:BERT_PASSWORD"')
    assert load(write(HOME + only_references, mode=0o644)).notes == ()


def test_accounts_through_a_gateway_without_sessions_get_a_warning(write: Write) -> None:
    gate = '[pools.gate]\nendpoint = "http://gate.example:1"\n[accounts.b]\nproxies = "gate"\nslots = 2\n'
    [note] = load(write(gate)).notes
    assert note.startswith("accounts @b: their proxy pool changes the exit address")


def test_a_file_of_accounts_alone_is_no_proxy(write: Write) -> None:
    book = load(write('[accounts.guests]\nproxies = "direct"\nslots = 2\n'))
    assert not book.proxied
    spider = Spider("shop")

    @spider.page(seeds=["https://shop.example/"])
    def page(page):
        yield {}

    check_pools(spider, book.listed)
    with_proxies = load(write(HOME + BUYERS))
    assert with_proxies.proxied
    with pytest.raises(SpiderRefused, match="names no proxy pool"):
        check_pools(spider, with_proxies.listed)


def test_a_file_that_was_never_read_may_have_proxies(write: Write) -> None:
    book = load(write("[accounts"), patient=True)
    assert (book.proxied, book.known) == (True, None)


def test_tasks_can_name_a_pool_and_one_of_its_accounts(write: Write) -> None:
    book = load(write(HOME + BUYERS))
    assert tuple(book.known or ()) == ("home", "@buyers", "@buyers/anna", "@buyers/bert")
    with pytest.raises(SettingsError) as refused:
        book.pool("@buyer")
    assert refused.value.what == "there is no account pool '@buyer'"
    assert refused.value.hint == "Did you mean '@buyers'? Pools: @buyers, home."


def test_workers_serve_account_pools_in_the_region_of_their_proxies(write: Write) -> None:
    us = '[pools.isp]\nregion = "us"\nproxies = ["http://192.0.2.9:80"]\n'
    guests = '[accounts.guests]\nproxies = "direct"\nslots = 2\n'
    book = load(write(HOME + us + BUYERS + guests))
    assert book.serves() == ("home", "isp", "@buyers", "@guests")
    assert book.serves(["@buyers"]) == ("@buyers",)
    assert book.serves(regions=["eu"]) == ("home", "@buyers", "@guests")
    assert book.serves(regions=["us"]) == ("isp", "@guests")


def test_the_lines_of_the_doctor_say_how_accounts_go_out(write: Write) -> None:
    [home, buyers] = load(write(HOME + BUYERS)).lines()
    assert (home.proxies, buyers.name, buyers.size, buyers.proxies, buyers.where) == (
        "",
        "@buyers",
        2,
        "home",
        "proxies.toml",
    )


def test_a_new_account_is_registered_and_a_new_password_reaches_the_worker(write: Write) -> None:
    book = load(write(HOME + BUYERS))
    before = account(book, "@buyers/anna")
    assert book.reload() == []
    write(HOME + BUYERS.replace(SECRET, "another-password"))
    assert book.reload() == [], "the frontier knows no passwords"
    after = account(book, "@buyers/anna")
    assert after.password.reveal() == "another-password"
    assert after.fingerprint != before.fingerprint
    write(HOME + BUYERS + 'carl = { password = "carl-password" }\n')
    [changed] = book.reload()
    assert (changed.name, len(changed.members)) == ("@buyers", 3)
    assert changed.version > 0
    write(HOME)
    assert book.reload() == []
    assert (book.names, book.account("@buyers", ANNA)) == (("home",), None)


def test_a_changed_secret_file_is_read_again(write: Write) -> None:
    secret = write("first-password\n", "anna.txt")
    text = f'[accounts.b]\nproxies = "direct"\n[accounts.b.logins]\nanna = {{ password = "file:{secret}" }}\n'
    book = load(write(text))
    write("second-password\n", "anna.txt")
    book.reload()
    assert account(book, "@b/anna").password.reveal() == "second-password"
    Path(secret).unlink()
    book.reload()
    assert account(book, "@b/anna").password.reveal() == "second-password", "a broken file changes nothing"
    write("third-password\n", "anna.txt")
    book.reload()
    assert account(book, "@b/anna").password.reveal() == "third-password"


def test_a_broken_file_leaves_the_accounts_as_they_are(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    book = load(write(HOME + BUYERS))
    write(HOME + BUYERS + 'anna = "s3cret"\n')
    assert book.reload() == []
    assert account(book, "@buyers/anna").password.reveal() == SECRET
    assert "the pools stay as they were" in caplog.text
    assert SECRET not in caplog.text


def test_the_fingerprint_follows_user_and_password_only(write: Write) -> None:
    first, again = (account(load(write(HOME + BUYERS)), "@buyers/anna") for _ in range(2))
    assert first.fingerprint == again.fingerprint
    assert len(first.fingerprint) == 8
    other_user = account(load(write(HOME + BUYERS.replace("anna@", "anne@"))), "@buyers/anna")
    assert other_user.fingerprint != first.fingerprint
    assert SECRET not in first.fingerprint


def test_an_account_keeps_its_proxy_when_others_come_and_go(write: Write) -> None:
    book = load(write(HOME + BUYERS))
    anna = account(book, "@buyers/anna")
    first = book.proxy_of(anna, 0)
    assert first is not None
    moves = [book.proxy_of(anna, each) for each in range(4)]
    assert len({way.public for way in moves if way is not None}) == 3
    assert moves[3] == first
    kept = f'[pools.home]\nproxies = ["http://{first.public}"]\n'
    write(kept + BUYERS)
    book.reload()
    assert book.proxy_of(account(book, "@buyers/anna"), 0) == first
    write('[pools.home]\nproxies = ["http://192.0.2.77:80"]\n' + BUYERS)
    book.reload()
    left = book.proxy_of(account(book, "@buyers/anna"), 0)
    assert left is not None
    assert left.public == "192.0.2.77:80"


def test_the_proxy_is_chosen_once_for_a_version_of_the_pool(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    from trotline.rules import account_proxies

    calls = []
    real = account_proxies.chosen
    monkeypatch.setattr(account_proxies, "chosen", lambda *args: calls.append(args) or real(*args))
    book = load(write(HOME + BUYERS))
    anna = account(book, "@buyers/anna")
    for _ in range(5):
        book.proxy_of(anna, 0)
    write(HOME + BUYERS.replace(SECRET, "another-password"))
    book.reload()
    book.proxy_of(account(book, "@buyers/anna"), 0)
    assert len(calls) == 1, "the proxies are the same"
    book.proxy_of(anna, 1)
    assert len(calls) == 2


def test_accounts_on_one_slot_of_a_gateway_have_sessions_of_their_own(write: Write) -> None:
    gate = '[pools.gate]\nendpoint = "http://gate.example:1"\nuser = "u-{session}"\npassword = "gate-pass"\nslots = 1\n'
    book = load(write(gate + '[accounts.b]\nproxies = "gate"\nslots = 1000\n'))
    everyone = [account(book, f"@b/{number}") for number in range(1, 1001)]
    ways = [book.proxy_of(each, 0) for each in everyone]
    assert len({way.user for way in ways if isinstance(way, Proxy)}) == 1000
    assert book.proxy_of(everyone[0], 0) == ways[0]
    assert book.proxy_of(everyone[0], 1) != ways[0], "a move is to another exit, also with one slot"


def test_an_account_whose_list_is_not_read_yet_has_no_proxy(write: Write) -> None:
    feed = '[pools.home]\nurl = "https://127.0.0.1:9/list.txt"\n'
    book = load(write(feed + BUYERS), patient=True)
    assert book.proxy_of(account(book, "@buyers/anna"), 0) is None
    assert [pool.name for pool in book.pools()] == ["@buyers"]


def test_an_account_that_moved_keeps_its_proxy_when_others_are_removed(write: Write) -> None:
    book = load(write(HOME + BUYERS))
    anna = account(book, "@buyers/anna")
    kept = book.proxy_id(anna, 1, 0)
    assert kept != book.proxy_id(anna, 0, 0)

    assert book.proxy_id(anna, 1, kept) == kept
    assert book.proxy_of(anna, 1, kept) == book.proxy_of(anna, 1)
    assert book.proxy_id(anna, 1, 12345) == kept, "a proxy that is not in the pool any more is replaced"
