"""What can go wrong in the service, before or beside a build.

    ServiceFault
    ├── SettingsFault          a setting is unknown, malformed or contradicts another
    ├── DataFolderTaken        another process already serves this data folder
    ├── ServiceUnreachable     the service did not answer: what was asked may have been done
    └── Refusal                a request that the service will not carry out
        ├── BadRequest           it says something impossible (400)
        ├── Unauthenticated      it carries no token, or one that is not valid (401)
        ├── Forbidden            its token does not allow this (403)
        ├── NotFound             what it names does not exist for this owner (404)
        ├── Conflict             it contradicts the present state (409)
        ├── TooLarge             it sends more than the route takes (413)
        ├── Unprocessable        its content cannot be used (422)
        ├── TooMany              its owner has too much waiting already (429)
        └── NotReady             the service cannot do it just now (503)

Every refusal has a code for programs, a message for people and a hint with the next step. Nothing
was done where one is raised. Faults of phones are `BridgeError`s; failed builds are values.
"""

from typing import ClassVar


class ServiceFault(Exception):
    """A fault of the service; the message says what was tried, on what, and how far it got."""

    code: ClassVar[str] = "service_fault"
    default_hint: ClassVar[str] = "Look at the message; no build was changed."

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.reason_code = code or self.code
        self.hint = hint or self.default_hint


class SettingsFault(ServiceFault):
    """A setting is unknown, malformed or contradicts another; nothing was started."""

    code = "settings_fault"
    default_hint = "Mend the named setting; `pocketbuild config` prints all of them with their source."


class DataFolderTaken(ServiceFault):
    """Another process serves this data folder already; two would run every build twice."""

    code = "data_folder_taken"
    default_hint = "Stop the other service, or choose another folder with `data_dir`."


class ServiceUnreachable(ServiceFault):
    """The service did not answer; what was asked may or may not have been done."""

    code = "service_unreachable"
    default_hint = "Start it with `pocketbuild serve`, then ask again: asking twice never builds twice."


class Refusal(ServiceFault):
    """A request that is not carried out; nothing was changed by it."""

    code = "refused"
    status: ClassVar[int] = 400


class BadRequest(Refusal):
    """The request says something impossible."""

    code = "bad_request"
    default_hint = "Compare the request with /openapi.json."


class Unauthenticated(Refusal):
    """The request carries no token, or one that is not valid."""

    code = "unauthenticated"
    status = 401
    default_hint = "Send `Authorization: Bearer …` with a token made by `pocketbuild token create`."


class Forbidden(Refusal):
    """The token is valid and does not allow this."""

    code = "forbidden"
    status = 403
    default_hint = "Ask for a token with the scope that the message names."


class NotFound(Refusal):
    """What the request names does not exist, or belongs to another owner."""

    code = "not_found"
    status = 404
    default_hint = "List what there is; ids are case-sensitive."


class Conflict(Refusal):
    """The request contradicts the present state."""

    code = "conflict"
    status = 409
    default_hint = "Read the present state, then decide again."


class TooLarge(Refusal):
    """The request sends more than the route takes; what had come was thrown away."""

    code = "too_large"
    status = 413
    default_hint = "Send less, or raise `limits.body_bytes` or `limits.upload_bytes` in the settings."


class Unprocessable(Refusal):
    """The content is well formed and still cannot be used."""

    code = "unprocessable"
    status = 422
    default_hint = "Mend what the message names; nothing was kept of it."


class TooMany(Refusal):
    """The owner has too many builds waiting already."""

    code = "too_many_queued"
    status = 429
    default_hint = "Wait for some builds to end, or cancel some."


class NotReady(Refusal):
    """The service cannot do this just now."""

    code = "not_ready"
    status = 503
    default_hint = "Ask /readyz what is missing, then try again."
