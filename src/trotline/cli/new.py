"""`trotline new`: a spider file that is ready to run."""

import keyword
import re
from pathlib import Path

import click

from trotline.errors import SettingsError

_SPIDER = '''\
"""The {name} spider."""

from trotline import Page, Spider

{variable} = Spider("{name}", pace="1/s")


@{variable}.page(seeds=["{url}"])
def listing(page: Page):
    """Every page of the list: one record per box, then on to the next page."""
    for box in page.css(".quote"):
        yield {{"text": box.css(".text::text").get(), "by": box.css(".author::text").get()}}
    yield page.follow("li.next a")
'''
EXAMPLE = "https://quotes.toscrape.com/"


@click.command(
    epilog="""\b
Examples:
  trotline new shop                          a file shop.py with a spider "shop"
  trotline new shop https://shop.example/    the same, beginning at that page
  trotline new spiders/shop.py               in a folder of your choice
  trotline new shop --from-recipe shop.toml  the Python spider that does what a recipe does
"""
)
@click.argument("name")
@click.argument("url", default=EXAMPLE)
@click.option("--from-recipe", "recipe", metavar="FILE", help="Write the spider of this recipe.")
def command(name: str, url: str, recipe: str | None) -> None:
    """Write a spider file that is ready to run. NAME is the spider's name, or a file to write."""
    path = Path(name if name.endswith(".py") else f"{name}.py")
    if recipe is not None:
        if url != EXAMPLE:
            raise click.UsageError("a recipe has its own start: leave out the URL")
        return _from_recipe(path, Path(recipe))
    _write(path, _SPIDER.format(name=path.stem, variable=_variable(path.stem), url=_address(url)))
    click.echo(f"Wrote {path}: change the URL and the selectors, then")
    click.echo("")
    more = _private(url)
    click.echo(f"  trotline try {path}{more}    fetches the first page and shows what comes of it")
    click.echo(f"  trotline run {path}{more}    visits them all and stores the records")


def _from_recipe(path: Path, file: Path) -> None:
    from trotline.spider.recipe import read, spider_of
    from trotline.spider.recipe_code import code_of

    recipe = read(file)
    _write(path, code_of(recipe, spider_of(recipe, file).name, _variable(path.stem)))
    click.echo(f"Wrote {path}, which does what {file} does")
    click.echo("")
    more = next(filter(None, map(_private, recipe.starts)), "")
    click.echo(f"  trotline try {path}{more}    fetches the first page and shows what comes of it")


def _private(url: str) -> str:
    """The option for a site on this machine, which is refused unless it is asked for."""
    return " --allow-private" if re.match(r"https?://(127\.|localhost\b|\[::1\])", url) else ""


def _variable(name: str) -> str:
    """The spider's name as a name in Python."""
    found = re.sub(r"\W", "_", name)
    if not re.fullmatch(r"[\w.-]+", name):
        raise SettingsError(
            f"{name!r} cannot be a spider's name", hint="Use letters, digits, '-' and '_', as in: trotline new my-shop"
        )
    taken = found in ("Page", "Spider", "listing", "page") or keyword.iskeyword(found)
    return f"spider_{found}" if taken or found[0].isdigit() else found


def _address(url: str) -> str:
    if not re.match(r"https?://[^/\s\"'\\]+", url) or not re.fullmatch(r"[^\s\"'\\]+", url):
        raise SettingsError(
            f"{url!r} is not a web address", hint="It begins with https:// or http://, as in https://shop.example/"
        )
    return url


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise SettingsError(
            f"{path} is there already, and stays as it is", hint="Give another name, or move the file away."
        ) from error
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}", hint="Give another folder.") from error
