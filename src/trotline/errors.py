"""Everything Trotline raises on purpose.

TrotlineError                 what happened, to what, and what to do next
├── SpiderError               the author's file
│   ├── SpiderNotFound        no such file, module or spider in it
│   ├── SpiderBroken          it does not import
│   └── SpiderRefused         its settings cannot work (two routes of one name, wrong pace, no seeds)
├── SettingsError             command line, environment, settings file
├── FrontierError
│   ├── FrontierUnreachable   not there: a server that is waited for
│   │   └── FrontierFileFails a file of this machine: locked, no permission, disk full; waited for, not for ever
│   ├── FrontierGone          the job is not there any more: waiting does not bring it back
│   ├── FrontierTooNew        written by a newer Trotline
│   ├── LeaseLost             a task of a Queue that is not held any more: nothing was changed
│   └── TermOver              a coordinator that does not lead any more
├── SinkError
│   ├── SinkUnreachable       not there: try again later, nothing is lost
│   │   └── SinkFileFails     a file of this machine: locked, no permission, disk full; waited for, not for ever
│   ├── SinkGone              it was there when the run began, and its rows are not: waiting does not bring them back
│   ├── SinkRejects           some records can never be stored; without them the batch can
│   ├── MergeRaced            another merge was faster: to be computed again, nothing was stored
│   ├── SinkTooOld            made by an older Trotline: to be upgraded first
│   └── SinkTooNew            written by a newer Trotline
├── ArchiveError
│   ├── ArchiveUnreachable    not there: try again later, nothing is lost
│   │   ├── ArchiveDenies     it answers, and denies access: credentials or permissions can be corrected meanwhile
│   │   └── ArchiveFileFails  a folder of this machine: no permission, disk full; waited for, not for ever
│   └── ArchiveDamaged        a record is not what was written
├── AlertNotDelivered         a receiver of alerts did not accept a message
└── ValidatorsError           pages are fetched whole instead
    ├── ValidatorsUnreachable not there, locked, no permission, disk full
    └── ValidatorsTooNew      written by a newer Trotline
"""

from collections.abc import Mapping


class TrotlineError(Exception):
    """What happened, to what, and what to do next."""

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what}\n  {self.hint}" if self.hint else self.what


class SpiderError(TrotlineError):
    """Something about the author's file."""


class SpiderNotFound(SpiderError):
    """No such file, module, or spider in it."""


class SpiderBroken(SpiderError):
    """The file does not import."""


class SpiderRefused(SpiderError):
    """The spider's settings cannot work."""


class SettingsError(TrotlineError):
    """Command line, environment or settings file."""


class FrontierError(TrotlineError):
    """Something about the frontier."""


class FrontierUnreachable(FrontierError):
    """The frontier is not there, locked, full, or not ours to open."""


class FrontierFileFails(FrontierUnreachable):
    """The frontier is a file of this machine, and it cannot be written: the disk is full, or the file is locked."""


class FrontierGone(FrontierError):
    """The frontier is there and has no such job: it was forgotten. Waiting does not bring it back."""


class FrontierTooNew(FrontierError):
    """The frontier was written by a newer Trotline."""


class LeaseLost(FrontierError):
    """The task is not held any more: it was settled before, or another worker has it. Nothing was changed."""


class TermOver(FrontierError):
    """The coordinator's term has ended: another one leads, or will. Nothing was changed."""


class SinkError(TrotlineError):
    """Something about the sink."""


class SinkUnreachable(SinkError):
    """The sink is not there, locked, full, or not ours to open. Nothing is lost: the batch is kept and tried again."""


class SinkFileFails(SinkUnreachable):
    """The sink is a file of this machine, and it cannot be written: the disk is full, or the file is locked."""


class SinkGone(SinkError):
    """The sink was there, and has been deleted or moved since: to write on would hide that its rows are missing."""


class SinkRejects(SinkError):
    """Some records of a batch can never be stored. Nothing of the batch was; without them it can be."""

    def __init__(self, rejected: Mapping[int, str]) -> None:
        [first, *_] = rejected.values()
        super().__init__(
            f"{len(rejected)} of the records can never be stored: {first}",
            hint="They are reported with their page, and the others are stored without them.",
        )
        self.rejected = dict(rejected)
        """The record's place in the batch -> why."""


class MergeRaced(SinkError):
    """Another merge has changed the things since this one read them. Nothing was stored."""


class SinkTooOld(SinkError):
    """The sink was made by an older Trotline, and has to be upgraded first."""


class SinkTooNew(SinkError):
    """The sink was written by a newer Trotline."""


class ArchiveError(TrotlineError):
    """Something about the archive."""


class ArchiveUnreachable(ArchiveError):
    """The archive is not there, full, or not ours to write. Nothing is lost: the batch is kept and tried again."""


class ArchiveDenies(ArchiveUnreachable):
    """It answers, and denies access: wrong credentials, a policy. Waited for: an operator may correct them."""


class ArchiveFileFails(ArchiveUnreachable):
    """The archive is a folder of this machine, and it cannot be written: the disk is full, or it is not ours."""


class ArchiveDamaged(ArchiveError):
    """A record of the archive is not what was written."""


class ValidatorsError(TrotlineError):
    """Something about the validators of conditional requests."""


class ValidatorsUnreachable(ValidatorsError):
    """The validators are not there, locked, or not ours to open. Nothing is lost: pages are fetched whole."""


class ValidatorsTooNew(ValidatorsError):
    """The validators were written by a newer Trotline."""


class AlertNotDelivered(TrotlineError):
    """A receiver of alerts did not accept a message."""

    def __init__(self, what: str, *, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(what, hint=hint)
        self.retry_after = retry_after
        """Seconds that the receiver asked for."""
