"""Measured weights: written beside the hand-written file, checked when read, used at once."""

import logging
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.config import pool_weights
from trotline.config.proxy_pools import PoolBook, load
from trotline.errors import SettingsError

PROXIES = "http://10.1.1.1:80\nhttp://10.1.1.2:80 weight=0.5\nhttp://10.1.1.3:80\n"
WEIGHTS = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True),
    st.dictionaries(st.integers(1, 2**48 - 1), st.floats(0.05, 1.0).map(lambda value: round(value, 3)), max_size=20),
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "dc.txt").write_text(PROXIES)
    (tmp_path / "proxies.toml").write_text('weights = "weights.toml"\n[pools.dc]\nlist = "dc.txt"\n')
    return tmp_path


def put(place: Path, text: str) -> None:
    (place / ".new").write_text(text)
    (place / ".new").rename(place / "weights.toml")


def ids(place: Path) -> list[int]:
    return [member.id for member in load(str(place / "dc.txt")).pool("default").members]


def found(book: PoolBook) -> list[float]:
    return [member.weight for member in book.pool("dc").members]


@given(weights=WEIGHTS)
def test_what_is_written_is_read_again(weights: dict[str, dict[int, float]], tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("weights") / "weights.toml"
    pool_weights.save(path, weights, lambda pool, member: f"host-{member}:80")
    assert pool_weights.parse("weights.toml", path.read_text()) == weights
    assert [each.name for each in path.parent.iterdir()] == ["weights.toml"]


def test_measured_weights_multiply_those_of_the_file_and_others_stay(place: Path) -> None:
    first, second, _ = ids(place)
    put(place, f"[pools.dc]\n{first:012x} = 0.25\n{second:012x} = 0.5\n")
    book = load(str(place / "proxies.toml"))
    assert found(book) == [0.25, 0.25, 1.0]
    assert book.notes == ()


def test_new_weights_are_used_without_a_restart_and_win_as_a_newer_version(place: Path) -> None:
    first = ids(place)[0]
    put(place, f"[pools.dc]\n{first:012x} = 0.25\n")
    book = load(str(place / "proxies.toml"))
    before = book.pool("dc")
    assert book.reload() == []

    put(place, f"[pools.dc]\n{first:012x} = 0.75\n")

    [changed] = book.reload()
    assert (changed.name, found(book)) == ("dc", [0.75, 0.5, 1.0])
    assert changed.version > before.version
    assert book.reload() == []


def test_broken_weights_change_nothing_and_are_reported_once(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = ids(place)[0]
    put(place, f"[pools.dc]\n{first:012x} = 0.25\n")
    book = load(str(place / "proxies.toml"))
    caplog.set_level(logging.WARNING, "trotline.proxies")

    put(place, f"[pools.dc]\n{first:012x} = 7\n")
    assert (book.reload(), book.reload(), found(book)) == ([], [], [0.25, 0.5, 1.0])
    (place / "weights.toml").unlink()
    assert (book.reload(), found(book)) == ([], [0.25, 0.5, 1.0])

    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "the weight of" in said[0] and "weights.toml cannot be read: No such file" in said[1]


def test_unknown_members_and_pools_are_counted_and_named(place: Path) -> None:
    lines = "".join(f"{number:012x} = 0.5\n" for number in range(1, 8))
    put(place, f"[pools.dc]\n{lines}[pools.gone]\n00000000000a = 1\n")
    pool_note, member_note = load(str(place / "proxies.toml")).notes
    assert pool_note == "weights.toml has weights for unknown pools: 'gone'"
    assert member_note.startswith("pool 'dc': 7 weights are for proxies that are not in it: 000000000001, 000000000002")
    assert member_note.endswith("000000000005 and 2 more")


def test_slots_of_a_gateway_have_weights_too(place: Path) -> None:
    (place / "proxies.toml").write_text(
        'weights = "weights.toml"\n[pools.dc]\nendpoint = "http://10.1.1.1:80"\nuser = "u-{session}"\nslots = 2\n'
    )
    put(place, "")
    one, two = (member.id for member in load(str(place / "proxies.toml")).pool("dc").members)
    put(place, f"[pools.dc]\n{two:012x} = 0.5\n")
    assert [(each.id, each.weight) for each in load(str(place / "proxies.toml")).pool("dc").members] == [
        (one, 1.0),
        (two, 0.5),
    ]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[pools", "weights.toml cannot be read"),
        ("a = " + "[" * 5000, "weights.toml cannot be read"),
        ("pools = 3", "is not a file of weights"),
        ('[pools.dc]\nlist = "s3cret"', "a key that is not the id of a proxy"),
        ("[pools.dc]\na1b2c3d4e5f6 = 0", "the weight of a1b2c3d4e5f6 must be a number above 0, at most 1"),
        ("[pools.dc]\na1b2c3d4e5f6 = true", "must be a number above 0"),
        ("[pools.dc]\na1b2c3d4e5f6 = '1'", "must be a number above 0"),
        ("[pools.dc]\na1b2c3d4e5f6 = nan", "must be a number above 0"),
        ("[pools.dc]\n000000000000 = 1", "a key that is not the id"),
        ("[pools.dc]\n'-1b2c3d4e5f6' = 1", "a key that is not the id"),
        ("[other]\n", "is not a file of weights"),
        ("[pools]\ndc = 7", "is not a file of weights"),
    ],
)
def test_a_file_that_is_not_one_of_weights_is_refused(place: Path, text: str, part: str) -> None:
    put(place, text)
    with pytest.raises(SettingsError) as refused:
        load(str(place / "proxies.toml"))
    assert part in refused.value.what
    assert "s3cret" not in refused.value.what


@pytest.mark.parametrize("value", ["7", '""', '["a"]'])
def test_the_key_names_a_file(place: Path, value: str) -> None:
    (place / "proxies.toml").write_text(f'weights = {value}\n[pools.dc]\nlist = "dc.txt"\n')
    with pytest.raises(SettingsError, match="weights must be the name of a file"):
        load(str(place / "proxies.toml"))


def test_saving_keeps_what_was_not_measured_and_never_overwrites_another_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.toml"
    pool_weights.save(path, {"a": {1: 0.5, 2: 0.6}, "b": {3: 0.7}}, lambda *_: "")
    pool_weights.save(path, {"a": {2: 0.9, 4: 1.0}}, lambda pool, member: "192.0.2.1:80" if member == 4 else "")
    assert pool_weights.parse("", path.read_text()) == {"a": {1: 0.5, 2: 0.9, 4: 1.0}, "b": {3: 0.7}}
    assert "000000000004 = 1  # 192.0.2.1:80" in path.read_text().splitlines()

    mine = tmp_path / "proxies.toml"
    mine.write_text('[pools.dc]\nlist = "dc.txt"\n')
    for write in (lambda: pool_weights.existing(mine), lambda: pool_weights.save(mine, {}, lambda *_: "")):
        with pytest.raises(SettingsError, match="it is not overwritten"):
            write()
    assert tomllib.loads(mine.read_text()) == {"pools": {"dc": {"list": "dc.txt"}}}


def test_a_folder_that_does_not_exist_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="its folder does not exist"):
        pool_weights.existing(tmp_path / "none" / "weights.toml")
