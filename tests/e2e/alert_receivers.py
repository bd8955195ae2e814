"""Real receivers of alerts on loopback addresses: an HTTP server and an SMTP server."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, NamedTuple

from aiohttp import web
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from tests.e2e.small_site import serving

from trotline.testing.servers import listen


class Post(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class HttpReceiver:
    """Takes all; `answers` decide about the next requests."""

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self.answers: list[Callable[[], web.Response]] = []
        self.held: asyncio.Event | None = None
        """While it is set, requests are not answered."""
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.posts.append(Post(request.path, dict(request.headers), await request.read()))
        if self.held is not None:
            await self.held.wait()
        return self.answers.pop(0)() if self.answers else web.Response(text="ok")

    def seen(self, path: str = "/hook") -> list[str]:
        """The changes, one by one: "stalled firing"."""
        return [
            f"{alert['labels']['rule']} {alert['status']}"
            for post in self.posts
            if post.path == path
            for alert in post.json["alerts"]
        ]

    def ids(self, path: str = "/hook") -> list[str]:
        return [post.headers["Trotline-Message-Id"] for post in self.posts if post.path == path]


@asynccontextmanager
async def http_receiver() -> AsyncIterator[HttpReceiver]:
    receiver = HttpReceiver()
    async with serving(receiver.answer) as receiver.url:
        yield receiver


class MailReceiver:
    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.logins: list[tuple[bytes, bytes]] = []
        self.refuse = ""
        """An SMTP reply instead of accepting."""
        self.port = 0

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        if self.refuse:
            return self.refuse
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        return "250 OK"

    def authenticate(self, server: Any, session: Any, envelope: Any, mechanism: str, data: LoginPassword) -> AuthResult:
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"right password", handled=False)


@asynccontextmanager
async def mail_receiver(receiver: MailReceiver | None = None, **options: Any) -> AsyncIterator[MailReceiver]:
    receiver = receiver or MailReceiver()
    [socket] = listen(("127.0.0.1",))
    receiver.port = socket.getsockname()[1]
    socket.close()
    controller = Controller(receiver, hostname="127.0.0.1", port=receiver.port, **options)
    await asyncio.to_thread(controller.start)
    try:
        yield receiver
    finally:
        await asyncio.to_thread(controller.stop)
