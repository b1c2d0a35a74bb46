"""What is known to help against faults that no change of the code will mend."""

import re
from collections.abc import Sequence

from builder_bridge.log.problem import Problem
from builder_bridge.log.verdict import Fault

MAX_COORDINATES = 20

_COORDINATE = re.compile(
    r"(?:No cached version (?:listing )?(?:of|for)|Could not (?:resolve|find|download)) "
    r"[^\n]*?([\w.-]+:[\w.-]+:[\w.+-]*\w)"
)

_ADVICE: tuple[tuple[str, str], ...] = (
    (
        r"AAPT2 |aapt2[^\n]*error=|aapt2[^\n]*(?:Exec format|cannot execute)",
        (
            "the AAPT2 that was started is built for another CPU or may not be executed where it lies; "
            "build with -Pandroid.aapt2FromMavenOverride naming the prefix's own aapt2."
        ),
    ),
    (
        r"No native library found for os\.name|SQLiteJDBCLoader|libsqlitejdbc",
        (
            "Room checks queries with SQLite's native library, which this phone cannot load; the "
            "queries are not at fault. Seed a sqlite-jdbc that has a build for Android, or name one "
            "with org.sqlite.lib.path."
        ),
    ),
    (
        r"signal 9|\bKilled\b|(?:code|status|value):? 137|daemon disappeared",
        (
            "Android ended the process, most likely for memory: build with --max-workers=1 and a "
            "smaller heap in org.gradle.jvmargs, close other apps, and switch the phantom process "
            "killer off."
        ),
    ),
    (
        r"OutOfMemoryError|heap space|GC overhead|Metaspace|Not enough memory|is thrashing|could not reserve",
        (
            "the JVM reached its own limit: raise -Xmx and -XX:MaxMetaspaceSize in org.gradle.jvmargs "
            "and kotlin.daemon.jvmargs as far as the phone's memory allows, or build with "
            "--max-workers=1."
        ),
    ),
    (
        r"No space left on device|ENOSPC|Disk quota",
        (
            "the phone's storage is full: remove old runs and Gradle's caches from the builder prefix, "
            "then build again."
        ),
    ),
    (
        r"Timeout waiting to lock|currently in use by another Gradle",
        (
            "another Gradle holds the lock: wait for its build or cancel it; if none runs, a dead "
            "daemon left it."
        ),
    ),
    (
        r"host (?:CPU )?architecture|native services|libnative-platform",
        ("this program has no build for the phone's system: take it from the prefix, not from the project."),
    ),
)
_ADVICE_PATTERNS = [(re.compile(pattern, re.IGNORECASE), text) for pattern, text in _ADVICE]


def advice_for(fault: Fault | None, problems: Sequence[Problem]) -> tuple[str, ...]:
    """Give what to do about these problems; nothing where the code is at fault."""
    if fault is None or fault is Fault.YOUR_CODE:
        return ()
    text = "\n".join(problem.message for problem in problems)
    found = [advice for pattern, advice in _ADVICE_PATTERNS if pattern.search(text)]
    missing = list(dict.fromkeys(_COORDINATE.findall(text)))
    if missing and fault is Fault.NETWORK_OR_OFFLINE:
        found.append(f"bring what is missing into the phone's offline repository: {_seed_line(missing)}")
    return tuple(found)


def _seed_line(coordinates: list[str]) -> str:
    listed = " ".join(coordinates[:MAX_COORDINATES])
    rest = len(coordinates) - MAX_COORDINATES
    return f"`pocketbuild seed {listed}`" + (f" and {rest} more" if rest > 0 else "")
