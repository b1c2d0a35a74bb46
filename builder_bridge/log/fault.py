"""Whose fault a failure is: the code's, the project's setup's, the phone's or the network's."""

import re
from collections.abc import Sequence

from builder_bridge.log.problem import Kind, Problem, Tool
from builder_bridge.log.verdict import Fault

_FAULTS = {
    Kind.COMPILE: Fault.YOUR_CODE,
    Kind.ANNOTATION_PROCESSING: Fault.YOUR_CODE,
    Kind.RESOURCE: Fault.YOUR_CODE,
    Kind.MANIFEST: Fault.YOUR_CODE,
    Kind.TEST: Fault.YOUR_CODE,
    Kind.LINT: Fault.YOUR_CODE,
    Kind.DEX: Fault.PROJECT_SETUP,
    Kind.SCRIPT: Fault.PROJECT_SETUP,
    Kind.PLUGIN: Fault.PROJECT_SETUP,
    Kind.DEPENDENCY: Fault.PROJECT_SETUP,
    Kind.TOOLCHAIN: Fault.PROJECT_SETUP,
    Kind.SIGNING: Fault.PROJECT_SETUP,
    Kind.OTHER: Fault.PROJECT_SETUP,
    Kind.OFFLINE_DEPENDENCY: Fault.NETWORK_OR_OFFLINE,
    Kind.MEMORY: Fault.THIS_PHONE,
    Kind.DISK: Fault.THIS_PHONE,
    Kind.DAEMON: Fault.THIS_PHONE,
}

_NETWORK = re.compile(
    r"UnknownHostException|Name or service not known|nodename nor servname"
    r"|No such host|[Tt]imed out|Connection (?:refused|reset)"
    r"|Connect to .* failed|Network is unreachable|Unable to resolve host"
    r"|status code (?:429|5\d\d)|PKIX|certification path|No address associated"
)
_CANNOT_RUN_HERE = re.compile(
    r"Daemon startup failed|Cannot run program|Failed to (?:start|load native)|No native library found"
    r"|UnsatisfiedLinkError|dlopen failed|native services|host (?:CPU )?architecture|Exec format"
    r"|cannot execute"
)


def fault_of(kind: Kind | None, problems: Sequence[Problem]) -> Fault | None:
    """Say whose fault a failure of this kind is; None for success and for a build that was cancelled."""
    if kind is None or kind is Kind.CANCELLED:
        return None
    text = "\n".join(problem.message for problem in problems)
    if kind in (Kind.DEPENDENCY, Kind.TOOLCHAIN, Kind.PLUGIN) and _NETWORK.search(text):
        return Fault.NETWORK_OR_OFFLINE
    if kind in (Kind.SDK, Kind.NATIVE):
        if _CANNOT_RUN_HERE.search(text):
            return Fault.THIS_PHONE
        is_code = any(problem.tool in (Tool.CLANG, Tool.CMAKE) for problem in problems)
        return Fault.YOUR_CODE if is_code else Fault.PROJECT_SETUP
    return _FAULTS[kind]
