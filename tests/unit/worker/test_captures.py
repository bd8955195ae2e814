"""What a visit leaves for the archive."""

import msgspec
import pytest

from tests.unit.worker.fake_ports import lease
from trotline import Page, Secret, Spider
from trotline.model.answer import FROM_ARCHIVE, Answer, Failure, FailureKind
from trotline.model.archive import CaptureKind
from trotline.model.harvest import Artifact
from trotline.model.outcome import Done
from trotline.model.secret import HIDDEN
from trotline.worker.archiver import bytes_of
from trotline.worker.captures import Captures
from trotline.worker.finished_visit import FinishedVisit, Request

shop = Spider("shop", hosts=["h.test"], archive="ok", headers={"X-Api-Key": Secret("hidden-header-value")})


@shop.page(archive="all")
def page(page: Page): ...


def left(*, route="page", verdict="ok", url="http://h.test/1?token=abcdefgh", answer=None, kept=(), **task):
    leased = lease(7)
    leased = msgspec.structs.replace(leased, task=msgspec.structs.replace(leased.task, url=url, route=route, **task))
    visit = FinishedVisit(lease=leased, outcome=Done(), request=Request(verdict=verdict), kept=kept)
    answer = answer or Answer(url=url, status=200, headers=(("set-cookie", "a=b"),), body=b"page")
    return Captures(shop, "shop-1", (("User-Agent", "T"),)).left(visit, leased.task, answer, "anna")


def added(**more):
    visit = left(**more)
    return visit if visit.response is None else visit.response.captured(visit)


def test_a_response_is_captured_without_secrets():
    visit = added(
        headers=(("cookie", "sid=12345678"),), meta={"next": "http://u:pw@h.test/?key=abc"}, parent="http://h.test/"
    )
    [capture] = visit.captures
    assert visit.archive == capture.id
    assert capture.body == b"page"
    assert capture.request_headers == (("user-agent", "T"), ("x-api-key", HIDDEN), ("cookie", HIDDEN))
    text = str(msgspec.to_builtins(capture))
    for secret in ("abcdefgh", "12345678", "pw@", "key=abc", "a=b", "hidden-header-value"):
        assert secret not in text
    assert capture.about["account"] == "anna"


def test_markup_in_the_meta_of_a_task_is_captured_without_secrets():
    """A link with a token, in quotes: the redaction must not take the quote's escape with it."""
    quoted = Secret('geheim"\\\nwört')
    meta = {
        "html": '<a href="/p?token=abcdefgh">\\</a>',
        "deep": [{"http://h.test/?sid=12345678": f"a {quoted.reveal()} b"}, 3, None, b"\0"],
    }
    [capture] = added(meta=meta).captures
    assert capture.about["meta"] == {
        "html": f'<a href="/p?token={HIDDEN}">\\</a>',
        "deep": [{f"http://h.test/?sid={HIDDEN}": f"a {HIDDEN} b"}, 3, None, b"\0"],
    }


def test_no_field_of_a_task_is_captured_with_a_secret():
    known = Secret("a-known-login").reveal()
    texts = {
        "key": "http://u:pw@h.test/1",
        "session": f"{known}@h.test",
        "lane": "http://h.test/?token=abcdefgh",
        "chain": f"c-{known}",
        "pool": f"p-{known}",
        "site": f"s-{known}",
    }
    [capture] = added(**texts, attempt=2).captures
    assert {name: capture.about[name] for name in texts} == {
        "key": "http://h.test/1",
        "session": f"{HIDDEN}@h.test",
        "lane": f"http://h.test/?token={HIDDEN}",
        "chain": f"c-{HIDDEN}",
        "pool": f"p-{HIDDEN}",
        "site": f"s-{HIDDEN}",
    }
    assert capture.about["attempt"] == 2


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"route": "other", "verdict": "gone"}, "its route archives ok only"),
        ({"answer": Failure(url="http://h.test/", trouble=FailureKind.DNS, why="no")}, "no response"),
        ({"answer": Answer(url="http://h.test/", status=200, notes=(FROM_ARCHIVE,))}, "answered from the archive"),
    ],
)
def test_what_is_not_captured_has_its_reason(more, why):
    visit = left(**more)
    # Its body does not wait for the batch.
    assert visit.response is None
    assert visit.captures == ()
    assert visit.archive.startswith("not archived: ")
    assert why in visit.archive


def test_what_a_handler_kept_is_captured_whatever_the_choice_says():
    kept = (Artifact(address="archive:sha256-1/a.txt", type="text/plain", data=b"data"),)
    visit = added(route="other", verdict="gone", kept=kept)
    [capture] = visit.captures
    assert (capture.kind, capture.url, capture.body) == (CaptureKind.ARTIFACT, "archive:sha256-1/a.txt", b"data")
    assert visit.kept == ()


def test_what_waits_is_counted_until_it_is_captured():
    kept = (Artifact(address="archive:sha256-1/a.txt", type="text/plain", data=b"data"),)
    waiting = left(kept=kept)
    assert bytes_of(waiting) == len(b"page") + len(b"data")
    assert bytes_of(waiting.response.captured(waiting)) == bytes_of(waiting)
    assert bytes_of(left(route="other", verdict="gone", kept=kept)) == len(b"data")
    assert bytes_of(left(route="other", verdict="gone")) == 0


def test_of_a_body_that_came_coded_only_what_came_waits_and_is_captured():
    coded = Answer(
        url="http://h.test/1", status=200, headers=(("content-encoding", "gzip"),), body=b"page " * 100, wire=b"packed"
    )
    waiting = left(answer=coded)
    assert waiting.response.answer.body == b""
    assert bytes_of(waiting) == len(b"packed")
    [capture] = waiting.response.captured(waiting).captures
    assert (capture.body, capture.is_coded) == (b"packed", True)
    assert capture.headers == (("content-encoding", "gzip"),)
    [plain] = added().captures
    assert (plain.body, plain.is_coded) == (b"page", False)


def test_the_same_visit_has_the_same_id():
    assert added().archive == added().archive
    assert added().archive != added(fingerprint=9).archive
