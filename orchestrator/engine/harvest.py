"""After Gradle: result, whole log, artifacts and events come into the store, and are explained."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog
from anyio import to_thread

from builder_bridge.build import Artifact, BuildResult
from builder_bridge.errors import BridgeError
from orchestrator.engine import follow, handover
from orchestrator.engine.explanation import junit_of, make_explanation
from orchestrator.engine.handover import Assignment
from orchestrator.engine.phone import PhonePort
from orchestrator.engine.resources import EngineResources
from orchestrator.store import builds as build_store
from orchestrator.store.artifacts import sha256_of
from orchestrator.store.builds import Filter
from orchestrator.store.records import ArtifactRow, Outcome, Phase

log = structlog.get_logger(__name__)
JUNIT_NAME = "junit.xml"
"""The artifact that holds the results of all tests of a build."""

_STAGE_NAMES = {"unpacking": "unpack", "running": "gradle", "collecting": "collect"}
"""The phone names stages by its states; here they are named by what is done."""


async def collect(resources: EngineResources, build_id: str, run_id: str) -> dict[str, Any]:
    """Fetch everything that the run left; content that is stored already is not fetched again."""
    stores = resources.stores
    job = await handover.load(stores, build_id, run_id)
    await handover.mark(stores, build_id, "fetch")
    began_s = time.monotonic()

    async def get_result(port: PhonePort) -> BuildResult:
        return await port.result(job.run_id)

    result = await handover.with_patience(resources, job, get_result, "fetch")
    if not isinstance(result, BuildResult):
        return _given_up(result)
    if not await follow.heal_log(resources, job, result.log_sha256, result.log_size_bytes):
        return {"outcome": Outcome.LOST.value, "cause": "the log that came here is not the phone's"}
    await to_thread.run_sync(stores.logs.pack, run_id)
    limit = stores.settings.limits.artifact_bytes
    for artifact in result.artifacts:
        if artifact.size_bytes > limit:
            return {
                "outcome": Outcome.REFUSED.value,
                "cause": f"the artifact {artifact.path} has {artifact.size_bytes} bytes, {limit} are allowed",
                "hint": "Let the build make less, or raise `limits.artifact_bytes` in the settings.",
            }
        fault = await _fetch(resources, job, artifact)
        if fault is not None:
            return _given_up(fault)
    await _fetch_events(resources, job)
    if "reports" in result.facts:
        await _fetch_reports(resources, job, result)
    seconds = {_STAGE_NAMES.get(name, name): spent for name, spent in result.stage_s.items()}
    seconds["fetch"] = time.monotonic() - began_s
    await stores.database.run(lambda c: build_store.add_stage_s(c, run_id, seconds))
    collected = {
        "exit_code": result.exit_code,
        "log_sha256": result.log_sha256,
        "facts": dict(result.facts),
    }
    return {**collected, "cause": result.cause} if result.cause else collected


async def explain(
    resources: EngineResources, build_id: str, run_id: str, ended: dict[str, Any]
) -> dict[str, Any]:
    """Keep the digest of the log; what the phone could not say stands in it as the cause."""
    stores = resources.stores
    job = await handover.load(stores, build_id, run_id)
    began_s = time.monotonic()
    wanted = Filter(owner=job.build.owner, project=job.build.project, state=Phase.FINISHED.value, limit=1)
    earlier = await stores.database.run(lambda c: build_store.find(c, wanted))
    previous = None
    if earlier:
        before = await stores.database.run(lambda c: build_store.get_run(c, earlier[0].run_id))
        previous = None if before is None else before.digest
    made = await stores.database.run(lambda c: build_store.artifacts_of(c, build_id))
    digest, text = await to_thread.run_sync(
        make_explanation, stores, job.build, job.run, ended, previous, made
    )
    seconds = {"explain": time.monotonic() - began_s}
    await stores.database.run(
        lambda c: build_store.update_run(c, run_id, digest=digest, digest_text=text),
    )
    await stores.database.run(lambda c: build_store.add_stage_s(c, run_id, seconds))
    return {}


async def _fetch(resources: EngineResources, job: Assignment, artifact: Artifact) -> BridgeError | None:
    stores = resources.stores
    scratch = stores.scratch / f"{job.run.id}.{artifact.index}"

    async def fetch(port: PhonePort) -> Path:
        await port.fetch(job.run_id, artifact, scratch)
        return scratch

    while not await _noted(resources, job, artifact):
        try:
            fetched = await handover.with_patience(resources, job, fetch, "fetch")
            if not isinstance(fetched, Path):
                return fetched
            if await to_thread.run_sync(sha256_of, scratch) != artifact.sha256:
                raise OSError(f"{artifact.path} changed on its way into the store")
            await stores.artifacts.put(scratch, artifact.sha256)
        finally:
            scratch.unlink(missing_ok=True)
    return None


async def _noted(resources: EngineResources, job: Assignment, artifact: Artifact) -> bool:
    """Note an artifact whose content is in the store; say whether it is there."""
    row = ArtifactRow(
        build_id=job.build.id,
        number=artifact.index,
        run_id=job.run.id,
        path=artifact.path,
        kind=artifact.kind,
        variant=artifact.variant,
        size_bytes=artifact.size_bytes,
        sha256=artifact.sha256,
    )
    stores = resources.stores
    async with stores.artifacts.settling:
        if await stores.artifacts.size_bytes(artifact.sha256) is None:
            return False
        await stores.database.run(lambda c: build_store.add_artifact(c, row))
    log.info("artifact.stored", path=artifact.path, size_bytes=artifact.size_bytes)
    return True


async def _fetch_events(resources: EngineResources, job: Assignment) -> None:
    """Fetch what Gradle noted of its tasks; a build is not given up for want of it."""
    logs = resources.stores.logs
    if await to_thread.run_sync(logs.events, job.run.id) is not None:
        return

    async def get_events(port: PhonePort) -> bytes:
        return await port.events(job.run_id)

    events = await handover.with_patience(resources, job, get_events, "fetch")
    if isinstance(events, bytes):
        await to_thread.run_sync(logs.put_events, job.run.id, events)
    elif events is not None:
        log.warning("events.not_fetched", serial=job.run.phone, code=events.code, fault=str(events))


async def _fetch_reports(resources: EngineResources, job: Assignment, result: BuildResult) -> None:
    """Fetch what the tasks reported, and make of the tests' results one artifact more."""
    logs = resources.stores.logs
    if not await to_thread.run_sync(logs.has_reports, job.run.id):

        async def get_reports(port: PhonePort) -> Mapping[str, bytes]:
            return await port.reports(job.run_id)

        reports = await handover.with_patience(resources, job, get_reports, "fetch")
        if reports is None or isinstance(reports, BridgeError):
            code = None if reports is None else reports.code
            log.warning("reports.not_fetched", serial=job.run.phone, code=code, fault=str(reports))
            return
        await to_thread.run_sync(logs.put_reports, job.run.id, reports)
    junit = await to_thread.run_sync(junit_of, logs.reports(job.run.id), job.build.project)
    if junit is None:
        return
    scratch = resources.stores.scratch / f"{job.run.id}.junit"
    try:
        await to_thread.run_sync(scratch.write_bytes, junit)
        sha256 = await to_thread.run_sync(sha256_of, scratch)
        number = max((artifact.index for artifact in result.artifacts), default=-1) + 1
        made = Artifact(number, JUNIT_NAME, "junit", len(junit), sha256)
        while not await _noted(resources, job, made):
            await resources.stores.artifacts.put(scratch, sha256)
    finally:
        scratch.unlink(missing_ok=True)


def _given_up(fault: BridgeError | None) -> dict[str, Any]:
    if fault is None:
        raise RuntimeError("a fetch was given up without a fault")
    # Gradle has ended: nothing is alive on the phone, so it needs no fence.
    return {**handover.given_up(fault), "fence": False}
