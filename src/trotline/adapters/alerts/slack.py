"""An incoming webhook of Slack, or of a program with the same JSON (Mattermost, Rocket.Chat, Discord's /slack)."""

import json
import time
from collections.abc import Callable
from typing import Any

from trotline.adapters.alerts.http_post import host_of, post
from trotline.model.alert import AlertMessage, Severity
from trotline.model.secret import Secret
from trotline.model.time import Moment
from trotline.rules.alert_texts import details, headline, subject

MOST_BLOCKS = 45
"""Slack takes 50."""
LONGEST_BLOCK = 2_900
"""Characters; Slack takes 3,000."""


class Slack:
    def __init__(
        self,
        name: str,
        url: Secret,
        *,
        least: Severity = Severity.WARNING,
        clock: Callable[[], Moment] = time.time,
    ) -> None:
        self.name = name
        self.place = f"Slack-style webhook at {host_of(url)}"
        self.least = least
        self._url = url
        self._clock = clock

    async def send(self, message: AlertMessage) -> None:
        body = json.dumps(payload(message), ensure_ascii=False).encode()
        await post(self._url, body, {"Trotline-Message-Id": message.id}, self._clock())


def payload(message: AlertMessage) -> dict[str, Any]:
    blocks = [_section(f"*{escaped(subject(message))}*")]
    for alert in message.alerts[:MOST_BLOCKS]:
        blocks.append(_section("\n".join([f"*{escaped(headline(alert))}*", *map(escaped, details(alert, message.at))])))
    left_out = message.more + max(0, len(message.alerts) - MOST_BLOCKS)
    if left_out:
        blocks.append(_section(f"and {left_out:,} more"))
    if message.link:
        blocks.append(_section(escaped(message.link)))
    return {"text": escaped(subject(message)), "blocks": blocks}


def escaped(text: str) -> str:
    """Slack's three control characters: a title of "<!channel>" must not wake a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _section(text: str) -> dict[str, Any]:
    cut = text if len(text) <= LONGEST_BLOCK else text[:LONGEST_BLOCK] + "…"
    return {"type": "section", "text": {"type": "mrkdwn", "text": cut, "verbatim": True}}
