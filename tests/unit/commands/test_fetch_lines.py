"""Lines of the list of `trotline fetch --from`: what is wrong with one is said with its number in that file."""

from pathlib import Path

import pytest

from trotline.commands.fetch import FetchPlan, fetch
from trotline.config.settings import Settings
from trotline.errors import TrotlineError
from trotline.model.pace import Rate


async def refusal(tmp_path: Path, lines: bytes) -> str:
    file = tmp_path / "urls.txt"
    file.write_bytes(lines)
    settings = Settings(frontier=f"sqlite:{tmp_path / 'frontier.db'}", sink=f"jsonl:{tmp_path / 'rows.jsonl'}")
    plan = FetchPlan(urls=(), file=str(file), fields=("title",), settings=settings, pace=Rate.parse("1/s"), give_up=1.0)
    with pytest.raises(TrotlineError) as refused:
        await fetch(plan, tmp_path)
    return str(refused.value)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"ur":1}', "unknown field 'ur'"),
        (b"{bad", "urls.txt is not JSON"),
        (b"http://shop.example/\xff", "urls.txt is not UTF-8 text"),
    ],
)
async def test_comments_and_blank_lines_are_counted(tmp_path: Path, line: bytes, why: str):
    said = await refusal(tmp_path, b"\xef\xbb\xbf# c\n\n" + line + b"\n# d\n")
    assert "line 3" in said
    assert why in said
