"""Values that authors write down wrong: the message says what to write."""

import copy

import msgspec
import pytest

from trotline import Files, Limits, TrapRules, UrlRules


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Files("pictures"), "Files takes its values by name: write Files(folder='pictures'). It has: folder, "),
        (lambda: Files("x", folder="y"), "write Files(largest='x')"),
        (lambda: Files(), "Files needs folder: write Files(folder=...). It has: folder, largest"),
        (lambda: Files(folder="x", image=True), "Files has no 'image'. Did you mean 'images'? It has: folder, "),
        (lambda: Limits(10), "Limits takes its values by name: write Limits(wire_body=10). It has: wire_body, "),
        (lambda: Limits(body=10), "Limits has no 'body'. Did you mean 'wire_body'? It has: wire_body, "),
        (lambda: TrapRules(zzz=1), "TrapRules has no 'zzz'. It has: segments"),
        (lambda: UrlRules(["utm_x"]), "UrlRules takes its values by name: write UrlRules(tracking=['utm_x'])."),
    ],
)
def test_a_wrong_call_is_answered_with_the_right_one(make, said):
    with pytest.raises(TypeError) as refused:
        make()
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Limits(parse="10s"), "limit parse is '10s'; give a number (times are in seconds)"),
        (lambda: Limits(parse=True), "limit parse is True"),
        (lambda: TrapRules(segments="x"), "trap rule segments is 'x'; give a number"),
        (lambda: UrlRules(tracking=3), "tracking is 3; write a list of names"),
    ],
)
def test_a_value_of_a_wrong_type_is_named(make, said):
    with pytest.raises(ValueError) as refused:
        make()
    assert said in str(refused.value)


def test_a_struct_is_made_copied_and_decoded_as_any_other():
    files = Files(folder="x", images=True)
    assert copy.copy(files) == msgspec.structs.replace(files) == msgspec.convert({"folder": "x", "images": True}, Files)
    assert msgspec.json.decode(msgspec.json.encode(files), type=Files) == files
    assert hash(files) == hash(Files(folder="x", images=True))
