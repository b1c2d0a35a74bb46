"""A build that somebody wants, and the name of everything that decides what comes of it."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from builder_bridge.build import BuildSpec
from builder_bridge.secret import NO_SECRETS, Secrets
from builder_bridge.workspace.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Wish:
    """A build that somebody wants; the workspace is in the store already.

    `route` decides how its phone is reached, not what comes of it.
    """

    snapshot: Snapshot
    spec: BuildSpec
    pool: str = "default"
    phone: str | None = None
    route: str | None = None
    needs: dict[str, Any] | None = None
    priority: str = "normal"
    force: bool = False
    secrets: Secrets = NO_SECRETS


def identity_of(lab_id: str, owner: str, wish: Wish) -> str:
    """Name everything that decides the result of a build; equal wishes of an owner have equal names.

    Phones know runs by names made of this, so those of another database must never be equal.
    """
    parts: dict[str, Any] = {
        "lab": lab_id,
        "owner": owner,
        "workspace": wish.snapshot.fingerprint,
        "project": wish.snapshot.name,
        "tasks": wish.spec.tasks,
        "args": wish.spec.args,
        "clean": wish.spec.clean,
        "project_dir": wish.spec.project_dir,
        "pool": wish.pool,
        "phone": wish.phone,
        "needs": wish.needs or {},
    }
    if wish.secrets:
        parts["secrets"] = wish.secrets.seal
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
