"""When a failed request goes out again."""

from dataclasses import dataclass

from agent.errors import ProviderFault


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How patient a run is with its provider.

    The wait doubles from `first_wait_s` up to `longest_wait_s`. A provider that asks for more than
    `longest_asked_s` is not waited for silently: the fault is shown and the run can be resumed.
    """

    attempts: int = 6
    first_wait_s: float = 2.0
    longest_wait_s: float = 60.0
    longest_asked_s: float = 120.0


def wait_before_retry_s(
    fault: ProviderFault, attempt: int, *, response_used: bool, jitter: float, policy: RetryPolicy
) -> float | None:
    """Give how long to wait before attempt `attempt + 1`, in seconds, or None to give up.

    `attempt` counts from one. Nothing is sent again once something of the response was used: its
    tools may have run. A wait that the provider asked for wins and is only ever lengthened. `jitter`
    lies in [0, 1) and spreads clients that failed together.
    """
    if not fault.is_retryable or response_used or attempt >= policy.attempts:
        return None
    own_s = min(policy.longest_wait_s, policy.first_wait_s * 2.0 ** (attempt - 1)) * (0.5 + jitter / 2)
    if fault.retry_after_s is None:
        return own_s
    if fault.retry_after_s > policy.longest_asked_s:
        return None
    return fault.retry_after_s + min(1.0, own_s) * jitter
