"""Archives on S3 and on servers that speak its protocol."""

from trotline.ports.archive import Archive
from trotline.ports.backend import ArchiveOffer, Backend
from trotline.ports.object_store import ObjectStore
from trotline.rules import archive_urls

OPTIONS = ("endpoint", "region", "credentials")
_FORM = "s3://BUCKET/PREFIX"


def _parse(text: str) -> str:
    from trotline.adapters.s3.s3_url import address_of

    address_of(text)
    return text.strip()


def _open(url: str, writer: str) -> Archive:
    from trotline.adapters.archive.archive import ObjectArchive, rolls
    from trotline.adapters.s3.object_store import S3Objects
    from trotline.adapters.s3.s3_url import address_of

    return ObjectArchive(S3Objects(address_of(url)), writer, **rolls(archive_urls.read(url, OPTIONS)))


def _objects(url: str) -> ObjectStore:
    from trotline.adapters.s3.object_store import S3Objects
    from trotline.adapters.s3.s3_url import address_of

    return S3Objects(address_of(url))


BACKEND = Backend(
    name="S3",
    schemes=("s3",),
    local=False,
    extra="s3",
    archive=ArchiveOffer(forms=(_FORM,), parse=_parse, open=_open, objects=_objects),
)
