"""Figures of a crew and its lanes, for tests of the advice."""

from typing import Any

from trotline.model.job import LaneView, Progress, WorkerInfo, WorkerView
from trotline.model.work_stats import SlotSeconds, Timing, WorkStats
from trotline.rules.fleet_rates import FlowStep, HostsUse, hosts_use, step
from trotline.rules.lane_survey import Surveyor
from trotline.rules.survey_note import JobSummary

MIB = 1024**2


def worker(
    name: str = "w1", at: float = 0.0, *, rate: float = 10.0, busy: float = 1.0, cpu: float = 0.1, **more: Any
) -> WorkerView:
    """After `at` seconds of steady work: pages per second, the share of slots in visits, of a processor."""
    slots = more.pop("slots", 8)
    causes = {cause: more.pop(cause) for cause in ("start", "no_lease", "frontier", "sink") if cause in more}
    archive = more.pop("archive", 0.0)
    store, settle = more.pop("store", 0.0), more.pop("settle", 0.0)
    waited, received = more.pop("waited", 0.0), more.pop("received", 0)
    visits = round(rate * at)
    stats = WorkStats(
        uptime=at,
        cpu=cpu * at,
        waited=waited * at,
        received=received * visits,
        visits={"ok": visits, "none": 3},
        fetch=_timing(visits, 0.8 * busy * slots / rate),
        commit=_timing(max(1, visits // 10), 0.01),
        archive=archive * at,
        store=store * at,
        settle=settle * at,
        slots=SlotSeconds(busy=busy * slots * at, **{name: share * slots * at for name, share in causes.items()}),
    )
    about = {"host": "h1", "slots": slots, "memory": 100 * MIB, "cpu_cores": 8.0, "host_memory": 8192 * MIB}
    about |= {key: more.pop(key) for key in list(more) if key in WorkerInfo.__struct_fields__}
    return WorkerView(
        name=name, silent_for=0.0, leased=more.pop("leased", slots), about=WorkerInfo(stats=stats, **about)
    )


def _timing(count: int, each: float) -> Timing:
    return Timing(count * each, (count, *(0,) * 14))


def crew(number: int = 1, at: float = 0.0, **figures: Any) -> list[WorkerView]:
    return [worker(f"w{place}", at, **figures) for place in range(number)]


def lane(name: str = "shop.example", waiting: int = 100_000, **more: Any) -> LaneView:
    return LaneView(lane=name, waiting=waiting, **{"leased": 1, "interval": 0.001, "concurrency": 500, **more})


def measured(number: int = 1, **figures: Any) -> tuple[FlowStep, HostsUse]:
    before, now = crew(number, 10.0, **figures), crew(number, 40.0, **figures)
    found = step(before, now, 1000.0)
    assert found is not None
    return found, hosts_use(before, now)


def summary(lanes: list[LaneView], number: int = 1, **more: Any) -> JobSummary:
    names = {"chains", "pools", "servers", "hosts"}
    own = {name: more.pop(name) for name in list(more) if name in names}
    surveyor = Surveyor()
    surveyor.add(lanes)
    found, hosts = measured(number, **more)
    return JobSummary(at=1000.0, lanes=surveyor.survey(), steps=(found,), **{"hosts": hosts, **own})


def progress(**more: Any) -> Progress:
    return Progress(**{"waiting": 1000, "leased": 8, "done": 500, "dead": 0, "now": 1000.0, **more})
