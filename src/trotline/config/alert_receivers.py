"""The receivers of alerts, made of their settings."""

from trotline.config.alert_settings import AlertSettings, ReceiverSettings
from trotline.ports.alert_receiver import AlertReceiver


def open_receivers(settings: AlertSettings) -> tuple[AlertReceiver, ...]:
    """They hold no connection: nothing has to be closed."""
    return tuple(map(_opened, settings.receivers))


def _opened(given: ReceiverSettings) -> AlertReceiver:
    if given.kind == "mail":
        from trotline.adapters.alerts.mail import Mail

        return Mail(
            given.name,
            given.server,
            given.to,
            given.sender,
            user=given.user,
            password=given.password,
            tls=given.tls,
            least=given.least,
        )
    if given.kind not in ("slack", "webhook"):
        raise ValueError(f"no receiver is made for the kind {given.kind!r}")
    assert given.url is not None  # noqa: S101 - checked when it was read
    if given.kind == "slack":
        from trotline.adapters.alerts.slack import Slack

        return Slack(given.name, given.url, least=given.least)
    from trotline.adapters.alerts.webhook import Webhook

    return Webhook(given.name, given.url, key=given.key, least=given.least)
