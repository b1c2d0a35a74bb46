"""What the host asks of a phone's runner: the request, its digest, and the plan to carry it out.

A plan is text that a POSIX shell reads line by line, one word and fields without blanks, because
the phone's shell reads no JSON. Free text stands behind "=", every byte but plain ones as \\0ooo,
so that no path or argument is ever seen by the shell as anything but data. An argument of plain
characters and single blanks stands there as it is, which spares the phone a process. Small contents
follow behind the plan's last line, as they are, and behind them the secrets.
"""

import hashlib
import json
import math
import re
from dataclasses import dataclass

from builder_bridge.build import BuildSpec
from builder_bridge.secret import NO_SECRETS, Secrets, parts_of
from builder_bridge.workspace.snapshot import Snapshot, SnapshotDiff

MAX_EDITS = 2_000
"""More changes than this go faster as a whole archive than as edits, which cost the phone a process each."""

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/@+=,:-")
_PLAIN_WORDS = re.compile(r"[a-zA-Z0-9._/@+,:-][a-zA-Z0-9._/@+=,:-]*( [a-zA-Z0-9._/@+=,:-]+)*")
_BEAT_S = 5


@dataclass(frozen=True, slots=True)
class Whole:
    """The archive holds the whole content; what lay there before is replaced."""

    entries: int


@dataclass(frozen=True, slots=True)
class Edits:
    """The content lies there but for these changes.

    `start` is the fingerprint of what lies there, `before` its entries. `bodies` are the contents
    that go along with the plan, by digest; `has_pack` says that others came before it in a pack.
    """

    diff: SnapshotDiff
    before: dict[str, str]
    start: str
    bodies: tuple[tuple[str, bytes], ...] = ()
    has_pack: bool = False


Upload = Whole | Edits


def encode(text: str) -> str:
    """Write free text as one field of a plan."""
    data = text.encode("utf-8", "surrogateescape")
    return "=" + "".join(chr(byte) if byte in _PLAIN else f"\\0{byte:03o}" for byte in data)


def request_digest(spec: BuildSpec, snapshot: Snapshot, secrets: Secrets = NO_SECRETS) -> str:
    """Name a request by its content: the same workspace, tasks, options and secrets give the same digest.

    What the host chooses by the phone's present state (heap, daemon) does not count: asking again
    a minute later is still the same request. Of secrets only names and seal count.
    """
    request = _request(spec, snapshot)
    if secrets:
        request["secrets"] = [*secrets.names, secrets.seal]
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def _request(spec: BuildSpec, snapshot: Snapshot) -> dict[str, object]:
    return {
        "workspace": snapshot.fingerprint,
        "name": snapshot.name,
        "place": snapshot.place,
        "tasks": list(spec.tasks),
        "args": list(spec.args),
        "clean": spec.clean,
        "project_dir": spec.project_dir,
        "deadline_s": spec.deadline_s,
    }


def make_plan(
    spec: BuildSpec,
    snapshot: Snapshot,
    upload: Upload,
    gradle_args: tuple[str, ...],
    facts: dict[str, str],
    client: str | None = None,
    secrets: Secrets = NO_SECRETS,
    salt: str = "",
) -> bytes:
    """Write the plan of a run, and the contents that go along with it.

    `gradle_args` are ours; tasks and arguments of the spec follow them. `client` names the archive
    with which Gradle's client may start. The digest of a plan stands in a command line; `salt`, a word
    that nobody can guess, keeps it from telling anything of the secrets in it.
    """
    request = json.dumps(_request(spec, snapshot), separators=(",", ":"))
    bodies: tuple[tuple[str, bytes], ...] = ()
    lines = [
        "plan 1",
        f"place {snapshot.place}",
        f"content {snapshot.fingerprint}",
        f"wipe {int(spec.clean and isinstance(upload, Edits))}",
        f"beats {math.ceil(spec.deadline_s / _BEAT_S)}",
        f"name {encode(snapshot.name)}",
        f"dir {encode(spec.project_dir)}",
        f"facts {encode_json(json.dumps(facts, separators=(',', ':')))}",
        f"request {encode_json(request)}",
    ]
    if client is not None:
        lines.append(f"client {client}")
    match upload:
        case Whole(entries):
            size_kb = snapshot.size_bytes // 1000 + 1000
            lines += ["mode archive", f"count {entries}", f"size_kb {size_kb}"]
        case Edits(diff, before, _, bodies, has_pack):
            lines += ["pack yes"] if has_pack else []
            lines += ["mode same" if diff.is_empty else "mode delta", *_edit_lines(diff, before)]
    lines += [f"arg {_encode_argument(argument)}" for argument in (*gradle_args, *spec.args, *spec.tasks)]
    lines += [f"salt {salt}"] if salt else []
    contents = [("body", name, content) for name, content in bodies]
    contents += [("secret", name, content) for name, content in parts_of(secrets)]
    left = sum(len(content) for _, _, content in contents)
    for word, name, content in contents:
        lines.append(f"{word} {name} {left} {len(content)}")
        left -= len(content)
    return "\n".join([*lines, "end", ""]).encode() + b"".join(content for _, _, content in contents)


def encode_json(text: str) -> str:
    """Write a JSON text without blanks or anything that a shell's `read` would change."""
    return text.replace(" ", "\\u0020")


def _encode_argument(argument: str) -> str:
    return argument if _PLAIN_WORDS.fullmatch(argument) else encode(argument)


def _edit_lines(diff: SnapshotDiff, before: dict[str, str]) -> list[str]:
    lines = [f"drop {encode(path)} {_old_digest(before, path)}" for path in diff.removed]
    lines += [
        f"file {encode(file.path)} {file.sha256} {file.mode:o} {_old_digest(before, file.path)}"
        for file in diff.files
    ]
    lines += [f"link {encode(link.path)} {encode(link.target)}" for link in diff.links]
    return lines


def _old_digest(before: dict[str, str], path: str) -> str:
    kind, _, digest = before.get(path, "").partition(" ")
    return digest if kind in ("644", "755") and len(digest) == 64 else "-"
