"""The tools around builds: build, read and search the log, look into artifacts, ask for the phones."""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import Field
from pydantic_core import to_json

from agent.budget import Spent
from agent.compact import BUILD_TOOL
from agent.errors import ToolFault
from agent.message import JsonObject
from agent.progress import BuildEnded, BuildSubmitted, OnProgress
from agent.repeat import BuildTrend
from agent.tools.build import Builder, BuildId, BuildOutcome, BuildReport, BuildSpec, LogLines
from agent.tools.tool import AnyTool, Arguments, CallContext, Effect, Output, Tool

_CLOSED_ARGUMENTS = (
    "-I", "--init-script", "-b", "--build-file", "-c", "--settings-file", "-p", "--project-dir",
    "-g", "--gradle-user-home", "--project-cache-dir", "--include-build", "-Dorg.gradle.java.home",
)  # fmt: skip
_MAX_LOG_LINES = 400
_MAKES = re.compile(r"(assemble|bundle|install|package)\w*|build(Needed|Dependents)?|jar|war|dist(Zip|Tar)")
_SKIPS = ("-m", "--dry-run", "-x", "--exclude-task")


class BuildGradleProject(Arguments):
    """Arguments of `build_gradle_project`."""

    tasks: tuple[str, ...] = Field(
        default=(),
        description="Gradle task paths; default is assemble of the variant. A compile task is cheaper.",
    )
    variant: str | None = Field(default=None, description="Build variant, e.g. debug or freeRelease.")
    clean: bool = Field(default=False, description="Throw away what earlier builds made; rarely needed.")
    args: tuple[str, ...] = Field(
        default=(), description="Further Gradle arguments, each beginning with a dash."
    )
    skip_syntax_check: bool = Field(
        default=False, description="Build although a changed file does not parse here; only if you are sure."
    )


class ReadBuildLog(Arguments):
    """Arguments of `read_build_log`."""

    first_line: int = Field(default=-100, description="Counts from one; negative counts from the end.")
    line_count: int = Field(default=100, ge=1, le=_MAX_LOG_LINES)
    build_id: str | None = Field(default=None, description="Default is the latest build of this run.")


class SearchBuildLog(Arguments):
    """Arguments of `search_build_log`."""

    pattern: str = Field(min_length=1, description="Regular expression, RE2 syntax.")
    context_lines: int = Field(default=2, ge=0, le=20)
    max_hits: int = Field(default=20, ge=1, le=100)
    build_id: str | None = Field(default=None, description="Default is the latest build of this run.")


class InspectArtifact(Arguments):
    """Arguments of `inspect_artifact`."""

    path: str | None = Field(default=None, description="Which artifact, if the build made several.")
    build_id: str | None = Field(default=None, description="Default is the latest build of this run.")


class PhoneStatusArguments(Arguments):
    """Arguments of `phone_status`."""


@dataclass(slots=True)
class BuildDesk:
    """What a run remembers of its builds; small enough to stand in the transcript with each result.

    `green_fingerprint` names the state that was last built to its product without failure. `changed` says
    whether the run has changed files at all.
    """

    builder: Builder
    workspace: Path
    find_syntax_faults: Callable[[], list[str]] = field(default=list)
    exhausted: Callable[[], str | None] = field(default=lambda: None)
    latest_build_id: str | None = None
    latest_spec: JsonObject | None = None
    green_fingerprint: str | None = None
    changed: bool = False
    failed_checks: int = 0
    longest_build_s: float = 0.0
    trend: BuildTrend = field(default_factory=BuildTrend)

    def to_memory(self) -> JsonObject:
        """Give what a later process needs to know."""
        return {
            "latest_build_id": self.latest_build_id,
            "latest_spec": self.latest_spec,
            "green_fingerprint": self.green_fingerprint,
            "changed": self.changed,
            "failed_checks": self.failed_checks,
            "longest_build_s": self.longest_build_s,
            "trend": self.trend.to_memory(),
        }

    def recall(self, memory: JsonObject) -> None:
        """Take over what an earlier process knew."""
        self.latest_build_id = memory["latest_build_id"]
        self.latest_spec = memory["latest_spec"]
        self.green_fingerprint = memory["green_fingerprint"]
        self.changed = memory["changed"]
        self.failed_checks = memory["failed_checks"]
        self.longest_build_s = memory.get("longest_build_s", 0.0)
        self.trend = BuildTrend.from_memory(memory["trend"])

    async def is_green(self) -> bool:
        """Say whether exactly the present state of the workspace has been built without failure."""
        return self.green_fingerprint == await self.builder.fingerprint(self.workspace)

    async def build(
        self,
        spec: BuildSpec,
        on_progress: OnProgress,
        *,
        build_id: str | None = None,
        note: Callable[[str], None],
    ) -> BuildReport:
        """Build and wait for the end; with `build_id` only wait, for that build was handed over before."""
        if build_id is None:
            build_id = await self.builder.submit(self.workspace, spec)
            note(build_id)
        await on_progress(BuildSubmitted(build_id))
        report = await self.builder.wait(BuildId(build_id), on_progress)
        self.latest_build_id = report.build_id
        self.longest_build_s = max(self.longest_build_s, report.phone_s)
        self.latest_spec = asdict(spec)
        is_green = report.outcome is BuildOutcome.GREEN
        if is_green and makes_product(spec):
            self.green_fingerprint = report.fingerprint
        if is_green or report.outcome is BuildOutcome.FAILED:
            self.trend.note(report.fingerprint, is_green, report.digest)
        await on_progress(BuildEnded(report.build_id, report.outcome, report.seconds, report.is_from_earlier))
        return report

    def spec_for_check(self) -> BuildSpec:
        """Give what the final check builds: what the run built last, or the debug variant."""
        if self.latest_spec is None:
            return BuildSpec()
        lists = {name: tuple(self.latest_spec[name]) for name in ("tasks", "args")}
        latest = BuildSpec(**{**self.latest_spec, **lists, "clean": False})
        return latest if makes_product(latest) else BuildSpec()


def makes_product(spec: BuildSpec) -> bool:
    """Say whether a build makes what the project is for: compiling alone, or a report, proves less."""
    return not any(argument.startswith(_SKIPS) for argument in spec.args) and any(
        _MAKES.fullmatch(task.rpartition(":")[2]) for task in spec.tasks
    )


def spent_on(report: BuildReport) -> Spent:
    """Give what a build cost; an answer from an earlier build costs none."""
    is_new = not report.is_from_earlier and report.outcome is not BuildOutcome.REFUSED
    return Spent(builds=int(is_new), phone_s=report.phone_s)


class BuildTools:
    """The tools over one build desk."""

    def __init__(self, desk: BuildDesk) -> None:
        self._desk = desk

    def tools(self) -> tuple[AnyTool, ...]:
        """Give the tools as the loop takes them."""
        return (
            Tool(BUILD_TOOL,
                 "Build the present state of the workspace with Gradle on the phone, offline. Returns when "
                 "the build has ended, with a digest of what went wrong by cause, or the artifacts.",
                 BuildGradleProject, Effect.BUILDS, self.build, lambda a: " ".join(_spec(a).tasks)),
            Tool("read_build_log",
                 "Read lines of a build's whole log, where the digest is not enough.",
                 ReadBuildLog, Effect.READS, self.read_log, lambda a: f"from line {a.first_line}"),
            Tool("search_build_log",
                 "Find a regular expression in a build's log, with lines around each hit.",
                 SearchBuildLog, Effect.READS, self.search_log, lambda a: f"/{a.pattern}/"),
            Tool("inspect_artifact",
                 "Say what an APK, AAB or AAR of a build holds: package, version, signer, size.",
                 InspectArtifact, Effect.READS, self.inspect, lambda a: a.path or "the artifact"),
            Tool("phone_status",
                 "Say which phones can build, and their battery, heat and storage.",
                 PhoneStatusArguments, Effect.READS, self.phone_status, lambda a: "phones"),
        )  # fmt: skip

    async def build(self, arguments: BuildGradleProject, context: CallContext) -> Output:
        """Build, unless a changed file does not parse here or the budget for builds is spent."""
        desk = self._desk
        spec = _spec(arguments)
        build_id = context.earlier["build_id"] if context.earlier else None
        if build_id is None:
            if (limit := desk.exhausted()) is not None:
                raise ToolFault(
                    f"not built: {limit}. Finish without a further build and say what is left to do."
                )
            faults = [] if arguments.skip_syntax_check else desk.find_syntax_faults()
            if faults:
                raise ToolFault(
                    "not built, for what you changed does not parse; no phone was asked:\n"
                    + "\n".join(faults)
                    + "\nMend it, or set skip_syntax_check if you are sure that it is right."
                )
        report = await desk.build(
            spec, context.on_progress, build_id=build_id, note=lambda new: context.note({"build_id": new})
        )
        text = report.digest_text
        if report.is_from_earlier:
            text += "\n[this very state was built before; the phone was not asked again]"
        if desk.trend.notice:
            text += "\n" + desk.trend.notice
        return Output(text, is_error=report.outcome is not BuildOutcome.GREEN, spent=spent_on(report))

    async def read_log(self, arguments: ReadBuildLog, context: CallContext) -> Output:
        """Give numbered lines of the log."""
        lines = await self._desk.builder.read_log(
            self._build_id(arguments.build_id), arguments.first_line, arguments.line_count
        )
        return Output(_numbered(lines) or f"[no such lines; the log has {lines.total_lines}]")

    async def search_log(self, arguments: SearchBuildLog, context: CallContext) -> Output:
        """Give the places where the pattern stands."""
        found = await self._desk.builder.search_log(
            self._build_id(arguments.build_id), arguments.pattern, arguments.context_lines, arguments.max_hits
        )
        places = "\n--\n".join(_numbered(place) for place in found.places)
        return Output(
            f"{places}\n[{found.hits} hits in {found.total_lines} lines]" if places else "[no hits]"
        )

    async def inspect(self, arguments: InspectArtifact, context: CallContext) -> Output:
        """Give what the artifact holds as JSON."""
        found = await self._desk.builder.inspect_artifact(self._build_id(arguments.build_id), arguments.path)
        return Output(to_json(found, indent=1).decode())

    async def phone_status(self, arguments: PhoneStatusArguments, context: CallContext) -> Output:
        """Give each phone as one JSON line."""
        phones = await self._desk.builder.phones()
        return Output(
            "\n".join(to_json(asdict(phone)).decode() for phone in phones) or "[no phone is attached]"
        )

    def _build_id(self, given: str | None) -> BuildId:
        known = given or self._desk.latest_build_id
        if known is None:
            raise ToolFault("this run has not built yet; call build_gradle_project first")
        return BuildId(known)


def _spec(arguments: BuildGradleProject) -> BuildSpec:
    variant = arguments.variant or "debug"
    tasks = arguments.tasks or (f"assemble{variant[:1].upper()}{variant[1:]}",)
    for task in tasks:
        if task.startswith("-"):
            raise ToolFault(f"{task} is an argument, not a task; put it under args")
    for argument in arguments.args:
        if not argument.startswith("-"):
            raise ToolFault(f"{argument} begins with no dash; put tasks under tasks")
        if argument.startswith(_CLOSED_ARGUMENTS):
            raise ToolFault(f"{argument} is set by the phone's builder and cannot be changed from here")
    return BuildSpec(tasks=tuple(tasks), args=arguments.args, clean=arguments.clean)


def _numbered(found: LogLines) -> str:
    return "\n".join(
        f"{number:>6}  {line}" for number, line in enumerate(found.lines, start=found.first_line)
    )
