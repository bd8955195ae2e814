"""Files with proxies: read with a bound on their size, and watched for changes by stat."""

import os
import stat
from pathlib import Path

import msgspec

from trotline.config.http_proxy_list import LARGEST
from trotline.errors import SettingsError
from trotline.model.secret import is_private
from trotline.model.time import Moment

Signature = tuple[int, int, int] | None
"""mtime in ns, size, inode; None: it is not there."""
FILE_HINT = "Give a .toml with [pools.NAME], or a plain list with one proxy a line (docs/reference/proxies.md)."
_ALL_USERS = stat.S_IROTH | stat.S_IWOTH


class ReadFile(msgspec.Struct, frozen=True, kw_only=True):
    path: Path
    text: str
    signature: Signature
    changed_at: Moment
    for_all_users: bool
    """Every user of the machine may read it."""

    def __repr__(self) -> str:
        return f"ReadFile({self.path})"


def signature(path: Path) -> Signature:
    try:
        return _signature(path.stat())
    except OSError:
        return None


def read(path: Path, *, private: bool = False, hint: str = FILE_HINT) -> ReadFile:
    """SettingsError says why it cannot be read. `private`: only its owner may have access; `hint`: what to give."""
    try:
        # Not to wait for the writer of a named pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise SettingsError(f"{path} is not a regular file", hint=hint)
    with os.fdopen(descriptor, "rb") as file:
        if private and not is_private(path, status.st_mode):
            raise SettingsError(f"{path} is given as a secret, and others can read it", hint=f"Try: chmod 600 {path}")
        try:
            raw = file.read(LARGEST + 1)
        except OSError as error:
            raise SettingsError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
        if _signature(os.fstat(file.fileno())) != _signature(status):
            raise SettingsError(f"{path} was changed while it was read", hint="Run the command again.")
    return ReadFile(
        path=path,
        text=_text(path, raw, hint),
        signature=_signature(status),
        changed_at=status.st_mtime,
        for_all_users=bool(status.st_mode & _ALL_USERS) and not is_private(path, status.st_mode),
    )


def _text(path: Path, raw: bytes, hint: str) -> str:
    if len(raw) > LARGEST:
        raise SettingsError(f"{path} is larger than {LARGEST:,} bytes", hint=hint)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Not "from": the cause quotes bytes, which may be a password.
        raise SettingsError(f"{path} is not UTF-8 text", hint=hint) from None


def _signature(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_size, status.st_ino
