"""How a person names archived pages, and why nothing may fit."""

from collections import Counter

from trotline.model.archive import ArchiveDamage, ArchiveQuery
from trotline.rules import redaction
from trotline.rules.urls import Address, read

VERIFY = "`trotline archive verify` names all damage. Put the file back from a backup, or move it out of the archive."


class SkippedCaptures:
    """Damaged captures that a reader left out, counted by reason."""

    def __init__(self) -> None:
        self.reasons = Counter[str]()
        self.examples: dict[str, str] = {}
        """A URL for each reason that is about captures, and not about a whole file."""

    def __bool__(self) -> bool:
        return bool(self.reasons)

    def add(self, damage: ArchiveDamage) -> None:
        self.reasons[damage.reason] += 1
        if damage.url:
            self.examples.setdefault(damage.reason, damage.url)


def page_named(url: str) -> str:
    """As a task of this URL is archived: normalised, without the fragment, redacted. Other addresses as they are."""
    if url.endswith("*"):
        return url
    found = read(url)
    return redaction.url(found.url) if isinstance(found, Address) else url


def host_of(url: str) -> str:
    """What all pages of its host begin with; empty if it names none."""
    text = url.strip("*")
    found = read(text if "://" in text else f"https://{text}")
    if not isinstance(found, Address) or ("://" not in text and "." not in found.host):
        return ""
    return f"{found.url.partition('://')[0]}://{found.lane}/*"


def why_nothing(wanted: ArchiveQuery) -> str:
    """What may be wrong with a query that nothing fits; empty if it is in order."""
    named = wanted.url
    if named.startswith("archive:"):
        return ""
    if "*" in named[:-1]:
        return "only a * at the end of a URL stands for anything: 'https://HOST/*'"
    if named.strip("*") and "://" not in named:
        return f"a URL begins with https://: '{host_of(named) or 'https://HOST/*'}'"
    filters = [f"--{name} {value}" for name, value in (("job", wanted.job), ("route", wanted.route)) if value]
    return f"is {' and '.join(filters)} right? `trotline archive list` shows what is there" if filters else ""
