"""Stops a hand-off that cannot end well, before any content is sent."""

from builder_bridge.build import BuildSpec
from builder_bridge.errors import ContractMismatch, StorageFull, WorkspaceFault
from builder_bridge.prefix.contract import Contract
from builder_bridge.workspace.preflight import Finding, Needs, check_project
from builder_bridge.workspace.project import project_texts
from builder_bridge.workspace.snapshot import Snapshot


def require_fit(contract: Contract, spec: BuildSpec, snapshot: Snapshot) -> tuple[Finding, ...]:
    """Compare a workspace with a contract; gives the notes that stop nothing. Blocking: it reads scripts.

    Raises `WorkspaceFault`, `ContractMismatch` or `StorageFull` with everything that stands in the way.
    """
    prefix = contract.prefix
    needs = Needs(
        gradle=prefix.gradle,
        agp=tuple(prefix.agp),
        platforms=tuple(prefix.platforms),
        has_ndk=prefix.ndk is not None,
        has_node=prefix.node is not None,
        has_git=prefix.git is not None,
    )
    paths = frozenset(file.path for file in snapshot.files)
    findings = check_project(paths, project_texts(snapshot), spec.project_dir, needs)
    fatal = [finding for finding in findings if finding.is_fatal]
    if fatal:
        told = "; ".join(str(finding) for finding in fatal)
        raise WorkspaceFault(told) if fatal[0].is_workspace else ContractMismatch(told)
    free_bytes = contract.device.storage_free_kb * 1024
    if 0 < free_bytes < snapshot.size_bytes:
        raise StorageFull(f"The workspace has {snapshot.size_bytes} bytes, the phone {free_bytes} left.")
    return tuple(findings)
