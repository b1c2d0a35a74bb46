"""Asks a phone what it still knows about a build that died, for `death.classify` to judge."""

from contextlib import suppress

import anyio

from builder_bridge.adb import AdbConnection, shell
from builder_bridge.death import Death, Evidence, classify
from builder_bridge.errors import BridgeError
from builder_bridge.handoff import RunStatus

_LIMIT_S = 10.0
TAIL_BYTES = 16 << 10
_LOGCAT = "logcat -d -b main,system,events,crash,kernel -t 3000 2>/dev/null | tail -c 600000"
_REASON = "getprop sys.boot.reason; getprop ro.boot.bootreason"


async def explain_death(
    adb: AdbConnection,
    status: RunStatus,
    package: str,
    *,
    exit_code: int | None = None,
    log_tail: bytes = b"",
) -> Death:
    """Gather logs and process records by adb's shell and name the cause; asks nothing for longer than 10 s.

    What the phone does not tell is left out, so the worst answer is an unknown cause.
    """
    pids = frozenset([status.identity.pid]) if status.identity else frozenset()
    evidence = Evidence(
        pids=pids,
        package=package,
        exit_code=exit_code,
        has_rebooted=status.has_rebooted,
        storage_free_kb=_free_kb(await _ask(adb, "df -k /data/local/tmp 2>/dev/null")),
        boot_reason=(await _ask(adb, _REASON)).replace("\n", " ").strip(),
        logcat=await _ask(adb, _LOGCAT),
        exit_info=await _ask(adb, f"dumpsys activity exit-info {package} 2>/dev/null"),
        log_tail=log_tail[-TAIL_BYTES:].decode("utf-8", "replace"),
    )
    return classify(evidence)


async def _ask(adb: AdbConnection, line: str) -> str:
    with suppress(BridgeError), anyio.move_on_after(_LIMIT_S):
        result = await shell.run(adb, line)
        return result.stdout.decode("utf-8", "replace")
    return ""


def _free_kb(text: str) -> int | None:
    words = (text.strip().splitlines() or [""])[-1].split()
    return int(words[3]) if len(words) > 3 and words[3].isdecimal() else None
