"""Records that are checked before they are stored. Needs: pip install '.[pydantic]'"""

import os
from decimal import Decimal

from pydantic import BaseModel, Field

from trotline import Page, Spider

SHOP = os.environ.get("DEMO_SHOP", "http://127.0.0.1:8010")

checked = Spider("checked", pace="50/s")


class Offer(BaseModel):
    sku: str = Field(pattern=r"^T\d+$")
    title: str = Field(min_length=3)
    price: Decimal = Field(gt=0, decimal_places=2)


@checked.page(seeds=[f"{SHOP}/c/tea"])
def shelf(page: Page):
    yield page.follow(".pager a")
    yield page.follow(".card a", to=offer)


@checked.page(key="sku", model=Offer)
def offer(page: Page):
    yield {
        "sku": page.css("[itemprop=sku]::text").get(),
        "title": page.css("h1::text").get(),
        "price": page.css(".price::text").get().removeprefix("€"),
    }
