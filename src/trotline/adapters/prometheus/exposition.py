"""The figures as Prometheus reads them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric as Family

from trotline.adapters.prometheus import catalogue
from trotline.adapters.prometheus.catalogue import Metric
from trotline.model.metrics import JobGauges, WebFigures, WorkerFigures
from trotline.model.work_stats import BOUNDS, Timing

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Workers = Callable[[], Mapping[str, WorkerFigures]]
Jobs = Callable[[], Mapping[str, JobGauges]]
_Rows = Iterable[tuple[tuple[str, ...], float]]


class Exposition:
    """Renders the text of a scrape. What it is not given is not exported."""

    def __init__(
        self,
        *,
        version: str,
        workers: Workers | None = None,
        jobs: Jobs | None = None,
        leading: Callable[[], Mapping[str, bool]] | None = None,
        web: Callable[[], WebFigures] | None = None,
    ) -> None:
        self._version = version
        self._workers = workers
        self._jobs = jobs
        self._leading = leading
        self._web = web
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def describe(self) -> list[Family]:
        """Nothing: the registry would collect to find the names."""
        return []

    def collect(self) -> Iterator[Family]:
        yield _gauge(catalogue.BUILD, [((self._version,), 1.0)])
        if self._workers is not None:
            yield from _worker_families(self._workers())
        if self._jobs is not None:
            yield from _job_families(self._jobs())
        if self._leading is not None:
            leading = self._leading()
            yield _gauge(catalogue.LEADING, [((spider,), float(leads)) for spider, leads in leading.items()])
        if self._web is not None:
            web = self._web()
            rows = [((method, str(status)), float(count)) for (method, status), count in sorted(web.requests.items())]
            yield _counter(catalogue.WEB_REQUESTS, rows)
            yield _gauge(catalogue.WEB_STREAMS, [((), float(web.streams))])


def _worker_families(found: Mapping[str, WorkerFigures]) -> Iterator[Family]:
    each = list(found.items())
    yield _counter(
        catalogue.VISITS,
        [((job, verdict), count) for job, one in each for verdict, count in sorted(one.stats.visits.items())],
    )
    yield _counter(catalogue.HANDLER_ERRORS, [((job,), one.stats.handler_errors) for job, one in each])
    yield _counter(catalogue.RECORDS, [((job,), one.stats.records) for job, one in each])
    yield _counter(catalogue.RECEIVED, [((job,), one.stats.received) for job, one in each])
    yield _histogram(catalogue.FETCH, {job: one.stats.fetch for job, one in each})
    yield _histogram(catalogue.PARSE, {job: one.stats.parse for job, one in each})
    yield _histogram(catalogue.COMMIT, {job: one.stats.commit for job, one in each})
    yield _counter(catalogue.ARCHIVE, [((job,), one.stats.archive) for job, one in each])
    yield _counter(catalogue.STORE, [((job,), one.stats.store) for job, one in each])
    yield _counter(catalogue.SETTLE, [((job,), one.stats.settle) for job, one in each])
    yield _counter(
        catalogue.SLOT_SECONDS,
        [
            ((job, phase), getattr(one.stats.slots, phase))
            for job, one in each
            for phase in one.stats.slots.__struct_fields__
        ],
    )
    yield _counter(catalogue.CPU, [((job,), one.stats.cpu) for job, one in each])
    yield _gauge(catalogue.LAG, [((job,), one.stats.lag) for job, one in each])
    yield _gauge(catalogue.MEMORY, [((job,), one.memory) for job, one in each])
    yield _gauge(catalogue.MEMORY_LIMIT, [((job,), one.memory_limit) for job, one in each])
    yield _gauge(catalogue.PROCESSES, [((job,), one.processes) for job, one in each])
    yield _gauge(catalogue.SLOTS, [((job,), one.slots) for job, one in each])
    yield _counter(catalogue.RESTARTS, [((job,), one.restarts) for job, one in each])


def _job_families(found: Mapping[str, JobGauges]) -> Iterator[Family]:
    each = list(found.items())
    yield _gauge(catalogue.TASKS, _by(each, lambda one: one.tasks))
    yield _gauge(catalogue.DELAYED, _known(each, lambda one: one.delayed))
    states = [((job, state), float(state == one.state)) for job, one in each if one.state for state in catalogue.STATES]
    yield _gauge(catalogue.JOB_STATE, states)
    yield _gauge(catalogue.WORKERS, _known(each, lambda one: one.workers))
    yield _gauge(catalogue.LANES, _by(each, lambda one: one.lanes))
    yield _gauge(catalogue.ADMISSIBLE, _known(each, lambda one: one.admissible))
    yield _gauge(catalogue.WANTED, _known(each, lambda one: one.wanted_workers))
    yield _gauge(catalogue.UTILISATION, _by(each, lambda one: one.utilisation))
    yield _gauge(catalogue.ALERT, _by(each, lambda one: one.alerts))
    members = [
        ((job, pool, state), float(count))
        for job, one in each
        for pool, states_of in one.proxies.items()
        for state, count in states_of.items()
    ]
    yield _gauge(catalogue.PROXIES, members)


def _by(each: list[tuple[str, JobGauges]], part: Callable[[JobGauges], Mapping[str, float]]) -> _Rows:
    return [((job, name), float(value)) for job, one in each for name, value in part(one).items()]


def _known(each: list[tuple[str, JobGauges]], part: Callable[[JobGauges], float | None]) -> _Rows:
    return [((job,), float(value)) for job, one in each if (value := part(one)) is not None]


def _counter(metric: Metric, rows: _Rows) -> Family:
    family = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


def _gauge(metric: Metric, rows: _Rows) -> Family:
    family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


def _histogram(metric: Metric, timings: Mapping[str, Timing]) -> Family:
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
    for job, timing in timings.items():
        buckets = zip(bounds, map(float, accumulate(timing.counts)), strict=True)
        family.add_metric((job,), list(buckets), timing.total)
    return family
