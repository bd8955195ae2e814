"""Checks images with Pillow, of the formats that the web has; its decoders of others are not for strangers' files."""

import threading
import warnings
from pathlib import Path

from trotline.ports.file_store import FileRefused

FORMATS = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "GIF": "image/gif",
    "WEBP": "image/webp",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
}
_ONE_AT_A_TIME = threading.Lock()
"""A decoded image is much larger than its file: a process must not hold as many as it has slots."""


def checked(file: Path, pixels: int) -> tuple[str, int, int]:
    """Type, width and height, by what the file is and not by what the site says; FileRefused says what is wrong."""
    from PIL import Image, UnidentifiedImageError

    try:
        # Its own limit is a warning, and ours comes first: only the head of the file is read until then.
        with (
            _ONE_AT_A_TIME,
            warnings.catch_warnings(action="ignore"),
            Image.open(file, formats=tuple(FORMATS)) as image,
        ):
            width, height, kind = image.width, image.height, image.format or ""
            if width * height > pixels:
                raise FileRefused(f"image of {width} x {height} pixels, over the limit of {pixels:,} (Files(pixels))")
            image.load()
    except FileRefused:
        raise
    except UnidentifiedImageError as error:
        raise FileRefused(f"not an image ({', '.join(FORMATS)})") from error
    except Exception as error:
        # Damaged files raise whatever their decoder ran into.
        raise FileRefused(f"damaged image: {type(error).__name__}") from error
    return FORMATS.get(kind, ""), width, height
