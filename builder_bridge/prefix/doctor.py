"""Says what is wrong with a prefix on a phone, from its contract. Pure."""

from dataclasses import dataclass

from builder_bridge.prefix.contract import Contract

_ADVICE = {
    "write": "The runner cannot write in its own folder: is the storage full, or the owner another?",
    "exec": "Programs in the prefix may not run: a companion app needs targetSdk 28, or take route run_as.",
    "link": "Symbolic links are refused: the prefix must not lie on shared storage.",
    "lock": "Files cannot be locked: the prefix must not lie on shared storage.",
    "detach": "The phone lacks setsid, env or flock, which a detached build needs.",
    "unzip": "The prefix has no unzip; it must bring Info-ZIP's.",
    "gradle": "The prefix has no bin/gradle.",
    "java": "The prefix has no bin/java.",
}
LOW_STORAGE_KB = 2 << 20
LOW_MEMORY_KB = 1 << 20


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something wrong: its code, what to do, and whether builds cannot work at all."""

    code: str
    advice: str
    is_fatal: bool


def diagnose(contract: Contract) -> tuple[Complaint, ...]:
    """Give what is wrong, what makes builds impossible first; nothing where all is well."""
    found = [
        Complaint(name, _ADVICE.get(name, f"The check {name} of the runner fails."), is_fatal=True)
        for name, passed in contract.checks.items()
        if not passed
    ]
    device, prefix = contract.device, contract.prefix
    if prefix.abi and device.abi and prefix.abi != device.abi:
        advice = f"The prefix is made for {prefix.abi}, the phone is {device.abi}: install another prefix."
        found.append(Complaint("abi", advice, is_fatal=True))
    if 0 < device.storage_free_kb < LOW_STORAGE_KB:
        advice = f"Only {device.storage_free_kb >> 10} MiB of storage are free; builds want 2 GiB."
        found.append(Complaint("low_storage", advice, is_fatal=False))
    if 0 < device.memory_available_kb < LOW_MEMORY_KB:
        advice = f"Only {device.memory_available_kb >> 10} MiB of memory are available: close other apps."
        found.append(Complaint("low_memory", advice, is_fatal=False))
    return tuple(found)
