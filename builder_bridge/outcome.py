"""What a phone's verdict on a run means: result, artifacts, seconds by stage.

Like everything that a phone says, the verdict comes from a stranger: paths that may lead outside
and results of other runs are refused.
"""

import itertools
import re

from builder_bridge.build import Artifact, BuildResult, BuildState, RunId
from builder_bridge.errors import ProtocolFault
from builder_bridge.handoff import ArtifactDocument, ResultDocument


def to_result(document: ResultDocument, run_id: RunId, facts: dict[str, str]) -> BuildResult:
    """Turn the phone's verdict into a `BuildResult`; `facts` of the host are added to the phone's."""
    if document.run != run_id:
        raise ProtocolFault(f"The phone gave the result of run {document.run!r} for {run_id!r}.")
    return BuildResult(
        run_id=run_id,
        state=BuildState(document.state),
        exit_code=document.exit_code,
        log_size_bytes=document.log_size,
        log_sha256=document.log_sha256,
        artifacts=tuple(_to_artifact(artifact) for artifact in document.artifacts),
        cause=document.cause,
        stage_s=stage_seconds(document.times),
        facts={**document.facts, **facts},
    )


def _to_artifact(document: ArtifactDocument) -> Artifact:
    if not is_inside(document.path):
        raise ProtocolFault(f"The phone names the artifact {document.path!r}, which may lie outside.")
    kind, variant = describe_artifact(document.path)
    return Artifact(document.index, document.path, kind, document.size, document.sha256, variant)


def is_inside(path: str) -> bool:
    """Whether a path of the phone's stays inside the workspace that it is relative to."""
    return not any(part in ("", ".", "..") for part in path.split("/"))


def describe_artifact(path: str) -> tuple[str, str | None]:
    """Say what a file under `build/outputs` is and of which variant, by where AGP puts it.

    Newer plugins write `outputs/apk/<flavor>/<type>/x.apk`, `outputs/bundle/<variant>/x.aab` and
    `outputs/mapping/<variant>/mapping.txt`; older ones and AARs have the variant in the file's name.
    """
    module, _, inside = f"/{path}".rpartition("/build/outputs/")
    module, name = module.rpartition("/")[2], path.rpartition("/")[2]
    kind = "mapping" if name == "mapping.txt" else name.rpartition(".")[2].lower()
    below = inside.split("/")[1:-1]
    if below:
        head, *tail = below
        return kind, head + "".join(part[:1].upper() + part[1:] for part in tail)
    stem = name.rpartition(".")[0].removesuffix("-unsigned")
    if kind != "mapping" and module and stem.startswith(f"{module}-"):
        head, *tail = stem.removeprefix(f"{module}-").split("-")
        return kind, head + "".join(part[:1].upper() + part[1:] for part in tail)
    return kind, None


def stage_seconds(times: list[str]) -> dict[str, float]:
    """Give how long each stage took, from the moments at which the phone entered them.

    A line is a stage's name and seconds since 1970 with decimals; odd lines are passed over.
    """
    moments: list[tuple[int, str]] = []
    for line in times:
        match = re.fullmatch(r"([a-z]+) (\d{1,12})\.(\d{6})\d*", line)
        if match:
            moments.append((int(match[2]) * 1_000_000 + int(match[3]), match[1]))
    moments.sort()
    return {stage: (after - begin) / 1_000_000 for (begin, stage), (after, _) in itertools.pairwise(moments)}
