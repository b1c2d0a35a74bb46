"""`pocketbuild stream`: explain recorded responses of model providers, from files or a pipe."""

import json
from typing import BinaryIO

import click

from agent.message import Dialect, JsonObject, Message, ToolCall
from agent.wire import ResponseParser

_CHUNK_BYTES = 1 << 16
_SHOWN_CHARS = 400


@click.group()
def stream() -> None:
    """Explain recorded responses of model providers."""


@stream.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.File("rb", lazy=True))
@click.option(
    "--dialect",
    required=True,
    type=click.Choice([dialect.value for dialect in Dialect]),
    help="The protocol that the recorded provider spoke.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, one for each file.")
def explain(files: tuple[BinaryIO, ...], dialect: str, as_json: bool) -> None:
    """Say what the recorded response bodies FILE... mean and what is odd in them; - is standard input.

    Each FILE is one body as it came over the wire. The exit code is 0 when the files were read,
    whatever they hold.
    """
    for file in files:
        message = _read(file, Dialect(dialect))
        click.echo(json.dumps(_to_json(message)) if as_json else _to_text(message, file.name))


def _read(file: BinaryIO, dialect: Dialect) -> Message:
    parser = ResponseParser(dialect)
    while not parser.is_done and (chunk := file.read(_CHUNK_BYTES)):
        parser.feed(chunk)
    return parser.close()


def _to_json(message: Message) -> JsonObject:
    usage = message.usage
    return {
        "text": message.text,
        "reasoning": message.reasoning,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
        ],
        "finish_reason": message.finish_reason,
        "usage": usage and {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
        "diagnostics": [
            {"code": found.code, "offset_bytes": found.offset_bytes, "detail": found.detail}
            for found in message.diagnostics
        ],
    }


def _to_text(message: Message, name: str) -> str:
    usage = message.usage
    counts = f"{usage.input_tokens} tokens in, {usage.output_tokens} out" if usage else "tokens not told"
    lines = [f"{name}: finish reason {message.finish_reason or 'none'}, {counts}"]
    for title, text in (("thinking", message.reasoning), ("text", message.text)):
        if text:
            lines.append(f"  {title} ({len(text)} characters): {_shortened(text)}")
    for call in message.tool_calls:
        lines += _call_lines(call)
    lines += [
        f"  at byte {found.offset_bytes}: {found.code}: {_shortened(found.detail)}"
        for found in message.diagnostics
    ]
    return "\n".join(lines)


def _call_lines(call: ToolCall) -> list[str]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    lines = [f"  call {call.id}: {call.name} {_shortened(arguments)}"]
    return [*lines, f"    must not run: {call.fault}"] if call.fault else lines


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]}…"
