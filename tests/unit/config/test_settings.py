"""Promises of the settings: where a value comes from, and what a wrong one says."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.config.backend_urls import frontier_url, public, shown, sink_url
from trotline.config.backends import is_local, local_path
from trotline.config.settings import Settings, file_name, read, unknown_variables
from trotline.errors import SettingsError
from trotline.model.time import seconds


def test_without_anything_the_defaults_are_local_files(tmp_path: Path):
    settings = read({}, {}, tmp_path)
    assert settings == Settings()
    assert settings.frontier_of("shop") == "sqlite:.trotline/shop.frontier.db"
    assert settings.sink_of("shop") == "sqlite:shop.db"


def test_flags_beat_environment_beats_file(tmp_path: Path):
    (tmp_path / "trotline.toml").write_text('slots = 2\nprocesses = 2\nmax-pages = 2\nmax_time = "2m"\n')
    environment = {"TROTLINE_SLOTS": "3", "TROTLINE_PROCESSES": "3"}
    settings = read({"slots": 4, "sink": None}, environment, tmp_path)
    assert (settings.slots, settings.processes, settings.max_pages, settings.max_time) == (4, 3, 2, 120.0)


def test_a_section_of_pyproject_is_read_and_trotline_toml_beats_it(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("[tool.trotline]\nslots = 7\n")
    assert read({}, {}, tmp_path).slots == 7
    (tmp_path / "trotline.toml").write_text("slots = 8\n")
    assert read({}, {}, tmp_path).slots == 8


def test_a_pyproject_without_our_section_is_none_of_our_business(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("this is not toml")
    assert read({}, {}, tmp_path) == Settings()


def test_an_unknown_setting_is_an_error_with_a_suggestion(tmp_path: Path):
    (tmp_path / "trotline.toml").write_text("slot = 7\n")
    with pytest.raises(SettingsError, match=r"trotline.toml: unknown setting 'slot'") as caught:
        read({}, {}, tmp_path)
    assert "'slots'" in caught.value.hint


def test_a_settings_file_that_is_no_toml_is_named_with_the_line(tmp_path: Path):
    (tmp_path / "trotline.toml").write_text("slots = \n")
    with pytest.raises(SettingsError, match=r"trotline.toml cannot be read.*line 1"):
        read({}, {}, tmp_path)


def test_a_misspelt_variable_is_an_error_and_a_foreign_one_is_not(tmp_path: Path):
    with pytest.raises(SettingsError, match="TROTLINE_FRONTEIR") as caught:
        read({}, {"TROTLINE_FRONTEIR": "sqlite:x.db"}, tmp_path)
    assert "TROTLINE_FRONTIER" in caught.value.hint
    assert read({}, {"TROTLINE_THEME": "dark"}, tmp_path) == Settings()
    assert unknown_variables({"TROTLINE_THEME": "dark", "TROTLINE_SLOTS": "1", "HOME": "/"}) == ["TROTLINE_THEME"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("slots", "0"),
        ("slots", "many"),
        ("slots", "5000"),
        ("processes", "-1"),
        ("max_pages", "0"),
        ("max_time", "soon"),
        ("grace", "0"),
        ("memory", "1024"),
        ("memory", "10MiB"),
        ("memory", "0GiB"),
        ("allow_private", "perhaps"),
        ("allow", "10.20.0.7/16"),
        ("allow", "wiki.corp.example,http://wiki/"),
        ("frontier", "amqp://there"),
        ("frontier", "redis://"),
        ("frontier", "sqlite:"),
        ("sink", "rows.xls"),
        ("sink", "jsonl:"),
    ],
)
def test_a_wrong_value_says_where_it_stands(name: str, value: str, tmp_path: Path):
    variable = f"TROTLINE_{name.upper()}"
    with pytest.raises(SettingsError, match=variable):
        read({}, {variable: value}, tmp_path)


def test_allowed_places_are_a_list_in_the_file_and_have_commas_in_the_environment(tmp_path: Path):
    (tmp_path / "trotline.toml").write_text('allow = ["wiki.corp.example", "10.20.0.0/16"]\n')
    assert read({}, {}, tmp_path).allow == ("wiki.corp.example", "10.20.0.0/16")
    assert read({}, {"TROTLINE_ALLOW": "a.example, 10.0.0.0/8,"}, tmp_path).allow == ("a.example", "10.0.0.0/8")
    assert read({"allow": ("b.example",)}, {}, tmp_path).allow == ("b.example",)
    (tmp_path / "trotline.toml").write_text("allow = 10\n")
    with pytest.raises(SettingsError, match="not a list of hosts and networks"):
        read({}, {}, tmp_path)


def test_a_wrong_type_in_the_file_is_refused(tmp_path: Path):
    (tmp_path / "trotline.toml").write_text("slots = true\n")
    with pytest.raises(SettingsError, match=r"slots in trotline.toml: True is not a whole number"):
        read({}, {}, tmp_path)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("rows.jsonl", "jsonl:rows.jsonl"),
        ("Rows.CSV", "csv:Rows.CSV"),
        ("out/rows.parquet", "parquet:out/rows.parquet"),
        ("rows.db", "sqlite:rows.db"),
        ("sqlite:rows", "sqlite:rows"),
        ("sqlite:///abs/rows.db", "sqlite:/abs/rows.db"),
        ("jsonl:rows.txt", "jsonl:rows.txt"),
    ],
)
def test_a_sink_is_told_by_its_ending_or_its_scheme(text: str, url: str):
    assert sink_url(text) == url
    assert sink_url(url) == url, "the one form stays as it is"


def test_frontier_forms():
    assert frontier_url("sqlite::memory:") == "sqlite::memory:"
    assert frontier_url("f.db") == "sqlite:f.db"
    assert local_path("sqlite::memory:") == ""
    assert local_path("sqlite:/x/f.db") == "/x/f.db"


@pytest.mark.parametrize("text", ["sqlite:f.db?seen=bloom", "f.db?seen_scope=site", "sqlite:f.db?seen=exact&forget=7d"])
def test_a_sqlite_frontier_has_one_memory_of_what_was_seen(text: str):
    with pytest.raises(
        ValueError, match=r"remembers exactly what was seen, and per job\. Remove it, or write \"redis://"
    ):
        frontier_url(text)


@pytest.mark.parametrize(
    "url",
    [
        "redis://queue:6379/0",
        "rediss://:secret@queue/0?shards=4",
        "redis+cluster://a:7000,b:7000/?seen=bloom",
        "redis+sentinel://a:26379,b:26379/main",
    ],
)
def test_servers_are_frontiers_as_they_are_written(url: str):
    assert frontier_url(url) == url
    assert local_path(url) == ""
    assert not is_local(url)
    assert "secret" not in shown(url)


def test_postgresql_is_a_sink_under_both_of_its_names():
    assert sink_url("PostgreSQL://me:secret@db/rows") == "postgresql://me:secret@db/rows"
    assert sink_url("postgres://db/rows") == "postgres://db/rows"
    assert shown("postgresql://me:secret@db/rows") == "postgresql://db/rows"


def test_a_refused_url_shows_no_password():
    with pytest.raises(ValueError, match="db/rows") as caught:
        sink_url("mysql://me:secret@db/rows")
    assert "secret" not in str(caught.value)
    assert public("https://u:p@h.example:8/x?y") == "https://h.example:8/x?y"


@pytest.mark.parametrize(("text", "length"), [("90", 90), ("1.5s", 1.5), ("10m", 600), ("1h30m", 5400), ("2d", 172800)])
def test_lengths_of_time(text: str, length: float):
    assert seconds(text) == length


@given(st.text(max_size=20))
def test_any_text_is_a_length_or_refused(text: str):
    try:
        assert seconds(text) >= 0
    except ValueError as error:
        assert "90s" in str(error)


@given(st.text(max_size=20))
def test_any_spider_name_gives_a_file_name_in_this_folder(name: str):
    found = file_name(name)
    assert found
    assert "/" not in found
    assert not found.startswith(".")


@given(st.text(max_size=40))
def test_reading_any_sink_text_is_a_url_or_a_value_error(text: str):
    try:
        url = sink_url(text)
    except ValueError:
        return
    assert sink_url(url) == url


@pytest.mark.parametrize("text", ["512MiB", "512M", "512 mb", "0.5GiB", "0.5g"])
def test_memory_is_written_as_people_write_it(text: str, tmp_path: Path):
    assert read({"memory": text}, {}, tmp_path).memory == 512 * 1024 * 1024


def test_the_proxies_file_is_a_path_or_a_reference_that_stays_one(tmp_path: Path):
    assert read({"proxies": "proxies.toml"}, {}, tmp_path).proxies == "proxies.toml"
    assert read({}, {"TROTLINE_PROXIES": "file:/run/secrets/proxies"}, tmp_path).proxies == "file:/run/secrets/proxies"
    assert read({}, {"TROTLINE_PROXIES": "env:SHOP_PROXIES"}, tmp_path).proxies == "env:SHOP_PROXIES"
    (tmp_path / "trotline.toml").write_text('proxies = "list.txt"\n')
    assert read({}, {}, tmp_path).proxies == "list.txt"


def test_proxy_list_is_the_proxies_file_unless_it_is_set_otherwise(tmp_path: Path):
    (tmp_path / "trotline.toml").write_text('proxies = "list.txt"\n')
    environment = {"PROXY_LIST": "/run/secrets/proxy_list"}
    assert read({}, environment, tmp_path).proxies == "/run/secrets/proxy_list"
    assert read({}, environment | {"TROTLINE_PROXIES": "mine.toml"}, tmp_path).proxies == "mine.toml"
    assert read({"proxies": "flag.toml"}, environment, tmp_path).proxies == "flag.toml"
    assert read({}, {"PROXY_LIST": " "}, tmp_path).proxies == "list.txt"


@pytest.mark.parametrize("given", ["http://anna:s3cret-77@10.1.1.1:80", "a\nb"])
def test_proxies_that_are_no_path_are_refused_without_quoting_them(given: str, tmp_path: Path):
    with pytest.raises(SettingsError, match=r"PROXY_LIST: .* the path of a file") as caught:
        read({}, {"PROXY_LIST": given}, tmp_path)
    assert "s3cret" not in str(caught.value)


def test_pools_and_regions_are_names_each_once(tmp_path: Path):
    settings = read({"pools": ("home", "dc", "home")}, {"TROTLINE_REGIONS": "eu, us-east"}, tmp_path)
    assert (settings.pools, settings.regions) == (("home", "dc"), ("eu", "us-east"))
    with pytest.raises(SettingsError, match="--pool: 'a b' is not a name of pools"):
        read({"pools": ("a b",)}, {}, tmp_path)
    with pytest.raises(SettingsError, match="--region: "):
        read({"regions": ("a/b",)}, {}, tmp_path)


def test_a_number_without_end_in_a_settings_file_is_named(tmp_path: Path):
    (tmp_path / "trotline.toml").write_text("slots = " + "7" * 5_000)
    with pytest.raises(SettingsError, match=r"trotline.toml cannot be read"):
        read({}, {}, tmp_path)


@pytest.mark.parametrize("cache", [False, True])
def test_no_archive_is_a_choice_that_overrides_a_setting(tmp_path: Path, cache: bool):
    found = read({"archive": "None", "cache": cache}, {"TROTLINE_ARCHIVE": "file:pages"}, tmp_path)
    assert (found.archive, found.archive_place) == ("none", "")
    assert found.of("shop").archive == ("file:.trotline/shop.cache" if cache else "")
