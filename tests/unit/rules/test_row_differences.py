"""What a re-parse would change."""

from trotline.model.record import Record
from trotline.model.record_row import Row
from trotline.rules import row_differences as differences


def record(key, seen_at=10.0, **data):
    return Record(kind="product", key=key, data=data, url=f"https://h.test/{key}", site="shop", seen_at=seen_at)


def row(key, data, seen_at=10.0):
    return Row("shop", "product", key, f"https://h.test/{key}", seen_at, data)


def made_of(*records):
    made = {}
    for number, one in enumerate(records):
        differences.newest(made, one, (0, number))
    return made


def pages_of(*keys, at=10.0, **more):
    pages = differences.PagesRead(**more)
    for key in keys:
        pages.add(differences.hash_of_url(f"https://h.test/{key}"), at)
    return pages


def test_rows_are_new_changed_the_same_older_or_not_made():
    made = made_of(record("a", x=1), record("b", x=1, y="é"), record("c", x=2), record("d", x=2))
    rows = [
        row("b", '{"y":"\\u00e9","x":1}'), row("c", '{"x":1}'), row("d", '{"x":1}', seen_at=11.0), row("e", "{}"),
        row("f", "{}", seen_at=99.0),
    ]  # fmt: skip
    found, changed = differences.compared(made, rows, pages_of("abcd"))
    assert (found.new, found.changed, found.same, found.older, found.not_made) == (1, 1, 1, 1, 1)
    assert [(one.key, made.place) for one, made in changed] == [("c", (0, 2))]


def test_a_time_that_a_database_has_rounded_to_microseconds_is_not_a_later_one():
    made = made_of(record("a", seen_at=985.0531595, x=1), record("b", seen_at=986.0531594, x=1))
    rows = [row("a", '{"x":2}', 985.05316), row("b", '{"x":2}', 986.053159)]
    found, _ = differences.compared(made, rows, differences.PagesRead())
    assert (found.changed, found.older) == (2, 0)


def test_rows_of_pages_that_failed_are_not_rows_that_no_page_gives():
    made = made_of(record("a", x=1))
    rows = [row("a", '{"x":1}'), row("b", "{}"), row("c", "{}")]
    failed = {differences.hash_of_url("https://h.test/b")}
    found, _ = differences.compared(made, rows, pages_of("a", "c"), failed)
    assert (found.of_failed, found.not_made) == (1, 1)
    assert differences.compared({}, rows, differences.PagesRead(), failed)[0].of_failed == 1


def test_rows_of_pages_that_were_read_are_counted_though_no_page_gives_a_record():
    rows = [row("a", "{}", 10.0), row("b", "{}", 20.0), row("later", "{}", 30.0), row("other", "{}", 15.0)]
    pages = pages_of("a", at=10.0)
    pages.add(differences.hash_of_url("https://h.test/b"), 20.0)
    pages.add(differences.hash_of_url("https://h.test/later"), 19.0)
    found, _ = differences.compared({}, rows, pages)
    assert (found.not_made, found.new) == (2, 0)


def test_the_time_of_the_pages_counts_and_not_that_of_their_records():
    pages = pages_of("a", at=10.0)
    pages.add(differences.hash_of_url("https://h.test/list"), 5.0)
    rows = [row("a", '{"x":1}'), row("from-a-list", "{}", 7.0), row("before", "{}", 4.0)]
    found, _ = differences.compared(made_of(record("a", x=1)), rows, pages)
    assert (found.same, found.not_made) == (1, 1)


def test_rows_with_a_url_of_their_own_are_found_by_the_time_of_their_page_unless_a_route_was_named():
    rows = [row("own", "{}", 10.0531595), row("other", "{}", 10.2)]
    pages = pages_of("list", at=10.05316)
    pages.add(differences.hash_of_url("https://h.test/list2"), 11.0)
    assert differences.compared({}, rows, pages)[0].not_made == 1
    # Pages of several routes may have been leased at the same moment.
    pages = pages_of("list", at=10.0531595, of_a_route=True)
    assert differences.compared({}, rows, pages)[0].not_made == 0


def test_examples_show_each_field_that_changed():
    chosen = differences.Examples(3)
    for number in range(50):
        chosen.add({"key": number}, {"title"})
    chosen.add({"key": "price"}, {"title", "price"})
    chosen.add({"key": "stock"}, {"stock"})
    assert [one["key"] for one in chosen.chosen()] == [0, "price", "stock"]
    chosen = differences.Examples(3)
    for number in range(50):
        chosen.add({"key": number}, {"title"})
    assert [one["key"] for one in chosen.chosen()] == [0, 1, 2]


def test_the_newest_record_of_a_key_counts():
    made = made_of(record("a", 11.0, x=2), record("a", 10.0, x=1))
    assert differences.compared(made, [row("a", '{"x":2}', 11.0)], differences.PagesRead())[0].same == 1


def test_changed_fields_say_what_was_and_what_is():
    fields = differences.changed_fields(row("a", '{"x":1,"gone":2,"same":[1]}'), record("a", x=3, same=[1], new=None))
    assert fields == {"x": (1, 3), "gone": (2, None)}
