"""Keys and scores are kept in stores: when the code that makes them changes, things are merged again."""

import hashlib
import itertools
import json

from trotline.model.merge import CRITERIA, RULES, MergeRule, Source, source_id
from trotline.rules.merge_keys import keys_of
from trotline.rules.merge_score import similarity
from trotline.rules.merge_text import profile

DIGEST = "870433648f994342"
"""Of the samples. Did it change? Then raise RULES in model/merge.py, and write down both here."""

TEXTS = (
    "Acme Laser Printer 2000 W, black", "ACME laser-printer 2 kW (schwarz)", "Acme Laser Printer 2100 W black",
    "Acme LaserPrinter 2000W", "Acme Lasr Printer 2000 W", "T-Shirt, red, size XL", "Tshirt blue XL", "T Shirt red",
    "iPhone 15 Pro 128 GB", "iPhone 15 Pro 128", "iPhone 15 128GB", "Kaffee 3 x 250 g", "Kaffee 750 g, 3er Pack",
    "Café crème 1,5 l", "Cafe creme 1.5 L", 'TV 55"', "TV 55 inch", "Dell's 1,000-piece set", "Über Größe",
    "日本語 テレビ", "Monitor 27 Zoll curved", "Monitor curved 27in", "a", "",
)  # fmt: skip
FIELDS = (
    {"gtin": "4006381333931", "title": TEXTS[0]}, {"ean": "04006381333931", "name": TEXTS[1]},
    {"isbn": "3-16-148410-X"}, {"asin": "B00X4WHP5E", "doi": "10.1000/182"}, {"price": 1, "label": TEXTS[5]},
    {"headline": TEXTS[13], "tags": ["a"]},
)  # fmt: skip


def source(number: int, fields: dict[str, object]) -> Source:
    key, url = f"K{number}", f"https://www.shop.example/p/{number}?utm_source=x&b=1&a=2#top"
    data = json.dumps(fields)
    return Source(source_id("shop", "product", key), "shop", "product", key, url, 1.0, 1.0, 0, data, merged=False)


def results() -> list[object]:
    profiles = [profile(text) for text in TEXTS]
    scores = [round(similarity(a, b, 0.8), 9) for a, b in itertools.product(profiles, repeat=2)]
    rule = MergeRule(by=CRITERIA)
    records = [*({"title": text} for text in TEXTS), *FIELDS]
    return [scores, [sorted(keys_of(source(number, one), rule).blocks) for number, one in enumerate(records)]]


def test_other_keys_and_scores_have_another_version():
    digest = hashlib.sha256(json.dumps(results()).encode()).hexdigest()[:16]
    assert (RULES, digest) == (3, DIGEST)


def test_things_of_another_version_are_merged_again(monkeypatch):
    before = MergeRule().fingerprint
    monkeypatch.setattr("trotline.model.merge.RULES", RULES + 1)
    assert MergeRule().fingerprint != before
