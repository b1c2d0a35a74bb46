# ruff: noqa: E501 - lines of logs are as long as they are
"""Causes of death are named by what logs of real phones look like, and never guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder_bridge.death import HINTS, Cause, Death, Evidence, classify

PIDS = frozenset({12345})
LINES = {
    "phantom, Android 12": (
        "03-14 10:11:12.131  1650  1705 I ActivityManager: Killing PhantomProcessRecord {8a4c9c2 12345:12300:java/u0a123}: Trimming phantom processes",
        Cause.PHANTOM,
    ),
    "phantom by CPU, Android 14": (
        "03-14 10:11:12.131  1650  1705 I ActivityManager: Killing PhantomProcessRecord {1f 12345:12300:java/u0a123}: excessive cpu 291040 during 300040 dur=411210 limit=2",
        Cause.PHANTOM,
    ),
    "lmkd, Android 10": (
        "01-02 03:04:05.678   612   612 I lowmemorykiller: Kill 'java' (12345), uid 10123, oom_adj 200 to free 1954320kB",
        Cause.LOW_MEMORY,
    ),
    "lmkd, Android 13": (
        "01-02 03:04:05.678   612   612 I lowmemorykiller: Kill 'org.pocketbuild.builder' (4711), uid 10123, oom_score_adj 200 to free 901232kB rss, 23412kB swap; reason: device is low on swap (1044kB < 204800kB) and thrashing (52%)",
        Cause.LOW_MEMORY,
    ),
    "killinfo event": (
        "01-02 03:04:05.678   612   612 I killinfo: [12345,10123,200,0,901232,1,2044,99,4,1024,2048]",
        Cause.LOW_MEMORY,
    ),
    "kernel": (
        "01-02 03:04:05.678     0     0 E kernel  : Out of memory: Killed process 12345 (java) total-vm:9123456kB, anon-rss:3123456kB",
        Cause.LOW_MEMORY,
    ),
    "seccomp": (
        "01-02 03:04:05.678 12345 12345 F libc    : Fatal signal 31 (SIGSYS), code 1 (SYS_SECCOMP), fault addr 0x0 in tid 12345 (java), pid 12345 (java)",
        Cause.BAD_SYSTEM_CALL,
    ),
    "tombstone": (
        "01-02 03:04:05.678  9999  9999 F DEBUG   : Cause: seccomp prevented call to disallowed arm64 system call 434",
        Cause.BAD_SYSTEM_CALL,
    ),
    "force stop": (
        "01-02 03:04:05.678  1650  1705 I ActivityManager: Force stopping org.pocketbuild.builder appid=10123 user=0: from pid 31337",
        Cause.FORCE_STOP,
    ),
    "adbd": (
        "01-02 03:04:05.678     1     1 I init    : Service 'adbd' (pid 8231) received signal 9",
        Cause.ADBD_RESTART,
    ),
    "adbd stopped": (
        "01-02 03:04:05.678     1     1 I init    : Sending signal 9 to service 'adbd' (pid 8231) process group...",
        Cause.ADBD_RESTART,
    ),
}  # fmt: skip
NOISE = """--------- beginning of main
01-02 03:04:05.678  1650  1705 I ActivityManager: Killing 3456:com.android.chrome/u0a99 (adj 900): empty #17
01-02 03:04:05.678   612   612 I lowmemorykiller: Kill 'com.android.chrome' (3456), uid 10099, oom_score_adj 905 to free 1kB
01-02 03:04:05.678  1650  1705 I ActivityManager: Killing PhantomProcessRecord {1 777:700:ffmpeg/u0a7}: Trimming phantom processes
01-02 03:04:05.678  1650  1705 I ActivityManager: Force stopping com.other.app appid=10007 user=0: from pid 1
01-02 03:04:05.678  8888  8888 F libc    : Fatal signal 31 (SIGSYS), code 1 (SYS_SECCOMP), fault addr 0x0 in tid 8888 (thing), pid 8888 (thing)
"""


def evidence(**known: object) -> Evidence:
    return Evidence(pids=PIDS, package="org.pocketbuild.builder", **known)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LINES)
def test_a_cause_is_named_with_the_line_that_shows_it(name: str) -> None:
    line, cause = LINES[name]
    death = classify(evidence(logcat=NOISE + line + "\n" + NOISE))
    assert death == Death(cause, (line,))
    assert death.hint


def test_what_happened_to_others_is_no_evidence() -> None:
    assert classify(evidence(logcat=NOISE)) == Death(Cause.UNKNOWN)


@pytest.mark.parametrize(
    ("known", "cause"),
    [
        ({"has_rebooted": True, "boot_reason": "reboot,userrequested"}, Cause.REBOOT),
        ({"has_rebooted": True, "boot_reason": "shutdown,thermal,battery"}, Cause.REBOOT_HOT),
        ({"exit_code": 159}, Cause.BAD_SYSTEM_CALL),
        ({"exit_code": 137}, Cause.KILLED),
        ({"exit_code": 137, "logcat": LINES["lmkd, Android 10"][0]}, Cause.LOW_MEMORY),
        ({"exit_code": 1, "logcat": LINES["adbd"][0]}, Cause.UNKNOWN),
        ({"exit_code": 1, "log_tail": "java.io.IOException: No space left on device"}, Cause.STORAGE_FULL),
        ({"exit_code": 1, "storage_free_kb": 12}, Cause.STORAGE_FULL),
        ({"exit_code": 1, "log_tail": "> java.lang.OutOfMemoryError: Java heap space"}, Cause.HEAP),
        ({"exit_code": None}, Cause.UNKNOWN),
    ],
)
def test_exit_codes_boots_and_log_ends_name_causes(known: dict[str, object], cause: Cause) -> None:
    assert classify(evidence(**known)).cause is cause


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("reason=3 (LOW_MEMORY)", Cause.LOW_MEMORY),
        ("reason=10 (USER REQUESTED)", Cause.FORCE_STOP),
        ("reason=9 (EXCESSIVE RESOURCE USAGE)", Cause.PHANTOM),
        ("reason=4 (APP CRASH(EXCEPTION))", Cause.UNKNOWN),
    ],
)
def test_the_phones_record_of_exits_names_causes(reason: str, cause: Cause) -> None:
    report = f"""ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)
  package: org.pocketbuild.builder
    Historical Process Exit for uid=10123
        ApplicationExitInfo #0:
          timestamp=2026-05-10 12:01:01.123 pid=12345 realUid=10123 packageUid=10123 definingUid=10123 user=0
          process=org.pocketbuild.builder {reason} subreason=0 (UNKNOWN) status=0
          importance=400 pss=0.00 rss=0.00 description=null state=empty trace=null
"""
    assert classify(evidence(exit_info=report)).cause is cause
    assert classify(evidence(exit_info=report.replace("pid=12345", "pid=1"))).cause is Cause.UNKNOWN


def test_every_cause_comes_with_a_next_step() -> None:
    assert set(HINTS) == set(Cause)


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=300), st.none() | st.integers(0, 255))
def test_any_text_gives_an_answer(logcat: str, exit_info: str, log_tail: str, exit_code: int | None) -> None:
    known = {"logcat": logcat, "exit_info": exit_info, "log_tail": log_tail, "exit_code": exit_code}
    assert classify(evidence(**known)).cause in Cause
