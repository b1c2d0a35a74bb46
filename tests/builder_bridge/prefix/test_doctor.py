"""The doctor names what is wrong with a prefix and what to do about it."""

from typing import Any

from builder_bridge.prefix.contract import Contract
from builder_bridge.prefix.doctor import diagnose


def contract(**known: Any) -> Contract:
    return Contract.model_validate({"pb": 1, "uid": 10123, "dir": "/x", **known})


def test_a_sound_prefix_has_no_complaints() -> None:
    device = {"abi": "arm64-v8a", "memory_available_kb": "4000000", "storage_free_kb": "90000000"}
    assert diagnose(contract(checks={"write": True}, device=device, prefix={"abi": "arm64-v8a"})) == ()


def test_what_makes_builds_impossible_comes_first_and_is_told_from_warnings() -> None:
    device = {"abi": "arm64-v8a", "memory_available_kb": "1000", "storage_free_kb": "1000"}
    complaints = diagnose(
        contract(checks={"exec": False, "new": False}, device=device, prefix={"abi": "x86_64"})
    )
    assert [(one.code, one.is_fatal) for one in complaints] == [
        ("exec", True), ("new", True), ("abi", True), ("low_storage", False), ("low_memory", False),
    ]  # fmt: skip
    assert all(one.advice for one in complaints)
