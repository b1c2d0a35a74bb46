"""Speak adb: the protocol core, the connection that owns the wire, sync and shell."""
