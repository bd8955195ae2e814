"""The book of pools: ids without secrets, hot reload, and a broken file that changes nothing."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from trotline.config import proxy_pools
from trotline.config.pool_members import SESSIONS_PER_SLOT, session_of
from trotline.config.proxy_pools import PoolBook, load
from trotline.errors import SettingsError
from trotline.model import secret
from trotline.model.proxy import ApiGateway, Proxy
from trotline.model.secret import without_secrets

LANE = "shop.example via home"


class Clock:
    now = 2_000_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file as a deployment does, and returns its path."""

    def make(text: str, name: str = "proxies.toml", mode: int = 0o600) -> str:
        new = tmp_path / f".{name}"
        new.write_text(text)
        new.chmod(mode)
        new.rename(tmp_path / name)
        return str(tmp_path / name)

    return make


def ways(book: PoolBook, pool: str) -> list[str]:
    found = [book.way(pool, member.id, LANE) for member in book.pool(pool).members]
    return [way.public for way in found if way is not None]


def test_a_toml_has_pools_and_a_plain_list_is_the_pool_default(write: Write) -> None:
    write("http://10.1.1.1:80\nhttp://10.1.1.2:80 weight=0.5\n", "dc.txt")
    place = write(
        '[pools.dc]\nlist = "dc.txt"\npace = "1/s"\nweight = 0.8\n'
        '[pools.home]\nkind = "residential"\nproxies = ["socks5://10.1.1.3:1080"]\n'
    )
    book = load(place)
    assert book.names == ("dc", "home")
    assert [member.weight for member in book.pool("dc").members] == [0.8, 0.5]
    assert book.pool("dc").rules.interval == 1.0
    assert (ways(book, "dc"), ways(book, "home")) == (["10.1.1.1:80", "10.1.1.2:80"], ["10.1.1.3:1080"])
    assert book.pool("home").rules.hold == 20
    plain = load(str(Path(place).parent / "dc.txt"))
    assert plain.names == ("default",)
    assert plain.pool("default").members[0].id == book.pool("dc").members[0].id
    assert book.notes == plain.notes == ()


def test_no_setting_is_a_book_without_pools() -> None:
    book = load("")
    assert (book.names, book.pools(), book.reload(), book.serves(), book.lines()) == ((), [], [], (), [])
    assert book.way("home", 7, LANE) is None


def test_an_id_has_48_bits_and_tells_users_apart_but_not_passwords(write: Write) -> None:
    place = write(
        "http://anna:one@10.1.1.1:80\nhttp://bert:one@10.1.1.1:80\nhttps://anna:one@10.1.1.1:80\n"
        "http://anna:one@10.1.1.1:81\n",
        "list.txt",
    )
    ids = [member.id for member in load(place).pool("default").members]
    assert len(set(ids)) == 4
    assert all(0 < each < 2**48 for each in ids)
    write("http://anna:changed@10.1.1.1:80\n", "list.txt")
    assert [member.id for member in load(place).pool("default").members] == ids[:1]


def test_a_duplicate_is_used_once_and_named(write: Write) -> None:
    book = load(write("http://10.1.1.1:80\nhttp://10.1.1.2:80\nhttp://10.1.1.1:80\n", "list.txt"))
    assert len(book.pool("default").members) == 2
    assert book.notes == ("pool 'default': 1 duplicate is used once: line 3 repeats line 1",)


def test_lines_that_differ_in_the_password_only_are_logins_of_their_own(write: Write) -> None:
    texts = [f"http://anna:base_session-{name}@10.1.1.1:80" for name in "abc"]
    place = write("\n".join([*texts, texts[1], "http://bert:base_session-a@10.1.1.1:80"]), "list.txt")
    book = load(place)
    ids = [member.id for member in book.pool("default").members]
    assert len(set(ids)) == 4
    made = [book.way("default", each, LANE) for each in ids]
    assert [way.password[-1] for way in made if isinstance(way, Proxy)] == ["a", "b", "c", "a"]
    assert book.notes == (
        "pool 'default': 1 duplicate is used once: line 4 repeats line 2",
        "pool 'default': used as two logins, as their passwords differ: line 2 and line 1, line 3 and line 1",
    )
    # The first keeps the id that it has alone, so its history stays.
    write(texts[2], "list.txt")
    assert [member.id for member in load(place).pool("default").members] == ids[:1]


def test_two_proxies_with_one_id_are_refused_by_name(write: Write) -> None:
    place = write("http://anna:s3cret-77@10.1.1.1:80\nhttp://10.1.1.2:80\n", "list.txt")
    with pytest.raises(SettingsError, match=r"lines 1 and 2 \(10.1.1.1:80 and 10.1.1.2:80\)") as refused:
        load(place, digest=lambda _: 7)
    assert "s3cret" not in str(refused.value)
    gate = write('[pools.g]\nendpoint = "http://gate.example:1"\nslots = 2\n')
    with pytest.raises(SettingsError, match="pool 'g': two of the 2 slots"):
        load(gate, digest=lambda _: 7)


def test_a_file_with_logins_that_every_user_can_read_gets_a_warning(write: Write, tmp_path: Path) -> None:
    login, none = "http://anna:s3cret-77@10.1.1.1:80\n", "http://10.1.1.1:80\n"
    path = tmp_path / "list.txt"
    [note] = load(write(login, "list.txt", 0o644)).notes
    assert note == f"{path} has logins, and every user of this machine can read it; try: chmod 600 {path}"
    assert load(write(login, "list.txt", 0o640)).notes == ()
    assert load(write(none, "list.txt", 0o644)).notes == ()
    [note] = load(write(f'[pools.x]\nproxies = ["{login.strip()}"]\n', mode=0o644)).notes
    assert "proxies.toml has logins" in note
    with pytest.raises(SettingsError, match="others can read it"):
        load(f"file:{write(none, 'list.txt', 0o644)}")
    assert load(f"file:{write(none, 'list.txt')}").names == ("default",)


def test_a_mounted_list_may_be_readable_by_others(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compose mounts PROXY_LIST as it is on the host, where its folder protects it."""
    monkeypatch.setattr(secret, "MOUNTED", str(tmp_path))
    place = write("http://anna:s3cret-77@10.1.1.1:80\n", "proxies", 0o444)
    for setting in (place, f"file:{place}"):
        book = load(setting)
        assert (book.names, book.notes) == (("default",), ())


def test_a_list_may_be_in_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PROXIES", "http://10.1.1.1:80, http://anna:s3cret-77@10.1.1.2:80\nhttp://10.1.1.3:80")
    assert len(load("env:SHOP_PROXIES").pool("default").members) == 3
    monkeypatch.setenv("SHOP_PROXIES", "")
    with pytest.raises(SettingsError, match="SHOP_PROXIES is not set"):
        load("env:SHOP_PROXIES")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "proxies.toml has no pools"),
        ("pools = 3", "proxies.toml has no pools"),
        ("[pools]", "proxies.toml has no pools"),
        ("[pool.x]", "unknown key 'pool'"),
        ("pools.x = 3", "pools.x is not a table"),
        ('[pools.x]\npassword = "s3cret-77\n', r"proxies.toml cannot be read: .*line 2"),
        ('[pools.x]\nproxies = ["http://10.1.1.1:80", "10.1.1.1:80:anna:s3cret-77"]', "item 2: not a URL; write it as"),
        ('[pools.x]\nlist = "missing.txt"', "missing.txt cannot be read: No such file"),
        ('[pools.x]\nurl = "http://lists.example/x?token=s3cret-77-s3cret-77"', "must be https"),
        ('[pools.x]\nurl = "ftp://lists.example/"', "without login"),
        ("[" * 5000, "proxies.toml cannot be read"),
        ("[pools.x]\nhold = " + "7" * 5_000, "proxies.toml cannot be read"),
    ],
)
def test_a_bad_toml_is_refused(text: str, says: str, write: Write) -> None:
    with pytest.raises(SettingsError, match=says) as refused:
        load(write(text))
    assert "s3cret" not in str(refused.value)
    assert refused.value.hint


def test_a_file_that_is_none_is_refused(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        load(str(tmp_path / "no.txt"))
    with pytest.raises(SettingsError, match=r"not a regular file|Is a directory"):
        load(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingsError, match="not a regular file"):
        load(str(tmp_path / "pipe"))
    (tmp_path / "list.txt").write_bytes(b"http://anna:\xff@10.1.1.1:80")
    with pytest.raises(SettingsError, match="not UTF-8"):
        load(str(tmp_path / "list.txt"))
    with pytest.raises(SettingsError, match=r"list.txt has no proxy: 1 line is not used: line 1: "):
        load(write("nonsense s3cret-77", "list.txt"))
    monkeypatch.setattr("trotline.config.pool_files.LARGEST", 10)
    with pytest.raises(SettingsError, match="larger than 10 bytes"):
        load(write("http://10.1.1.1:80", "list.txt"))


def test_a_gateway_gives_each_slot_a_session_per_lane(write: Write) -> None:
    book = load(
        write(
            '[pools.home]\nkind = "residential"\nendpoint = "http://gate.example:7777"\nslots = 3\ncountry = "us"\n'
            'user = "customer-U-cc-{country}-sessid-{session}-sesstime-{minutes}"\npassword = "pw_{session}"\n'
        )
    )
    ids = [member.id for member in book.pool("home").members]
    assert len(set(ids)) == 3
    found = [book.way("home", each, LANE) for each in ids]
    assert all(isinstance(way, Proxy) for way in found)
    users = {way.user for way in found if isinstance(way, Proxy)}
    session = session_of(ids[0], LANE)
    assert f"customer-U-cc-us-sessid-{session}-sesstime-10" in users
    assert len(users) == 3
    assert isinstance(found[0], Proxy)
    assert found[0].password == f"pw_{session}"
    assert book.way("home", 1, LANE) is None
    assert book.way("other", ids[0], LANE) is None
    # Every worker has the same session, and their number is bounded.
    assert session_of(ids[0], LANE) == session
    many = {session_of(ids[0], f"shop-{number}.example via home") for number in range(5_000)}
    assert len(many) == SESSIONS_PER_SLOT


def test_slots_of_an_api_gateway_share_its_key(write: Write) -> None:
    book = load(write('[pools.api]\nendpoint = "https://api.example/v1/"\nkey = "s3cret-77-s3cret"\nslots = 2\n'))
    one, two = (book.way("api", member.id, LANE) for member in book.pool("api").members)
    assert one == two == ApiGateway(endpoint="https://api.example/v1/", key="s3cret-77-s3cret")
    assert "s3cret" not in repr(book.pool("api")) + repr(one) + without_secrets("s3cret-77-s3cret")


def test_what_a_worker_serves(write: Write) -> None:
    write("http://10.1.1.1:80 region=eu\nhttp://10.1.1.2:80 region=us\n", "mixed.txt")
    book = load(
        write(
            '[pools.eu]\nregion = "eu"\nproxies = ["http://10.1.1.1:80"]\n'
            '[pools.us]\nregion = "us"\nproxies = ["http://10.1.1.1:80"]\n'
            '[pools.any]\nproxies = ["http://10.1.1.1:80"]\n[pools.mixed]\nlist = "mixed.txt"\n'
        )
    )
    assert book.serves() == ("eu", "us", "any", "mixed")
    assert book.serves(["us", "eu"]) == ("eu", "us")
    assert book.serves(regions=["EU"]) == ("eu", "any")
    assert book.serves(regions=["eu", "us"]) == ("eu", "us", "any", "mixed")
    assert book.serves(["us"], ["eu"]) == ()
    with pytest.raises(SettingsError, match="there is no proxy pool 'uss'") as refused:
        book.serves(["uss"])
    assert "Did you mean 'us'? Pools: any, eu, mixed, us." in refused.value.hint
    with pytest.raises(SettingsError, match="no proxy pool has the region 'asia'"):
        book.serves(regions=["asia"])


def test_a_changed_file_changes_the_pools_that_it_changes(write: Write, clock: Clock) -> None:
    write("http://10.1.1.1:80\n", "dc.txt")
    place = write('[pools.dc]\nlist = "dc.txt"\n[pools.home]\nproxies = ["http://10.1.1.9:80"]\n')
    book = load(place, clock=clock)
    before = book.pool("dc")
    assert book.reload() == []

    write("http://10.1.1.1:80\nhttp://10.1.1.2:80\n", "dc.txt")
    [changed] = book.reload()
    assert changed == book.pool("dc")
    assert changed.version > before.version
    assert len(changed.members) == 2
    assert book.reload() == []

    write('[pools.dc]\nlist = "dc.txt"\nhold = 3\n[pools.new]\nproxies = ["http://10.1.1.9:80"]\n')
    assert [pool.name for pool in book.reload()] == ["dc", "new"]
    assert book.names == ("dc", "new")
    assert book.way("home", book.pool("new").members[0].id, LANE) is None


def test_a_new_password_needs_no_new_registration(write: Write) -> None:
    place = write("http://anna:one@10.1.1.1:80\n", "list.txt")
    book = load(place)
    [member] = book.pool("default").members
    write("http://anna:two@10.1.1.1:80\n", "list.txt")
    assert book.reload() == []
    way = book.way("default", member.id, LANE)
    assert isinstance(way, Proxy)
    assert (way.user, way.password) == ("anna", "two")


def test_a_new_password_in_the_file_that_a_pool_refers_to_is_read(write: Write) -> None:
    secret = write("one-password", "secret")
    place = write(f'[pools.dc]\nproxies = ["http://10.1.1.1:80"]\nuser = "anna"\npassword = "file:{secret}"\n')
    book = load(place)
    [member] = book.pool("dc").members
    write("two-passwords", "secret")
    assert book.reload() == []
    way = book.way("dc", member.id, LANE)
    assert isinstance(way, Proxy)
    assert (way.user, way.password) == ("anna", "two-passwords")


def test_a_restored_older_file_is_a_newer_version(write: Write, clock: Clock) -> None:
    place = write("http://10.1.1.1:80\n", "list.txt")
    book = load(place, clock=clock)
    write("http://10.1.1.2:80\n", "list.txt")
    os.utime(place, (1_000_000_000, 1_000_000_000))
    [changed] = book.reload()
    assert changed.version == clock.now


def test_a_time_stamp_of_the_future_is_not_a_version(write: Write, clock: Clock) -> None:
    place = write("http://10.1.1.1:80\n", "list.txt")
    os.utime(place, (clock.now + 10**7, clock.now + 10**7))
    assert load(place, clock=clock).pool("default").version == clock.now


@pytest.mark.parametrize("broken", ["[pools.dc", "[pools.dc]\nlist = 3\n", "", '[pools.dc]\nlist = "none.txt"\n'])
def test_a_broken_new_file_keeps_the_old_pools_and_says_so_once(
    broken: str, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    good = '[pools.dc]\nproxies = ["http://anna:s3cret-77@10.1.1.1:80"]\n'
    book = load(write(good))
    before = book.pool("dc")
    write(broken)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            assert book.reload() == []
    assert book.pool("dc") is before
    assert [record.getMessage() for record in caplog.records if "the pools stay as they were" in record.getMessage()]
    assert len(caplog.records) == 1
    write(good.replace("10.1.1.1", "10.1.1.2"))
    with caplog.at_level(logging.WARNING):
        assert len(book.reload()) == 1
    assert "proxies.readable" in caplog.records[-1].getMessage()
    assert "s3cret" not in caplog.text


def test_a_file_that_is_away_for_a_moment_is_read_when_it_is_back(write: Write, tmp_path: Path) -> None:
    write("http://10.1.1.1:80\n", "dc.txt")
    book = load(write('[pools.dc]\nlist = "dc.txt"\n'))
    (tmp_path / "dc.txt").unlink()
    assert book.reload() == []
    assert len(book.pool("dc").members) == 1
    write("http://10.1.1.1:80\nhttp://10.1.1.2:80\n", "dc.txt")
    assert [len(pool.members) for pool in book.reload()] == [2]


def test_a_new_bad_line_is_said_once(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    place = write("http://10.1.1.1:80\n", "list.txt")
    book = load(place)
    write("http://10.1.1.1:80\n10.1.1.2:80:anna:s3cret-77\n", "list.txt")
    with caplog.at_level(logging.WARNING):
        assert book.reload() == []
        assert book.reload() == []
    [said] = [record.getMessage() for record in caplog.records]
    assert "list.txt: 1 line is not used: line 2: " in said
    assert "s3cret" not in said


LIST = [f"http://192.0.2.{number}:3128" for number in range(10)]


def listed(proxies: list[str]) -> str:
    return f"[pools.home]\nproxies = {proxies!r}\n"


def test_a_pool_that_became_smaller_says_so_for_an_hour(
    write: Write, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    book = load(write(listed(LIST)), clock=clock)
    for left, trouble in (
        (9, ""),
        (8, "pool 'home' has 8 proxies, 10 before it was read again"),
        (4, "pool 'home' has 4 proxies, 10 before it was read again"),
    ):
        write(listed(LIST[:left]))
        book.reload()
        assert book.trouble == trouble
    assert caplog.text.count("proxies.fewer") == 3
    clock.now += 3601.0
    assert book.trouble == ""
    write(listed(LIST))
    book.reload()
    assert book.trouble == ""


def test_a_pool_with_lines_that_cannot_be_read_says_so_until_they_can(
    write: Write, clock: Clock, tmp_path: Path
) -> None:
    lines = tmp_path / "list.txt"
    lines.write_text("\n".join(LIST))
    book = load(write('[pools.home]\nlist = "list.txt"\n'), clock=clock)
    lines.write_text("\n".join([*LIST[:9], "not a proxy"]))
    book.reload()
    clock.now += 7200.0
    assert "pool 'home' has 9 proxies, 10 before it was read again: 1 line is not used: line 10: " in book.trouble
    lines.write_text("\n".join(LIST))
    book.reload()
    assert book.trouble == ""


def test_doctor_gets_a_line_for_each_pool(write: Write) -> None:
    book = load(
        write(
            '[pools.dc]\nproxies = ["http://10.1.1.1:80"]\n'
            '[pools.g]\nkind = "mobile"\nendpoint = "http://gate.example:1"\nslots = 4\n'
        )
    )
    assert [(each.name, each.size, each.gateway, each.info.kind.value) for each in book.lines()] == [
        ("dc", 1, False, "datacenter"),
        ("g", 4, True, "mobile"),
    ]
    assert proxy_pools.load("").lines() == []


def test_a_worker_that_starts_while_the_file_is_broken_waits_for_it(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    place = write("[pools")
    with pytest.raises(SettingsError):
        load(place)
    assert not caplog.records, "it was raised"
    book = load(place, patient=True)
    assert "proxies.unreadable proxies.toml cannot be read" in caplog.text
    assert (book.names, book.known, book.serves(["home"]), book.reload()) == ((), None, (), [])
    write('[pools.home]\nproxies = ["http://10.1.1.1:80"]\n')
    assert [pool.name for pool in book.reload()] == ["home"]
    assert tuple(book.known or ()) == ("home",)
    empty = load("").known
    assert empty is not None
    assert tuple(empty) == ()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('[pools.home]\nlist = "nope.txt"', "The list of [pools.home] is a file with one proxy a line"),
        ('weights = "nope.toml"\n[pools.home]\nproxies = ["http://10.0.0.1:80"]', "--write-weights"),
    ],
)
def test_a_missing_file_is_answered_with_what_belongs_into_it(write: Write, text: str, hint: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(write(text))
    assert "nope." in refused.value.what
    assert hint in refused.value.hint
