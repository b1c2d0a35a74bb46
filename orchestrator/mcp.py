"""The MCP door: builds and agent runs as tools for any agent that speaks the Model Context Protocol.

Each tool is a few requests to the service's own HTTP API with the caller's own token, so an MCP
client may do exactly what its token may do. A tool that waits tells of progress and hands back the
build's id before a usual client gives up; the build itself never depends on the wait.
"""

import time
from contextlib import AbstractAsyncContextManager
from inspect import getdoc
from pathlib import Path
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer

from orchestrator.builder import choose_artifact, inspect_file, seconds_between
from orchestrator.client import JsonObject, Refused
from orchestrator.mcp_agent import AgentDoor
from orchestrator.mcp_answers import BuildStatus, Inspection, LogMatches, LogPart, Phones
from orchestrator.mcp_calls import DEFAULT_WAIT_S, MAX_WAIT_S, STEP_S, Door, OpenDoor, TellingFaults

INSTRUCTIONS = (
    "Builds Android projects with Gradle on a phone, offline. Call build_gradle_project with the folder of "
    "the project; read its digest first, and the log only where the digest is not enough. A build takes from "
    "ten seconds to many minutes; if the answer says that it is still running, call wait_build with its id. "
    "The same content is never built twice: asking again gives the earlier answer at once. "
    "run_agent hands a whole task in a project to an agent of its own, which takes minutes and costs money."
)


class BuildDoor:
    """The tools; one instance serves all callers."""

    def __init__(self, open_door: OpenDoor) -> None:
        self._open_door = open_door

    async def build_gradle_project(
        self,
        workspace: str,
        context: Context[Any, Any],
        tasks: list[str] | None = None,
        args: list[str] | None = None,
        clean: bool = False,
        phone: str | None = None,
        force: bool = False,
        wait_s: float = DEFAULT_WAIT_S,
    ) -> BuildStatus:
        """Build a folder with Gradle on a phone, offline; returns a digest of causes, or the artifacts.

        Costs 10 seconds to many minutes of a phone, nothing where this very content was built before.
        `workspace` is an absolute path; `tasks` are Gradle task paths, by default assembleDebug, and a
        single compile task is much cheaper. Waits up to `wait_s` seconds, then hands back the id.
        """
        wish: JsonObject = {"tasks": tasks or ["assembleDebug"], "args": args or [], "clean": clean}
        wish |= {"force": force} | ({"phone": phone} if phone else {})
        async with self._door(context) as door:
            accepted = await door.submit(workspace, wish)
            is_from_earlier = accepted["is_joined"] and accepted["state"] == "finished"
            return await _waited(door, context, accepted["id"], wait_s, is_from_earlier)

    async def get_build(self, build_id: str, context: Context[Any, Any]) -> BuildStatus:
        """Say how a build is now; costs nothing and returns at once."""
        async with self._door(context) as door:
            return await _status(door, await door.client.build(build_id))

    async def wait_build(
        self, build_id: str, context: Context[Any, Any], wait_s: float = DEFAULT_WAIT_S
    ) -> BuildStatus:
        """Wait for a build to end, up to `wait_s` seconds, and give its digest; costs nothing but time."""
        async with self._door(context) as door:
            return await _waited(door, context, build_id, wait_s)

    async def cancel_build(self, build_id: str, context: Context[Any, Any]) -> BuildStatus:
        """End a build; returns within seconds, the phone is free soon after."""
        async with self._door(context) as door:
            await door.client.cancel(build_id)
            return await _status(door, await door.client.build(build_id, wait_s=3.0))

    async def read_build_log(
        self, build_id: str, context: Context[Any, Any], first_line: int = -100, line_count: int = 100
    ) -> LogPart:
        """Read lines of a build's log, counted from one; negative counts from the end. Quick and free."""
        async with self._door(context) as door:
            first = first_line if first_line < 0 else max(0, first_line - 1)
            found = await door.client.log_lines(build_id, first, max(1, min(line_count, 1000)))
            return _part(found)

    async def search_build_log(
        self,
        build_id: str,
        pattern: str,
        context: Context[Any, Any],
        context_lines: int = 2,
        max_hits: int = 20,
    ) -> LogMatches:
        """Find a regular expression (RE2) in a build's log, with lines around each hit. Quick and free."""
        around = max(0, min(context_lines, 20))
        async with self._door(context) as door:
            found = await door.client.search_log(build_id, pattern, max(1, min(max_hits, 100)))
            places = []
            for line in found["lines"]:
                first = max(0, line - around)
                places.append(_part(await door.client.log_lines(build_id, first, line - first + around + 1)))
            return LogMatches(places=places, hits=found["hits"], total_lines=found["total"])

    async def list_phones(self, context: Context[Any, Any]) -> Phones:
        """List the phones with what they offer (JDK, Gradle, SDK platforms), health and load. Quick."""
        async with self._door(context) as door:
            return Phones(phones=await door.client.phones())

    async def inspect_artifact(
        self, build_id: str, context: Context[Any, Any], path: str | None = None
    ) -> Inspection:
        """Say what an APK, AAB or AAR of a build holds: package, version, signer, size. Takes a second."""
        async with self._door(context) as door:
            build = await door.client.build(build_id)
            chosen = choose_artifact(build["artifacts"], path)
            async with anyio.TemporaryDirectory() as folder:
                file = Path(folder) / chosen["path"].rpartition("/")[2]
                await door.client.download(f"/v1/builds/{build_id}/artifacts/{chosen['number']}", file)
                return Inspection(
                    path=chosen["path"], facts=await anyio.to_thread.run_sync(inspect_file, file)
                )

    async def read_log_resource(self, build_id: str, context: Context[Any, Any]) -> str:
        """The last 2,000 lines of a build's log."""
        async with self._door(context) as door:
            return "\n".join((await door.client.log_lines(build_id, -2000, 2000))["lines"])

    async def read_digest_resource(self, build_id: str, context: Context[Any, Any]) -> str:
        """What should be read first of a build."""
        async with self._door(context) as door:
            return str((await door.client.digest(build_id))["text"])

    def _door(self, context: Context[Any, Any]) -> AbstractAsyncContextManager[Door]:
        return TellingFaults(self._open_door(context))


def make_mcp_server(open_door: OpenDoor, version: str) -> MCPServer[Any]:
    """Make a server with all tools and resources; each caller comes through a door of its own."""
    server: MCPServer[Any] = MCPServer(
        "pocketbuild", title="Pocketbuild", instructions=INSTRUCTIONS, version=version
    )
    door, agents = BuildDoor(open_door), AgentDoor(open_door)
    for tool in (
        door.build_gradle_project,
        door.get_build,
        door.wait_build,
        door.cancel_build,
        door.read_build_log,
        door.search_build_log,
        door.list_phones,
        door.inspect_artifact,
        agents.run_agent,
        agents.get_agent_run,
        agents.wait_agent_run,
        agents.answer_approval,
        agents.resume_agent_run,
        agents.cancel_agent_run,
    ):
        server.add_tool(tool, description=getdoc(tool))
    server.resource("pocketbuild://builds/{build_id}/log", mime_type="text/plain")(door.read_log_resource)
    server.resource("pocketbuild://builds/{build_id}/digest", mime_type="text/plain")(
        door.read_digest_resource
    )
    return server


async def _waited(
    door: Door,
    context: Context[Any, Any],
    build_id: str,
    wait_s: float,
    is_from_earlier: bool = False,
) -> BuildStatus:
    deadline_s = time.monotonic() + max(0.0, min(wait_s, MAX_WAIT_S))
    began_s, steps = time.monotonic(), 0
    while True:
        left_s = deadline_s - time.monotonic()
        build = await door.client.build(build_id, wait_s=max(0.0, min(STEP_S, left_s)))
        if build["state"] == "finished" or left_s <= 0:
            return await _status(door, build, is_from_earlier)
        steps += 1
        spent = time.monotonic() - began_s
        await context.report_progress(steps, message=f"{build['state']}: {build['stage']}, {spent:.0f} s")


async def _status(door: Door, build: JsonObject, is_from_earlier: bool = False) -> BuildStatus:
    is_over = build["state"] == "finished"
    return BuildStatus(
        build_id=build["id"],
        state=build["state"],
        stage=build["stage"],
        outcome=build["outcome"],
        seconds=seconds_between(build["created"], build["finished"]) if is_over else None,
        reason=build["reason"] or build["cause"],
        digest=await _digest(door, build) if is_over else None,
        artifacts=[artifact["path"] for artifact in build["artifacts"]],
        is_from_earlier=is_from_earlier,
        next_step=_next_step(build),
    )


async def _digest(door: Door, build: JsonObject) -> str:
    try:
        return str((await door.client.digest(build["id"]))["text"])
    except Refused as refusal:
        if refusal.reason_code != "no_digest":
            raise
        return f"build {build['id']} was {build['outcome']}: {build['cause']}"


def _next_step(build: JsonObject) -> str:
    if build["state"] != "finished":
        return f"call wait_build with build_id {build['id']}"
    steps = {
        "succeeded": "nothing: the build is green",
        "failed": "mend what the digest names first, then build again",
    }
    return steps.get(build["outcome"], "read the digest; the project itself may be fine")


def _part(found: JsonObject) -> LogPart:
    return LogPart(first_line=found["first"] + 1, lines=found["lines"], total_lines=found["total"])
