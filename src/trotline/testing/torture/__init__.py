"""A server that misbehaves on demand: every path is one fault. For testing HTTP clients."""

from trotline.testing.torture.faults import Call, Fault
from trotline.testing.torture.server import TortureServer

__all__ = ["Call", "Fault", "TortureServer"]
