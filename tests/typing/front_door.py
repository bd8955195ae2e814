"""What a user's type checker must accept, and (where an ignore stands) must reject. Checked, never run."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from trotline import (
    LATER,
    SOON,
    FileSeeds,
    Harvest,
    Page,
    Rate,
    Record,
    RobotsSitemaps,
    Route,
    Secret,
    Selected,
    Selection,
    Sitemap,
    Spider,
    Task,
)
from trotline.testing import visit


@dataclass
class Product:
    sku: str
    price: float = 0.0


class Offer(msgspec.Struct):
    sku: str


def looks_blocked(page: Page) -> str | None:
    return "captcha" if page.css(".captcha") else None


shop = Spider(
    "shop",
    pace="2/s",
    lanes={"api.shop.example": Rate(5.0), "slow.example": "1/m"},
    hosts=["shop.example"],
    headers={"accept-language": "cs"},
    blocked=looks_blocked,
    give_up=timedelta(minutes=5),
    schedule="0 3 * * *",
    timezone="Europe/Berlin",
    overlap="wait",
)

Spider("shop", hosts=["shop.example"], headers={"authorization": Secret.env("TOKEN"), "x": "y"}, redact=["ticket"])
Spider("shop", cookies={"session": Secret.file("session.txt")})
Spider("shop", pace=2)  # type: ignore[arg-type]
Spider("shop", speed="2/s")  # type: ignore[call-arg]
Spider()  # type: ignore[call-arg]
Spider("shop", give_up=30)  # type: ignore[arg-type]
Spider("shop", overlap="queue")  # type: ignore[arg-type]
Spider("shop", blocked=3)  # type: ignore[arg-type]


@shop.page
def listing(page: Page):
    for link in page.links(".card a"):
        yield product.task(link, priority=SOON)
    yield page.follow("li.next a")


@shop.page(seeds=["https://shop.example/", FileSeeds("urls.txt")], key="sku", model=Product, priority=LATER)
def product(page: Page) -> Iterator[Product]:
    yield Product(sku=page.css(".sku::text").get(), price=float(page.css(".price::text").get("0")))


@shop.page(seeds="https://shop.example/", status=404)
def one(page: Page) -> dict[str, str]:
    return {"title": page.title}


@shop.page(seeds=lambda: (f"https://shop.example/{number}" for number in range(3)))
async def offers(page: Page) -> AsyncIterator[Offer]:
    yield Offer("T1")


@shop.page(sitemap=[Sitemap("https://shop.example/s.xml"), RobotsSitemaps("https://shop.example/")])
async def later(page: Page) -> None: ...


@shop.page  # type: ignore[arg-type]
def no_page(number: int) -> None: ...


@shop.page  # type: ignore[arg-type]
def two_arguments(page: Page, other: Page) -> None: ...


@shop.page(seeds=7)  # type: ignore[call-overload]
def wrong_seeds(page: Page) -> None: ...


@shop.page(keys="sku")  # type: ignore[call-overload]
def wrong_name(page: Page) -> None: ...


def routes_are_objects() -> None:
    route: Route = product
    task: Task = route.task(
        "https://shop.example/", priority=SOON, form={"q": 1}, not_before=datetime.now(UTC), meta={"a": 1}
    )
    assert task.priority == SOON
    route.task(7)  # type: ignore[arg-type]
    route.task("https://shop.example/", prio=1)  # type: ignore[call-arg]
    route.task("https://shop.example/", priority="soon")  # type: ignore[arg-type]
    prodcut.task("https://shop.example/")  # type: ignore[name-defined]  # noqa: F821
    task.priority = 3  # type: ignore[misc]


def pages_are_typed(page: Page) -> None:
    boxes: Selection = page.css(".quote")
    first: Selected = boxes[0]
    some: Selection = boxes[1:]
    texts: list[str] = some.getall()
    text: str = first.get().strip() + boxes.css("b::text").get("none")
    maybe: str | None = boxes.css("b::text").get(None)
    links: list[str] = page.links()
    offer: Offer = page.json(Offer)
    task: Task = page.task("x", to=product, priority=LATER)
    record: Record = page.record("price", "T1", {"a": 1})
    title: str = page.headers["title"]
    boxes.get() + 1  # type: ignore[operator]
    page.links(7)  # type: ignore[arg-type]
    page.json(Offer).price  # type: ignore[attr-defined]  # noqa: B018
    page.follow("a", to=3)  # type: ignore[arg-type]
    page.url.decode()  # type: ignore[attr-defined]
    print(texts, text, maybe, links, offer, task, record, title)


def tests_are_typed() -> None:
    harvest: Harvest = visit(product, "pages/tea.html", url="https://shop.example/p/T1")
    assert [record.key for record in harvest.records] == ["T1"]
    visit("product", "pages/tea.html")  # type: ignore[arg-type]
