"""F9 for records that failed validation: they are kept, and reviving one visits its page again."""

from trotline.model.lease import Reject, Settlement
from trotline.model.outcome import Bury, Done
from trotline.testing.frontier_contract.bench import Bench, lease_all, lease_one, tasks


class RejectPromises:
    async def test_f9_a_rejected_record_is_kept_and_is_no_dead_task(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        lease = await lease_one(frontier, "w")
        reject = Reject("product", "price: not a number", '{"price": "ask us"}')

        await frontier.settle("w", [Settlement(lease, Done(), rejects=(reject,))])

        [grave] = await frontier.graves()
        assert (grave.url, grave.record) == (lease.task.url, reject.data)
        assert reject.why in grave.why
        assert (await frontier.progress()).dead == 0

    async def test_f9_reviving_a_rejected_record_visits_its_page_again(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(3))
        bad, good, other = await lease_all(frontier, "w")
        prices = tuple(Reject("product", f"price {number}: not a number", "{}") for number in range(3))
        await frontier.settle(
            "w",
            [
                Settlement(bad, Done(), rejects=prices),
                Settlement(good, Done()),
                Settlement(other, Done(), rejects=(Reject("offer", "sku: the key is missing", "{}"),)),
            ],
        )
        await frontier.seal()
        assert await frontier.announce_finish()

        assert await frontier.revive(why="bad record: price") == 1

        progress = await frontier.progress()
        assert (progress.waiting, progress.leased, progress.done, progress.dead) == (1, 0, 2, 0)
        assert progress.finished_at is None
        assert progress.tallies["records rejected"] == 1
        # All of the page's rejected records are forgotten, those of other pages are not.
        assert await frontier.reasons() == {"bad record: sku: the key is missing": 1}
        [again] = await lease_all(frontier, "w")
        assert (again.task.url, again.task.attempt) == (bad.task.url, 0)
        await frontier.settle("w", [Settlement(again, Done())])
        assert await frontier.revive(why="bad record: price") == 0
        assert await frontier.announce_finish()

    async def test_f9_a_rejected_record_can_be_revived_by_its_id_and_with_all_others(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(3))
        for lease in await lease_all(frontier, "w"):
            rejects = (Reject("product", "price: not a number", "{}"),)
            await frontier.settle("w", [Settlement(lease, Done(), rejects=rejects)])
        [first, *_] = await frontier.graves()

        assert await frontier.revive([first.id]) == 1
        [lease] = await lease_all(frontier, "w")
        assert lease.task.url == first.url
        await frontier.settle("w", [Settlement(lease, Bury("handler: broken"))])

        assert await frontier.revive() == 3
        assert len(await lease_all(frontier, "w")) == 3
        assert await frontier.reasons() == {}
