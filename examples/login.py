"""A login: read the form's token, send the form, and go on with the session cookie."""

import os

from trotline import Page, Spider

SHOP = os.environ.get("DEMO_SHOP", "http://127.0.0.1:8010")
# The demo shop prints both on its login page. Keep those of a real site in the environment, as here, not in the code.
USER = os.environ.get("DEMO_SHOP_USER", "demo")
PASSWORD = os.environ.get("DEMO_SHOP_PASSWORD", "let-me-in")

account = Spider("account", pace="5/s")


@account.page(seeds=[f"{SHOP}/login"])
def login(page: Page):
    token = page.css("input[name=token]::attr(value)").get()
    yield orders.task(page.url, form={"token": token, "user": USER, "password": PASSWORD})


@account.page(key="number")
def orders(page: Page):
    """The answer to the form is a redirect to the account, so this is the account page."""
    for order in page.css(".orders li"):
        yield {
            "number": order.css(".number::text").get(),
            "sku": order.css("a::text").get(),
            "total": order.css(".total::text").get(),
        }
