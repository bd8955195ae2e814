"""Who gets the alerts of jobs."""

from typing import Protocol

from trotline.model.alert import AlertMessage, Severity


class AlertReceiver(Protocol):
    """A webhook, a chat, a mailbox. Its delivery is tried again with the same `AlertMessage.id`."""

    name: str
    """As in the settings."""
    place: str
    """What it is and where, without secrets: "webhook at hooks.example"."""
    least: Severity
    """It gets alerts of this severity and above."""

    async def send(self, message: AlertMessage) -> None:
        """Return when it was accepted, within some seconds; else AlertNotDelivered."""
        ...
