"""The files of an archive as objects of S3, by obstore. One PUT per object: it is there whole or not at all."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore.exceptions import (
    BaseError,
    GenericError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from trotline.adapters.s3 import thread_shutdown
from trotline.adapters.s3.errors import (
    NO_CREDENTIALS,
    cause,
    is_credential_lookup,
    is_past_the_end,
    refusal_hint,
    unreadable_name,
)
from trotline.adapters.s3.s3_url import Address
from trotline.errors import ArchiveDenies, ArchiveError, ArchiveUnreachable, SettingsError
from trotline.model.limits import MIB
from trotline.model.secret import Secret, SecretMissing
from trotline.ports.object_store import StoredObject

T = TypeVar("T")

_CONNECT = timedelta(seconds=5)
_REQUEST = timedelta(seconds=60)
"""One request, a PUT of a rolled file or a page of a long list included."""
_SMALL_REQUEST = timedelta(seconds=15)
"""One request with at most `_SMALL` bytes: a server that hangs is noticed sooner, and called unreachable."""
_SMALL = MIB
_RETRY = timedelta(seconds=10)
_ONE_PUT = 8 * MIB
"""Larger files are sent in parts of this size. A process that dies meanwhile leaves invisible parts: let the
bucket remove them (AbortIncompleteMultipartUpload)."""
_TRIES = 2
"""Of one call. After that the batch is kept, leasing stops, and it is tried again without end."""
_PARTS = 2
"""Parts that are sent, and so in memory, at a time."""


class S3Objects:
    """Names of objects are relative to the prefix."""

    def __init__(self, address: Address) -> None:
        self._address = address
        at = f" at {address.endpoint}" if address.endpoint else ""
        self._place = f"s3://{address.bucket}/{address.prefix}".rstrip("/") + at
        thread_shutdown.install()
        self._store = _store(address, _REQUEST)
        self._quick = _store(address, _SMALL_REQUEST)
        self._prefix = f"{address.prefix}/" if address.prefix else ""

    async def check(self) -> None:
        try:
            await self._ask(self._list_some())
            # Listing may be allowed where writing is not.
            await self.put(".trotline", b"")
        except KeyError:
            raise ArchiveUnreachable(f"{self._place}: there is no such bucket", hint=_NO_BUCKET) from None

    async def put(self, name: str, data: bytes) -> None:
        store = self._quick if len(data) <= _SMALL else self._store
        await self._ask(obstore.put_async(store, self._prefix + name, data, use_multipart=False))

    async def put_file(self, name: str, file: Path) -> None:
        size = await asyncio.to_thread(lambda: file.stat().st_size)
        put = obstore.put_async(
            self._store,
            self._prefix + name,
            file,
            use_multipart=size > _ONE_PUT,
            chunk_size=_ONE_PUT,
            max_concurrency=_PARTS,
        )
        await self._ask(put)
        stored = (await self._ask(obstore.head_async(self._quick, self._prefix + name)))["size"]
        if stored != size:
            raise ArchiveUnreachable(
                f"{self._place} has {stored:,} bytes of {name}, and not {size:,}", hint="It is sent again."
            )

    async def join(self, name: str, parts: Sequence[str]) -> None:
        # In memory: a copy in the bucket needs a multipart upload, with parts of 5 MiB or more.
        await self.put(name, b"".join([await self.get(part) for part in parts]))

    async def size_of(self, name: str) -> int | None:
        """None: there is no such object."""
        try:
            return (await self._ask(obstore.head_async(self._quick, self._prefix + name)))["size"]
        except KeyError:
            return None

    async def get(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        return await self._ask(self._get(self._prefix + name, start, length))

    async def _get(self, name: str, start: int, length: int | None) -> bytes:
        if length is None:
            found = await obstore.get_async(self._store, name)
            return bytes(await found.bytes_async())[start:]
        store = self._quick if length <= _SMALL else self._store
        try:
            return bytes(await obstore.get_range_async(store, name, start=start, length=length))
        except GenericError as error:
            if is_past_the_end(str(error)):
                return b""
            raise

    async def listed(self, prefix: str) -> list[StoredObject]:
        return sorted(await self._ask(self._list(prefix)))

    async def _list(self, prefix: str) -> list[StoredObject]:
        found, start = [], f"{self._prefix}{prefix}/" if prefix else self._prefix
        async for chunk in obstore.list(self._store, start):
            for one in chunk:
                if one["path"].startswith(start) and not _is_folder(one):
                    name = one["path"].removeprefix(self._prefix)
                    found.append(StoredObject(name, one["size"], one["last_modified"].timestamp()))
        return found

    async def _list_some(self) -> None:
        try:
            async for _ in obstore.list(self._quick, f"{self._prefix}warc/", chunk_size=1):
                return
        except BaseError as error:
            # It answers, and to write needs no list: readers are told of the name.
            if not unreadable_name(str(error)):
                raise

    async def delete(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                await self._ask(obstore.delete_async(self._quick, self._prefix + name))
            except KeyError:
                continue

    async def close(self) -> None:
        """Its connections end with the process."""

    async def _ask(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except (NotFoundError, FileNotFoundError) as error:
            raise KeyError(self._place) from error
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._denies(error) from None
        except (BaseError, OSError) as error:
            if foreign := unreadable_name(str(error)):
                # Not an outage: it lasts until somebody removes it. The client gives up the whole list at it.
                raise ArchiveError(
                    f"{self._place} cannot be listed: the name of one object cannot be read: {foreign!r}", hint=_FOREIGN
                ) from None
            if "NoSuchBucket" in str(error):
                raise ArchiveUnreachable(f"{self._place}: there is no such bucket", hint=_NO_BUCKET) from None
            if is_credential_lookup(str(error)):
                # It is not the archive that answered, or did not: no request was sent to it.
                raise ArchiveDenies(
                    f"{self._place} was not asked: no credentials were found", hint=NO_CREDENTIALS
                ) from None
            if isinstance(error, GenericError) and " 403 " in str(error):
                raise self._denies(error) from None
            raise ArchiveUnreachable(f"{self._place} is unreachable: {cause(str(error))}", hint=_ENDPOINT) from None

    def _denies(self, error: Exception) -> ArchiveDenies:
        return ArchiveDenies(f"{self._place} refuses us: {cause(str(error))}", hint=refusal_hint(str(error)))


_NO_BUCKET = "Make it, or name another."
_FOREIGN = "Another program made it: move it away, or give the archive a prefix of its own. Pages are still archived."
_ENDPOINT = "Is the endpoint right, and up?"


def _is_folder(one: Any) -> bool:
    """An empty object that a console makes for "new folder"; the slash at its end is not listed."""
    return not one["size"] and "." not in one["path"].rpartition("/")[2]


def _store(address: Address, timeout: timedelta) -> S3Store:
    config: dict[str, Any] = {
        "virtual_hosted_style_request": not address.endpoint and "." not in address.bucket,
        # The server refuses what it did not receive as it was sent.
        "checksum_algorithm": "SHA256",
    }
    if address.endpoint:
        config["endpoint"] = address.endpoint
    region = address.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    config["region"] = region or "us-east-1"
    if address.credentials:
        config["credential_provider"] = _given(address.credentials)
    elif os.environ.get("AWS_PROFILE") and "AWS_ACCESS_KEY_ID" not in os.environ:
        config["credential_provider"] = _profile()
    return S3Store(
        address.bucket,
        client_options={
            "allow_http": address.endpoint.startswith("http://"),
            "connect_timeout": _CONNECT,
            "timeout": timeout,
        },
        retry_config={"max_retries": _TRIES, "retry_timeout": _RETRY},
        **config,
    )


def _given(reference: str) -> Callable[[], dict[str, Any]]:
    """A file is read again for each request: keys are rotated while we run."""
    try:
        secret = Secret.parse(reference)
    except SecretMissing as error:
        raise SettingsError(f"the credentials of the archive: {error}", hint="Set it, or name another.") from error
    _words(reference, secret.reveal())

    def current() -> dict[str, Any]:
        key, password, *token = _words(reference, secret.current())
        return {
            "access_key_id": key,
            "secret_access_key": password,
            "token": token[0] if token else None,
            # The client asks again when they have expired.
            "expires_at": datetime.now(UTC),
        }

    return current


def _words(reference: str, text: str) -> list[str]:
    words = text.strip().split(":")
    if len(words) not in (2, 3) or not all(words):
        raise SettingsError(
            f"{reference} does not hold the credentials of an archive",
            hint="Write KEY:SECRET or KEY:SECRET:TOKEN in it.",
        )
    for word in words[1:]:
        Secret(word)
    return words


def _profile() -> Any:
    """AWS_PROFILE: profiles, SSO and roles are boto3's."""
    try:
        import boto3
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        raise SettingsError(
            "AWS_PROFILE is set, and profiles of AWS need the package boto3",
            hint="Install it: pip install boto3. Or unset it, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        ) from None
    return Boto3CredentialProvider(boto3.Session())
