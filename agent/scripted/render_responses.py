"""Say a turn in the Responses dialect, whose events repeat each item up to three times."""

from pydantic_core import to_json

from agent.message import FinishReason, JsonObject
from agent.scripted.conversation import Call, Turn
from agent.scripted.frame import Frame, pieces


def render_responses(turn: Turn, number: int) -> list[Frame]:
    """Give the events of a sound response."""
    frames: list[Frame] = [
        _event("response.created", response={"id": f"resp_{number}", "status": "in_progress"})
    ]
    output: list[JsonObject] = []
    if turn.reasoning:
        item = {
            "type": "reasoning",
            "id": f"rs_{number}",
            "summary": [{"type": "summary_text", "text": turn.reasoning}],
            "encrypted_content": f"scripted-encrypted-{number}",
        }
        frames.append(_event("response.output_item.added", output_index=0, item={**item, "summary": []}))
        frames += [
            _event(
                "response.reasoning_summary_text.delta",
                item_id=item["id"],
                output_index=0,
                summary_index=0,
                delta=piece,
            )
            for piece in pieces(turn.reasoning)
        ]
        frames.append(_event("response.output_item.done", output_index=0, item=item))
        output.append(item)
    if turn.text:
        frames += _text(turn.text, number, len(output), output)
    for index, call in enumerate(turn.calls):
        frames += _call(call, f"{number}_{index}", len(output), output)
    return [*frames, _end(turn, number, output)]


def _event(kind: str, **data: object) -> Frame:
    return Frame({"type": kind, **data}, kind)


def _text(text: str, number: int, index: int, output: list[JsonObject]) -> list[Frame]:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    output.append(item)
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    return [
        _event(
            "response.output_item.added",
            output_index=index,
            item={**item, "content": [], "status": "in_progress"},
        ),
        _event("response.content_part.added", **place, part={**part, "text": ""}),
        *(_event("response.output_text.delta", **place, delta=piece) for piece in pieces(text)),
        _event("response.output_text.done", **place, text=text),
        _event("response.output_item.done", output_index=index, item=item),
    ]


def _call(call: Call, ident: str, index: int, output: list[JsonObject]) -> list[Frame]:
    arguments = to_json(call.arguments).decode()
    item = {
        "type": "function_call",
        "id": f"fc_{ident}",
        "call_id": f"call_{ident}",
        "name": call.tool,
        "arguments": arguments,
        "status": "completed",
    }
    output.append(item)
    place = {"item_id": item["id"], "output_index": index}
    opened = {**item, "arguments": "", "status": "in_progress"}
    return [
        _event("response.output_item.added", output_index=index, item=opened),
        *(_event("response.function_call_arguments.delta", **place, delta=p) for p in pieces(arguments)),
        _event("response.function_call_arguments.done", **place, arguments=arguments),
        _event("response.output_item.done", output_index=index, item=item),
    ]


def _end(turn: Turn, number: int, output: list[JsonObject]) -> Frame:
    counts = {
        "input_tokens": turn.usage.input,
        "input_tokens_details": {"cached_tokens": turn.usage.cached},
        "output_tokens": turn.usage.output,
    }
    response: JsonObject = {"id": f"resp_{number}", "model": "scripted", "output": output, "usage": counts}
    match turn.claimed_finish:
        case FinishReason.LENGTH:
            response |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
            return _event("response.incomplete", response=response)
        case FinishReason.CONTENT_FILTER:
            response |= {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
            return _event("response.incomplete", response=response)
        case FinishReason.ERROR:
            response |= {"status": "failed", "error": {"code": "server_error", "message": "scripted failure"}}
            return _event("response.failed", response=response)
        case FinishReason.STOP | FinishReason.TOOL_CALLS:
            return _event("response.completed", response={**response, "status": "completed"})
