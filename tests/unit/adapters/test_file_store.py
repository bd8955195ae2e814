"""Downloads in a folder: named by content, whole or not at all, images checked."""

import hashlib
import io
from pathlib import Path

import pytest
from PIL import Image

from trotline.adapters.files.file_store import FolderStore
from trotline.model.stored_file import Files, StoredFile
from trotline.ports.file_store import FileRefused


def picture(kind: str = "PNG", size: tuple[int, int] = (3, 2)) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", size, "red").save(made, kind)
    return made.getvalue()


async def stored(folder: Path, body: bytes, kind: str = "image/png", **rules: object) -> StoredFile:
    writer = FolderStore(Files(folder=str(folder), **rules)).begin()
    for place in range(0, len(body), 100):
        writer.write(body[place : place + 100])
    return await writer.keep(kind)


def names(folder: Path) -> list[str]:
    return [str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()]


async def test_a_file_is_named_after_its_content_and_type_and_stored_once(tmp_path: Path) -> None:
    body = b"x" * 1000
    one, again = [await stored(tmp_path / "out", body, "Application/PDF; x=../../y") for _ in range(2)]

    digest = hashlib.sha256(body).hexdigest()
    assert (
        one == again == StoredFile(path=f"{digest[:2]}/{digest}.pdf", sha256=digest, size=1000, type="application/pdf")
    )
    assert names(tmp_path / "out") == [one.path]
    assert (tmp_path / "out" / one.path).read_bytes() == body
    assert (await stored(tmp_path / "out", body, "weird/../type")).path.endswith(".bin")


async def test_what_is_dropped_leaves_nothing(tmp_path: Path) -> None:
    writer = FolderStore(Files(folder=str(tmp_path))).begin()
    writer.write(b"half")
    writer.drop()
    writer.drop()
    assert names(tmp_path) == []


@pytest.mark.parametrize(("kind", "ending"), [("PNG", ".png"), ("JPEG", ".jpg"), ("WEBP", ".webp"), ("GIF", ".gif")])
async def test_an_image_is_what_it_is_and_not_what_the_site_says(tmp_path: Path, kind: str, ending: str) -> None:
    file = await stored(tmp_path, picture(kind), "text/html", images=True)
    assert (file.path.endswith(ending), file.width, file.height) == (True, 3, 2)
    assert file.type.startswith("image/")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>captcha</html>", "not an image"),
        (b"", "not an image"),
        (picture("JPEG", (400, 400))[:-200], "damaged image"),
        (picture("PNG", (100, 100))[:150], "damaged image"),
        (picture("PNG", (2000, 600)), "over the limit of 1,000,000"),
    ],
)
async def test_what_is_no_image_or_too_large_is_refused_and_not_stored(tmp_path: Path, body: bytes, said: str) -> None:
    with pytest.raises(FileRefused, match=said):
        await stored(tmp_path, body, images=True, pixels=1_000_000)
    assert names(tmp_path) == []
