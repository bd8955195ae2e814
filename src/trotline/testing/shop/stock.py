"""What the demo shop sells and says: the truth that tests compare rows with, made from a seed."""

from random import Random
from typing import NamedTuple

CATEGORIES = ("tea", "coffee", "spices", "honey", "cups", "kettles")

_MAKERS = ("Aldgate", "Brücke & Sons", "Čajovna", "Dunmore", "Ébène", "Fjord", "Ginkgo", "Harbour")
_MOODS = ("Amber", "Brisk", "Cloudy", "Dark", "Evening", "First", "Golden", "Highland", "Quiet", "Smoky", "Winter")
_THINGS = {
    "tea": ("Oolong", "Assam", "Sencha", "Rooibos", "Pu-erh"),
    "coffee": ("Espresso", "Filter Roast", "Peaberry", "Café Crème"),
    "spices": ("Cardamom", "Saffron", "Cinnamon", "Piment d'Espelette"),
    "honey": ("Acacia Honey", "Heather Honey", "Lime Honey"),
    "cups": ("Cup", "Bowl", "Tumbler", "Gaiwan"),
    "kettles": ("Kettle", "Teapot", "Samovar"),
}
_SENTENCES = (
    "Packed by hand in small lots.",
    "Keeps for a year in a dry cupboard.",
    "Best shared, good alone.",
    "Tastes of rain < and a little > of smoke.",
    "Comes in a tin with a tight lid.",
    "Made the slow way since 1911.",
    "A favourite of the night shift.",
)
_AUTHORS = ("Ada Harbour", "B. Trotter", "Chloé Ligne", "Dmitri Sever", "Eun-ji Park", "Fatou Quay")
_SUBJECTS = ("A patient line", "The smallest boat", "A well-kept queue", "An honest log", "A quiet server")
_VERBS = ("outlives", "forgives", "teaches", "remembers", "outpaces")
_OBJECTS = ("the storm", "a hurried hand", "every clever net", "the morning's catch", "its maker", "“the last word”")


class Product(NamedTuple):
    """One product, exactly as its page shows it."""

    sku: str
    title: str
    price: str
    """As shown: "€12.50"."""
    category: str
    description: str
    stock: int
    """Only in the embedded `window.__STATE__` and the API, not in the text of the page."""
    rating: float
    """Only in JSON-LD and the API."""
    related: tuple[str, ...]
    """The sku of each product the page links to as related."""

    @property
    def amount(self) -> str:
        """The price without its currency."""
        return self.price.removeprefix("€")

    @property
    def path(self) -> str:
        return f"/p/{self.sku}"


class Quote(NamedTuple):
    text: str
    author: str


class Order(NamedTuple):
    """One order on the account page, which only a logged-in visitor sees."""

    number: str
    sku: str
    total: str


class Stock(NamedTuple):
    """Everything the shop shows. The same seed and sizes always give the same stock."""

    products: tuple[Product, ...]
    quotes: tuple[Quote, ...]
    orders: tuple[Order, ...]

    def of(self, category: str) -> tuple[Product, ...]:
        return tuple(product for product in self.products if product.category == category)


def stock_up(products: int, quotes: int, seed: int) -> Stock:
    """Make the stock. Products, quotes and orders have their own random sources: more of one changes no other."""
    goods = tuple(_product(number, products, Random(f"{seed} product {number}")) for number in range(1, products + 1))
    words = tuple(_quote(number, Random(f"{seed} quote {number}")) for number in range(1, quotes + 1))
    return Stock(goods, words, _orders(goods, Random(f"{seed} orders")))


def _product(number: int, count: int, chance: Random) -> Product:
    category = CATEGORIES[(number - 1) % len(CATEGORIES)]
    thing = chance.choice(_THINGS[category])
    others = (
        [other for other in range(1, count + 1) if other != number] if count < 5 else _others(number, count, chance)
    )
    return Product(
        sku=f"T{number}",
        title=f"{chance.choice(_MAKERS)} {chance.choice(_MOODS)} {thing} No. {number}",
        price=f"€{chance.randrange(150, 20_000) / 100:.2f}",
        category=category,
        description=" ".join(chance.sample(_SENTENCES, 3)),
        stock=chance.randrange(0, 200),
        rating=chance.randrange(20, 51) / 10,
        related=tuple(f"T{other}" for other in others),
    )


def _others(number: int, count: int, chance: Random) -> list[int]:
    # One more than needed, so that dropping the product itself still leaves four.
    return [other for other in chance.sample(range(1, count + 1), 5) if other != number][:4]


def _quote(number: int, chance: Random) -> Quote:
    text = f"{chance.choice(_SUBJECTS)} {chance.choice(_VERBS)} {chance.choice(_OBJECTS)}. ({number})"
    return Quote(text, chance.choice(_AUTHORS))


def _orders(goods: tuple[Product, ...], chance: Random) -> tuple[Order, ...]:
    bought = chance.sample(goods, min(3, len(goods)))
    return tuple(Order(f"O-{1000 + place}", product.sku, product.price) for place, product in enumerate(bought))
