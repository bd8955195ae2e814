"""The demo shop: a small, repeatable site with pleasant and unpleasant pages, for tests and examples."""

from trotline.testing.shop.account import PASSWORD, USER
from trotline.testing.shop.lab import ENTRIES, Entry
from trotline.testing.shop.maps import CRAWL_DELAY, SLOW_AGENT
from trotline.testing.shop.oddities import Encoded
from trotline.testing.shop.server import DemoShop, Visit
from trotline.testing.shop.stock import CATEGORIES, Order, Product, Quote
from trotline.testing.shop.trouble import Manners

__all__ = [
    "CATEGORIES",
    "CRAWL_DELAY",
    "ENTRIES",
    "PASSWORD",
    "SLOW_AGENT",
    "USER",
    "DemoShop",
    "Encoded",
    "Entry",
    "Manners",
    "Order",
    "Product",
    "Quote",
    "Visit",
]
