"""A webhook that gets the JSON of Prometheus' Alertmanager (version 4), signed if a key is set."""

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

from trotline.adapters.alerts.http_post import host_of, post
from trotline.model.alert import Alert, AlertMessage, AlertState, Severity
from trotline.model.secret import Secret
from trotline.model.time import Moment, iso
from trotline.rules.alert_texts import title
from trotline.rules.alerts import minutes

_OPEN = "0001-01-01T00:00:00Z"
"""Alertmanager's way to say that an alert has not ended."""


class Webhook:
    def __init__(
        self,
        name: str,
        url: Secret,
        *,
        key: Secret | None = None,
        least: Severity = Severity.WARNING,
        clock: Callable[[], Moment] = time.time,
    ) -> None:
        self.name = name
        self.place = f"webhook at {host_of(url)}"
        self.least = least
        self._url = url
        self._key = key
        self._clock = clock

    async def send(self, message: AlertMessage) -> None:
        body = json.dumps(payload(message, self.name), ensure_ascii=False).encode()
        now = self._clock()
        headers = {"Trotline-Message-Id": message.id}
        if self._key is not None:
            headers["Trotline-Signature"] = signature(self._key, body, int(now))
        await post(self._url, body, headers, now)


def signature(key: Secret, body: bytes, at: int) -> str:
    """`t=SECONDS,v1=HEX`: HMAC-SHA256 of the time, a dot and the body; a receiver refuses old times, against replay."""
    signed = hmac.new(key.current().encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={signed}"


def payload(message: AlertMessage, receiver: str) -> dict[str, Any]:
    common = {"crawl": message.job, "spider": message.spider}
    return {
        "version": "4",
        "messageId": message.id,
        "groupKey": f"trotline/{message.job}",
        "truncatedAlerts": message.more,
        "status": str(message.state),
        "receiver": receiver,
        "groupLabels": {"crawl": message.job},
        "commonLabels": common,
        "commonAnnotations": {},
        "externalURL": message.link,
        "alerts": [_alert(alert, common, message) for alert in message.alerts],
    }


def _alert(alert: Alert, common: dict[str, str], message: AlertMessage) -> dict[str, Any]:
    labels = {"alertname": title(alert), "rule": alert.rule, **common, "severity": str(alert.severity)}
    if alert.object:
        labels["object"] = alert.object
    ended = alert.ended_at if alert.state is AlertState.RESOLVED else None
    lasted = minutes(max(0.0, (ended or message.at) - alert.since))
    annotations = {"summary": alert.text, "next": alert.next, "for": lasted}
    identity = "\n".join((message.job, alert.rule, alert.object))
    return {
        "status": str(alert.state),
        "labels": labels,
        "annotations": annotations,
        "startsAt": iso(alert.fired_at or alert.since),
        "endsAt": _OPEN if ended is None else iso(ended),
        "generatorURL": message.link,
        "fingerprint": hashlib.sha256(identity.encode()).hexdigest()[:16],
    }
