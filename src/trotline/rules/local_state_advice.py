"""What one machine keeps for itself, and where it has to go before other machines can take part."""

import msgspec


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Where things are now."""

    frontier: str
    """Without passwords."""
    frontier_is_file: bool
    sink: str
    sink_is_file: bool
    spider: str = ""
    """Its file or module."""
    proxies: str = ""
    """The file of proxies and accounts; empty: none."""
    has_accounts: bool = False
    has_chains: bool = False
    conditional: bool = False
    """Pages are asked for with the validators of the last run."""


class Move(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    now: str
    then: str
    """What to do; empty: nothing, it is shared already."""


def moves(kept: Kept) -> list[Move]:
    file, server = kept.frontier_is_file, "shared already"
    frontier = "a Redis or Valkey server: --frontier redis://HOST:6379/0, and start the job there"
    found = [
        Move(what="queue, and URLs that were seen", now=kept.frontier, then=frontier if file else ""),
        Move(what="rate limits and rests of hosts", now=kept.frontier, then="goes with the queue" if file else ""),
    ]
    if kept.has_accounts:
        then = "goes with the queue: every account logs in again" if file else ""
        found.append(Move(what="cookies and sessions of accounts", now=kept.frontier, then=then))
    if kept.has_chains:
        then = "goes with the queue: unfinished chains begin anew" if file else ""
        found.append(Move(what="chains", now=kept.frontier, then=then))
    if kept.sink_is_file:
        then = "a PostgreSQL server: --sink postgresql://HOST/DATABASE; rows so far: trotline export"
        found.append(Move(what="records and their history", now=kept.sink, then=then))
    else:
        found.append(Move(what="records and their history", now=kept.sink, then=""))
    if kept.conditional:
        then = "none: conditional requests need a file; every page is fetched whole"
        found.append(Move(what="validators (ETag, Last-Modified)", now=kept.frontier if file else "none", then=then))
    if kept.spider:
        found.append(Move(what="the spider's code", now=kept.spider, then="the same version on every machine"))
    if kept.proxies:
        found.append(Move(what="proxies, accounts, passwords", now=kept.proxies, then="the same file on every machine"))
    found.append(
        Move(what="saved bodies of pages that failed", now="files of each machine", then="stay where they were saved")
    )
    return [msgspec.structs.replace(each, then=each.then or server) for each in found]
