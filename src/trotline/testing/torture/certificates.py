"""Certificates for tests: good, self-signed, expired, for another host. Made by the openssl command when asked for."""

import ssl
import subprocess
import warnings
from pathlib import Path

from trotline.testing.servers import need

KINDS = ("good", "self-signed", "expired", "wrong-host")


class Authority:
    """A certificate authority in a folder, trusted only through `trust()`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._command = str(need("openssl", "openssl"))
        usage = ["-addext", "keyUsage=critical,keyCertSign"]
        self._openssl("req", "-x509", *self._new_key("ca", "Torture Authority"), *usage, "-out", self.path("ca.pem"))

    def trust(self) -> ssl.SSLContext:
        """A client context that trusts only this authority."""
        return ssl.create_default_context(cafile=self.path("ca.pem"))

    def server(self, kind: str = "good", *, weak: bool = False) -> ssl.SSLContext:
        """A server's side with a certificate of that kind for `localhost`, 127.0.0.1 and 127.0.0.2; `weak`: TLS 1.1 at
        most."""
        if not (self._folder / f"{kind}.pem").exists():
            self._issue(kind, "elsewhere.example" if kind == "wrong-host" else "localhost")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path(f"{kind}.pem"), self.path(f"{kind}.key"))
        if weak:
            context.set_ciphers("ALL:@SECLEVEL=0")
            with warnings.catch_warnings(action="ignore"):
                context.minimum_version = ssl.TLSVersion.TLSv1
                context.maximum_version = ssl.TLSVersion.TLSv1_1
        return context

    def _issue(self, kind: str, host: str) -> None:
        request, extensions = self.path(f"{kind}.csr"), self._folder / f"{kind}.ext"
        names = f"DNS:{host},IP:127.0.0.1,IP:127.0.0.2" if host == "localhost" else f"DNS:{host}"
        extensions.write_text(f"subjectAltName={names}\nauthorityKeyIdentifier=keyid\n")
        self._openssl("req", *self._new_key(kind, host), "-out", request)
        signer = ["-signkey", self.path(f"{kind}.key")]
        if kind != "self-signed":
            signer = ["-CA", self.path("ca.pem"), "-CAkey", self.path("ca.key"), "-CAcreateserial"]
        days = "-1" if kind == "expired" else "2"
        made = ["-extfile", str(extensions), "-days", days, "-out", self.path(f"{kind}.pem")]
        self._openssl("x509", "-req", "-in", request, *signer, *made)

    def _new_key(self, name: str, owner: str) -> list[str]:
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        return [*curve, "-keyout", self.path(f"{name}.key"), "-subj", f"/CN={owner}"]

    def _openssl(self, *words: str) -> None:
        subprocess.run([self._command, *words], check=True, capture_output=True)  # noqa: S603 - our own words

    def path(self, name: str) -> str:
        """Where a file of the authority's is: `ca.pem`, or KIND.pem and KIND.key once `server` was asked for it."""
        return str(self._folder / name)
