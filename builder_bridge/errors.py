"""What can go wrong between this host and a phone.

    BridgeError
    ├── PhoneUnavailable      nothing ran
    │   ├── PhoneUnreachable    no route to its address, no such host, no answer
    │   ├── PhoneRefused        its address answers, but no adbd listens there
    │   ├── PhoneOffline        adbd took the connection and then said nothing
    │   ├── PhoneUnauthorized   the owner has not allowed this key
    │   │   └── PhoneNotPaired    wireless debugging does not know this key
    │   ├── PhoneWantsTls       it speaks wireless debugging only; pair first
    │   ├── PhoneChanged        another phone answers at its address
    │   └── PhoneBusy           another host or adb server holds it
    ├── PhoneLost             the connection died during an operation: it may have run
    │   └── StreamEnded         the phone ended one stream early; the connection lives
    ├── ProtocolFault         the peer broke a protocol; the connection is closed
    ├── ServiceRefused        the phone's adbd does not offer this service: nothing ran
    ├── RouteUnavailable      the phone answers, but no route reaches a builder prefix
    ├── ContractMismatch      the prefix cannot build this project as it is
    ├── WorkspaceFault        the workspace cannot be handed over as it is
    ├── TransferFault         bytes arrived that are not the bytes that were sent
    │   ├── PathRefused         the phone may not read or write that path; it says why
    │   ├── HostStorageFull   this host has no room left for what was fetched
    │   └── StorageFull         the phone has no room left
    ├── RunConflict           the run id is taken by other content
    ├── UnknownRun            the phone knows no such run
    ├── SeedFault             artifacts cannot be had from their repositories
    └── BoxFault              the phone in a box cannot be made or started here

Every class answers three questions: did anything run on the phone (`may_have_run`), may it pass by
itself (`is_passing`), and what is the next step (`hint`). Outcomes of a build are values (`BuildResult`),
never raised.
"""

from typing import ClassVar


class BridgeError(Exception):
    """A fault between this host and the phone; the message says what was tried and how far it got."""

    code: ClassVar[str] = "bridge_error"
    may_have_run: ClassVar[bool] = False
    is_passing: ClassVar[bool] = False
    default_hint: ClassVar[str] = "Look at the message; nothing ran on the phone."

    def __init__(self, message: str, *, serial: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.serial = serial
        self.hint = hint or self.default_hint


class PhoneUnavailable(BridgeError):
    """The phone could not be reached, so nothing ran on it."""

    code = "device_absent"
    is_passing = True
    default_hint = "Check the cable or the address with `pocketbuild phone list`, then try again."


class PhoneUnreachable(PhoneUnavailable):
    """There is no route to the phone's address, or nothing answers there."""

    code = "device_no_route"
    default_hint = "Check that the phone is awake and in this network, and its address."


class PhoneRefused(PhoneUnavailable):
    """The phone's address answers, but no adbd listens on that port."""

    code = "device_refused"
    default_hint = (
        "Switch on debugging on the phone; wireless debugging takes a new port at each start, "
        "so name such a phone by its serial number."
    )


class PhoneOffline(PhoneUnavailable):
    """Something took the connection, but did not greet as adbd does."""

    code = "device_offline"
    default_hint = "Disconnect and connect the phone again, or switch its debugging off and on."


class PhoneUnauthorized(PhoneUnavailable):
    """The phone answers, but its owner has not allowed this host's key."""

    code = "device_unauthorized"
    is_passing = False
    default_hint = "Unlock the phone and allow USB debugging for this computer."


class PhoneNotPaired(PhoneUnauthorized):
    """The phone's wireless debugging does not know this host's key."""

    code = "device_not_paired"
    default_hint = "Pair this host once with `pocketbuild phone pair`, then connect again."


class PhoneWantsTls(PhoneUnavailable):
    """The phone speaks only TLS on this port, as wireless debugging does."""

    code = "device_wants_tls"
    is_passing = False
    default_hint = "Pair this host once with `pocketbuild phone pair`, then connect again."


class PhoneChanged(PhoneUnavailable):
    """Another phone answers where this one used to."""

    code = "device_changed"
    default_hint = "Look up the phone's address today with `pocketbuild phone list`; then reattach there."


class PhoneBusy(PhoneUnavailable):
    """Another host, process or adb server holds the phone."""

    code = "device_busy"
    default_hint = "Let go of the phone in the other program, or go through its adb server."


class PhoneLost(BridgeError):
    """The connection died during an operation; on the phone it may have run."""

    code = "device_lost"
    is_passing = True
    may_have_run = True
    default_hint = "Reconnect the phone, then reattach with the same run id; do not submit again."


class StreamEnded(PhoneLost):
    """The phone ended one stream early; the connection lives on."""

    code = "stream_ended"


class ProtocolFault(BridgeError):
    """The peer sent what its protocol does not allow; the connection was closed."""

    code = "protocol_fault"
    is_passing = True
    may_have_run = True
    default_hint = "Reconnect; if it comes again, something between here and the phone alters bytes."


class ServiceRefused(BridgeError):
    """The phone's adbd does not offer this service, so nothing ran."""

    code = "service_refused"
    default_hint = "The phone's adbd is too old or cut down; update the phone or take another."


class RouteUnavailable(BridgeError):
    """The phone answers, but none of the configured routes reaches a builder prefix."""

    code = "route_unavailable"
    default_hint = "Install a builder prefix, or name a route that fits with `--route`."


class ContractMismatch(BridgeError):
    """The prefix lacks something that this project needs."""

    code = "contract_mismatch"
    default_hint = "Change the project or the prefix as the message says; no bytes were sent."


class WorkspaceFault(BridgeError):
    """The workspace cannot be handed over as it is."""

    code = "preflight_bad_workspace"
    default_hint = "Mend the named path in the workspace; no bytes were sent."


class TransferFault(BridgeError):
    """Content arrived damaged or short; it was thrown away."""

    code = "transfer_digest"
    is_passing = True
    default_hint = "Transfer again; nothing was built from the damaged content."


class PathRefused(TransferFault):
    """The phone will not read or write a path; the message carries its own reason."""

    code = "path_refused"
    default_hint = "Look at the phone's reason; the path is missing, or not this user's to use."


class StorageFull(TransferFault):
    """The phone has no room left for what was sent."""

    code = "preflight_low_storage"
    is_passing = False
    default_hint = "Free storage on the phone (`pocketbuild phone gc`), then build again."


class HostStorageFull(TransferFault):
    """This host has no room left for what was fetched; what has arrived stays for the next fetch."""

    code = "host_low_storage"
    is_passing = False
    default_hint = "Make room on this host, then fetch again; it goes on where it was."


class RunConflict(BridgeError):
    """The phone has a run of this id that was made from other content."""

    code = "run_conflict"
    default_hint = "Take a new run id; one id always means one content."


class UnknownRun(BridgeError):
    """The phone knows no run of this id."""

    code = "unknown_run"
    default_hint = "The run was never submitted there or was cleaned up; submit it anew."


class SeedFault(BridgeError):
    """Artifacts for the offline repository cannot be had from the repositories that were named."""

    code = "seed_failed"
    default_hint = "Check the coordinate and the repositories; the phone was left as it was."


class BoxFault(BridgeError):
    """The phone in a box could not be made or started on this host."""

    code = "box_fault"
    default_hint = "The box needs root on a Debian-like host with a package mirror; else attach a phone."
