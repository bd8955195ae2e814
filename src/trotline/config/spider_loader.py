"""The author's spider, from what they typed: `shop.py`, `shop.py:shop` or `package.module:shop`.

Every error in the file becomes one message with the place, the line and what to do next.
"""

import difflib
import hashlib
import importlib
import importlib.util
import linecache
import re
import sys
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import msgspec

from trotline.errors import SpiderBroken, SpiderError, SpiderNotFound, SpiderRefused, TrotlineError
from trotline.model.proxy_pool import base_pool
from trotline.rules import pool_names, redaction
from trotline.rules.known_pools import KnownPools, proxied
from trotline.spider.spider import Spider

RECIPE = ".toml"
"""The end of a recipe's name: a spider without code."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class Ref(msgspec.Struct, frozen=True):
    """A spider's address. Exactly one of `file` and `module` is set; no `name` means: the only spider in there."""

    file: str = ""
    module: str = ""
    name: str = ""

    @property
    def place(self) -> str:
        return self.file or self.module


def parse_ref(text: str) -> Ref:
    """What the author typed, taken apart; SpiderNotFound if it cannot be an address."""
    if "://" in text:
        raise SpiderNotFound(
            f"{redaction.url(text)} is a URL, not a spider",
            hint="Give a spider's file, as in: trotline try shop.py",
        )
    place, colon, name = text.rpartition(":")
    if not colon or not _NAME.fullmatch(name):
        place, name = text, ""
    if place.endswith((".py", RECIPE)) or "/" in place:
        return Ref(file=place, name=name)
    if _MODULE.fullmatch(place):
        return Ref(module=place, name=name)
    raise SpiderNotFound(
        f"{text!r} is not a spider", hint="Give a file (shop.py), shop.py:NAME, or package.module:NAME."
    )


def load(ref: str, pools: Collection[str] | None = None) -> Spider:
    """The spider that `ref` names. SpiderNotFound, SpiderBroken and SpiderRefused say what is wrong and where.

    `pools`: the proxy pools that exist; None: not known here.
    """
    address = parse_ref(ref)
    if address.file.endswith(RECIPE):
        spider = _from_recipe(address)
    else:
        module = _import_file(address) if address.file else _import_module(address)
        spider = _pick(module, address)
    # Secrets without hosts are refused now, not when the first page is on its way.
    _ = spider.secret_scope
    check_pools(spider, pools)
    return spider


def _from_recipe(address: Ref) -> Spider:
    from trotline.spider import recipe

    if address.name:
        raise SpiderNotFound(f"{address.file} is a recipe, of one spider", hint=f"Leave out :{address.name}.")
    file = Path(address.file)
    if not file.is_file():
        raise SpiderNotFound(_missing(file), hint=_nearby(file))
    return recipe.spider_of(recipe.read(file), file)


def check_pools(spider: Spider, pools: Collection[str] | None) -> None:
    """SpiderRefused if the spider, or one of its routes, names a pool that does not exist; or none, where proxies are
    set: no page is fetched directly by mistake."""
    for pool in spider.pools:
        if pools is not None and pool not in pools:
            where = [f"route {route.name!r}" for route in spider.routes.values() if route.pool == pool][:1]
            whose = "" if pool == spider.pool or not where else f", {where[0]}"
            raise SpiderRefused(
                f"spider {spider.name!r}{whose}: {pool_names.missing(pool)}", hint=pool_names.hint(pool, pools)
            )
    _check_logins(spider, pools)
    if pools is None or not proxied(pools) or pool_names.of_unnamed(spider.pool, pools):
        return
    for route in spider.routes.values():
        if not route.pool:
            whose = f"spider {spider.name!r}" if not spider.pools else f"spider {spider.name!r}, route {route.name!r},"
            what, hint = pool_names.unnamed(whose, pools)
            raise SpiderRefused(what, hint=hint)


def _check_logins(spider: Spider, pools: Collection[str] | None) -> None:
    """Without a login, the pages of accounts would be read logged out."""
    for pool in map(base_pool, spider.pools):
        if isinstance(pools, KnownPools) and pool in pools.logins and pool not in spider.logins:
            raise SpiderRefused(
                f"spider {spider.name!r} visits pages with the accounts of {pool}, and has no login for them",
                hint=f'Write @SPIDER.login("{pool}") above an async function: docs/how-to/accounts.md.',
            )


def spiders_in(module: ModuleType) -> dict[str, Spider]:
    """The spiders a module defines or imports, by variable name; one spider under two names counts once."""
    found: dict[str, Spider] = {}
    for name, value in vars(module).items():
        if isinstance(value, Spider) and not any(value is known for known in found.values()):
            found[name] = value
    return found


def _pick(module: ModuleType, address: Ref) -> Spider:
    found = spiders_in(module)
    if not found and (name := _of_scrapy(module)):
        raise SpiderNotFound(
            f"{address.place} has a spider of Scrapy, which trotline does not run",
            hint=f"Run it with the Trotline add-on in the settings of its project: scrapy crawl {name} "
            "(docs/how-to/scrapy.md). It needs no --allow-private: Scrapy visits private addresses, too.",
        )
    if address.name:
        chosen = getattr(module, address.name, None)
        if isinstance(chosen, Spider):
            return chosen
        what = "is not there" if chosen is None else f"is a {type(chosen).__name__}, not a Spider"
        raise SpiderNotFound(f"{address.name!r} {what} in {address.place}", hint=_known(address, found))
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise SpiderNotFound(f"{address.place} has no spider", hint=_known(address, found))
    raise SpiderNotFound(f"{address.place} has {len(found)} spiders: which one?", hint=_known(address, found))


def _of_scrapy(module: ModuleType) -> str:
    """The name of a spider of Scrapy that the module defines; empty: it has none. Scrapy is not imported for it."""
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            bases = {(base.__module__.partition(".")[0], base.__name__) for base in value.__mro__}
            if ("scrapy", "Spider") in bases:
                return str(getattr(value, "name", None) or value.__name__)
    return ""


def _known(address: Ref, found: dict[str, Spider]) -> str:
    if not found:
        return 'A spider is made like this:  shop = Spider("shop", pace="1/s")   (from trotline import Spider)'
    return "Give one of: " + ", ".join(f"{address.place}:{name}" for name in sorted(found))


def _import_file(address: Ref) -> ModuleType:
    path = Path(address.file)
    if not path.is_file():
        raise SpiderNotFound(_missing(path), hint=_nearby(path))
    resolved = path.resolve()
    name = _free_name(resolved)
    if name in sys.modules:
        return sys.modules[name]
    # As `python shop.py` does it: modules in the file's folder can be imported.
    _importable(str(resolved.parent))
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise SpiderNotFound(f"{path} is not a Python file", hint="A spider's file ends in .py.")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and type hints look their module up while it is still being executed.
    sys.modules[name] = module
    with _explained(address, name):
        spec.loader.exec_module(module)
    return module


def _import_module(address: Ref) -> ModuleType:
    _importable(str(Path.cwd()))
    try:
        known = importlib.util.find_spec(address.module) is not None
    except ModuleNotFoundError:
        known = False
    except Exception:
        # A parent package that breaks while it is looked up: the import below breaks alike, and is explained.
        known = True
    if not known:
        as_file = Path(*address.module.split(".")).with_suffix(".py")
        meant = _alike(address.module, Path()) if "." in address.module else None
        raise SpiderNotFound(
            f"there is no module {address.module!r}",
            hint=f"Did you mean {meant}?"
            if meant
            else f"Is it a file? Try: trotline run {as_file}. Is its package installed in this environment?",
        )
    with _explained(address, address.module):
        return importlib.import_module(address.module)


def _importable(folder: str) -> None:
    """Before installed packages, as `python shop.py` has it, but after the standard library: with a spider in `copy.py`
    or `random.py`, later imports of these modules must not get the spider."""
    if folder in sys.path:
        return
    installed = (place for place, name in enumerate(sys.path) if Path(name).name in ("site-packages", "dist-packages"))
    sys.path.insert(next(installed, len(sys.path)), folder)


def _free_name(path: Path) -> str:
    """The name of the file's module: its stem, unless another module has it (as with json.py).

    Then the path is in the name: three files of one stem are three modules.
    """
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return path.stem
    taken = known is not None or path.stem in sys.stdlib_module_names or not _NAME.fullmatch(path.stem)
    return f"_spider_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}" if taken else path.stem


def _missing(path: Path) -> str:
    return f"{path} is a folder, not a spider's file" if path.is_dir() else f"there is no file {path}"


def _nearby(path: Path) -> str:
    folder = path if path.is_dir() else path.parent
    there = sorted(file.name for file in folder.glob("*.py")) if folder.is_dir() else []
    near = _alike(path.name, folder) or (folder / there[0] if len(there) == 1 else None)
    return f"Did you mean {near}?" if near else "Make one with: trotline new NAME"


def _alike(name: str, folder: Path) -> Path | None:
    """The spider or recipe in this folder whose name is nearly this one."""
    there = [file.name for end in (".py", RECIPE) for file in folder.glob(f"*{end}")] if folder.is_dir() else []
    near = difflib.get_close_matches(name, there, n=1)
    return folder / near[0] if near else None


@contextmanager
def _explained(address: Ref, name: str) -> Iterator[None]:
    """What goes wrong while the author's code is imported, as one message."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Half a module must not be found by the next import.
        sys.modules.pop(name, None)
        raise _explain(address, error) from error


def _explain(address: Ref, error: BaseException) -> SpiderError:
    where = _where(address, error)
    if isinstance(error, TrotlineError):
        kind = type(error) if isinstance(error, SpiderError) else SpiderBroken
        return kind(f"{error.what}{where}", hint=error.hint)
    if isinstance(error, SystemExit):
        return SpiderBroken(
            f"{address.place} ends the program while it is imported{where}",
            hint='Put what is not the spider under: if __name__ == "__main__":',
        )
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return SpiderBroken(
        f"{address.place} does not import: {type(error).__name__}: {text}{where}", hint=_hint(address, error)
    )


def _where(address: Ref, error: BaseException) -> str:
    """File, line and the line itself, on lines of their own; the last frame in the author's code counts."""
    file, line = _place(address, error)
    if not file:
        return ""
    source = linecache.getline(file, line).strip()
    return f"\n  {_short(file)}, line {line}" + (f":  {source}" if source else "")


def _place(address: Ref, error: BaseException) -> tuple[str, int]:
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno or 1
    frames = [(frame.filename, frame.lineno or 1) for frame in traceback.extract_tb(error.__traceback__)]
    return next((frame for frame in reversed(frames) if _is_authors(frame[0], address)), ("", 0))


def _is_authors(file: str, address: Ref) -> bool:
    path = Path(file)
    if address.file:
        return path.is_relative_to(Path(address.file).resolve().parent) and "site-packages" not in path.parts
    # A module may be anywhere; everything that is neither ours nor the import machinery may be theirs.
    return not file.startswith("<") and not path.is_relative_to(Path(__file__).resolve().parent.parent)


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _hint(address: Ref, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"Is it installed in this environment? Try: pip install {error.name.partition('.')[0]}"
    if isinstance(error, ImportError) and error.name == "trotline":
        return "See docs/reference/spider.md for the names that trotline gives."
    if isinstance(error, NameError) and error.name:
        import builtins

        import trotline

        known = [*getattr(trotline, "__all__", ()), *vars(builtins)]
        near = difflib.get_close_matches(error.name, known, n=1)
        return f"Did you mean {near[0]}? Is it imported?" if near else f"Is {error.name} imported or defined above?"
    if isinstance(error, SyntaxError):
        return "Correct the line, or the one above it (an open bracket or quote is often there)."
    return f"To see the whole story: python {address.file}" if address.file else f"Try: python -m {address.module}"
