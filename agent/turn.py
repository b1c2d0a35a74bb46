"""One turn's request: send it, read the response, and send it again where that is right."""

import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import structlog

from agent.errors import ProviderFault, RequestRefused, ResponseBroken
from agent.http import Line, Response
from agent.message import Diagnostic, FinishReason, Message, Request
from agent.progress import (
    CallForming,
    OnProgress,
    Progress,
    ReasoningStreamed,
    RetryScheduled,
    StreamDiagnosed,
    TextStreamed,
)
from agent.providers.fault import judge
from agent.retry import RetryPolicy, wait_before_retry_s
from agent.wire import Encoder
from agent.wire.event import CallDelta, ReasoningDelta, StreamEvent, TextDelta, UsageReport
from agent.wire.parser import ResponseParser

_log = structlog.get_logger()
_BROKEN_ATTEMPTS = 2
"""A response that keeps breaking off is handed to the loop, which tells the model to be brief."""
_EFFORT_NAMED = re.compile(r"\b(reasoning[_.]?effort|effort|thinking)\b", re.IGNORECASE)


@dataclass(slots=True)
class TurnTaker:
    """Gets whole messages from one model.

    `sleep` and `jitter` stand for the clock and chance. `drops_effort` is remembered once a provider
    has refused the effort field.
    """

    line: Line
    on_progress: OnProgress
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    jitter: Callable[[], float] = random.random
    drops_effort: bool = False
    _encoder: Encoder = field(init=False)

    def __post_init__(self) -> None:
        self._encoder = Encoder(self.line.choice.dialect)

    async def take(self, request: Request) -> Message:
        """Give the message that answers the request.

        Nothing of a response is used before it is whole, so a broken one may be asked for again. Raises
        the `ProviderFault` that patience could not help.
        """
        attempt = 0
        while True:
            attempt += 1
            if self.drops_effort:
                request = replace(request, effort=None)
            try:
                message = await self._once(request)
            except RequestRefused as fault:
                if request.effort is None or fault.status != 400 or not _EFFORT_NAMED.search(str(fault)):
                    raise
                self.drops_effort = True
                _log.warning("effort.refused", provider=self.line.choice.provider.name, effort=request.effort)
                continue
            except ProviderFault as fault:
                await self._wait_or_raise(fault, attempt)
                continue
            broken = _is_broken(message)
            if broken is None or attempt > _BROKEN_ATTEMPTS:
                return message
            await self._wait_or_raise(broken, attempt)

    async def _once(self, request: Request) -> Message:
        parser = ResponseParser(self.line.choice.dialect)
        async with self.line.post(self._encoder.encode(request)) as response:
            async for chunk in response.chunks:
                for event in parser.feed(chunk):
                    if (shown := _shown(event)) is not None:
                        await self.on_progress(shown)
        message: Message = parser.close()
        for found in message.diagnostics:
            _log.info("stream.diagnosed", code=found.code, offset_bytes=found.offset_bytes)
            await self.on_progress(StreamDiagnosed(found))
        if _tells_fault(message):
            raise self._fault_in(response)
        return message

    def _fault_in(self, response: Response) -> ProviderFault:
        codes = self.line.choice.provider.errors
        return judge(200, response.headers, response.edges, codes, now_s=time.time(), response_started=True)

    async def _wait_or_raise(self, fault: ProviderFault, attempt: int) -> None:
        wait_s = wait_before_retry_s(
            fault, attempt, response_used=False, jitter=self.jitter(), policy=self.policy
        )
        if wait_s is None:
            raise fault
        _log.warning("request.failed", code=fault.code, status=fault.status, attempt=attempt, wait_s=wait_s)
        await self.on_progress(RetryScheduled(attempt, wait_s, str(fault)))
        await self.sleep(wait_s)


def _shown(event: StreamEvent) -> Progress | None:
    match event:
        case TextDelta(text):
            return TextStreamed(text)
        case ReasoningDelta(text):
            return ReasoningStreamed(text)
        case CallDelta(number, name, _, received_chars):
            return CallForming(number, name, received_chars)
        case UsageReport() | Diagnostic():
            return None


def _tells_fault(message: Message) -> bool:
    """Say whether the response is the provider's own failure rather than the model's words."""
    codes = {found.code for found in message.diagnostics}
    return message.finish_reason is FinishReason.ERROR and "provider_error" in codes


def _is_broken(message: Message) -> ResponseBroken | None:
    """Give the fault of a response whose body ended before the response did."""
    if message.finish_reason is None and any(d.code == "stream_truncated" for d in message.diagnostics):
        return ResponseBroken("the response ended early, without a finish reason", response_started=True)
    return None


def request_for(line: Line, **known: Any) -> Request:
    """Give a request with all that the chosen provider wants in it."""
    choice = line.choice
    return Request(
        model=choice.model,
        effort=choice.effort_word,
        extra=choice.body,
        max_tokens_field=choice.provider.max_tokens_field,
        dropped_fields=choice.provider.dropped_fields,
        echo_reasoning=choice.echo_reasoning,
        echo_empty=choice.echo_empty,
        call_id_chars=choice.provider.call_id_chars,
        max_output_tokens=choice.max_output_tokens,
        **known,
    )
