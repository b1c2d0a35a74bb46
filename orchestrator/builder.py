"""The agent's builder: every build of an agent is a durable build of the service, asked for by HTTP."""

from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import anyio
from anyio import to_thread

from agent.message import JsonObject
from agent.progress import OnBuildProgress
from agent.tools.build import BuildOutcome, BuildReport, LogHits, LogLines, PhoneStatus
from builder_bridge.build import Artifact, BuildId, BuildSpec
from builder_bridge.errors import WorkspaceFault
from builder_bridge.inspect.package import PackageFault
from builder_bridge.inspect.reader import inspect_package
from builder_bridge.inspect.rendering import package_to_json
from builder_bridge.workspace.scan import scan
from orchestrator.build_watch import BuildWatch, history_before
from orchestrator.client import ApiClient, Refused

_OUTCOMES = {
    "succeeded": BuildOutcome.GREEN,
    "failed": BuildOutcome.FAILED,
    "cancelled": BuildOutcome.CANCELLED,
    "timed_out": BuildOutcome.CANCELLED,
    "lost": BuildOutcome.LOST,
    "refused": BuildOutcome.REFUSED,
}
PACKAGE_KINDS = frozenset({"apk", "aab", "aar"})


class ServiceBuilder:
    """Builds through one service.

    `phone` pins every build to one phone, `route` to a way to the prefix, `priority` is their class.
    `secrets` is the part of a wish that gives every build its secrets; no answer ever holds them.
    """

    def __init__(
        self,
        client: ApiClient,
        phone: str | None = None,
        priority: str = "normal",
        route: str | None = None,
        secrets: JsonObject | None = None,
    ) -> None:
        self._client = client
        pinned = {"phone": phone, "route": route}
        self._wish: JsonObject = {"priority": priority, **{k: v for k, v in pinned.items() if v}}
        self._wish |= secrets or {}
        self._joined: set[str] = set()
        self._workspaces: dict[str, Path] = {}

    async def fingerprint(self, workspace: Path) -> str:
        """Name the present state of the workspace."""
        return (await to_thread.run_sync(scan, workspace)).fingerprint

    async def submit(self, workspace: Path, spec: BuildSpec) -> BuildId:
        """Hand the present state over; the same state and spec give the same build."""
        wish = {**self._wish, **wish_of(spec)}
        return self.took(await self._client.submit_workspace(workspace, wish), workspace)

    def took(self, accepted: JsonObject, workspace: Path) -> BuildId:
        """Remember what the service answered to a wish; give the build's id."""
        if accepted["is_joined"] and accepted["state"] == "finished":
            self._joined.add(accepted["id"])
        self._workspaces[accepted["id"]] = workspace
        return BuildId(accepted["id"])

    async def wait(self, build_id: BuildId, on_progress: OnBuildProgress) -> BuildReport:
        """Tell of a build until it ends and give its report; may be called again at any time."""
        history = await history_before(self._client, await self._client.build(build_id))
        watch = BuildWatch(build_id, on_progress, self._workspaces.get(build_id), history)
        async for event in self._client.follow(build_id):
            await watch.see(event)
        return await self._report(build_id)

    async def cancel(self, build_id: BuildId) -> None:
        """Ask for the end of a build."""
        await self._client.cancel(build_id)

    async def read_log(self, build_id: BuildId, first_line: int, line_count: int) -> LogLines:
        """Give lines of the log, counted from one; a negative `first_line` counts from the end."""
        first = first_line if first_line < 0 else max(0, first_line - 1)
        found = await self._client.log_lines(build_id, first, line_count)
        return LogLines(found["first"] + 1, tuple(found["lines"]), found["total"])

    async def search_log(self, build_id: BuildId, pattern: str, context_lines: int, max_hits: int) -> LogHits:
        """Find a regular expression (RE2 syntax) in the log, with lines around each hit."""
        found = await self._client.search_log(build_id, pattern, max_hits)
        places = []
        for number in found["lines"]:
            first = max(0, number - context_lines)
            around = await self._client.log_lines(build_id, first, number - first + context_lines + 1)
            places.append(LogLines(around["first"] + 1, tuple(around["lines"]), found["total"]))
        return LogHits(tuple(places), found["hits"], found["total"])

    async def inspect_artifact(self, build_id: BuildId, path: str | None) -> JsonObject:
        """Say what an artifact holds; `path` may be None where the build made just one."""
        build = await self._client.build(build_id)
        chosen = choose_artifact(build["artifacts"], path)
        async with anyio.TemporaryDirectory() as folder:
            file = Path(folder) / PurePosixPath(chosen["path"]).name
            await self._client.download(f"/v1/builds/{build_id}/artifacts/{chosen['number']}", file)
            return await to_thread.run_sync(inspect_file, file)

    async def phones(self) -> tuple[PhoneStatus, ...]:
        """Give the phones that could build, each with its state."""
        return tuple(_phone_status(phone) for phone in await self._client.phones())

    async def _report(self, build_id: BuildId) -> BuildReport:
        build = await self._client.build(build_id)
        outcome = _OUTCOMES[build["outcome"]]
        run = build["runs"][-1] if build["runs"] else None
        try:
            digest = await self._client.digest(build_id)
            text, document = str(digest["text"]), dict(digest["digest"])
        except Refused as refusal:
            if refusal.reason_code != "no_digest":
                raise
            hint = f" {build['reason']}" if build["reason"] else ""
            text, document = f"build {build_id} was {build['outcome']}: {build['cause']}.{hint}", {}
        lines = await self._client.log_lines(build_id, -1, 1)
        return BuildReport(
            build_id=build_id,
            outcome=outcome,
            fingerprint=build["workspace"],
            digest_text=text,
            digest=document,
            artifacts=tuple(artifact_of(each) for each in build["artifacts"]),
            seconds=seconds_between(build["created"], build["finished"]),
            phone_s=0.0 if run is None else seconds_between(run["created"], run["finished"]),
            log_lines=lines["total"],
            is_from_earlier=build_id in self._joined,
        )


def wish_of(spec: BuildSpec) -> JsonObject:
    """Write a spec as the API takes it."""
    return {
        "tasks": list(spec.tasks),
        "args": list(spec.args),
        "clean": spec.clean,
        "project_dir": spec.project_dir,
        "deadline_s": spec.deadline_s,
    }


def choose_artifact(artifacts: list[JsonObject], path: str | None) -> JsonObject:
    """Pick an artifact by its path or the end of it, without one the only package that was made.

    Raises `WorkspaceFault` that names what there is.
    """
    named = [
        each
        for each in artifacts
        if (each["kind"] in PACKAGE_KINDS if path is None else each["path"].endswith(path))
    ]
    if len(named) == 1:
        return named[0]
    known = ", ".join(each["path"] for each in artifacts) or "none"
    called = "artifacts are packages" if path is None else f"artifacts are called {path}"
    raise WorkspaceFault(
        f"{len(named)} {called}; the build made: {known}",
        hint="Name one of them by its path.",
    )


def artifact_of(reply: JsonObject) -> Artifact:
    """Read an artifact from a reply of the API."""
    return Artifact(
        index=reply["number"],
        path=reply["path"],
        kind=reply["kind"],
        size_bytes=reply["size_bytes"],
        sha256=reply["sha256"],
        variant=reply["variant"],
    )


def seconds_between(start: str | None, end: str | None) -> float:
    """Give the seconds between two times as the API writes them, 0 where one is missing."""
    if start is None or end is None:
        return 0.0
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _phone_status(phone: dict[str, Any]) -> PhoneStatus:
    state = "busy" if phone["is_busy"] else phone["state"]
    details = {"contract": phone["contract"], "health": phone["health"], "reason": phone["reason"]}
    return PhoneStatus(phone["serial"] or phone["address"], state, phone["route"], details)


def inspect_file(file: Path) -> JsonObject:
    """Say what an artifact on this host holds; raises `WorkspaceFault` for what is no package. Blocking."""
    try:
        return package_to_json(inspect_package(file))
    except PackageFault as fault:
        raise WorkspaceFault(str(fault), hint="Only APK, AAB and AAR files can be inspected.") from fault
