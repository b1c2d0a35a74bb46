"""The phone in a box: a stand-in for a phone, with a real `adbd`, where none is attached.

`make_root` makes the system image of one kind once and keeps it; `start` gives a running box on top
of it, which costs next to nothing, so many run side by side. Both need root on a Debian-like host
and block while they work; call them from a thread where an event loop runs.
"""

from builder_bridge.box.instance import reboot, remove, remove_everything, restart_adbd, start, stop
from builder_bridge.box.recipe import Kind
from builder_bridge.box.record import DEFAULT_NAME, Box, Mode, boxes, find
from builder_bridge.box.root import make_root

__all__ = [
    "DEFAULT_NAME",
    "Box",
    "Kind",
    "Mode",
    "boxes",
    "find",
    "make_root",
    "reboot",
    "remove",
    "remove_everything",
    "restart_adbd",
    "start",
    "stop",
]
