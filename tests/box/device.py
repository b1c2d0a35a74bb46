"""Short ways to use a box's device in tests, through the project's own adb."""

from builder_bridge.adb import connect
from builder_bridge.adb.shell import ShellResult, run
from builder_bridge.box import Box


async def shell(box: Box, command: str, stdin: bytes = b"") -> ShellResult:
    """Run one command over a connection of its own, as adb's user."""
    async with connect(box.serial) as adb:
        return await run(adb, command, stdin)


async def said(box: Box, command: str) -> str:
    """Give what a command that must succeed printed, without the last line's end."""
    result = await shell(box, command)
    assert result.exit_code == 0, result
    return result.stdout.decode().rstrip("\n")
