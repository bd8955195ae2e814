"""Leads spiders, one office each; any number of coordinators may stand for the same ones."""

import asyncio
from collections.abc import Sequence

from trotline.coordinator.job_list import Roster
from trotline.coordinator.leader import Office
from trotline.coordinator.tools import Charge, Policy, Tools


class Coordinator:
    """`name` is one that no other process ever has. Everything it touches is handed in."""

    def __init__(self, name: str, charges: Sequence[Charge], tools: Tools, policy: Policy | None = None) -> None:
        policy = policy or Policy()
        roster = Roster(tools.jobs, tools.clock)
        self._offices = [Office(name, charge, tools, policy, roster) for charge in charges]

    async def run(self) -> None:
        """For ever: campaign, and do what a leader does where we lead. Cancelled, it resigns."""
        async with asyncio.TaskGroup() as group:
            for office in self._offices:
                group.create_task(office.run())
