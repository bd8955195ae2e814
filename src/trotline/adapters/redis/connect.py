"""From a URL to a client, and the requirements on a server.

redis://[USER:PASSWORD@]HOST[:PORT][/DB]             rediss:// the same with TLS
redis+cluster://HOST[:PORT],HOST[:PORT]              any nodes of a Cluster
redis+sentinel://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT]/MASTER[/DB][?user=U&password=P]
                                                     user and password of the server, and of the sentinels themselves
...?shards=8                                         shards of new jobs; default: two per primary of a Cluster
"""

from functools import partial
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import ConnectionPool
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff

from trotline.adapters.redis.cluster_client import ClusterClient
from trotline.adapters.redis.connection_counter import Reconnects
from trotline.adapters.redis.duplicate_filter import OPTIONS
from trotline.adapters.redis.server_calls import Client, Server
from trotline.errors import FrontierError, SettingsError
from trotline.model.time import Seconds
from trotline.ports.backend import Notice

SHARDS = "shards"
_MOST_SHARDS = 1024
OLDEST = (7, 0)
"""The oldest Redis with script flags."""
FORMS = '"redis://HOST:PORT/0", "redis+cluster://HOST,HOST" or "redis+sentinel://HOST,HOST/MASTER"'

_CONNECT: Seconds = 5.0
_ANSWER: Seconds = 5.0
"""No script takes a tenth of a second."""
_HEALTH: Seconds = 15.0
_PORT, _SENTINEL_PORT = 6379, 26379


def connect(url: str) -> Client:
    """A client for the URL; nothing is sent yet. Raises SettingsError, without the password in its text."""
    scheme, _, rest = url.partition("://")
    secure, _, kind = scheme.partition("+")
    if secure not in ("redis", "rediss") or kind not in ("", "cluster", "sentinel") or not rest:
        raise SettingsError("not a URL of a Redis server", hint=f"Write it as {FORMS}.")
    try:
        parts = urlsplit(f"redis://{rest}")
        hosts = [_host(one, _SENTINEL_PORT if kind == "sentinel" else _PORT) for one in _hosts(parts.netloc)]
        path = [unquote(part) for part in parts.path.split("/") if part]
        query = {name: value for name, value in parse_qsl(parts.query) if name not in (*OPTIONS, SHARDS)}
        login = _login(query.pop("user", ""), query.pop("password", "")) if kind == "sentinel" else {}
        options = _options(secure == "rediss", query)
        options |= _login(unquote(parts.username or ""), unquote(parts.password or ""))
        return _client(kind, hosts, path, options, login)
    except ValueError as error:
        raise SettingsError(
            f"the URL of the Redis server cannot be read: {error}", hint=f"Write it as {FORMS}."
        ) from None


def shards_of(url: str) -> int:
    """The number of shards in the URL (`?shards=8`); 0 if there is none."""
    asked = dict(parse_qsl(urlsplit(url).query)).get(SHARDS)
    if asked is None:
        return 0
    if not asked.isdecimal() or not 0 < int(asked) <= _MOST_SHARDS:
        raise SettingsError(
            f"shards={asked[:20]} must be an integer from 1 to {_MOST_SHARDS}",
            hint=f"Write shards=8; the maximum is {_MOST_SHARDS}.",
        )
    return int(asked)


async def checked(client: Client) -> Client:
    """The client, after a check of the server's version and eviction policy; raises FrontierError."""
    server = Server(client)
    try:
        await server.plain(client.initialize)
        nodes: list[Any] = list(client.get_primaries()) if isinstance(client, RedisCluster) else [client]
        for node in nodes:
            _check(await server.plain(partial(node.execute_command, "INFO", "everything")), server.place)
    except BaseException:
        await server.close()
        raise
    return client


_WRITE = "redis.call('HSET', KEYS[1], 'a', '1') return redis.call('DEL', KEYS[1])"
"""By a script, like all writes: users may be allowed no more than that."""


async def notices(url: str) -> list[Notice]:
    """A warning if the server's data does not survive a restart. FrontierError: it answers, but takes no writes, as it
    is full or a replica."""
    client = await checked(connect(url))
    server = Server(client)
    try:
        await server.ask("EVAL", _WRITE, 1, f"trotline:check:{server.name}")
        nodes: list[Any] = list(client.get_primaries()) if isinstance(client, RedisCluster) else [client]
        infos = [await server.plain(partial(node.execute_command, "INFO", "persistence")) for node in nodes]
    finally:
        await server.close()
    if all(int(info.get("aof_enabled", 0)) for info in infos):
        return []
    text = f"{server.place} writes no append-only file: a restart loses its tasks, or those since its last snapshot"
    return [Notice(text, "Set it with: redis-cli CONFIG SET appendonly yes (and in the server's configuration).")]


def listener(client: Client) -> Redis:
    """A new client of the same server for pub/sub, without timeouts. In a Cluster every node gets all messages.

    It copies all connection options: without one of them the password could be sent without TLS.
    """
    if isinstance(client, RedisCluster):
        node = client.get_default_node()
        patient = _patient(node.connection_kwargs)
        # Its reconnects do not count as lost state.
        patient.pop("redis_connect_func", None)
        return Redis.from_pool(ConnectionPool(connection_class=node.connection_class, **patient))
    pool = client.connection_pool
    patient = {"connection_class": pool.connection_class, **_patient(pool.connection_kwargs)}
    if isinstance(pool, SentinelConnectionPool):
        # The connections belong to the new pool.
        patient.pop("connection_pool", None)
        fresh: Any = SentinelConnectionPool
        return Redis.from_pool(fresh(pool.service_name, pool.sentinel_manager, **patient))
    return Redis.from_pool(type(pool)(**patient))


def _patient(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**kwargs, "socket_timeout": None, "health_check_interval": 0}


_FOR_SENTINEL = ("socket_connect_timeout", "socket_timeout", "retry", "ssl", "ssl_ca_certs")


def _client(
    kind: str, hosts: list[tuple[str, int]], path: list[str], options: dict[str, Any], login: dict[str, str]
) -> Client:
    connected = Reconnects().connected
    if kind == "cluster":
        cluster = ClusterClient(startup_nodes=[ClusterNode(host, port) for host, port in hosts], **options)
        for kwargs in (cluster.connection_kwargs, *(node.connection_kwargs for node in cluster.get_nodes())):
            kwargs["redis_connect_func"] = connected
        return cluster
    options["redis_connect_func"] = connected
    if kind == "sentinel":
        if not path:
            raise ValueError("no master name")
        theirs = {name: options[name] for name in options if name in _FOR_SENTINEL} | login
        watch: Any = Sentinel(hosts, sentinel_kwargs=theirs, **options)  # type: ignore[no-untyped-call]
        master: Redis = watch.master_for(path[0], redis_class=Redis, db=_number(path[1:]))
        return master
    if len(hosts) > 1:
        raise ValueError("several hosts need redis+cluster:// or redis+sentinel://")
    [(host, port)] = hosts
    return Redis(host=host, port=port, db=_number(path), **options)


def _login(user: str, password: str) -> dict[str, str]:
    return {name: value for name, value in (("username", user), ("password", password)) if value}


def _options(tls: bool, query: dict[str, str]) -> dict[str, Any]:
    options: dict[str, Any] = {
        "socket_connect_timeout": _CONNECT,
        "socket_timeout": _ANSWER,
        "socket_keepalive": True,
        "health_check_interval": _HEALTH,
        # Retries are decided by the caller, who knows whether the command is idempotent.
        "retry": Retry(NoBackoff(), 0),
        "client_name": "trotline",
    }
    if tls:
        options["ssl"] = True
        if "ca" in query:
            options["ssl_ca_certs"] = query.pop("ca")
    if "inbox" in query:
        raise ValueError("an inbox is not a part of the frontier's URL; name it with --inbox or TROTLINE_INBOX")
    if query:
        known = "=, ".join((*OPTIONS, SHARDS))
        raise ValueError(f"unknown option {sorted(query)[0]}; known are {known}=, and with rediss:// ca=FILE")
    return options


def _hosts(netloc: str) -> list[str]:
    hosts = netloc.rpartition("@")[2].split(",")
    if not all(hosts):
        raise ValueError("no host")
    return hosts


def _host(text: str, default: int) -> tuple[str, int]:
    name, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        return text.strip("[]"), default
    if not port.isdecimal():
        raise ValueError("the port must be an integer")
    return name.strip("[]"), int(port)


def _number(path: list[str]) -> int:
    if not path:
        return 0
    if len(path) > 1 or not path[0].isdecimal():
        raise ValueError("the path must be a database number")
    return int(path[0])


def _check(info: dict[str, Any], place: str) -> None:
    version = str(info.get("redis_version", "0"))
    if (
        tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) < OLDEST
        and "valkey_version" not in info
    ):
        raise FrontierError(
            f"{place} is Redis {version}, which is too old", hint="Trotline needs Redis 7.0 or Valkey 8, or later."
        )
    policy, limit = str(info.get("maxmemory_policy", "noeviction")), int(info.get("maxmemory", 0))
    if policy.startswith("allkeys") or (policy != "noeviction" and limit > 0):
        raise FrontierError(
            f"{place} evicts keys when its memory is full (maxmemory-policy {policy}): tasks would be lost",
            hint="Set it with: redis-cli CONFIG SET maxmemory-policy noeviction (and in the server's configuration).",
        )
