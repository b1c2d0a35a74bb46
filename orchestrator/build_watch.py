"""Watch a build of the service: stages, tasks at work, how far it is, problems as they appear."""

from pathlib import Path, PurePosixPath

from agent.message import JsonObject
from agent.progress import BuildAdvanced, BuildProblemSeen, OnBuildProgress
from builder_bridge.build import BuildId
from builder_bridge.log.places import NOWHERE
from builder_bridge.log.reader import LogReader
from orchestrator.client import ApiClient, FeedEvent, Refused
from orchestrator.forecast import EarlierBuild, History, estimate, history_of

_LOOKED_AT_BUILDS, _MAX_HISTORY = 20, 3
_STATES = {"start": "queued", "scan": "receiving", "upload": "receiving", "unpack": "unpacking"}
_STATES |= {"gradle": "running", "collect": "collecting", "fetch": "collecting"}


class BuildWatch:
    """Turns the events of a build's feed into progress: stages, tasks at work, problems as they appear.

    With `workspace`, problems name its files as they are called here, not on the phone; with `history`,
    progress says how far the build is.
    """

    def __init__(
        self,
        build_id: BuildId,
        on_progress: OnBuildProgress,
        workspace: Path | None = None,
        history: History | None = None,
    ) -> None:
        self._build_id = build_id
        self._history = history
        self._begun: list[str] = []
        self._workspace = workspace
        self._on_progress = on_progress
        self._reader = LogReader()
        self._state: tuple[str, str | None] | None = None
        self._rest = ""

    async def see(self, event: FeedEvent) -> None:
        """Tell what an event adds."""
        match event.name:
            case "state" if event.data["state"] != "finished":
                state = _STATES.get(event.data["stage"], "queued"), event.data["reason"]
                if state != self._state:
                    self._state = state
                    await self._on_progress(BuildAdvanced(self._build_id, state[0], detail=state[1]))
            case "log":
                await self._see_log(event.data["text"])
            case "attempt":
                self._reader, self._rest, self._begun = LogReader(), "", []
            case _:
                pass

    async def _see_log(self, text: str) -> None:
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()
        for line in lines:
            task = task_at_work(line)
            if task is not None:
                self._begun.append(task)
                guess = estimate(self._history, self._begun)
                percent, left_s = (guess.percent, guess.remaining_s) if guess else (None, None)
                await self._on_progress(
                    BuildAdvanced(self._build_id, "running", task, percent, remaining_s=left_s)
                )
        for problem in self._reader.feed(text.encode()):
            await self._on_progress(
                BuildProblemSeen(
                    self._build_id,
                    problem.severity.value,
                    problem.gist,
                    path_here(problem.file, self._workspace),
                    problem.line,
                )
            )


async def history_before(client: ApiClient, build: JsonObject) -> History | None:
    """Give what the latest green builds of the same project with the same tasks and arguments took.

    None where there are none; what cannot be read is left out.
    """
    page = await client.builds(project=build["project"], outcome="succeeded", limit=_LOOKED_AT_BUILDS)
    wish = ("tasks", "args")
    alike = [
        each
        for each in page["builds"]
        if each["id"] != build["id"] and all(each[key] == build[key] for key in wish)
    ]
    known: list[EarlierBuild] = []
    for each in alike[:_MAX_HISTORY]:
        try:
            events = await client.events(each["id"])
            run = (await client.build(each["id"]))["runs"][-1]
        except (Refused, IndexError):
            continue
        task_s = {task["path"]: task["duration_s"] or 0.0 for task in events["tasks"]}
        known.append(EarlierBuild(task_s, run["stage_s"].get("gradle", 0.0)))
    return history_of(known)


def path_here(file: str | None, workspace: Path | None) -> str | None:
    """Name a file of the phone as the workspace has it; one outside of its copy there stays as it is."""
    if file is None or workspace is None:
        return file
    parts = PurePosixPath(file).parts
    for start in range(1, len(parts)):
        inside = PurePosixPath(*parts[start:])
        if ".." not in inside.parts and (workspace / inside).is_file():
            return str(inside)
    return NOWHERE.to_workspace(file) or file


def task_at_work(line: str) -> str | None:
    """Give the Gradle task that a line of a console log names as begun, or None."""
    words = line.removeprefix("> Task ").split(" ")
    task = words[0].rstrip()
    is_task = task.startswith(":") and len(task) > 1 and not task.endswith(":")
    is_alone = line.startswith("> Task ") or len(words) == 1 or words[1].isupper()
    return task if is_task and is_alone else None
