"""Forms, filled in and submitted as a browser does it."""

from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.unit.spider.test_page import page_of

LOGIN = """
<form id=search action=/find><input name=q></form>
<form id=login method=post action="/session?from=home">
  <input type=hidden name=token value="a b&amp;c">
  <input name=user> <input type=password name=password>
  <input type=checkbox name=stay value=yes> <input type=checkbox name=news checked>
  <input type=radio name=role value=buyer checked> <input type=radio name=role value=seller>
  <select name=country><option value="">choose<option value=de selected>Germany<option>Italy</select>
  <select name=size><option>S<option>M</select>
  <select name=tags multiple><option>a<option>b<option>c</select>
  <textarea name=note>
first</textarea>
  <input name=off disabled value=1> <fieldset disabled><input name=in_off value=1></fieldset>
  <input type=file name=photo> <button type=button name=menu value=1>
  <button name=do value=login>Log in</button> <button name=do value=register formaction=/new formmethod=get>New</button>
</form>
<input name=outside form=login value=too>
"""


def sent(task) -> list[tuple[str, str]]:
    return parse_qsl(task.body.decode(), keep_blank_values=True)


def test_a_form_is_sent_as_a_browser_sends_it_with_its_hidden_fields():
    task = page_of(LOGIN).form("#login", {"user": "anna", "password": "x&y"})

    assert (task.url, task.method) == ("https://shop.example/session?from=home", "POST")
    assert dict(task.headers) == {"content-type": "application/x-www-form-urlencoded"}
    assert sent(task) == [
        ("token", "a b&c"),
        ("user", "anna"),
        ("password", "x&y"),
        ("news", "on"),
        ("role", "buyer"),
        ("country", "de"),
        ("size", "S"),
        ("note", "first"),
        ("do", "login"),
        ("outside", "too"),
    ]


def test_values_choose_tick_leave_out_and_repeat():
    values = {"stay": True, "news": False, "role": "seller", "country": "Italy", "tags": ["a", "c"], "token": None}
    pairs = sent(page_of(LOGIN).form("#login", values, extra={"js": 1}))

    assert [value for name, value in pairs if name == "tags"] == ["a", "c"]
    assert not {"token", "news"} & {name for name, _ in pairs}
    assert {("stay", "yes"), ("role", "seller"), ("country", "Italy"), ("js", "1")} <= set(pairs)


def test_the_button_says_where_and_how():
    task = page_of(LOGIN).form("#login", {"user": "anna"}, click="[value=register]")

    assert (task.method, task.body) == ("GET", b"")
    assert urlsplit(task.url).path == "/new"
    assert ("do", "register") in parse_qsl(urlsplit(task.url).query)
    assert "do" not in dict(sent(page_of(LOGIN).form("#login", click=False)))


def test_a_get_form_replaces_the_query_of_its_action():
    task = page_of("<form action='/find?old=1#top'><input name=q><input type=image name=go></form>").form(
        values={"q": "tea & milk"}
    )
    assert task.url == "https://shop.example/find?q=tea+%26+milk&go.x=0&go.y=0"
    assert (
        page_of("<form><input name=q value=1></form>", url="https://shop.example/a?b=1").form().url
        == "https://shop.example/a?q=1"
    )


def test_a_multipart_form_is_the_same_task_each_time_and_names_cannot_break_out():
    html = "<form method=post enctype=multipart/form-data><input name='a\"\r\nX: y' value=1><input name=b></form>"
    task, again = (page_of(html).form(values={"b": "two\nlines"}) for _ in range(2))

    boundary = dict(task.headers)["content-type"].partition("boundary=")[2]
    assert task.body == again.body
    assert task.body.count(boundary.encode()) == 3
    assert b"\r\nX: y" not in task.body
    assert b'name="b"\r\n\r\ntwo\r\nlines\r\n' in task.body


def test_a_form_is_sent_in_the_encoding_of_its_page():
    page = page_of("<form method=post><input name=q></form>".encode("cp1250"), "text/html; charset=windows-1250")
    assert page.form(values={"q": "čaj ∞"}).body == b"q=%E8aj+%26%238734%3B"
    page = page_of("<form method=post accept-charset=utf-8><input name=q></form>", "text/html; charset=windows-1250")
    assert page.form(values={"q": "č"}).body == b"q=%C4%8D"


def test_a_form_is_found_by_what_is_in_it_or_around_it():
    page = page_of("<div class=box><form action=/x><input name=q class=field></form></div>")
    assert page.form(".field", {"q": "1"}).url == page.form(".box", {"q": "1"}).url == "https://shop.example/x?q=1"


def test_the_session_of_the_page_goes_with_the_form():
    page = page_of("<form><input name=q></form>", session="anna")
    assert page.form().session == "anna"
    assert page.form(session="").session == ""


@pytest.mark.parametrize(
    ("query", "values", "more", "said"),
    [
        ("#none", {}, {}, "no form matches '#none' on https://shop.example/a/b?c=1; its forms: form#search"),
        ("#login", {"usr": "x"}, {}, "has no field 'usr'; it has token, user"),
        ("#login", {"country": "fr"}, {}, "has no choice 'fr'; it offers '', 'de', 'Italy'"),
        ("#login", {"user": True}, {}, "True and False are for checkboxes"),
        ("#login", {"user": object()}, {}, "give text, a number"),
        ("#login", {}, {"click": "#nope"}, "is no submit button of the form; its buttons: button"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_there_is(query, values, more, said):
    with pytest.raises((ValueError, TypeError)) as error:
        page_of(LOGIN).form(query, values, **more)
    assert said in str(error.value)


def test_a_form_for_scripts_and_an_action_that_is_no_link_are_refused():
    with pytest.raises(ValueError, match="for scripts"):
        page_of("<form method=dialog></form>").form()
    with pytest.raises(ValueError, match="javascript"):
        page_of("<form action='javascript:go()'></form>").form()


def test_a_hidden_token_makes_each_form_its_own_task_unless_it_has_a_key():
    assert page_of(LOGIN).form("#login", key="login").key == "login"
