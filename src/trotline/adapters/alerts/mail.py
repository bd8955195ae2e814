"""Mail through an SMTP server: plain text, threaded, and marked as automatic so that no robot answers.

The standard library in a thread: a message every few minutes needs no event loop, and no further package.
"""

import asyncio
import smtplib
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate
from urllib.parse import urlsplit

from trotline.errors import AlertNotDelivered
from trotline.model.alert import AlertMessage, Severity
from trotline.model.secret import Secret, without_secrets
from trotline.model.time import Seconds
from trotline.rules.alert_texts import LONGEST_SUBJECT, body, subject

TIMEOUT: Seconds = 10.0
"""Of each step: connect, greeting, login, message."""
LONGEST: Seconds = 40.0
"""Of all of them."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_HINT = "Check the server in [alerts.receivers], then: trotline alerts --test"


class Mail:
    def __init__(
        self,
        name: str,
        server: str,
        to: Sequence[str],
        sender: str,
        *,
        user: str = "",
        password: Secret | None = None,
        tls: bool = True,
        context: ssl.SSLContext | None = None,
        least: Severity = Severity.WARNING,
    ) -> None:
        """`server`: smtps://HOST (TLS from the start) or smtp://HOST (STARTTLS; without it only to this machine, or if
        `tls` is False). `context`: for another set of certificates."""
        parts = urlsplit(server)
        self.name = name
        self.least = least
        self._host = parts.hostname or ""
        self._implicit = parts.scheme == "smtps"
        self._port = parts.port or (465 if self._implicit else 587)
        self.place = f"mail to {', '.join(to)} by {self._host}"
        self._to = tuple(to)
        self._sender = sender
        self._user = user
        self._password = password
        self._tls = tls
        self._context = context

    async def send(self, message: AlertMessage) -> None:
        try:
            async with asyncio.timeout(LONGEST):
                await asyncio.to_thread(self._send, self._mail(message))
        except TimeoutError:
            raise AlertNotDelivered(f"{self._host} did not take the message in time", hint=_HINT) from None
        except (smtplib.SMTPException, OSError, UnicodeError, ValueError) as error:
            # Not "from": a reply of the server may quote the login.
            raise AlertNotDelivered(f"{self._host} did not take the message: {_said(error)}", hint=_HINT) from None

    def _mail(self, message: AlertMessage) -> EmailMessage:
        mail = EmailMessage()
        domain = self._sender.rpartition("@")[2]
        mail["Subject"] = subject(message)[:LONGEST_SUBJECT]
        mail["From"] = self._sender
        mail["To"] = ", ".join(self._to)
        mail["Date"] = formatdate(message.at)
        mail["Message-ID"] = f"<{message.id}.{self.name}@{domain}>"
        if message.answers:
            answered = " ".join(f"<{each}.{self.name}@{domain}>" for each in message.answers)
            mail["In-Reply-To"] = mail["References"] = answered
        mail["Auto-Submitted"] = "auto-generated"
        mail["X-Auto-Response-Suppress"] = "All"
        mail["Trotline-Message-Id"] = message.id
        mail.set_content(body(message))
        return mail

    def _send(self, mail: EmailMessage) -> None:
        with self._connected() as server:
            if self._password is not None:
                server.login(self._user, self._password.current())
            refused = server.send_message(mail)
        if refused:
            raise smtplib.SMTPRecipientsRefused(refused)

    def _connected(self) -> smtplib.SMTP:
        context = self._context or ssl.create_default_context()
        if self._implicit:
            return smtplib.SMTP_SSL(self._host, self._port, timeout=TIMEOUT, context=context)
        server = smtplib.SMTP(self._host, self._port, timeout=TIMEOUT)
        try:
            server.ehlo()
            if server.has_extn("starttls"):
                server.starttls(context=context)
                server.ehlo()
            elif self._needs_tls():
                raise smtplib.SMTPNotSupportedError("it offers no STARTTLS (tls = false allows that)")
        except BaseException:
            server.close()
            raise
        return server

    def _needs_tls(self) -> bool:
        return self._host not in _LOOPBACK and (self._tls or self._password is not None)


def _said(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return f"it refused {len(error.recipients)} of the addresses"
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        return without_secrets(f"{error.smtp_code} {' '.join(text.split())[:200]}")
    return without_secrets(str(error)) or type(error).__name__
