"""The toolbox: every call gets a result, whatever goes wrong in a tool."""

from pathlib import Path

import anyio
import pytest

from agent.approval import Gate, Mode
from agent.errors import ToolFault
from agent.message import JsonObject, ToolCall
from agent.repeat import RepeatGuard
from agent.toolbox import Done, Journal, Toolbox
from agent.tools.output import MAX_RESULT_CHARS, OutputStore, output_tools
from agent.tools.tool import Arguments, CallContext, Effect, Output, Tool
from tests.fakes_provider import Watcher

pytestmark = pytest.mark.anyio


class Number(Arguments):
    number: int = 0


class Bench:
    """A toolbox with tools that wait for each other, fail, or talk too much."""

    def __init__(self, folder: Path) -> None:
        self.done: list[Done] = []
        self.order: list[str] = []
        self.store = OutputStore(folder)
        self.met = anyio.Event()
        tools = (
            self.tool("meet", Effect.READS, self.meet),
            self.tool("write", Effect.WRITES, self.write),
            self.tool("refuse", Effect.READS, self.refuse),
            self.tool("crash", Effect.READS, self.crash),
            self.tool("talk", Effect.READS, self.talk),
            *output_tools(self.store),
        )
        journal = Journal(lambda call_id, note: None, self.done.append)
        self.box = Toolbox(tools, Gate(Mode.YES), self.store, RepeatGuard(), journal, Watcher())

    def tool(self, name: str, effect: Effect, run: object) -> Tool[Number]:
        return Tool(name, name, Number, effect, run, lambda a: name)  # type: ignore[arg-type]

    async def meet(self, arguments: Number, context: CallContext) -> Output:
        self.order.append(f"meet {arguments.number}")
        if arguments.number == 2:
            self.met.set()
        await self.met.wait()
        return Output(f"met {arguments.number}")

    async def write(self, arguments: Number, context: CallContext) -> Output:
        self.order.append(f"write {arguments.number}")
        return Output("written", changed=True)

    async def refuse(self, arguments: Number, context: CallContext) -> Output:
        raise ToolFault("look elsewhere")

    async def crash(self, arguments: Number, context: CallContext) -> Output:
        raise ZeroDivisionError("by zero")

    async def talk(self, arguments: Number, context: CallContext) -> Output:
        return Output("\n".join(f"line {n}" for n in range(1, 10_001)))

    async def call(self, *calls: tuple[str, JsonObject]) -> dict[str, str]:
        asked = tuple(ToolCall(f"c{n}", name, arguments) for n, (name, arguments) in enumerate(calls))
        with anyio.fail_after(60):
            await self.box.run(asked, {})
        return {done.call.id: done.result.content for done in self.done}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "outputs")


async def test_calls_that_only_look_run_at_the_same_time_and_others_in_between(bench: Bench) -> None:
    await bench.call(
        ("write", {"number": 0}), ("meet", {"number": 1}), ("meet", {"number": 2}), ("write", {"number": 3})
    )
    assert bench.order == ["write 0", "meet 1", "meet 2", "write 3"]


async def test_whatever_goes_wrong_in_a_tool_is_its_result(bench: Bench) -> None:
    results = await bench.call(("refuse", {}), ("crash", {}), ("nothing", {}), ("write", {"number": "x"}))
    assert results["c0"] == "look elsewhere"
    assert results["c1"] == "crash failed: ZeroDivisionError: by zero"
    assert results["c2"].startswith("not run: there is no tool nothing. There are: meet, write,")
    assert "number: input should be a valid integer" in results["c3"]
    assert all(done.result.is_error for done in bench.done)


@pytest.mark.parametrize(
    "name", ["functions.write", "default_api.write", "write<|channel|>commentary", "functions.write<|x|>"]
)
async def test_a_decorated_name_of_one_of_our_tools_is_understood(bench: Bench, name: str) -> None:
    assert await bench.call((name, {})) == {"c0": "written"}


@pytest.mark.parametrize("name", ["writes", "xwrite", "", "functions."])
async def test_a_name_that_is_only_similar_is_not(bench: Bench, name: str) -> None:
    assert "there is no tool" in (await bench.call((name, {})))["c0"]


async def test_a_long_output_keeps_head_and_tail_and_can_be_read_on(bench: Bench) -> None:
    shown = (await bench.call(("talk", {})))["c0"]
    assert len(shown) < MAX_RESULT_CHARS + 200
    assert shown.startswith("line 1\n")
    assert shown.endswith("\nline 10000")
    assert "read_output(handle=1, first_line=" in shown
    first = int(shown.split("first_line=")[1].split(")")[0])
    bench.done.clear()
    more = (await bench.call(("read_output", {"handle": 1, "first_line": first, "line_count": 2})))["c0"]
    assert more == f"line {first}\nline {first + 1}\n[lines {first} to {first + 1} of 10000]"


async def test_an_unknown_handle_is_a_fault_in_words(bench: Bench) -> None:
    assert "there is no output 7" in (await bench.call(("read_output", {"handle": 7})))["c0"]
