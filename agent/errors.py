"""What can go wrong between this host, a model's provider and the records of a run.

    AgentError
    ├── SettingsFault           a setting names what does not exist or contradicts another
    │   └── KeyMissing            no key for this provider; nothing was sent
    ├── ProviderFault           a request did not give a whole response
    │   ├── ProviderUnreachable   no connection: nothing was sent
    │   ├── KeyRefused            the provider does not accept the key
    │   ├── RequestRefused        the provider will never accept this request
    │   │   └── ContextOverflow     the conversation is too long for the model
    │   ├── PlanExhausted         quota, balance or plan is used up until some time
    │   ├── ProviderOverloaded    too many requests or too little capacity just now
    │   └── ResponseBroken        the connection died or fell silent during the response
    ├── TranscriptFault         a transcript cannot be read or written
    └── ToolFault               a tool could not do what was asked; told to the model

Every class says whether the request may have been worked on (`may_be_billed`) and what the next
step is (`hint`). A response that came whole but odd is a `Message` with diagnostics, an over-spent
budget is a `Stop`, a failed build a report: those are values and never raised.
"""

from typing import ClassVar


class AgentError(Exception):
    """A fault of the agent; the message says what was tried, on what, and how far it got."""

    code: ClassVar[str] = "agent_error"
    default_hint: ClassVar[str] = "Look at the message; the run can be resumed."

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint or self.default_hint


class SettingsFault(AgentError):
    """A setting names something that does not exist, or contradicts another; nothing ran."""

    code = "settings_fault"
    default_hint = "Mend the named setting, then start again."


class KeyMissing(SettingsFault):
    """No key was found for the provider, so nothing was sent."""

    code = "key_missing"
    default_hint = "Set the provider's key variable, or name a key file or key command in the settings."


class ProviderFault(AgentError):
    """A request to a provider did not give a whole response.

    `status` is the HTTP status or None where none came; `provider_code` the provider's own word or
    number; `retry_after_s` the wait it asked for; `response_started` whether bytes of a response had
    come; `request_id` what the provider's support asks for.
    """

    code = "provider_fault"
    may_be_billed: ClassVar[bool] = True
    is_retryable: ClassVar[bool] = False
    default_hint = "Look at the message of the provider."

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        provider_code: str | None = None,
        retry_after_s: float | None = None,
        response_started: bool = False,
        request_id: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.provider_code = provider_code
        self.retry_after_s = retry_after_s
        self.response_started = response_started
        self.request_id = request_id


class ProviderUnreachable(ProviderFault):
    """No connection to the provider came about; nothing was sent."""

    code = "provider_unreachable"
    may_be_billed = False
    is_retryable = True
    default_hint = "Check the network, the proxy variables and the base URL."


class KeyRefused(ProviderFault):
    """The provider does not accept the key, or the key may not use this model."""

    code = "key_refused"
    may_be_billed = False
    default_hint = "Check the key and that it belongs to this base URL and plan; the same key will not help."


class RequestRefused(ProviderFault):
    """The provider will never accept this request; sending it again changes nothing."""

    code = "request_refused"
    may_be_billed = False
    default_hint = "Check the model's name and the options; the same request will be refused again."


class ContextOverflow(RequestRefused):
    """The conversation is longer than the model can read."""

    code = "context_overflow"
    default_hint = "Fold the conversation and send it again."


class PlanExhausted(ProviderFault):
    """Quota, balance or plan is used up; waiting a moment does not help."""

    code = "plan_exhausted"
    may_be_billed = False
    default_hint = "Wait until the plan's window resets or top it up, then resume the run."


class ProviderOverloaded(ProviderFault):
    """The provider has too many requests or too little capacity just now."""

    code = "provider_overloaded"
    is_retryable = True
    default_hint = "Wait and resume the run; the request itself was fine."


class ResponseBroken(ProviderFault):
    """The connection died, fell silent or passed its deadline during the response."""

    code = "response_broken"
    is_retryable = True
    default_hint = "Resume the run; the request may have been billed once."


class TranscriptFault(AgentError):
    """A transcript cannot be read or written as it is."""

    code = "transcript_fault"
    default_hint = "Check the run's folder; a transcript is never rewritten, so the file is still there."


class ToolFault(AgentError):
    """A tool could not do what was asked; the message is written for the model that asked."""

    code = "tool_fault"
    default_hint = "The model reads this message as the result of its call."
