"""`trotline watch` in a terminal: the live view, and further screens that keys choose."""

import asyncio
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from trotline.cli.formatting import by_number, count, length, safe
from trotline.cli.live_view import LiveView, header, lane_rows
from trotline.cli.workers_view import crew_table
from trotline.errors import FrontierError
from trotline.model.job import InFlight, LaneView, State
from trotline.model.time import Seconds
from trotline.rules.eta import Range, Unknown
from trotline.rules.proxy_reasons import grouped

if TYPE_CHECKING:
    from trotline.commands.run_report import Report
    from trotline.ports.console import Console as JobConsole

_SURE: Seconds = 3.0
"""The second press of a key that changes the job must follow within this."""
_LOOK_EVERY: Seconds = 1.0
_MOST = 500
"""Lanes and visits that are asked for: more than any screen shows."""
_SCREENS = {"j": "job", "l": "lanes", "e": "errors", "i": "in flight", "w": "workers"}
_HINT = "j job  l lanes  e errors  i in flight  w workers  p pause or resume  q quit"


class WatchScreen:
    """Draws the screen that was chosen last, with every report."""

    def __init__(self, console: Console | None = None) -> None:
        self._live = LiveView(console=console, hint=_HINT)
        self._screen = "job"
        self._report: Report | None = None
        self._lanes: list[LaneView] = []
        self._flights: list[InFlight] = []
        self._said = ""
        self._asked_at: Seconds | None = None
        self._orders: asyncio.Queue[State] = asyncio.Queue()
        self.quit = asyncio.Event()

    def close(self) -> None:
        self._live.close()

    def show(self, report: "Report") -> None:
        self._report = report
        if self._screen == "job":
            self._live.show(report, hint=self._hint())
        else:
            self._live.show(report, draw=self._draw)

    def press(self, key: str) -> None:
        if key == "q":
            self.quit.set()
        elif key == "p":
            self._steer()
        else:
            self._asked_at, self._said = None, ""
            self._screen = _SCREENS.get(key, self._screen)
        self._redraw()

    async def attend(self, console: "JobConsole") -> None:
        """Ask for what the screen shows beyond the reports, and carry out orders; until cancelled."""
        while True:
            try:
                await self._look(console)
                async with asyncio.timeout(_LOOK_EVERY):
                    state = await self._orders.get()
                await console.steer(state)
                self._said = "paused: no new leases; p resumes" if state is State.PAUSED else "resumed"
            except TimeoutError:
                continue
            except FrontierError as error:
                self._said = f"not done: {error.what}"
                await asyncio.sleep(_LOOK_EVERY)

    async def _look(self, console: "JobConsole") -> None:
        if self._screen == "lanes":
            self._lanes = await console.lanes(_MOST)
        elif self._screen == "in flight":
            self._flights = await console.in_flight(_MOST)

    def _steer(self) -> None:
        """Twice, as one key that stops a fleet is soon pressed by mistake."""
        if self._report is None:
            return
        now = asyncio.get_running_loop().time()
        state = State.RUNNING if self._report.progress.state is not State.RUNNING else State.PAUSED
        verb = "pause" if state is State.PAUSED else "resume"
        if self._asked_at is None or now - self._asked_at > _SURE:
            self._asked_at, self._said = now, f"{verb} {safe(self._report.job.id, 60)}? Press p again"
        else:
            self._asked_at, self._said = None, f"{verb} ..."
            self._orders.put_nowait(state)

    def _redraw(self) -> None:
        if self._report is not None:
            self.show(self._report)

    def _hint(self) -> str:
        return self._said or _HINT

    def _draw(self, report: "Report", found: Range | Unknown, width: int, height: int) -> Text:
        rows = header(report, found, width)
        room = max(1, height - len(rows) - 5)
        rows += [Text(), *self._table(report, room, width), Text(), Text(self._hint(), style="dim")]
        for row in rows:
            row.truncate(width, overflow="ellipsis")
        return Text("\n", no_wrap=True, end="").join(rows)

    def _table(self, report: "Report", room: int, width: int) -> list[Text]:
        match self._screen:
            case "lanes":
                return lane_rows(self._lanes[:room], len(self._lanes) - room, width) if self._lanes else _none("lanes")
            case "errors":
                return _errors(report, room) or _none("errors")
            case "workers":
                crew = report.crew
                return crew_table(crew[:room], len(crew) - room, report.job) if crew else _none("workers")
            case _:
                return _flights(self._flights, room, width, report.progress.now) or _none("visits in flight")


def _none(what: str) -> list[Text]:
    return [Text(f"no {what}", style="dim")]


def _errors(report: "Report", room: int) -> list[Text]:
    errors = by_number(grouped(report.errors), room)
    rows = [Text.assemble((f"{count(number):>9}", "red"), f"  {safe(why, 300)}") for why, number in errors]
    return [Text("    times  retried or dead, and why", style="dim"), *rows] if rows else []


def _flights(flights: list[InFlight], room: int, width: int, now: float) -> list[Text]:
    """The longest under way first."""
    if not flights:
        return []
    rows = [Text("     for  worker            URL", style="dim")]
    for flight in flights[:room]:
        since = length(max(0.0, now - flight.starts_at)) if flight.starts_at is not None else "?"
        worker = safe(flight.worker, 200)
        # The end tells workers of one host apart.
        rows.append(Text(f"{since:>8}  {worker[-16:]:<16}  {safe(flight.url, max(20, width))}"))
    if len(flights) > room:
        rows.append(Text(f"and {count(len(flights) - room)} more", style="dim"))
    return rows
