"""The text of a scrape, as Prometheus's own parser reads it."""

from prometheus_client.parser import text_string_to_metric_families

from trotline.adapters.prometheus.catalogue import METRICS
from trotline.adapters.prometheus.exposition import Exposition
from trotline.model.metrics import JobGauges, WebFigures, WorkerFigures
from trotline.model.work_stats import BOUNDS, SlotSeconds, Timing, WorkStats

TIMING = Timing(3.5, (*(1,) * len(BOUNDS), 2))
FIGURES = WorkerFigures(
    stats=WorkStats(
        cpu=1.5, lag=0.25, received=100, records=7, visits={"ok": 5, "gone": 2}, fetch=TIMING, parse=TIMING,
        commit=TIMING, archive=0.75, store=0.5, settle=0.25, slots=SlotSeconds(busy=9.0, start=8.0, no_lease=7.0),
    ),
    processes=2, restarts=1, slots=32, memory=1000, memory_limit=2000,
)  # fmt: skip
GAUGES = JobGauges(
    tasks={"waiting": 4, "leased": 3, "done": 2, "dead": 1}, delayed=2, state="running", workers=3,
    lanes={"active": 2}, admissible=41.5, wanted_workers=7, utilisation={"redis": 0.3},
    alerts={"stalled job": True, "empty run": False}, proxies={"default": {"up": 3, "down": 1}},
)  # fmt: skip


def full() -> Exposition:
    return Exposition(
        version="1.2.3",
        workers=lambda: {"shop-1": FIGURES},
        jobs=lambda: {"shop-1": GAUGES},
        leading=lambda: {"shop": True},
        web=lambda: WebFigures(requests={("GET", 200): 3}, streams=1),
    )


def samples(exposition: Exposition) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = exposition.text().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_metric_of_the_catalogue_is_exported_with_its_type_labels_and_help():
    families = {family.name: family for family in text_string_to_metric_families(full().text().decode())}
    for metric in METRICS:
        family = families.pop(metric.name.removesuffix("_total"))
        assert (family.type, family.documentation) == (metric.kind, metric.help), metric.name
        assert family.samples, metric.name
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels), metric.name
    assert {name for name in families if not name.startswith("process_")} == set()


def test_the_numbers_are_those_of_the_figures():
    found = samples(full())
    crawl = ("crawl", "shop-1")
    assert found["trotline_visits_total", (crawl, ("verdict", "ok"))] == 5
    assert found["trotline_fetch_seconds_sum", (crawl,)] == 3.5
    assert found["trotline_fetch_seconds_count", (crawl,)] == TIMING.count
    assert found["trotline_fetch_seconds_bucket", (crawl, ("le", "0.0025"))] == 2
    assert found["trotline_slot_seconds_total", (crawl, ("phase", "start"))] == 8.0
    assert found["trotline_tasks", (crawl, ("state", "dead"))] == 1
    assert found["trotline_alert_firing", (crawl, ("rule", "stalled job"))] == 1
    assert found["trotline_alert_firing", (crawl, ("rule", "empty run"))] == 0
    assert found["trotline_proxies", (crawl, ("pool", "default"), ("state", "down"))] == 1
    states = {labels[1][1]: value for (name, labels), value in found.items() if name == "trotline_job_state"}
    assert {state for state, value in states.items() if value} == {"running"} and len(states) == 5


def test_what_is_unknown_is_not_exported():
    found = samples(Exposition(version="1", jobs=lambda: {"shop-1": JobGauges(tasks={"done": 1})}))
    assert {name for name, _ in found if name.startswith("trotline_")} == {"trotline_build_info", "trotline_tasks"}


def test_a_label_cannot_end_its_line():
    odd = 'a"b\\c\nd{}'
    found = samples(Exposition(version="1", jobs=lambda: {odd: JobGauges(tasks={"done": 1})}))
    assert found["trotline_tasks", (("crawl", odd), ("state", "done"))] == 1


def test_a_hundred_jobs_are_rendered_quickly_and_small():
    text = Exposition(version="1", workers=lambda: {f"job-{number}": FIGURES for number in range(100)}).text()
    assert len(text) < 1_000_000
