"""Files that handlers keep."""

import hashlib

import pytest

from trotline.model.answer import Answer
from trotline.model.limits import MIB
from trotline.model.task import Task
from trotline.rules import artifacts
from trotline.spider.page import Page


def test_the_address_is_that_of_the_content():
    page = Page(Task(url="https://h.test/", route="page"), Answer(url="https://h.test/", status=200))
    assert page.kept == []
    address = page.keep("a label.pdf", b"data", "application/pdf")
    assert address == f"archive:sha256-{hashlib.sha256(b'data').hexdigest()}/a%20label.pdf"
    assert page.keep("b.txt", "text") != address
    assert [(one.type, one.data) for one in page.kept] == [
        ("application/pdf", b"data"),
        ("application/octet-stream", b"text"),
    ]


@pytest.mark.parametrize("name", ["", "../a", "a/b", "a\nb", "x" * 101, 7])
def test_odd_names_are_refused(name):
    with pytest.raises(ValueError, match="file name"):
        artifacts.artifact(name, b"", "text/plain")


def test_odd_data_types_and_sizes_are_refused():
    with pytest.raises(TypeError, match="bytes or text"):
        artifacts.artifact("a", 7, "text/plain")
    with pytest.raises(ValueError, match="content type"):
        artifacts.artifact("a", b"", "text/plain\r\nx: y")
    with pytest.raises(ValueError, match="over the limit of 32 MiB"):
        artifacts.check_total([artifacts.artifact("a", bytes(20 * MIB), "a/b")] * 2)
