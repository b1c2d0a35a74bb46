"""Gradle's settings on a phone: what the contract and the phone's memory allow. Pure.

They go by command line, so that the project cannot undo them and no file of it changes. Heap and
workers follow the memory of the phone, as builders on phones have found to work: about a third of
it, less parallel work the smaller it is.
"""

import hashlib
import re
from dataclasses import dataclass

from builder_bridge.prefix.contract import Contract

_GIB_KB = 1 << 20
MAX_HEAP_MB = 4096
DAEMON_FLOOR_KB = 2 * _GIB_KB
"""A daemon stays only where this much memory is available beyond its heap."""
_TEMPORARY = "tmp"
DAEMON_IDLE_MS = 15 * 60 * 1000


@dataclass(frozen=True, slots=True)
class GradleSettings:
    """Arguments for Gradle, whether a daemon stays for the next build, and what a report says of it.

    `client` names the archive of prepared classes with which Gradle's client may start; None where it
    must not. Only a client beside a daemon gets options of its own: without a daemon the build runs in
    the client where both want the same ones, and else in one more virtual machine.
    """

    args: tuple[str, ...]
    has_daemon: bool
    facts: dict[str, str]
    client: str | None = None


def gradle_settings(contract: Contract, has_daemon: bool | None = None) -> GradleSettings:
    """Compute the settings; `has_daemon` None lets the phone's memory decide."""
    version = version_of(contract.prefix.gradle)
    memory_kb = contract.device.memory_kb
    share, workers = _share_and_workers(memory_kb, contract.device.cores)
    heap_mb = max(384, min(MAX_HEAP_MB, int(memory_kb * share) // 1024))
    if has_daemon is None:
        has_daemon = contract.device.memory_available_kb >= heap_mb * 1024 + DAEMON_FLOOR_KB
    args = [
        "--offline",
        "--console=plain",
        "--daemon" if has_daemon else "--no-daemon",
        f"--max-workers={workers}",
        f"-Dorg.gradle.jvmargs={_jvm_args(heap_mb, memory_kb, contract)}",
        f"-Pandroid.aapt2FromMavenOverride={contract.dir}/bin/aapt2",
        "-Pandroid.aapt2ThreadPoolSize=2",
        "-Pandroid.builder.sdkDownload=false",
        "-Pkotlin.compiler.execution.strategy=in-process",
    ]
    if has_daemon:
        args.append(f"-Dorg.gradle.daemon.idletimeout={DAEMON_IDLE_MS}")
    if not contract.prefix.gradle_native:
        args.append("-Dorg.gradle.native=false")
    if version >= (6, 6):
        args += ["--no-watch-fs", "--no-configuration-cache"]
    if version >= (6, 7):
        args += [
            "-Porg.gradle.java.installations.auto-download=false",
            "-Porg.gradle.java.installations.auto-detect=false",
        ]
    facts = {
        "gradle": contract.prefix.gradle or "unknown",
        "jdk": contract.prefix.jdk or "unknown",
        "daemon": "warm" if has_daemon else "none",
        "heap_mb": str(heap_mb),
        "workers": str(workers),
        "offline": "yes",
    }
    client = _client(contract) if has_daemon and version_of(contract.prefix.jdk) >= (19, 0) else None
    return GradleSettings(tuple(args), has_daemon, facts, client)


def _client(contract: Contract) -> str:
    """Name what an archive of classes depends on; the virtual machine checks for itself that one fits."""
    prefix = contract.prefix
    return hashlib.sha256(f"{prefix.id} {prefix.gradle} {prefix.jdk}".encode()).hexdigest()[:16]


def version_of(text: str | None) -> tuple[int, int]:
    """Read major and minor out of a version text; (0, 0) where there is none."""
    match = re.match(r"(\d+)(?:\.(\d+))?", text or "")
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)


def _share_and_workers(memory_kb: int, cores: int) -> tuple[float, int]:
    if memory_kb <= 3 * _GIB_KB:
        return 0.33, min(cores, 2)
    if memory_kb < 6 * _GIB_KB or cores < 4:
        return 0.35, min(cores, 3)
    return 0.40, min(cores, 4)


def _jvm_args(heap_mb: int, memory_kb: int, contract: Contract) -> str:
    words = [
        f"-Xmx{heap_mb}m",
        f"-XX:MaxMetaspaceSize={192 if memory_kb <= 3 * _GIB_KB else 384}m",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        "-Dfile.encoding=UTF-8",
        f"-Djava.io.tmpdir={contract.dir}/{_TEMPORARY}",
    ]
    if contract.domain.startswith("u:"):
        words.append("-XX:-UseContainerSupport")  # Android keeps the cgroup files from apps
    if memory_kb <= 3 * _GIB_KB:
        words.append("-XX:+UseSerialGC")
    return " ".join(words)
