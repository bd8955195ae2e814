"""Why proxies failed, as workers remember it."""

import msgspec

from tests.unit.worker.fake_ports import visit
from trotline.model.outcome import Done, Snooze
from trotline.model.proxy_pool import MemberResult, hex_id
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.proxy_faults import MOST, ProxyFaults


def through(member: int, result: MemberResult, why: str = "") -> FinishedVisit:
    one = visit(1)
    lease = msgspec.structs.replace(one.lease, member=member)
    return msgspec.structs.replace(one, lease=lease, member=result, outcome=Snooze(1.0, why) if why else Done())


def test_the_last_fault_is_remembered_until_a_good_visit() -> None:
    faults = ProxyFaults()
    faults.settled(through(7, MemberResult.FAULT, "proxy: refused"))
    faults.settled(through(7, MemberResult.FAULT, "proxy: http://u:hunter2@192.0.2.1 says 407"))
    faults.settled(through(7, MemberResult.BLOCKED, "blocked: 403"))
    faults.settled(through(8, MemberResult.FAULT, "proxy: refused"))
    faults.settled(through(8, MemberResult.GOOD))
    [(member, why)] = faults.newest().items()
    assert member == hex_id(7) and "407" in why and "hunter2" not in why


def test_only_the_newest_are_kept() -> None:
    faults = ProxyFaults()
    for member in range(1, MOST + 3):
        faults.settled(through(member, MemberResult.FAULT, "x" * 1000))
    assert list(faults.newest()) == [hex_id(member) for member in range(3, MOST + 3)]
    assert all(len(why) <= 200 for why in faults.newest().values())
