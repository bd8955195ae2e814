"""Every metric that Trotline exports. docs/reference/metrics.md explains each; a test compares the two."""

from typing import NamedTuple


class Metric(NamedTuple):
    name: str
    """As it is exported; a histogram also has _bucket, _sum and _count."""
    kind: str
    """counter, gauge or histogram"""
    labels: tuple[str, ...]
    help: str


CRAWL = "crawl"
"""The label with the job's id: `job` is Prometheus's own."""

VISITS = Metric("trotline_visits_total", "counter", (CRAWL, "verdict"), "Settled visits.")
HANDLER_ERRORS = Metric("trotline_handler_errors_total", "counter", (CRAWL,), "Pages on which a handler failed.")
RECORDS = Metric("trotline_records_total", "counter", (CRAWL,), "Stored records.")
RECEIVED = Metric("trotline_received_bytes_total", "counter", (CRAWL,), "Bytes of bodies, before decompression.")
FETCH = Metric("trotline_fetch_seconds", "histogram", (CRAWL,), "Time of a request, until its body is complete.")
PARSE = Metric("trotline_parse_seconds", "histogram", (CRAWL,), "Time of a page's handler and its links.")
COMMIT = Metric("trotline_commit_seconds", "histogram", (CRAWL,), "Time to store and settle a batch of visits.")
ARCHIVE = Metric("trotline_archive_seconds_total", "counter", (CRAWL,), "Time in which the archive was written to.")
STORE = Metric("trotline_store_seconds_total", "counter", (CRAWL,), "Time in which the sink was written to.")
SETTLE = Metric("trotline_settle_seconds_total", "counter", (CRAWL,), "Time in which the frontier settled visits.")
SLOT_SECONDS = Metric("trotline_slot_seconds_total", "counter", (CRAWL, "phase"), "Time of all slots, by phase.")
CPU = Metric("trotline_cpu_seconds_total", "counter", (CRAWL,), "Processor time of the worker processes.")
LAG = Metric("trotline_loop_lag_seconds", "gauge", (CRAWL,), "Largest lag of an event loop in the last seconds.")
MEMORY = Metric("trotline_memory_bytes", "gauge", (CRAWL,), "Resident memory of the worker processes.")
MEMORY_LIMIT = Metric("trotline_memory_limit_bytes", "gauge", (CRAWL,), "Memory that the worker processes may use.")
PROCESSES = Metric("trotline_processes", "gauge", (CRAWL,), "Running worker processes.")
SLOTS = Metric("trotline_slots", "gauge", (CRAWL,), "Slots of the running worker processes.")
RESTARTS = Metric("trotline_process_restarts_total", "counter", (CRAWL,), "Worker processes that died.")

TASKS = Metric("trotline_tasks", "gauge", (CRAWL, "state"), "Tasks of a job.")
DELAYED = Metric("trotline_delayed_tasks", "gauge", (CRAWL,), "Waiting tasks that are not due yet.")
JOB_STATE = Metric("trotline_job_state", "gauge", (CRAWL, "state"), "1 for the state of a job, 0 for the others.")
WORKERS = Metric("trotline_workers", "gauge", (CRAWL,), "Worker processes of the whole fleet.")
LANES = Metric("trotline_lanes", "gauge", (CRAWL, "state"), "Lanes of a job.")
ADMISSIBLE = Metric("trotline_admissible_per_second", "gauge", (CRAWL,), "Pages that all limits allow per second.")
WANTED = Metric("trotline_wanted_workers", "gauge", (CRAWL,), "Worker processes that are worth having.")
UTILISATION = Metric("trotline_limit_utilisation_ratio", "gauge", (CRAWL, "resource"), "Used share of a limit.")
ALERT = Metric("trotline_alert_firing", "gauge", (CRAWL, "rule"), "1 while the alert fires.")
PROXIES = Metric("trotline_proxies", "gauge", (CRAWL, "pool", "state"), "Members of the proxy pools of a job.")
LEADING = Metric("trotline_coordinator_leading", "gauge", ("spider",), "1 if this coordinator leads the spider.")
WEB_REQUESTS = Metric("trotline_web_requests_total", "counter", ("method", "status"), "Answers of the web server.")
WEB_STREAMS = Metric("trotline_web_streams", "gauge", (), "Open streams of events.")
BUILD = Metric("trotline_build_info", "gauge", ("version",), "The version of Trotline; always 1.")

METRICS: tuple[Metric, ...] = (
    VISITS, HANDLER_ERRORS, RECORDS, RECEIVED, FETCH, PARSE, COMMIT, ARCHIVE, STORE, SETTLE, SLOT_SECONDS, CPU, LAG,
    MEMORY, MEMORY_LIMIT, PROCESSES, SLOTS, RESTARTS, TASKS, DELAYED, JOB_STATE, WORKERS, LANES, ADMISSIBLE, WANTED,
    UTILISATION, ALERT, PROXIES, LEADING, WEB_REQUESTS, WEB_STREAMS, BUILD,
)  # fmt: skip
STATES = ("running", "paused", "draining", "cancelled", "finished")
