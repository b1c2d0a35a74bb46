"""Gradle's settings follow the phone's memory and the prefix's Gradle."""

import re

import pytest

from builder_bridge.prefix.contract import Contract
from builder_bridge.prefix.settings import gradle_settings, version_of

GIB = 1 << 20


def contract(
    memory_kb: int, available_kb: int, gradle: str = "8.14.3", cores: int = 8, **prefix: object
) -> Contract:
    device = {"memory_kb": str(memory_kb), "memory_available_kb": str(available_kb), "cores": cores}
    document = {"pb": 1, "uid": 10123, "dir": "/data/data/x/files/usr", "domain": "u:r:runas_app:s0"}
    return Contract.model_validate({**document, "device": device, "prefix": {"gradle": gradle, **prefix}})


@pytest.mark.parametrize(
    ("memory_kb", "heap", "workers", "has_serial_gc"),
    [(3 * GIB, "-Xmx1013m", 2, True), (4 * GIB, "-Xmx1433m", 3, False), (8 * GIB, "-Xmx3276m", 4, False),
     (24 * GIB, "-Xmx4096m", 4, False)],
)  # fmt: skip
def test_heap_and_workers_follow_the_memory(
    memory_kb: int, heap: str, workers: int, has_serial_gc: bool
) -> None:
    args = gradle_settings(contract(memory_kb, memory_kb)).args
    jvm = next(arg for arg in args if arg.startswith("-Dorg.gradle.jvmargs=")).split()
    assert heap in jvm[0]
    assert ("-XX:+UseSerialGC" in jvm) == has_serial_gc
    assert "-XX:-UseContainerSupport" in jvm
    assert f"--max-workers={workers}" in args


def test_a_daemon_stays_only_where_memory_is_left_for_others() -> None:
    roomy, tight = contract(8 * GIB, 6 * GIB), contract(8 * GIB, 3 * GIB)
    assert "--daemon" in gradle_settings(roomy).args
    assert "--no-daemon" in gradle_settings(tight).args
    assert gradle_settings(tight).facts["daemon"] == "none"
    assert "--no-daemon" in gradle_settings(roomy, has_daemon=False).args
    assert "--daemon" in gradle_settings(tight, has_daemon=True).args


@pytest.mark.parametrize(
    ("gradle", "has_it"), [("4.4.1", False), ("6.5", False), ("8.14.3", True), ("9.7.1", True)]
)
def test_arguments_that_an_old_gradle_does_not_know_are_left_out(gradle: str, has_it: bool) -> None:
    assert ("--no-watch-fs" in gradle_settings(contract(8 * GIB, 0, gradle)).args) == has_it


def test_a_prefix_without_native_parts_says_so_to_gradle() -> None:
    assert "-Dorg.gradle.native=false" in gradle_settings(contract(GIB, 0, gradle_native=False)).args
    assert "-Dorg.gradle.native=false" not in gradle_settings(contract(GIB, 0)).args


@pytest.mark.parametrize(
    ("text", "version"), [("9", (9, 0)), ("8.14.3", (8, 14)), (None, (0, 0)), ("odd", (0, 0))]
)
def test_versions_are_read_out_of_text(text: str | None, version: tuple[int, int]) -> None:
    assert version_of(text) == version


def test_a_contract_with_odd_types_is_still_a_contract() -> None:
    document = {
        "pb": 1,
        "uid": 0,
        "dir": "/x",
        "prefix": {"platforms": [23, "34"], "agp": "8.1", "ndk": None, "jdk": 21},
    }
    prefix = Contract.model_validate(document).prefix
    assert (prefix.platforms, prefix.agp, prefix.ndk, prefix.jdk) == (["23", "34"], ["8.1"], None, "21")


@pytest.mark.parametrize(
    ("jdk", "has_daemon", "has_client"),
    [
        ("21.0.5", True, True),
        ("21", True, True),
        ("17.0.9", True, False),
        (None, True, False),
        ("21", False, False),
    ],
)
def test_only_a_client_beside_a_daemon_starts_from_prepared_classes(
    jdk: str | None, has_daemon: bool, has_client: bool
) -> None:
    assert (gradle_settings(contract(8 * GIB, 0, jdk=jdk), has_daemon).client is not None) == has_client


def test_another_gradle_or_jdk_has_other_prepared_classes() -> None:
    clients = [
        gradle_settings(contract(GIB, 0, gradle, jdk=jdk, id=prefix), has_daemon=True).client
        for gradle, jdk, prefix in (
            ("9.6", "21", "a"),
            ("9.7", "21", "a"),
            ("9.6", "22", "a"),
            ("9.6", "21", "b"),
        )
    ]
    assert len(set(clients)) == len(clients)
    assert re.fullmatch(r"[0-9a-f]{16}", clients[0] or "")
