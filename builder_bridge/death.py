"""Names why a build on a phone ended without a verdict, from what the phone still tells about it.

Pure: fed with texts of `logcat`, `dumpsys` and exit codes, in the formats of Android 10 to 16. A
cause is named only with a line that shows it, or by an exit code that means nothing else; else the
answer is that it is not known, never a guess.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum

MAX_EVIDENCE_LINES = 5


class Cause(StrEnum):
    """Why a build died."""

    REBOOT = "lost_reboot"
    REBOOT_HOT = "lost_reboot_thermal"
    ADBD_RESTART = "lost_adbd_restart"
    LOW_MEMORY = "build_killed_lmk"
    PHANTOM = "build_killed_phantom"
    BAD_SYSTEM_CALL = "build_bad_system_call"
    HEAP = "build_oom"
    STORAGE_FULL = "storage_full"
    FORCE_STOP = "build_killed_force_stop"
    KILLED = "build_killed"
    UNKNOWN = "lost_unknown"


HINTS = {
    Cause.REBOOT: "The phone was restarted during the build; build again.",
    Cause.REBOOT_HOT: "The phone shut itself down because it was too hot; let it cool, take off its case.",
    Cause.ADBD_RESTART: "adbd was restarted and took the build with it: leave USB mode and USB debugging"
    " alone during a build, and set the default USB mode to charging only.",
    Cause.LOW_MEMORY: "Android ended the build for want of memory: close apps, or build with a smaller heap.",
    Cause.PHANTOM: "Android's phantom process killer ended the build: switch off the monitoring of child"
    " processes in the developer options.",
    Cause.BAD_SYSTEM_CALL: "The prefix's JDK made a system call that Android forbids: take a JDK that was"
    " built for Android.",
    Cause.HEAP: "Gradle ran out of heap: give it more, or build fewer modules at once.",
    Cause.STORAGE_FULL: "The phone's storage is full: free some (`pocketbuild phone gc`), then build again.",
    Cause.FORCE_STOP: "The builder app was stopped or updated during the build; build again.",
    Cause.KILLED: "Something on the phone killed the build with SIGKILL and left no trace.",
    Cause.UNKNOWN: "The build ended without a verdict and nothing on the phone says why; build again.",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a build that ended oddly; texts may be empty where the phone gave none.

    `pids` are processes of the build, `package` the builder's, `exit_code` Gradle's own where it is
    known, `storage_free_kb` None where it is not. `has_rebooted` says that the boot id is another.
    """

    pids: frozenset[int] = frozenset()
    package: str = ""
    exit_code: int | None = None
    has_rebooted: bool = False
    storage_free_kb: int | None = None
    boot_reason: str = ""
    logcat: str = ""
    exit_info: str = ""
    log_tail: str = ""


@dataclass(frozen=True, slots=True)
class Death:
    """A named cause with the lines that show it."""

    cause: Cause
    lines: tuple[str, ...] = field(default=())

    @property
    def hint(self) -> str:
        """What a person can do about it."""
        return HINTS[self.cause]


_PHANTOM = re.compile(
    r"ActivityManager: Killing PhantomProcessRecord \{\S+ (?P<pid>\d+):\d+:(?P<name>[^/}]+)/[^}]*\}:"
    r" (?:Trimming|.*excessive cpu)"
    r"|ActivityManager: .*Trimming phantom processes"
)
_LMKD = re.compile(
    r"(?:lowmemorykiller|lmkd|killinfo)\s*:"
    r" (?:Kill(?:ing)? '(?P<name>[^']+)' \((?P<pid>\d+)\)|\[(?P<pid2>\d+),)"
    r"|Out of memory: Kill(?:ed)? process (?P<pid3>\d+) \((?P<name3>[^)]+)\)"
)
_SIGSYS = re.compile(
    r"Fatal signal 31 \(SIGSYS\).*pid (?P<pid>\d+)|seccomp prevented call to disallowed \S+ system call"
)
_ADBD = re.compile(
    r"init\s*: (?:Service 'adbd' \(pid \d+\) (?:exited|received signal)|Sending signal \d+ to service 'adbd'"
    r"|starting service 'adbd')|adbd\s*: (?:adbd started|terminating)"
)
_FORCE_STOP = re.compile(
    r"ActivityManager: Force stopping (?P<name>\S+)|Killing \d+:(?P<name2>\S+)/u\S+ .*: stop "
)
_HEAP = re.compile(
    r"java\.lang\.OutOfMemoryError|Terminating due to java\.lang\.OutOfMemoryError|GC overhead limit"
)
_FULL = re.compile(r"No space left on device|ENOSPC|not enough space", re.IGNORECASE)
_EXIT_REASON = re.compile(r"pid=(?P<pid>\d+).*?reason=(?P<reason>\d+) \((?P<word>[A-Z_ ]+)\)", re.DOTALL)
_BUILD_NAMES = ("java", "gradle", "sh", "pb", "aapt2")
_FREE_FLOOR_KB = 4096


def classify(evidence: Evidence) -> Death:
    """Name the cause of death; the first that is shown in this order: reboot, the phone's killers,
    forbidden system call, adbd, storage, heap, an unexplained kill."""
    if evidence.has_rebooted:
        is_hot = "thermal" in evidence.boot_reason
        reason = (evidence.boot_reason,) if evidence.boot_reason else ()
        return Death(Cause.REBOOT_HOT if is_hot else Cause.REBOOT, reason)
    logged = evidence.logcat.splitlines()
    for cause, pattern in (
        (Cause.PHANTOM, _PHANTOM),
        (Cause.LOW_MEMORY, _LMKD),
        (Cause.BAD_SYSTEM_CALL, _SIGSYS),
        (Cause.FORCE_STOP, _FORCE_STOP),
    ):
        lines = _lines_about(pattern, logged, evidence)
        if lines:
            return Death(cause, lines)
    from_exit_info = _from_exit_info(evidence)
    if from_exit_info is not None:
        return from_exit_info
    if evidence.exit_code == 159:
        return Death(Cause.BAD_SYSTEM_CALL, ("exit code 159 is SIGSYS",))
    if evidence.exit_code is None and (lines := _matching(_ADBD, logged)):
        return Death(Cause.ADBD_RESTART, lines)
    tail = evidence.log_tail.splitlines()
    is_full = evidence.storage_free_kb is not None and evidence.storage_free_kb < _FREE_FLOOR_KB
    if is_full or _matching(_FULL, tail):
        shown = _matching(_FULL, tail) or (f"{evidence.storage_free_kb} KiB of storage are free",)
        return Death(Cause.STORAGE_FULL, shown)
    if lines := _matching(_HEAP, tail):
        return Death(Cause.HEAP, lines)
    if evidence.exit_code == 137:
        return Death(Cause.KILLED, ("exit code 137 is SIGKILL",))
    return Death(Cause.UNKNOWN)


def _matching(pattern: re.Pattern[str], lines: list[str]) -> tuple[str, ...]:
    return tuple(line.strip() for line in lines if pattern.search(line))[-MAX_EVIDENCE_LINES:]


def _lines_about(pattern: re.Pattern[str], lines: list[str], evidence: Evidence) -> tuple[str, ...]:
    """Give the matching lines that concern the build: by pid, by package, or by a name builds have."""
    found = []
    for line in lines:
        match = pattern.search(line)
        if match is None:
            continue
        named = {key.rstrip("23"): value for key, value in match.groupdict().items() if value}
        name = named.get("name", "")
        is_ours = (
            not named
            or (named.get("pid", "").isdecimal() and int(named["pid"]) in evidence.pids)
            or (evidence.package != "" and name == evidence.package)
            or name.rpartition("/")[2] in _BUILD_NAMES
        )
        if is_ours:
            found.append(line.strip())
    return tuple(found[-MAX_EVIDENCE_LINES:])


def _from_exit_info(evidence: Evidence) -> Death | None:
    causes = {
        "LOW_MEMORY": Cause.LOW_MEMORY,
        "USER REQUESTED": Cause.FORCE_STOP,
        "EXCESSIVE RESOURCE USAGE": Cause.PHANTOM,
    }
    for record in evidence.exit_info.split("ApplicationExitInfo #")[1:]:
        match = _EXIT_REASON.search(record)
        if match and int(match["pid"]) in evidence.pids:
            cause = causes.get(match["word"].strip().replace("LOW MEMORY", "LOW_MEMORY"))
            if cause is not None:
                line = " ".join(record.split())
                return Death(cause, (line[:400],))
    return None
