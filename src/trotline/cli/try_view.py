"""How one tried page looks, for people and for machines."""

import json
from collections import Counter
from http import HTTPStatus
from typing import Any

import click
import msgspec

from trotline.cli.formatting import LONGEST_OF_ERRORS, count, length, reason, safe, safe_text, safe_url, size
from trotline.commands.try_page import Hop, Link, Trial
from trotline.config.backend_urls import public
from trotline.model.answer import Answer, Timing
from trotline.model.lease import Reject
from trotline.model.proxy_pool import NO_PROXY
from trotline.model.task import Task
from trotline.model.verdict import Kind, Verdict
from trotline.rules import redaction
from trotline.rules.limit_cuts import cut_by, cut_page
from trotline.rules.redaction import is_secret_header

_RECORDS = 5
_LINKS = 8
_LINES = 40
"""Of one record."""
_SHORT = 100
"""A record that fits into so many characters stays on one line."""
_SHORTEST = 0.0005
"""Seconds; a phase under it did not really happen."""
_SHOWN_HEADERS = (
    "content-type", "content-language", "server", "set-cookie", "location", "retry-after", "cache-control", "etag",
    "last-modified", "x-robots-tag", "via", "cf-ray", "x-cache",
)  # fmt: skip
"""Headers that explain what happened; the others only with --all."""


def lines(trial: Trial, route: str, everything: bool = False) -> list[str]:
    found = [_headline(trial, route)]
    for hop in trial.hops[:-1]:
        found.append(_row("moved", f"{safe_text(hop.verdict.why)}  {safe_url(hop.url, 200)}"))
    if cut := cut_page(f"{trial.verdict.kind.value}: {trial.verdict.why}", trial.own_limits):
        found.append(_row("cut", click.style(f"{cut.what} ({cut.advice})", fg="yellow")))
    found += _way(trial.hops[-1])
    found += _robots(trial.hops[-1])
    if trial.outside:
        found.append(_row("scope", click.style(f"a run would not visit it: {reason(trial.outside)}", fg="yellow")))
    answer = trial.answer
    if isinstance(answer, Answer):
        found += _answer(trial, answer, everything)
    elif answer is not None:
        found.append(_row("time", _timing(answer.timing)))
    found += _unread(trial)
    if trial.failed:
        said = safe(_of_page(trial, trial.failed))
        found += ["", click.style("the handler failed", fg="red", bold=True), f"  {said}", *_traceback(trial)]
    if trial.harvest is not None:
        found += ["", *_records(trial, everything), "", *_links(trial, everything)]
    return found


def _unread(trial: Trial) -> list[str]:
    """Why there are no records of a page that is there."""
    if not isinstance(trial.answer, Answer) or trial.verdict.kind in (Kind.OK, Kind.MOVED):
        return []
    return [_row("read", f"no: only a route with status={trial.answer.status} reads it")]


def _traceback(trial: Trial) -> list[str]:
    """Without its first line: the error stands above already."""
    frames = _of_page(trial, trial.traceback).partition("\n\n")[2]
    return ["", *(f"  {safe(line, LONGEST_OF_ERRORS)}" for line in frames.splitlines())] if frames else []


def _row(title: str, text: str) -> str:
    return f"  {title:<8} {text}"


def _headline(trial: Trial, route: str) -> str:
    verdict, hop = trial.verdict, trial.hops[-1]
    colour = "green" if verdict.kind is Kind.OK else "red"
    why = f": {safe_text(verdict.why)}" if verdict.why else ""
    status = ""
    if isinstance(hop.answer, Answer):
        status = f", {hop.answer.status} {_phrase(hop.answer.status)}".rstrip()
        why = "" if verdict.why == str(hop.answer.status) else why
    said = click.style(verdict.kind.value + why, fg=colour, bold=True)
    return f"{said}{status}  {safe_url(hop.url, 500)}  (route {route})"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _way(hop: Hop) -> list[str]:
    """The proxy, as host:port."""
    if hop.answer is None or not hop.answer.proxy:
        return []
    pool = f" of pool {safe(hop.pool, 64)}" if hop.pool not in ("", NO_PROXY) else ""
    return [_row("through", f"proxy {safe(hop.answer.proxy, 100)}{pool}")]


def _robots(hop: Hop) -> list[str]:
    if hop.permission is None:
        return [_row("robots", "not asked")] if hop.answer is not None else []
    if not hop.permission.asked:
        return [_row("robots", "not asked")]
    if hop.permission.ask_again:
        return [_row("robots", "cannot be read now; a run asks again before it visits the page")]
    delay = f", Crawl-delay {length(hop.permission.delay)}" if hop.permission.delay else ""
    return [_row("robots", ("allowed" if hop.permission.allowed else "forbidden") + delay)]


def _answer(trial: Trial, answer: Answer, everything: bool) -> list[str]:
    wire = f" ({size(answer.wire_bytes)} on the wire)" if answer.wire_bytes not in (0, len(answer.body)) else ""
    rows = [
        _row("time", _timing(answer.timing)),
        _row("size", f"{size(len(answer.body))}{wire}" + (f", {trial.encoding}" if trial.encoding else "")),
        _row("from", f"{safe(answer.address)}, HTTP/{answer.http}") if answer.address else "",
        _row("title", safe(trial.title, 100)) if trial.title else "",
        *(_row("note", safe(note)) for note in answer.notes),
    ]
    shown = [(name, value) for name, value in answer.headers if everything or name in _SHOWN_HEADERS]
    rows += [_row("header" if place == 0 else "", _header(*pair)) for place, pair in enumerate(shown)]
    hidden = len(answer.headers) - len(shown)
    if hidden:
        rows.append(_row("", f"and {count(hidden)} more (--all)"))
    return [row for row in rows if row]


def _header(name: str, value: str) -> str:
    return f"{safe(name, 60)}: {_unsecret(name, value)}"


def _unsecret(name: str, value: str) -> str:
    """A cookie's name says enough; its value may be a session."""
    if not is_secret_header(name):
        return safe_text(value, 120)
    return safe(value.partition("=")[0], 60) + "=(hidden)" if "=" in value else "(hidden)"


def _timing(timing: Timing) -> str:
    phases = [
        ("resolve", timing.resolve),
        ("connect", timing.connect),
        ("first byte", timing.first_byte),
        ("body", timing.body),
    ]
    parts = ", ".join(f"{name} {length(seconds)}" for name, seconds in phases if seconds >= _SHORTEST)
    return length(timing.total) + (f": {parts}" if parts else "")


def _records(trial: Trial, everything: bool) -> list[str]:
    assert trial.harvest is not None  # noqa: S101 - asked by the caller
    records, rejects = trial.harvest.records, trial.harvest.rejects
    rows = [_title(count(len(records), "record"))]
    for record in records if everything else records[:_RECORDS]:
        rows.append(f"  {safe(record.kind, 60)}  key {safe(record.key, 100)}")
        body = _pretty(record.data)
        rows += [f"    {safe(line)}" for line in (body if everything else body[:_LINES])]
        if len(body) > _LINES and not everything:
            rows.append(f"    and {count(len(body) - _LINES)} more lines (--all)")
    if len(records) > _RECORDS and not everything:
        rows.append(f"  and {count(len(records) - _RECORDS)} more (--all)")
    for why, number in trial.harvest.dropped.items():
        rows += ["", f"{count(number, 'record')} dropped by a hook: {safe_text(why)}"]
    if rejects:
        rows += ["", click.style(f"{count(len(rejects), 'record')} refused", fg="red", bold=True)]
        rows += [f"  {safe(reject.kind, 60)}: {safe_text(reject.why)}" for reject in rejects[:_LINKS]]
    return rows


def _pretty(data: dict[str, Any]) -> list[str]:
    flat = json.dumps(data, ensure_ascii=False)
    return [flat] if len(flat) <= _SHORT else json.dumps(data, indent=2, ensure_ascii=False).splitlines()


def _links(trial: Trial, everything: bool) -> list[str]:
    admitted = [link for link in trial.links if not link.refused]
    refused = [link for link in trial.links if link.refused]
    judged = f": {count(len(admitted))} would be admitted, {count(len(refused))} not" if trial.links else ""
    rows = [f"{_title(count(len(trial.links), 'task'))} from {count(trial.links_on_page, 'link')} on the page{judged}"]
    for route, number in Counter(link.route for link in admitted).items():
        rows.append(f"  to {route}: {count(number)}")
        rows += _some([link for link in admitted if link.route == route], everything)
    for why, number in Counter(link.refused for link in refused).most_common():
        rows.append(click.style(f"  refused, {_why(why, trial)}: {count(number)}", fg="yellow"))
        rows += _some([link for link in refused if link.refused == why], everything)
    return rows


def _why(why: str, trial: Trial) -> str:
    """In the words of a run's summary."""
    cut = cut_by(why, trial.own_limits)
    return reason(why) if cut is None else f"{cut.what} ({cut.advice})"


def _some(links: list[Link], everything: bool) -> list[str]:
    shown = links if everything else links[:_LINKS]
    rows = [f"    {safe_url(link.url, 300 if everything else 110)}" for link in shown]
    if len(links) > len(shown):
        rows.append(f"    and {count(len(links) - len(shown))} more (--all)")
    return rows


def _title(text: str) -> str:
    return click.style(text, bold=True)


def facts(trial: Trial, route: str) -> dict[str, Any]:
    """The whole trial as plain values. The body stays out: --save keeps it."""
    return {
        "route": route,
        "verdict": _verdict(trial.verdict),
        "outside": trial.outside,
        "hops": [_hop_facts(hop) for hop in trial.hops],
        "encoding": trial.encoding,
        "title": trial.title,
        "failed": _of_page(trial, trial.failed),
        "traceback": _of_page(trial, trial.traceback),
        "records": trial.harvest.records if trial.harvest else [],
        "dropped": dict(trial.harvest.dropped) if trial.harvest else {},
        "rejects": [_reject(trial, reject) for reject in trial.harvest.rejects] if trial.harvest else [],
        "links_on_page": trial.links_on_page,
        "links": [msgspec.structs.replace(link, url=public(link.url)) for link in trial.links],
    }


def _verdict(verdict: Verdict) -> Verdict:
    return msgspec.structs.replace(verdict, why=redaction.text(verdict.why), location=public(verdict.location))


def _reject(trial: Trial, reject: Reject) -> Reject:
    return Reject(reject.kind, _of_page(trial, reject.why), _of_page(trial, reject.data))


def _of_page(trial: Trial, said: str) -> str:
    """What was said about the page, without what its URL hides."""
    return redaction.text(said, about=Task(url=trial.hops[-1].url, route=""))


def _shown(name: str, value: str) -> str:
    return "(hidden)" if is_secret_header(name) else redaction.text(value)


def _hop_facts(hop: Hop) -> dict[str, Any]:
    found: dict[str, Any] = {"url": public(hop.url), "verdict": _verdict(hop.verdict), "robots": hop.permission}
    answer = hop.answer
    if answer is not None and answer.proxy:
        found |= {"proxy": answer.proxy, "pool": hop.pool}
    if isinstance(answer, Answer):
        found |= {
            "status": answer.status,
            "headers": [(name, _shown(name, value)) for name, value in answer.headers],
            "bytes": len(answer.body),
            "wire_bytes": answer.wire_bytes,
            "address": answer.address,
            "http": answer.http,
            "notes": answer.notes,
        }
    if answer is not None:
        found["timing"] = answer.timing
    return found
