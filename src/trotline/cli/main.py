"""The `trotline` command: which commands there are, and what an error looks like.

Commands are imported when they are called, so that `trotline --help` costs no more than it must.
"""

import errno
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trotline.cli.nonblocking_output import lasting_output, lost_at_end
from trotline.errors import TrotlineError

if TYPE_CHECKING:
    from trotline.processes.watchdog import Guard

FINISHED = 0
UNEXPECTED = 1
CANNOT_START = 2
FINISHED_WITH_DEAD = 3
EMPTY = 4
CUT = 5
INTERRUPTED = 130
BROKEN_PIPE = 141
"""Exit codes: docs/reference/exit-codes.md."""
_STORAGE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)

COMMANDS = {
    "new": ("new", "Write a spider file that is ready to run."),
    "try": ("try_page", "Fetch one page and show what the spider makes of it."),
    "shell": ("shell", "Look at a page in an interactive session."),
    "fetch": ("fetch", "Fetch a list of URLs: title, text, links, Markdown as JSON lines."),
    "run": ("run", "Run a spider until nothing is left, or resume it."),
    "start": ("start", "Make a job for the fleet, seed it and watch it."),
    "work": ("work", "Take part in the jobs of a spider, as one worker of many."),
    "fleet": ("fleet", "Run as many workers on this machine as are worth having."),
    "write": ("write", "Store the results of workers that have no database."),
    "coordinate": ("coordinate", "Start scheduled jobs and look after all of them."),
    "push": ("push", "Add tasks to a job while it runs."),
    "import": ("import_queue", "Take over the queue of a crawl with scrapy-redis."),
    "inbox": ("inbox", "Look at tasks that other programs wrote, and at parked ones."),
    "jobs": ("jobs", "List the jobs of a frontier."),
    "watch": ("watch", "Watch a job with all its workers."),
    "advise": ("advise", "Say which limit binds a job, and what would change it."),
    "alerts": ("alerts", "Show the alerts of jobs, or test who gets them."),
    "status": ("status", "Show the jobs of this folder and how far they are."),
    "pause": ("job_control:pause", "Hand out no more tasks of a job or of a lane."),
    "resume": ("job_control:resume", "Go on after pause, drain or cancel."),
    "drain": ("job_control:drain", "Finish what waits and admit nothing new."),
    "cancel": ("job_control:cancel", "End a job, or bury what waits in a lane."),
    "proxies": ("proxies", "Look at proxy pools, check proxies, compare policies."),
    "pace": ("pace:pace", "Show or set how fast a host is visited, by all jobs."),
    "trace": ("trace", "Show the history of a URL."),
    "dead": ("dead", "Look at buried tasks, revive or export them."),
    "lab": ("lab", "Measure a spider on this machine, and write a report."),
    "archive": ("archive", "Look at raw pages that were kept; export, verify, prune."),
    "reparse": ("reparse", "Run handlers over archived pages, without fetching."),
    "export": ("export", "Write stored records to a file or to stdout."),
    "merge": ("merge", "Make one record of those that are one thing."),
    "web": ("web", "Show jobs in a browser, and serve the JSON API."),
    "db": ("db", "Look at the tables of a PostgreSQL sink, or upgrade them."),
    "doctor": ("doctor", "Check the machine, the settings and a spider."),
}
"""Command -> (module in this folder, its line in the help). `module:name` where a module has several."""


class _ReaderGone(Exception):
    """The reader of the output has closed the pipe (`trotline export ... | head`). click would exit with 1 at a
    BrokenPipeError, and 1 means a mistake in Trotline."""


@contextmanager
def _pipe_watched() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _ReaderGone from error


class _Commands(click.Group):
    def make_context(self, *args: Any, **more: Any) -> click.Context:
        # Here the help is printed.
        with _pipe_watched():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _pipe_watched():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        place, _, name = COMMANDS[cmd_name][0].partition(":")
        module = importlib.import_module(f"trotline.cli.{place}")
        _log_without_secrets()
        command: click.Command = getattr(module, name or "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            raise click.UsageError(_no_such_command(args[0]), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # click would import every command to ask for its help line.
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _log_without_secrets() -> None:
    """Redact log records that have no handler and go to stderr."""
    import logging

    from trotline.rules import redaction

    class Redacting(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return redaction.text(super().format(record))

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Redacting())


def _no_such_command(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, n=1)
    if name.endswith((".py", ".toml")):
        return f"No such command {name!r}. Did you mean: trotline run {name}"
    return f"No such command {name!r}." + (f" Did you mean {near[0]!r}?" if near else "")


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"trotline {version('trotline')}, Python {sys.version.split()[0]}")
        ctx.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Begin with:  trotline new shop   then   trotline run shop.py",
)
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version.")
def trotline() -> None:
    """Scrape the web with spiders that survive crashes: on one machine without services, or on a fleet."""


def main(arguments: Sequence[str] | None = None) -> None:
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] not in (["try"], ["shell"]):
        sys.exit(call(words))
    from trotline.processes import watchdog

    # A page that blocks the process must not block the terminal: there is no supervisor here.
    sys.exit(watchdog.run(lambda guard: call(words, guard), _killed))


def _killed(why: str) -> int:
    _complain(f"{why}\n  A run buries this page. Limits(parse=...) sets the time that a page may take.")
    return FINISHED_WITH_DEAD


def call(arguments: Sequence[str], guard: "Guard | None" = None) -> int:
    """Run a command line; the exit code. Nothing but what a person can use reaches the screen."""
    with lasting_output("".join(arguments[:1])):
        code = _call(arguments, guard)
        if lost := lost_at_end():
            _complain(lost)
        return BROKEN_PIPE if lost and code == FINISHED else code


def _call(arguments: Sequence[str], guard: "Guard | None") -> int:
    try:
        result: Any = trotline.main(
            args=list(arguments), prog_name="trotline", standalone_mode=False, color=_colour_wanted(), obj=guard
        )
        sys.stdout.flush()
        return result if isinstance(result, int) else FINISHED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return CANNOT_START
    except click.ClickException as error:
        _complain(f"{error.format_message()}\n  {_usage(error)}")
        return CANNOT_START
    except TrotlineError as error:
        _complain(str(error))
        return CANNOT_START
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except (_ReaderGone, BrokenPipeError):
        _drop_output()
        return BROKEN_PIPE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _STORAGE:
            at = f" ({error.filename})" if error.filename else ""
            _complain(f"cannot write: {os.strerror(error.errno)}{at}\n  Check the disk under the output and the data.")
            _drop_output()
            return CANNOT_START
        if isinstance(error, FileNotFoundError) and _folder_is_gone():
            _complain(
                "the working folder was deleted\n  Go to a folder that exists (cd), and run the command again there."
            )
            return CANNOT_START
        _report_unexpected(error)
        return UNEXPECTED


def _folder_is_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _drop_output() -> None:
    """Python would complain once more at its end about what its buffer holds."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: click.ClickException) -> str:
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx is None:
        return "See: trotline --help"
    usage = f"{ctx.get_usage()}   (more: {ctx.command_path} --help)"
    if isinstance(error, click.NoSuchOption):
        from trotline.cli.foreign_options import advice

        return "\n  ".join(filter(None, (advice(error), usage)))
    return usage


def _complain(text: str) -> None:
    first, _, rest = _fit_to_print(text).partition("\n")
    text = click.style("error: ", fg="red", bold=True) + first + ("\n" + rest if rest else "")
    click.echo(text, err=True, color=_colour_wanted())


def _fit_to_print(text: str) -> str:
    """Errors quote URLs, files and pages: without secrets, and without characters that move the cursor."""
    try:
        from trotline.cli.formatting import safe_lines
    except ImportError:
        # An incomplete installation must still be able to report it.
        return text
    return safe_lines(text)


def _colour_wanted() -> bool | None:
    """None: if it is a terminal. NO_COLOR: https://no-color.org"""
    return False if os.environ.get("NO_COLOR") else None


def _report_unexpected(error: Exception) -> None:
    """An unexpected error: the traceback goes to a file, one line with its path to stderr."""
    import tempfile
    import traceback

    from trotline.rules import redaction

    report = redaction.text("".join(traceback.format_exception(error)))
    if os.environ.get("TROTLINE_DEBUG"):
        click.echo(report, err=True, nl=False)
        return
    named = f"unexpected {type(error).__name__}: {error}\n  This is a mistake in Trotline."
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="trotline-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(report)
    except OSError:
        # A full disk: the traceback must not be lost with it.
        click.echo(report, err=True, nl=False)
        _complain(named)
        return
    _complain(f"{named} What happened is in {file.name}")
