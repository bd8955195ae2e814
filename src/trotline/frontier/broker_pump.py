"""Moves tasks between the books and the broker of a brokered frontier. Every client of a job has a pump.

Out: parcels that the books hold for it are published, confirmed, and their bodies deleted from the books. In: messages
are received, their parcels are moved to the queues of the books, and acknowledged.

A client may die at any step. Before the confirmation is recorded, a parcel is published again by another client; before
the acknowledgement, a message is delivered again; the books move a parcel once, so both are harmless.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import xxhash

from trotline.errors import FrontierError, FrontierUnreachable
from trotline.frontier import broker_message_codec
from trotline.frontier.lost_broker_messages import LostParcels
from trotline.frontier.put_one_by_one import defect
from trotline.model.task_json import Undecodable
from trotline.model.time import Seconds
from trotline.ports.broker import Broker, Delivery, Message
from trotline.ports.broker_books import Books, Parcel, Shelves, Unshelved
from trotline.ports.frontier import Frontier
from trotline.rules import redaction
from trotline.rules.broker_shelves import PARCEL_TASKS

ACK_AFTER: Seconds = 2.0
"""A message is acknowledged so long after its tasks were moved: if the books lose their last second, they are moved
again."""
MOST_UNPUBLISHED = 1000
"""Parcels that the books hold while the broker accepts none; then `put` fails."""
PATIENCE: Seconds = 2.0
"""A put or a lease waits so long for the broker; then that goes on without it, so that a server that does not answer
holds up nothing that the books can do alone, such as returning the tasks of dead workers."""
_CLAIMED = 100
"""Parcels that are published at once."""
_ROUND = 16
"""Messages that are received at once."""
_LEAST = 500
"""Tasks in the queues that a lease aims for."""
_ROUNDS = 12
_REST: Seconds = 1.0
_DAMAGED = "another number of tasks than were put into it"

_log = logging.getLogger(__name__)


class _Way:
    """Publishing, receiving, or putting messages aside: the one may fail while the others work, as a server that is
    short of memory only stops publishers."""

    def __init__(self, broker: Broker, factor: float) -> None:
        """`factor`: of the time that a failed call took, before the next one."""
        self._broker = broker
        self._factor = factor
        self._rest_until: Seconds = 0.0
        self._asked_at: Seconds = 0.0
        self.trouble: FrontierError | None = None
        """Why the last call failed."""

    def rests(self) -> bool:
        """After an error the broker is left alone for a moment: a call may take seconds to fail."""
        return self.trouble is not None and asyncio.get_running_loop().time() < self._rest_until

    def asks(self) -> None:
        self._asked_at = asyncio.get_running_loop().time()

    def answered(self) -> None:
        if self.trouble is not None:
            _log.info("broker.reachable %s is back", self._broker.place)
        self.trouble = None

    def failed(self, error: FrontierError, at_hand: int = 0) -> None:
        """`at_hand`: tasks that can be leased without the broker."""
        if self.trouble is None or self.trouble.what != error.what:
            _log.warning("broker.unreachable %s; %d tasks are at hand", error.what, at_hand)
        self.trouble = error
        now = asyncio.get_running_loop().time()
        self._rest_until = now + max(_REST, (now - self._asked_at) * self._factor)


class _Unpacked(NamedTuple):
    """A message, and what is in it."""

    delivery: Delivery
    parcels: list[Parcel]


class _Unreadable(NamedTuple):
    delivery: Delivery
    why: str


class Pump:
    def __init__(self, books: Books, broker: Broker, frontier: Frontier) -> None:
        self._books = books
        self._broker = broker
        self._frontier = frontier
        # Every put waits for it: a blocked server is not asked for more than half of the time.
        self._out, self._in, self._aside = _Way(broker, 1.0), _Way(broker, 0.0), _Way(broker, 1.0)
        self._unpublished = 0
        self._moved: deque[tuple[Seconds, int, Delivery]] = deque()
        """When, in which generation of the books, and what was moved and is not acknowledged yet."""
        self._pending: list[Delivery] = []
        """Received, and not moved: the books could not be reached."""
        self._unreadable: list[_Unreadable] = []
        """Received, and not put aside yet."""
        self._at_hand = 0
        """Tasks in the queues of the books, at the last look."""
        self._shelved = False
        """Was there anything to publish or to receive, at the last look?"""
        self._receiving = asyncio.Lock()
        self._publishing = asyncio.Lock()
        self._later: asyncio.Task[None] | None = None
        self._supplying: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._lost = LostParcels(broker)
        if broker.linger:
            books.share_new()

    async def publish_soon(self) -> None:
        """A page had links. Where each call costs money, they wait for those of other pages; a lease that lacks tasks
        publishes them at once."""
        if not self._broker.linger:
            await self.publish()
        elif self._later is None or self._later.done():
            self._later = asyncio.create_task(self._publish_later())

    async def _publish_later(self) -> None:
        await asyncio.sleep(self._broker.linger)
        # Errors of the broker are kept in `wants`; without the books, the next call of any client publishes them.
        with contextlib.suppress(FrontierError):
            await self.publish()

    async def publish(self) -> None:
        """Publish what the books hold. If that fails, or takes longer than PATIENCE, nothing is lost: it goes on, and a
        later call does it."""
        if self._out.rests():
            self._unpublished += 1
            return
        sending = asyncio.create_task(self._publish())
        self._sending.add(sending)
        sending.add_done_callback(self._sent)
        if (await asyncio.wait({sending}, timeout=PATIENCE))[0]:
            sending.result()

    def _sent(self, sending: asyncio.Task[None]) -> None:
        self._sending.discard(sending)
        # No call waits for it any more: an error of the books is also that of the next call.
        _ = sending.cancelled() or sending.exception()

    async def _publish(self) -> None:
        async with self._publishing:
            if self._out.rests():
                return
            published: list[Parcel] = []
            while parcels := await self._books.unpublished(_CLAIMED, published):
                published = []
                self._out.asks()
                try:
                    await self._broker.publish(list(_messages(parcels)))
                except FrontierError as error:
                    self._unpublished += len(parcels)
                    self._out.failed(error, self._at_hand)
                    return
                self._out.answered()
                published = parcels
            self._unpublished = 0

    async def check_room(self) -> None:
        """Raises if the broker accepts nothing and the books hold a lot for it already."""
        if self._out.trouble is None or self._unpublished < MOST_UNPUBLISHED:
            return
        self._unpublished = (await self._books.shelves()).unpublished
        if self._unpublished < MOST_UNPUBLISHED:
            return
        await self.publish()
        if (trouble := self._out.trouble) is not None:
            raise FrontierUnreachable(
                f"{trouble.what}; {self._unpublished:,} parcels of new tasks wait to be published", hint=trouble.hint
            )

    async def supply(self, wanted: int) -> bool:
        """Move tasks to the queues, until there are enough or no more on the shelves. Errors of the broker are kept in
        `wants`: what is in the queues can be leased without it. True: it is still under way, after PATIENCE."""
        supplying = self._supplying
        if supplying is None or supplying.done():
            supplying = self._supplying = asyncio.create_task(self._supply(wanted))
        # Else another lease of this process does it.
        if not (await asyncio.wait({supplying}, timeout=PATIENCE))[0]:
            return True
        if not supplying.cancelled():
            supplying.result()
        return False

    async def _supply(self, wanted: int) -> None:
        async with self._receiving:
            await self._acknowledge()
            received, moved = 0, 0
            for turn in range(_ROUNDS):
                look = await self._books.shelves()
                self._unpublished, self._at_hand = look.unpublished, look.ready
                self._shelved = bool(look.unpublished or look.shelves)
                if turn == 0 and self._should_publish(look, wanted):
                    await self.publish()
                    look = await self._books.shelves()
                if turn > 0 and look.ready >= _enough(wanted):
                    return
                if self._in.rests():
                    return
                self._in.asks()
                try:
                    # Messages of which the books know nothing may be before those that are wanted.
                    received, moved = await self._round(look, all_=received > 0 and moved == 0)
                except FrontierError as error:
                    self._in.failed(error, look.ready)
                    return
                if not received or moved >= sum(view.parcels for view in look.shelves):
                    return

    def _should_publish(self, look: Shelves, wanted: int) -> bool:
        if self._broker.linger and look.ready >= _enough(wanted):
            return False
        # If this client publishes just now, wait for it.
        return look.stale > 0 or self._publishing.locked()

    async def supply_more(self) -> bool:
        """Move some more tasks to the queues, as far as there is room: none of those that are there is for the
        worker that asks. False if nothing was moved."""
        async with self._receiving:
            await self._acknowledge()
            if self._in.rests():
                return False
            try:
                return (await self._round(await self._books.shelves()))[0] > 0
            except FrontierError as error:
                self._in.failed(error)
                return False

    async def drain(self, lane: str) -> bool:
        """Move messages of this lane's shelves, whether there is room or not; False if there are none left."""
        async with self._receiving:
            look = await self._books.shelves()
            if not await self._books.shelved(lane):
                return False
            all_open = look._replace(shelves=tuple(view._replace(open=True) for view in look.shelves))
            return (await self._round(all_open))[0] > 0

    async def close(self) -> None:
        lingers = self._later is not None and not self._later.done()
        under_way = [task for task in (self._later, self._supplying, *self._sending) if task is not None]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        if lingers:
            with contextlib.suppress(FrontierError):
                await self.publish()
        # Errors are ignored: what is not acknowledged is delivered again, and dropped.
        with contextlib.suppress(FrontierError):
            await self._broker.ack([delivery for _, _, delivery in self._moved])
        await self._broker.close()

    async def _round(self, look: Shelves, *, all_: bool = False) -> tuple[int, int]:
        """Receive and move some messages, those of sooner bands first. Their number, and that of their parcels.
        `all_`: also more than the books have parcels there."""
        left = _ROUND
        for view in look.shelves:
            if view.open and view.parcels > 0 and left > 0:
                some = await self._broker.receive(view.shelf, left if all_ else min(left, view.parcels))
                self._in.answered()
                self._pending += some
                left -= len(some)
                await self._lost.watch(view, len(some))
        found = tuple(self._pending)
        moved = await self._move(found) if found else 0
        del self._pending[: len(found)]
        return len(found), moved

    async def _move(self, deliveries: Sequence[Delivery]) -> int:
        """The number of parcels that were moved. What is wrong with one message holds up no other."""
        found: list[_Unpacked] = []
        unreadable: list[_Unreadable] = []
        for delivery in deliveries:
            try:
                found.append(_Unpacked(delivery, broker_message_codec.decode(delivery.body, delivery.shelf)))
            except Undecodable as error:
                unreadable.append(_Unreadable(delivery, str(error)))
        moved, now = 0, asyncio.get_running_loop().time()
        for unpacked, answers in zip(found, await self._unshelve_each(found), strict=True):
            if isinstance(answers, str):
                unreadable.append(_Unreadable(unpacked.delivery, answers))
                continue
            moved += answers.count(Unshelved.MOVED)
            if Unshelved.DAMAGED in answers:
                unreadable.append(_Unreadable(unpacked.delivery, _DAMAGED))
            else:
                self._moved.append((now, self._frontier.generation, unpacked.delivery))
        self._name(unreadable)
        await self._put_aside()
        return moved

    async def _unshelve_each(self, found: Sequence[_Unpacked]) -> list[list[Unshelved] | str]:
        """Of each message the answers, or why the books cannot hold it. After an error that is not the server's, one
        by one."""
        try:
            answers = iter(await self._books.unshelve([parcel for each in found for parcel in each.parcels]))
        except FrontierError:
            raise
        except Exception as error:
            if len(found) == 1:
                return [defect(error)]
            return [answer for each in found for answer in await self._unshelve_each([each])]
        return [list(islice(answers, len(each.parcels))) for each in found]

    def _name(self, unreadable: Sequence[_Unreadable]) -> None:
        for delivery, why in unreadable:
            _log.warning(
                "broker.rejected a message of shelf %s at %s: %s. If it was ours, its tasks are counted as waiting.",
                delivery.shelf, self._broker.place, redaction.text(why),
            )  # fmt: skip
        self._unreadable += unreadable

    async def _put_aside(self) -> None:
        """What the broker does not take back is kept for the next call, and holds up no other message."""
        while self._unreadable and not self._aside.rests():
            self._aside.asks()
            try:
                await self._broker.reject(*self._unreadable[0])
            except FrontierError as error:
                self._aside.failed(error, self._at_hand)
                return
            self._aside.answered()
            del self._unreadable[0]

    async def _acknowledge(self) -> None:
        """What was moved some time ago; what was moved before the books were reconnected is moved again first."""
        now, generation = asyncio.get_running_loop().time(), self._frontier.generation
        again = [delivery for _, before, delivery in self._moved if before != generation]
        if again:
            self._moved = deque(entry for entry in self._moved if entry[1] == generation)
            await self._move(again)
        await self._put_aside()
        old: list[Delivery] = []
        while self._moved and now - self._moved[0][0] >= ACK_AFTER:
            old.append(self._moved.popleft()[2])
        if old:
            try:
                await self._broker.ack(old)
            except FrontierError as error:
                self._in.failed(error)

    @property
    def wants(self) -> FrontierError | None:
        """Why tasks at the broker do not come, or do not get there, if there are some and no others are at hand."""
        return (self._in.trouble or self._out.trouble) if self._shelved and not self._at_hand else None


def _enough(wanted: int) -> int:
    return max(_LEAST, 2 * wanted)


def _messages(parcels: Sequence[Parcel]) -> Iterator[Message]:
    """Small parcels of a shelf share a message."""
    open_: dict[str, list[Parcel]] = {}
    for parcel in parcels:
        some = open_.setdefault(parcel.shelf, [])
        if some and sum(len(one.tasks) for one in some) + len(parcel.tasks) > PARCEL_TASKS:
            yield _message(some)
            some.clear()
        some.append(parcel)
    for some in open_.values():
        yield _message(some)


def _message(parcels: Sequence[Parcel]) -> Message:
    lanes = {task.lane for parcel in parcels for task in parcel.tasks}
    group = f"{xxhash.xxh3_64_intdigest(lanes.pop().encode()):016x}" if len(lanes) == 1 else ""
    return Message(parcels[0].shelf, broker_message_codec.encode(parcels), group)
