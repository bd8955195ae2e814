"""Pages through an API gateway: the target's URL is a query parameter, and the answer is the target's.

The target is checked like one that a proxy gets by name: the gateway resolves it again. What the gateway says about our
key, credits or plan is a failure of the gateway, never of the page.
"""

from urllib.parse import urlencode

import msgspec

from trotline.adapters.http.failures import FETCH_ERRORS, Cut, explain
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.adapters.http.proxy_fault_log import FaultLog
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.proxy import ApiGateway
from trotline.model.secret import without_secrets
from trotline.model.task import Task

_GAVE_UP = 500
_MEANINGS = {
    401: "key or credits refused",
    402: "payment required",
    403: "key or credits refused",
    407: "authentication failed",
    429: "concurrency of the plan reached",
    _GAVE_UP: "gave up on the page",
}
_OF_THE_PAGE = frozenset({FailureKind.TOO_LARGE, FailureKind.HUNG_UP})
"""Failures of a request to the gateway that are not the gateway's own."""


class GatewayFetcher:
    """Fetches through one API gateway."""

    def __init__(self, gateway: ApiGateway, direct: HttpFetcher) -> None:
        self._gateway = gateway
        self._direct = direct
        """For the checks of the target; it sends nothing."""
        self._fetcher = direct.to_gateway(gateway)
        self._log = FaultLog()

    async def fetch(self, task: Task) -> Answer | Failure:
        asked = await self._asked(task)
        if isinstance(asked, Failure):
            return asked
        answer = self._read(task, await self._fetcher.fetch(asked))
        return self._checked(answer) if isinstance(answer, Answer) else answer

    async def fetch_start(self, task: Task, most: int) -> Answer | Failure:
        asked = await self._asked(task)
        return asked if isinstance(asked, Failure) else self._read(task, await self._fetcher.fetch_start(asked, most))

    @property
    def idle(self) -> int:
        return self._fetcher.idle

    def close_idle(self) -> None:
        self._fetcher.close_idle()

    async def close(self) -> None:
        await self._fetcher.close()

    async def _asked(self, task: Task) -> Task | Failure:
        """The request to the gateway; a Failure if the target is refused."""
        try:
            headers = await self._direct.vet(task)
        except FETCH_ERRORS as error:
            trouble, why = explain(error, "head", self._direct.limits)
            return Failure(url=task.url, trouble=trouble, why=why, proxy=self._gateway.public)
        return Task(
            url=self._url(task.url),
            route=task.route,
            method=task.method,
            headers=tuple(headers.items()) if self._gateway.send_headers else (),
            body=task.body,
        )

    def _url(self, target: str) -> str:
        way = self._gateway
        query = [(way.key_parameter, way.key.reveal()), *way.parameters, (way.url_parameter, target)]
        return f"{way.endpoint}{'&' if '?' in way.endpoint else '?'}{urlencode(query)}"

    def _read(self, task: Task, answer: Answer | Failure) -> Answer | Failure:
        """The answer as the target's."""
        if isinstance(answer, Failure):
            # It names the request to the gateway, which holds the key.
            failure = msgspec.structs.replace(answer, url=task.url, why=without_secrets(answer.why))
            return failure if answer.trouble in _OF_THE_PAGE else self._fault(failure, failure.why)
        status = self._status(answer)
        if status is None:
            meaning = _MEANINGS.get(answer.status, f"no {self._gateway.status_header} in its answer")
            failed = Failure(
                url=task.url, trouble=FailureKind.PROXY, why="", proxy=self._gateway.public, timing=answer.timing
            )
            fault = self._fault(failed, f"{meaning} ({answer.status})")
            # It gave up on this page, perhaps for ever: that counts as an attempt, or the job would never end.
            gave_up = answer.status == _GAVE_UP
            return msgspec.structs.replace(fault, trouble=FailureKind.PROXY_REFUSED) if gave_up else fault
        # Which address it was, only the gateway knows.
        return msgspec.structs.replace(answer, url=task.url, status=status, address="")

    def _checked(self, answer: Answer) -> Answer | Failure:
        try:
            self._direct.check_type(answer.status, answer.header("content-type") or "")
        except Cut as cut:
            return Failure(url=answer.url, trouble=cut.trouble, why=cut.why, proxy=answer.proxy, timing=answer.timing)
        return answer

    def _status(self, answer: Answer) -> int | None:
        """The target's status; None: the gateway speaks for itself."""
        if self._gateway.status_header:
            said = answer.header(self._gateway.status_header) or ""
            return int(said) if said.isdecimal() and 100 <= int(said) < 600 else None
        return None if answer.status in self._gateway.own_statuses else answer.status

    def _fault(self, failure: Failure, what: str) -> Failure:
        why = f"gateway {self._gateway.public}: {what}"
        self._log.note(why)
        return msgspec.structs.replace(failure, trouble=FailureKind.PROXY, why=why)
