"""From a URL to a client, and what a server must be before tasks are trusted to it.

redis://[USER:PASSWORD@]HOST[:PORT][/DB]             rediss:// the same with TLS
redis+cluster://HOST[:PORT],HOST[:PORT]              any nodes of a Cluster
redis+sentinel://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT]/MASTER[/DB][?user=U&password=P]
                                                     user and password of the server, and of the sentinels themselves
...?shards=8                                         new jobs in so many parts; else two per primary of a Cluster
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

from trotline.adapters.redis.reconnects import Reconnects
from trotline.adapters.redis.seen_memory import OPTIONS
from trotline.adapters.redis.server import Client, Server
from trotline.errors import FrontierError, SettingsError
from trotline.model.time import Seconds
from trotline.ports.backend import Notice

SHARDS = "shards"
_MOST_SHARDS = 1024
OLDEST = (7, 0)
"""The oldest Redis that knows the flags of scripts."""
FORMS = '"redis://HOST:PORT/0", "redis+cluster://HOST,HOST" or "redis+sentinel://HOST,HOST/MASTER"'

_CONNECT: Seconds = 5.0
_ANSWER: Seconds = 5.0
"""No script takes a tenth of a second. Twice this, and a server that hangs is known to."""
_HEALTH: Seconds = 15.0
_PORT, _SENTINEL_PORT = 6379, 26379


def connect(url: str) -> Client:
    """A client for the URL; nothing is sent yet. SettingsError says what is wrong with it, and quotes no password."""
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
    """In how many parts the URL asks new jobs to be kept (`?shards=8`); 0: it does not say."""
    asked = dict(parse_qsl(urlsplit(url).query)).get(SHARDS)
    if asked is None:
        return 0
    if not asked.isdecimal() or not 0 < int(asked) <= _MOST_SHARDS:
        raise SettingsError(
            f"shards={asked[:20]} is not a number of shards", hint=f"Write shards=8; the maximum is {_MOST_SHARDS}."
        )
    return int(asked)


async def checked(client: Client) -> Client:
    """The client, once its server is known to be one that keeps what it is given; FrontierError says why not."""
    server = Server(client)
    try:
        await server.plain(client.initialize)
        nodes: list[Any] = list(client.get_primaries()) if isinstance(client, RedisCluster) else [client]
        for node in nodes:
            _judge(await server.plain(partial(node.execute_command, "INFO", "everything")), server.place)
    except BaseException:
        await server.close()
        raise
    return client


async def notices(url: str) -> list[Notice]:
    """A server that keeps what it is given only as long as it lives is worth a word."""
    client = await checked(connect(url))
    server = Server(client)
    try:
        nodes: list[Any] = list(client.get_primaries()) if isinstance(client, RedisCluster) else [client]
        infos = [await server.plain(partial(node.execute_command, "INFO", "persistence")) for node in nodes]
    finally:
        await server.close()
    if all(int(info.get("aof_enabled", 0)) for info in infos):
        return []
    text = f"{server.place} writes no append-only file: a restart loses its tasks, or those since its last snapshot"
    return [Notice(text, "Set it with: redis-cli CONFIG SET appendonly yes (and in the server's configuration).")]


def listener(client: Client) -> Redis:
    """A client of its own for the same server, that may listen for long. In a Cluster every node hears all news.

    It takes over everything that says how a connection is made: one word less, and the password goes without TLS.
    """
    if isinstance(client, RedisCluster):
        node = client.get_default_node()
        patient = _patient(node.connection_kwargs)
        # Its news are no reason to believe that the server is another one.
        patient.pop("redis_connect_func", None)
        return Redis.from_pool(ConnectionPool(connection_class=node.connection_class, **patient))
    pool = client.connection_pool
    patient = {"connection_class": pool.connection_class, **_patient(pool.connection_kwargs)}
    if isinstance(pool, SentinelConnectionPool):
        # The pool that these connections belong to is the new one.
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
        cluster = RedisCluster(startup_nodes=[ClusterNode(host, port) for host, port in hosts], **options)
        for kwargs in (cluster.connection_kwargs, *(node.connection_kwargs for node in cluster.get_nodes())):
            kwargs["redis_connect_func"] = connected
        return cluster
    options["redis_connect_func"] = connected
    if kind == "sentinel":
        if not path:
            raise ValueError("no master is named")
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
        # Whether a command may be sent twice is decided where its meaning is known.
        "retry": Retry(NoBackoff(), 0),
        "client_name": "trotline",
    }
    if tls:
        options["ssl"] = True
        if "ca" in query:
            options["ssl_ca_certs"] = query.pop("ca")
    if query:
        known = "=, ".join((*OPTIONS, SHARDS))
        raise ValueError(f"{sorted(query)[0]} is not known there; it may be {known}=, and with rediss:// ca=FILE")
    return options


def _hosts(netloc: str) -> list[str]:
    hosts = netloc.rpartition("@")[2].split(",")
    if not all(hosts):
        raise ValueError("it names no host")
    return hosts


def _host(text: str, default: int) -> tuple[str, int]:
    name, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        return text.strip("[]"), default
    if not port.isdecimal():
        raise ValueError("the port is not a number")
    return name.strip("[]"), int(port)


def _number(path: list[str]) -> int:
    if not path:
        return 0
    if len(path) > 1 or not path[0].isdecimal():
        raise ValueError("what follows the host is not the number of a database")
    return int(path[0])


def _judge(info: dict[str, Any], place: str) -> None:
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
            f"{place} throws keys away when its memory is full (maxmemory-policy {policy}): tasks would vanish",
            hint="Set it with: redis-cli CONFIG SET maxmemory-policy noeviction (and in the server's configuration).",
        )
