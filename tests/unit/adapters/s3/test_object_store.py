"""The credentials of an archive while it is in use."""

from pathlib import Path

from trotline.adapters.s3.object_store import _given
from trotline.model.secret import without_secrets


def test_rotated_credentials_are_read_again_from_their_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.touch(0o600)
    file.write_text("KEY-1:first-secret")
    given = _given(f"file:{file}")
    assert given()["access_key_id"] == "KEY-1"
    file.write_text("KEY-2:second-secret:some-token")

    found = given()
    assert [found[name] for name in ("access_key_id", "secret_access_key", "token")] == [
        "KEY-2",
        "second-secret",
        "some-token",
    ]
    assert without_secrets("second-secret some-token") == "(hidden) (hidden)"
