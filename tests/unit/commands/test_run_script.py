"""What the report of `trotline.run` says about pages."""

from trotline.commands.run_report import Ending
from trotline.commands.run_script import RunReport
from trotline.model.job import Job, LaneRules, Progress
from trotline.model.pace import Pace, Rate

TALLIES = {
    "records": 2,
    "dropped: gone: 404": 1,
    "retry: 503": 2,
    "dead: handler: KeyError": 3,
    "links refused: host": 4,
    "kind records: product": 2,
    "field set: product / sku": 2,
    "field empty: product / price": 2,
    "field filled: product / sku": 2,
    "follow empty: listing / .nope": 1,
}


def report() -> RunReport:
    rules = LaneRules(default=Pace(rate=Rate(1000.0)))
    job = Job(id="shop-1", spider="shop", started_at=0.0, rules=rules)
    return RunReport(
        job=job, ended=Ending.FINISHED, progress=Progress(waiting=0, leased=0, done=9, dead=3, tallies=TALLIES)
    )


def test_reasons_are_only_those_of_pages() -> None:
    assert report().reasons == {"dropped: gone: 404": 1, "retry: 503": 2, "dead: handler: KeyError": 3}


def test_warnings_are_sentences() -> None:
    assert report().warnings == [
        "product: field 'price' is empty in all records",
        "listing: page.follow('.nope') matched nothing on any page",
    ]
