"""Explains errors of the file system and of SQLite: what happened, and what to do."""

import errno
import sqlite3

_SPACE = "Free some space, then run the same command again: nothing that was stored is lost."
_RIGHTS = "Check who owns it: you must be able to write the file and its folder. Or choose another place."
_BUSY = "Another program holds it. Close that program (a database browser, a stopped process), then run again."
_OTHER_NAME = "Choose another file name, or move that file away."
_TABLES = f"Its tables are not those that this version creates. {_OTHER_NAME}"
_HEALTH = "Check the disk: is it full, unplugged, or a network drive? Then run the same command again."

_OF_SQLITE: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: ("the disk is full", _SPACE),
    sqlite3.SQLITE_BUSY: ("it is locked", _BUSY),
    sqlite3.SQLITE_LOCKED: ("it is locked", _BUSY),
    sqlite3.SQLITE_READONLY: ("it cannot be written", _RIGHTS),
    sqlite3.SQLITE_PERM: ("permission denied", _RIGHTS),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", _RIGHTS),
    sqlite3.SQLITE_NOTADB: ("it is not an SQLite database", _OTHER_NAME),
    sqlite3.SQLITE_CORRUPT: ("it is damaged", "Save what is readable with: sqlite3 FILE .recover"),
    sqlite3.SQLITE_IOERR: ("the disk answered with an error", _HEALTH),
}

_OF_SYSTEM: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("the disk is full", _SPACE),
    errno.EDQUOT: ("the disk quota is used up", _SPACE),
    errno.EFBIG: ("the file may not grow any larger", "Raise the limit (ulimit -f), then run the same command again."),
    errno.EACCES: ("permission denied", _RIGHTS),
    errno.EPERM: ("permission denied", _RIGHTS),
    errno.EROFS: ("the disk is read-only", _RIGHTS),
    errno.EISDIR: ("it is a folder", "Name a file in it."),
    errno.ENOTDIR: ("a part of its path is a file, not a folder", _OTHER_NAME),
    errno.EEXIST: ("a part of its path is a file, not a folder", _OTHER_NAME),
    errno.ENAMETOOLONG: ("its name is too long", "Choose a shorter name."),
    errno.EIO: ("the disk answered with an error", _HEALTH),
}


def explain(error: sqlite3.Error | OSError) -> tuple[str, str]:
    """What happened, and what to do next."""
    if isinstance(error, OSError):
        known = _OF_SYSTEM.get(error.errno or 0)
    else:
        # The low byte is the primary result code.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        known = (str(error), _TABLES) if code == sqlite3.SQLITE_ERROR else _OF_SQLITE.get(code)
    return known or (str(error), _HEALTH)
