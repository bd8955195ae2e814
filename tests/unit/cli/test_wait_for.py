"""The end of a command whose result is large."""

from trotline.cli.options import wait_for


class Page:
    """Its text would take seconds."""

    shown = 0

    def __repr__(self):
        self.shown += 1
        return "page"


def test_no_text_is_made_of_a_result():
    async def work():
        return Page()

    assert wait_for(work()).shown == 0
