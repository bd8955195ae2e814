"""What the handlers share: made once per server."""

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from trotline.commands.web import WebPlan
    from trotline.web.authentication import Access
    from trotline.web.downloads import Downloads
    from trotline.web.job_snapshots import Snapshots
    from trotline.web.jobs_index import JobsIndex
    from trotline.web.kind_counts import RowCounter
    from trotline.web.metrics import Metrics
    from trotline.web.pages.render import Pages
    from trotline.web.seeding import Seeding
    from trotline.web.series_and_alerts import Figures
    from trotline.web.server_sent_events import Feeds
    from trotline.web.spiders import Spiders


class Site(msgspec.Struct, frozen=True, kw_only=True):
    plan: "WebPlan"
    access: "Access"
    index: "JobsIndex"
    snapshots: "Snapshots"
    figures: "Figures"
    pages: "Pages"
    feeds: "Feeds"
    downloads: "Downloads"
    spiders: "Spiders"
    seeding: "Seeding"
    row_counts: "RowCounter"
    metrics: "Metrics"
