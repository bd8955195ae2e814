"""Generic extraction for a list of URLs: a run of a spider that is ready-made, with its rows in one file."""

import codecs
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Self, TextIO

import msgspec

from trotline.adapters.files.jsonl_reader import CommittedLines
from trotline.commands.input_lines import read_lines, text_of
from trotline.commands.run import Ending, Report, RunPlan, run
from trotline.commands.unfetched_urls import Unfetched, unfetched
from trotline.config.settings import Settings
from trotline.errors import SettingsError
from trotline.model.pace import Rate
from trotline.model.time import Seconds
from trotline.processes.prestarted_child import WaitingChild
from trotline.rules.known_pools import KnownPools
from trotline.spider.builtin import fetch_urls
from trotline.spider.spider import Spider

REF = str(Path(fetch_urls.__file__))
"""As a file: its code version is that of one file, and not of all of Trotline."""


_PRINT_EVERY: Seconds = 0.2


class FetchPlan(msgspec.Struct, frozen=True, kw_only=True):
    urls: tuple[str, ...]
    file: str | None
    """More of them, a URL or a JSON object a line; "-": standard input."""
    fields: tuple[str, ...]
    settings: Settings
    pace: Rate
    give_up: Seconds
    """After this time with failures only, a host is given up."""
    pools: KnownPools | None = None


def paced(pace: Rate, give_up: Seconds) -> Spider:
    """The spider with another pace and patience: the frontier gets them with the job."""
    spider = fetch_urls.fetch
    default = msgspec.structs.replace(
        spider.rules.default, rate=pace, slowest=min(pace, spider.rules.default.slowest, key=_speed)
    )
    spider.rules = msgspec.structs.replace(spider.rules, default=default, give_up=give_up)
    return spider


async def fetch(
    plan: FetchPlan,
    folder: Path,
    launched: Sequence[WaitingChild] = (),
    show: Callable[[Report], None] = lambda _: None,
) -> tuple[Ending, Report, Unfetched]:
    """`folder`: for the seeds, and nothing else. `show` is called now and then, and ends the run if it raises."""
    seeds = folder / "seeds.jsonl"
    with seeds.open("wb") as file:
        async for line in _lines(plan):
            file.write(line + b"\n")
    run_plan = RunPlan(ref=REF, settings=plan.settings, seeds_file=str(seeds), pools=plan.pools, fresh=True)
    spider = paced(plan.pace, plan.give_up)
    ending, report = await run(run_plan, spider, show, launched)
    if plan.settings.inbox:
        # Its list has no end, and others work on it.
        return ending, report, Unfetched()
    return ending, report, await unfetched(plan.settings.frontier, report.job, report.progress, spider, seeds)


class PrintedRows:
    """Copies the rows of a file to a stream as they are stored, in a thread: whoever reads the stream slowly, or not at
    all, delays neither the visits nor the heartbeats."""

    def __init__(self, path: Path, out: TextIO) -> None:
        self._lines = CommittedLines(path)
        self._out = out
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._copy, name="trotline-rows", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """All that is stored is printed, also after an error; an interrupt ends the waiting for a reader."""
        self._ended.set()
        self._thread.join()
        self._lines.close()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raises what the stream has raised: its reader may have closed it."""
        if self._error is not None:
            raise self._error

    def _copy(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            last = False
            while not last:
                last = self._ended.wait(_PRINT_EVERY)
                for piece in self._lines.new():
                    self._out.write(decoder.decode(piece))
                self._out.flush()
        except Exception as error:
            self._error = error


async def _lines(plan: FetchPlan) -> AsyncIterator[bytes]:
    """The lines of the file first, also its empty ones: what is wrong with a line is said with its number there."""
    if plan.file is not None:
        async for number, line in read_lines(plan.file):
            try:
                text = text_of(number, line)
            except ValueError as error:
                raise SettingsError(
                    f"line {number} of {plan.file} {error}", hint="Give one URL or JSON object a line."
                ) from error
            yield _seed(_object(text, number, plan.file), plan.fields) if text else b""
    for url in plan.urls:
        yield _seed({"url": url}, plan.fields)


def _object(text: str, number: int, file: str) -> dict[str, object]:
    if not text.startswith("{"):
        return {"url": text}
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except msgspec.MsgspecError as error:
        raise SettingsError(f"line {number} of {file} is not JSON: {error}", hint="Give a URL or an object.") from error


def _seed(task: dict[str, object], fields: tuple[str, ...]) -> bytes:
    meta = task.get("meta")
    own = meta if isinstance(meta, dict) else {}
    # By its key the record is found again, wherever a redirect leads.
    return msgspec.json.encode({**task, "meta": {**own, "asked": task.get("url"), "fields": list(fields)}})


def _speed(rate: Rate) -> float:
    return rate.per_second
