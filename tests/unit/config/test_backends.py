"""A technology is one folder: only config/backends.py knows which ones there are."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import trotline
from tests.unit.source_nodes import source_nodes
from trotline.config import backends
from trotline.config.backend_urls import repeatable
from trotline.errors import SettingsError
from trotline.ports.backend import Backend

# One process parses all of our files.
pytestmark = pytest.mark.xdist_group("source")
SOURCE = Path(trotline.__file__).parent
ROOMS = [room.name for room in SOURCE.iterdir() if room.is_dir() and room.name not in ("adapters", "testing")]
FORMS = {"jsonl", "csv", "parquet"}
"""Also what `trotline export` writes."""
REFERENCES = {("model/secret.py", "file"), ("config/pool_sources.py", "file")}
"""`file:PATH` is also a reference, to a secret or a list of proxies."""


def test_no_scheme_is_compared_outside_of_its_folder():
    schemes = {scheme for backend in backends._own() for scheme in backend.schemes} - FORMS
    found = []
    for file, node in source_nodes().comparisons:
        if Path(file).parts[0] in ROOMS:
            texts = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
            found += [(file, text) for text in texts & schemes]
    assert set(found) <= REFERENCES


def test_nothing_asks_of_which_class_a_port_is():
    """But for the door of programs that embed Trotline: they may give a whole sink, or one that only writes."""
    ports = {"Frontier", "Console", "Jobs", "Leadership", "Sink", "Ledger", "Outbox", "SharedCache", "Backend"}
    found = []
    for file, node in source_nodes().calls:
        if Path(file).parts[0] in ROOMS and getattr(node.func, "id", "") == "isinstance":
            names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            found += [file] if names & ports else []
    assert set(found) == {"config/backends.py", "config/custom_sink.py"}


def test_only_declarations_are_read_to_know_the_backends():
    """`trotline --help` and the first page must not pay for libraries of servers that nobody uses."""
    asked = "import sys, trotline.config.backends as b; b.find('redis://h/0'); print([m for m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    for heavy in ("'redis'", "'asyncpg'", "'pyarrow'", "'sqlite3'", "'aiohttp'"):
        assert heavy not in told


def test_a_scheme_belongs_to_one_backend():
    named = [scheme for backend in backends._own() for scheme in backend.schemes]
    assert len(named) == len(set(named))


def test_an_unknown_scheme_is_answered_with_those_that_are_known():
    with pytest.raises(SettingsError, match="is not a URL that is known here") as caught:
        backends.backend_of("mysql://user:secret@db/shop")
    assert "postgresql:" in caught.value.hint
    assert "secret" not in str(caught.value)


def test_an_entry_point_that_is_no_backend_is_named():
    with pytest.raises(SettingsError, match=r"'odd' of group trotline\.backends is not a Backend"):
        backends._loaded("odd", object())
    assert backends._loaded("fine", Backend(name="fine", schemes=("fine",), local=True)).name == "fine"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://anna@db.example/shop", "postgresql://anna@db.example/shop"),
        ("postgresql://anna:s3cret@db.example/shop", "postgresql://anna@db.example/shop"),
        ("rediss+cluster://anna:s3cret@queue.example", "rediss+cluster://anna@queue.example"),
        # There it may be a password, by mistake.
        ("redis://s3cret@queue.example/0", "redis://queue.example/0"),
        ("redis://:s3cret@queue.example/0", "redis://queue.example/0"),
        ("unknown://anna:s3cret@queue.example/0", "unknown://queue.example/0"),
        ("sqlite:/srv/anna@home/crawl.db", "sqlite:/srv/anna@home/crawl.db"),
        (
            "amqp://anna:s3cret@mq.example/v?books=redis://b:s3cret@db.example/0",
            "amqp://anna@mq.example/v?books=redis://db.example/0",
        ),
        ("amqp://mq.example/v?books=redis://:s3cret@db.example/0", "amqp://mq.example/v?books=redis://db.example/0"),
    ],
)
def test_a_command_to_type_again_has_the_user_that_the_backend_declares_and_no_password(url, shown):
    assert repeatable(url) == shown


def test_hints_name_the_backends_that_can():
    with pytest.raises(SettingsError) as refused:
        backends.open_merge_store("jsonl:rows.jsonl")
    assert refused.value.hint.endswith("--sink sqlite:PATH or postgresql://HOST/DATABASE")
    with pytest.raises(SettingsError) as refused:
        backends.open_table("redis://queue.example/0", "pages")
    assert refused.value.hint.endswith("--at sqlite:PATH or postgresql://HOST/DATABASE")
    assert backends.shared_frontiers() == "sqlite:PATH, redis://HOST:PORT/0 or postgresql://HOST/DATABASE"
