"""The client of SQS while its credentials change."""

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from trotline.adapters.sqs.api import Api
from trotline.adapters.sqs.broker_url import Address
from trotline.errors import FrontierError


async def test_refused_credentials_are_read_again_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("key", "secret"):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_text(f"{name}-before-rotation")
    api = Api(Address("eu-west-1", key=f"file:{tmp_path / 'key'}", secret=f"file:{tmp_path / 'secret'}"))
    client = await api._opened()

    async def refused(**words: Any) -> None:
        raise ClientError({"Error": {"Code": "InvalidClientTokenId"}}, "ListQueues")

    monkeypatch.setattr(client, "list_queues", refused)
    with pytest.raises(FrontierError, match="refused the credentials"):
        await api.call("listing", "list_queues")
    (tmp_path / "secret").write_text("secret-after-rotation")

    again = await api._opened()
    assert again is not client
    assert again._get_credentials().secret_key == "secret-after-rotation"  # noqa: S105
    await api.close()
