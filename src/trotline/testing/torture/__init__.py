"""A server that misbehaves on demand: every path is one misdeed. For testing whatever reads the web."""

from trotline.testing.torture.deeds import Call, Deed
from trotline.testing.torture.server import TortureServer

__all__ = ["Call", "Deed", "TortureServer"]
