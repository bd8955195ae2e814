"""Accounts on a fleet whose workers are killed and paused at random: was an account ever used by two at once?

    python -m tests.e2e.account_soak --pages 10000 --accounts 20 --workers 6 --kills 500

The site has one valid session per account: a second login, or a cookie of an older holder, ends it. It notes every
request that begins while another one of the same account is under way. Strangers get a page with status 200 and no
row may come of it. Paused workers (SIGSTOP) wake up after others may have had their accounts.
"""

import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.e2e.account_site import PASSWORD, AccountSite
from tests.e2e.fleet import Servers, servers
from tests.e2e.fleet_job import FleetJob, faults, named
from tests.e2e.fleet_kills import Fleet, KillPlan, Kills, plan_of_arguments, strike, supervisor_of

from trotline.model.job import Progress

PAUSED = "paused"
LONGEST_PAUSE = 24.0
"""Longer than a worker may be silent, and the rest of its accounts."""
SPIDER = """
import os

from trotline import Limits, LoginSession, Page, Spider

members = Spider(
    "members", pace="1000/s", concurrency=200, robots=False, retries=50, pool="@members", limits=Limits(total=3.0),
    logged_out="form.login",
)
base = os.environ["MEMBERS"]


@members.login("@members")
async def log_in(session: LoginSession) -> bool:
    page = await session.get(base + "/login")
    token = page.css("input[name=token]::attr(value)").get()
    form = {"token": token, "user": session.user, "password": session.password}
    page = await session.post(base + "/login", form=form)
    return bool(page.css("a.out"))


@members.page(key="url", seeds=[f"{base}/p/{number}" for number in range(1, 1 + int(os.environ["PAGES"]))])
def page(page: Page):
    yield {"url": page.url, "who": page.css(".who::text").get(), "account": page.account}
"""


@dataclass(kw_only=True)
class Plan(KillPlan):
    """How much is asked of the fleet."""

    pages: int = 10_000
    accounts: int = 20
    workers: int = 6
    kills: int = 500
    slots: int = 8
    session_pages: int = 60
    """Pages after which the site ends a session."""
    at: str = "0.3-1.5"
    patience: float = 3600.0


@dataclass
class AccountJob(FleetJob):
    plan: Plan
    site: AccountSite

    spider = "members.py"
    text = SPIDER

    @property
    def names(self) -> list[str]:
        return [f"a{number}" for number in range(self.plan.accounts)]

    @property
    def environment(self) -> dict[str, str]:
        passwords = {f"PASSWORD_{name}": PASSWORD.format(name) for name in self.names}
        settings = {"MEMBERS": self.site.base, "PAGES": str(self.plan.pages), "TROTLINE_PROXIES": "proxies.toml"}
        return {**super().environment, **passwords, **settings}

    async def begin(self) -> None:
        logins = [f'{name} = {{ user = "{name}@shop.test", password = "env:PASSWORD_{name}" }}' for name in self.names]
        lines = ["[accounts.members]", 'proxies = "direct"', 'timeout = "3s"', "", "[accounts.members.logins]", *logins]
        (self.folder / "proxies.toml").write_text("\n".join(lines) + "\n")
        await super().begin()


@dataclass
class Result:
    plan: Plan
    killed: Kills
    site: AccountSite
    progress: Progress
    rows: list[dict[str, Any]]

    @property
    def trouble(self) -> str:
        """What is wrong; empty if nothing is."""
        wanted = {f"{self.site.base}/p/{number}" for number in range(1, 1 + self.plan.pages)}
        return named(
            {
                "used by two at once": len(self.site.overlaps),
                "rows of strangers": sum(1 for row in self.rows if not row["who"]),
                "rows of another account": sum(1 for row in self.rows if row["who"] != row["account"]),
                **faults(wanted, [row["url"] for row in self.rows], self.progress),
            }
        )

    def __str__(self) -> str:
        uses, logins = sum(self.site.uses.values()), sum(self.site.logins.values())
        kinds = ", ".join(f"{kind} {done.kills}" for kind, done in sorted(self.killed.kinds.items()))
        lines = [
            f"{self.plan.pages} pages, {self.plan.accounts} accounts, {self.plan.workers} workers,"
            f" {self.killed.kills} kills and pauses ({kinds}): {self.killed.seconds:.0f} s",
            f"{uses} uses and {logins} logins, {self.site.strangers} pages for strangers, {len(self.rows)} rows;"
            f" used by two at once: {len(self.site.overlaps)}",
        ]
        return "\n".join([*lines, *([f"WRONG: {self.trouble}"] if self.trouble else [])])


class PausingFleet(Fleet):
    """Every third victim is paused, and wakes up when others may have its accounts."""

    _waking: set["asyncio.Task[None]"]

    def _kill_one(self, crew: dict[str, int]) -> None:
        if self.chance.random() > 1 / 3:
            super()._kill_one(crew)
            return
        by_pid = {worker.process.pid: worker for worker in self.places.values() if worker.process.returncode is None}
        alive = [by_pid[supervisor_of(name)] for name in crew if supervisor_of(name) in by_pid]
        if not alive:
            return
        victim = self.chance.choice(alive)
        with suppress(ProcessLookupError):
            victim.signal_all(signal.SIGSTOP)
            self.account.kinds[PAUSED].kills += 1
            pause = self.chance.choice((0.5, 3.0, LONGEST_PAUSE)) * (0.5 + 0.5 * self.chance.random())
            waking = asyncio.ensure_future(_wake(victim, pause))
            self._waking = {*getattr(self, "_waking", set()), waking}


async def _wake(victim: Any, after: float) -> None:
    await asyncio.sleep(after)
    with suppress(ProcessLookupError):
        victim.signal_all(signal.SIGCONT)


async def soak(plan: Plan, opened: Servers, folder: Path) -> Result:
    async with (
        AccountSite(pages_of_a_session=plan.session_pages) as site,
        AccountJob(folder, *opened.places(), plan, site).begun() as job,
    ):
        killed = await strike(plan, job, PausingFleet)
        [rows] = await job.select(
            "SELECT data->>'url' AS url, data->>'who' AS who, data->>'account' AS account FROM records"
        )
        return Result(plan, killed, site, await job.progress(), rows)


def main() -> int:
    plan = plan_of_arguments(Plan(), "tests.e2e.account_soak", __doc__)
    with servers() as opened, TemporaryDirectory(prefix="trotline-accounts-") as folder:
        result = asyncio.run(soak(plan, opened, Path(folder)))
    print(result)
    return 1 if result.trouble else 0


if __name__ == "__main__":
    sys.exit(main())
