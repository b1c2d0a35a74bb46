"""Trying a provider out says what works of what a run needs."""

import pytest

from agent.http import Line
from agent.message import Dialect
from agent.providers.catalogue import choose
from agent.scripted import Call, Conversation, Failure, ScriptedProvider, Turn
from agent.scripted.hostile import Flavor
from agent.trial import Finding, try_out

pytestmark = pytest.mark.anyio
ADD = Turn(calls=(Call(tool="add", arguments={"a": 19, "b": 23}),))
SUM = Turn(text="The sum is 42.")


async def findings(
    *turns: Turn, dialect: Dialect = Dialect.OPENAI_CHAT, effort: str | None = None
) -> dict[str, Finding]:
    async with (
        ScriptedProvider(Conversation(title="trial", turns=turns)) as server,
        Line(choose(server.provider, "m", dialect=dialect, effort=effort), None) as line,
    ):
        return {finding.name: finding for finding in await try_out(line)}


@pytest.mark.parametrize("dialect", Dialect)
async def test_a_sound_provider_works_in_everything(dialect: Dialect) -> None:
    found = await findings(ADD, SUM, dialect=dialect)
    assert [finding.name for finding in found.values() if not finding.works] == []
    assert found["the right answer"].seen == "The sum is 42."


async def test_what_is_odd_or_wrong_is_named() -> None:
    found = await findings(ADD.model_copy(update={"hostile": Flavor.IDS_EMPTY}), Turn(text="It is 41."))
    assert found["a response in the dialect's own form"] == Finding(
        "a response in the dialect's own form", False, "id_missing"
    )
    assert not found["the right answer"].works


async def test_a_refused_request_is_told_in_the_providers_words() -> None:
    refused = Failure(status=404, body={"error": {"code": "model_not_found", "message": "no such model"}})
    found = await findings(ADD.model_copy(update={"failures": (refused,)}))
    assert [(f.name, f.works, f.seen) for f in found.values()] == [
        ("a streamed response", False, "request_refused: status 404 (model_not_found): no such model")
    ]


async def test_an_effort_field_that_is_refused_is_left_out_and_said_so() -> None:
    refused = Failure(status=400, body={"error": {"message": "unknown field reasoning_effort"}})
    found = await findings(ADD.model_copy(update={"failures": (refused,)}), SUM, effort="high")
    assert "effort field was refused" in found["a streamed response"].seen
    assert found["the right answer"].works
