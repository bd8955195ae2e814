"""The spiders whose files were given: their code knows scope and routes, which new tasks need."""

from trotline.config.code_version import code_version
from trotline.config.spider_loader import load
from trotline.errors import SettingsError
from trotline.rules.known_pools import KnownPools
from trotline.spider.spider import Spider
from trotline.web.errors import Refused


class Spiders:
    """Loaded once, when the server starts: an error in a file is seen at once."""

    def __init__(self, refs: tuple[str, ...], pools: KnownPools | None) -> None:
        self._spiders: dict[str, tuple[str, Spider, str]] = {}
        for ref in refs:
            found = load(ref, pools)
            if found.name in self._spiders:
                raise SettingsError(f"{ref}: there are two spiders {found.name!r}", hint="Give each file once.")
            self._spiders[found.name] = (ref, found, code_version(ref))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._spiders)

    def known(self, name: str) -> Spider | None:
        return self._spiders[name][1] if name in self._spiders else None

    def find(self, name: str) -> tuple[str, Spider]:
        """Its file and what is in it; 409 if it was not given, or has changed since."""
        if name not in self._spiders:
            raise Refused(
                409,
                f"the code of spider {name!r} is not known here",
                hint=f"Start the server with its file: trotline web {name}.py",
            )
        ref, spider, version = self._spiders[name]
        if code_version(ref) != version:
            raise Refused(409, f"{ref} was changed after the server had read it", hint="Start trotline web again.")
        return ref, spider
