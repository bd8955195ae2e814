"""The keys that records share."""

import json

import pytest

from trotline.model.merge import MergeRule, Source
from trotline.rules.merge_keys import ALIKE, EXACT, PAGE, ids_of, keys_of, kind_of_key


def source(data, *, key="k", url="https://a.example/p/1", kind="p"):
    return Source(1, "a", kind, key, url, 1.0, 1.0, 0, json.dumps(data), False)


def blocks(data, by, author=None, **more):
    return set(keys_of(source(data, **more), MergeRule(by=by), author).blocks)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("https://www.a.example/p/1?utm_source=mail&b=2&a=1#top", "http://a.example/p/1?a=1&b=2"),
        ("https://a.example:443/p/%7Eme", "https://a.example/p/~me"),
    ],
)
def test_one_page_has_one_key_however_its_url_is_written(a, b):
    assert blocks({}, ("url",), url=a) == blocks({}, ("url",), url=b)
    assert {PAGE} == {kind_of_key(key) for key in blocks({}, ("url",), url=a)}


def test_records_of_two_kinds_share_no_key():
    data = {"title": "Tea 100g", "gtin": "4006381333931"}
    by = ("key", "url", "content", "ids", "text")
    assert not blocks(data, by) & blocks(data, by, kind="review")


def test_gtin_and_isbn_are_one_number_in_all_their_forms():
    assert (
        ids_of({"ean": "4006381333931"})
        == ids_of({"gtin14": "04006381333931"})
        == ids_of({"barcode": " 4006381-333931 "})
    )
    assert ids_of({"isbn": "0-306-40615-2"}) == ids_of({"isbn13": "978-0-306-40615-7"})


@pytest.mark.parametrize(
    "value", ["4006381333930", "0000000000000", "123", "", None, "٤٠٠٦٣٨١٣٣٣٩٣١", "0306406153", "X306406152"]
)
def test_a_number_with_a_wrong_check_digit_identifies_nothing(value):
    assert set() == ids_of({"gtin": value, "isbn": value})


def test_the_same_content_is_one_key_in_any_order_of_its_fields():
    assert blocks({"a": 1, "b": [2]}, ("content",)) == blocks({"b": [2], "a": 1}, ("content",))
    assert blocks({"a": 1}, ("content",)) != blocks({"a": 2}, ("content",))


def test_the_author_s_answers_are_keys_and_none_is_no_answer():
    assert blocks({"x": "1"}, (), lambda record: record.data["x"]) == blocks({"x": "2"}, (), lambda record: ["1", None])
    assert set() == blocks({}, (), lambda record: None)
    assert {EXACT} == {kind_of_key(key) for key in blocks({}, (), lambda record: "1")}


def test_similar_texts_meet_in_a_group():
    a, b = (blocks({"title": text}, ("text",)) for text in ("Acme Green Tea 100g", "ACME tea, green - 0.1 kg"))
    assert a & b
    assert {ALIKE} == {kind_of_key(key) for key in a}
    assert not a & blocks({"title": "Cordless Drill X200"}, ("text",))
    assert set() == blocks({"price": 3}, ("text",))
