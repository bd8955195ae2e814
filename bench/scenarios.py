"""What is measured: the table of peers, and what Trotline promises beside it. Each scenario answers plain figures."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from bench.contenders import BARE, FLEET, TROTLINE, WORK, Contender, trotline
from bench.measure import measure
from bench.services import serving
from bench.slow import SlowServer
from bench.trial import Failed, Trial, attempt

Figures = dict[str, Any]
SLOTS = 64
QUICK = (TROTLINE, BARE, FLEET)


def peers(contenders: list[Contender], pages: int, rounds: int, kind: str = "product") -> Figures:
    """Every contender crawls the same site, taking turns, so that a noisy moment hits all of them alike. Who is done in
    seconds goes again before each of those that take minutes: one noisy moment would be all that is seen of him."""
    with serving({name for each in contenders for name in each.services}) as services:
        starts = interleaved(contenders, max(rounds, 3), lambda each: attempt(each, 1, kind, services=services))
        crawls = interleaved(
            contenders, rounds, lambda each: attempt(each, pages, kind, services=services), often=QUICK
        )
    rows = {
        each.name: row(each, starts[each.name], crawls[each.name])
        for each in contenders
        if starts[each.name] and crawls[each.name]
    }
    missing = [each.name for each in contenders if each.name not in rows]
    return {"pages": pages, "rounds": rounds, "kind": kind, "rows": rows, "failed": missing}


def interleaved(
    contenders: list[Contender],
    rounds: int,
    deed: Callable[[Contender], Trial],
    often: tuple[Contender, ...] = (),
) -> dict[str, list[Trial]]:
    """Round after round, each contender once per round, another one first each time; those that are named in `often`
    before each of the others. One that fails is out."""
    trials: dict[str, list[Trial]] = {each.name: [] for each in contenders}
    left = list(contenders)
    for turn in range(rounds):
        for each in in_turn(left, turn, often):
            if each not in left:
                continue
            try:
                trials[each.name].append(trial := deed(each))
                say(f"{each.name}: {trial.pages} pages, {trial.cpu_per_page:.2f} CPU ms/page, {trial.rate:.0f} pages/s")
            except Failed as failure:
                say(f"FAILED {failure}")
                trials[each.name].clear()
                left.remove(each)
    return trials


def in_turn(contenders: list[Contender], turn: int, often: tuple[Contender, ...]) -> list[Contender]:
    first = turn % len(contenders) if contenders else 0
    turned = [*contenders[first:], *contenders[:first]]
    quick = [each for each in turned if each in often]
    others = [each for each in turned if each not in often]
    return [one for other in others for one in (*quick, other)] or quick


def row(contender: Contender, starts: list[Trial], crawls: list[Trial]) -> Figures:
    """Medians over the rounds. `net` is the cost of a page without what a crawl of one page costs."""
    start = median(trial.usage.cpu for trial in starts)
    net = [(trial.usage.cpu - start) * 1000 / (trial.pages - 1) for trial in crawls]
    return {
        "title": contender.title,
        "cpu_ms_whole": median(trial.cpu_per_page for trial in crawls),
        "cpu_ms_net": median(net),
        "cpu_ms_net_rounds": [round(each, 3) for each in net],
        "pages_per_second": median(trial.rate for trial in crawls),
        "peak_mb": median(trial.peak_mb for trial in crawls),
        "start_cpu_s": start,
        "first_page_s": median(trial.first_page for trial in starts),
        "redis_cpu_ms": net_of(starts, crawls, lambda trial: trial.spent.redis_cpu),
        "postgres_cpu_ms": net_of(starts, crawls, lambda trial: trial.spent.postgres_cpu),
    }


def net_of(starts: list[Trial], crawls: list[Trial], spent: Callable[[Trial], float]) -> float:
    """What a server spent on a page, in milliseconds, without what a crawl of one page costs it."""
    start = median(map(spent, starts))
    return median((spent(trial) - start) * 1000 / (trial.pages - 1) for trial in crawls)


def latency(pages: int, contenders: list[Contender]) -> Figures:
    """Every answer comes 100 ms late: what share of 64 slots / 0.1 s is reached?"""
    ideal = SLOTS / SlowServer.delay
    found = {}
    for each in contenders:
        try:
            trial = attempt(each, pages, server=SlowServer)
        except Failed as failure:
            say(f"FAILED {failure}")
            continue
        # The last request still takes its 100 ms: the crawl is not over when it begins.
        rate = trial.pages / (trial.hits.window + SlowServer.delay)
        found[each.name] = {
            "title": each.title,
            "pages_per_second": rate,
            "share": rate / ideal,
            "middle_share": trial.hits.middle_rate / ideal,
        }
        say(f"{each.name}: {rate:.0f} pages/s of {ideal:.0f} at 100 ms")
    return {"pages": pages, "ideal": ideal, "rows": found}


def children(pages: int, rounds: int) -> Figures:
    """One child and two, taking turns. The server shares the machine: its CPU is told, so that one can judge."""
    both = [
        replace(TROTLINE, name=f"trotline-{count}", title=f"{count} children", command=trotline(count))
        for count in (1, 2)
    ]
    trials = interleaved(both, rounds, lambda each: attempt(each, pages))
    if not all(trials.values()):
        return {}
    rates = {name: median(trial.rate for trial in group) for name, group in trials.items()}
    two = trials["trotline-2"]
    return {
        "pages": pages,
        "rounds": rounds,
        "one": rates["trotline-1"],
        "two": rates["trotline-2"],
        "speed_up": rates["trotline-2"] / rates["trotline-1"],
        "cores_of_two": median(trial.usage.cpu / trial.usage.wall for trial in two),
        "cores_of_server": median(trial.server_cpu / trial.usage.wall for trial in two),
    }


def memory(pages: int, contender: Contender = TROTLINE) -> Figures:
    """The resident memory of each process while the crawl goes on, at four places of it."""
    try:
        trial = attempt(contender, pages)
    except Failed as failure:
        say(f"FAILED {failure}")
        return {}
    marks = (0.01, 0.25, 0.5, 0.75, 0.999)
    processes = [
        {
            "peak_mb": peak / 1e6,
            "mb_at": {str(int(pages * share)): resident_at(trial, pid, trial.hits.moment_of(share)) for share in marks},
        }
        for pid, peak in sorted(trial.usage.peaks.items(), key=lambda pair: -pair[1])
    ]
    say(f"memory over {pages} pages: " + ", ".join(f"{each['peak_mb']:.0f} MB" for each in processes))
    return {"pages": pages, "processes": processes, "cpu_ms_whole": trial.cpu_per_page, "pages_per_second": trial.rate}


def resident_at(trial: Trial, pid: int, moment: float) -> float | None:
    """The last sample of a process up to a moment, in MB; nothing if it did not live then."""
    found = [sample.bytes for sample in trial.usage.samples if sample.pid == pid and sample.moment <= moment]
    return found[-1] / 1e6 if found else None


def start_up(rounds: int) -> Figures:
    """`trotline --help`, and the time from `trotline run` to the first page request as the server saw it."""
    program = str(Path(sys.executable).with_name("trotline"))
    helps = [measure([program, "--help"], WORK / "runs" / "help") for _ in range(rounds)]
    if any(usage.exit_code != 0 for usage in helps):
        say("FAILED trotline --help")
        return {}
    try:
        firsts = [attempt(TROTLINE, 1) for _ in range(rounds)]
    except Failed as failure:
        say(f"FAILED {failure}")
        return {}
    return {
        "rounds": rounds,
        "help_cpu_ms": median(usage.cpu for usage in helps) * 1000,
        "first_page_s": median(trial.first_page for trial in firsts),
        "first_page_worst_s": max(trial.first_page for trial in firsts),
    }


def tidy(pages: int, kind: str = "product") -> None:
    """Give the disk space of a large site back."""
    shutil.rmtree(WORK / "sites" / f"{kind}-{pages}", ignore_errors=True)


def say(line: str) -> None:
    print(f"  {line}", flush=True)
