"""Speak adb: the protocol core, the connection that owns the wire, sync and shell."""

from builder_bridge.adb.link import AdbConnection, AdbStream
from builder_bridge.adb.transports import connect

__all__ = ["AdbConnection", "AdbStream", "connect"]
