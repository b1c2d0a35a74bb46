"""One workspace's way to a phone: as little as possible is sent, in as few calls as possible.

A call on a phone costs tens of milliseconds. So where this host knows what lies there and little has
changed, one call brings everything, and the phone starts the build unless it finds things otherwise.
The long way asks first what is there.
"""

import secrets as randomness
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog
from anyio.to_thread import run_sync

from builder_bridge.build import BuildSpec, BuildState, RunId, RunIdentity
from builder_bridge.errors import ContractMismatch, StorageFull, WorkspaceFault
from builder_bridge.handoff import OpenDocument, StatusDocument, judge, parse
from builder_bridge.plan import Edits, make_plan, request_digest
from builder_bridge.prefix.contract import Contract
from builder_bridge.prefix.fit import require_fit
from builder_bridge.prefix.settings import gradle_settings
from builder_bridge.routes.route import Route
from builder_bridge.secret import Secrets
from builder_bridge.upload import Uploaded, choose_upload, facts_of, guess_upload, send_upload
from builder_bridge.workspace.kept import KeptContents
from builder_bridge.workspace.snapshot import Snapshot

log = structlog.get_logger()

_NOTE_CODES = frozenset({"rewritten", "materialised", "dangling_link", "unreadable", "not_a_file"})
_MAX_NOTES = 20

AskContract = Callable[[], Awaitable[Contract]]


class Submission:
    """Hands one run to one prefix of one phone, or finds it there."""

    def __init__(
        self,
        route: Route,
        serial: str,
        package: str,
        kept: KeptContents,
        run_id: RunId,
        spec: BuildSpec,
        snapshot: Snapshot,
        secrets: Secrets,
    ) -> None:
        self._route = route
        self._serial = serial
        self._prefix_key = f"{serial} {route.name} {package}"
        self._kept = kept
        self._run_id = run_id
        self._spec = spec
        self._snapshot = snapshot
        self._secrets = secrets
        self._digest = request_digest(spec, snapshot, secrets)
        self._notes = ""

    async def submit(self, ask_contract: AskContract, has_daemon: bool | None) -> RunIdentity | BuildState:
        """Start the run unless it is there; gives its identity while it lives, else its state.

        Raises what `Bridge.submit` says.
        """
        opened = await self._begin(ask_contract, has_daemon)
        if opened is None:
            line = await self._route.call("open", self._run_id, self._snapshot.place, self._digest)
            opened = parse(line, OpenDocument)
        status = judge(opened)
        if status.state.is_final:
            return status.state
        if status.identity is not None:
            return status.identity
        contract = await ask_contract()
        await self._require_fit(contract)
        upload = await run_sync(choose_upload, opened, self._snapshot, self._kept)
        with TemporaryDirectory(prefix="pocketbuild-") as folder:
            uploaded = await send_upload(
                self._route,
                self._run_id,
                self._snapshot,
                upload,
                already=opened.received,
                folder=Path(folder),
            )
        plan = self._plan(contract, has_daemon, uploaded)
        start = uploaded.upload.start if isinstance(uploaded.upload, Edits) else "none"
        words = ("start", self._run_id, self._snapshot.place, start, sha256(plan).hexdigest())
        started = parse(await self._route.call(*words, stdin=plan), StatusDocument)
        await self._was_started(uploaded)
        return started.identity or judge(started).state

    async def _begin(self, ask_contract: AskContract, has_daemon: bool | None) -> OpenDocument | None:
        """Bring everything in one call; the phone starts nothing where it finds things otherwise.

        None where too little is known for that. A workspace that does not fit goes the long way, too:
        its run may be there already.
        """
        edits = await run_sync(guess_upload, self._prefix_key, self._snapshot, self._kept)
        if edits is None:
            return None
        contract = await ask_contract()
        try:
            await self._require_fit(contract)
        except (ContractMismatch, WorkspaceFault, StorageFull):
            return None
        uploaded = Uploaded(edits, facts_of(edits, sum(len(body) for _, body in edits.bodies)))
        plan = self._plan(contract, has_daemon, uploaded)
        words = (self._run_id, self._snapshot.place, self._digest, edits.start, sha256(plan).hexdigest())
        opened = parse(await self._route.call("begin", *words, stdin=plan), OpenDocument)
        if opened.pid:
            await self._was_started(uploaded)
        return opened

    async def _require_fit(self, contract: Contract) -> None:
        notes = await run_sync(require_fit, contract, self._spec, self._snapshot)
        self._notes = "; ".join(str(note) for note in notes[:_MAX_NOTES])[:2000]

    def _plan(self, contract: Contract, has_daemon: bool | None, uploaded: Uploaded) -> bytes:
        # Secrets must be gone from memory too, and a daemon lives on with builds of others.
        settings = gradle_settings(contract, False if self._secrets else has_daemon)
        facts = settings.facts | self._facts(contract) | uploaded.facts
        salt = randomness.token_hex(16) if self._secrets else ""
        what = (self._spec, self._snapshot, uploaded.upload)
        return make_plan(*what, settings.args, facts, settings.client, self._secrets, salt)

    def _facts(self, contract: Contract) -> dict[str, str]:
        notes = [f"{note.path}: {note.detail}" for note in self._snapshot.notes if note.code in _NOTE_CODES]
        facts = {"route": self._route.name, "uid": str(contract.uid), "serial": self._serial}
        if contract.domain:
            facts["domain"] = contract.domain
        if contract.prefix.id:
            facts["prefix"] = contract.prefix.id
        if self._secrets:
            facts["secrets"] = ", ".join(self._secrets.names)
        if notes:
            facts["workspace_notes"] = "; ".join(notes[:_MAX_NOTES])[:2000]
        if self._notes:
            facts["preflight_notes"] = self._notes
        return facts

    async def _was_started(self, uploaded: Uploaded) -> None:
        await run_sync(self._kept.save, self._snapshot, self._prefix_key)
        told = {"serial": self._serial, "route": self._route.name, **uploaded.facts}
        log.info("run.was_started", run=self._run_id, **told)
