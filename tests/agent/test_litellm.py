"""Against a server that is not ours: the LiteLLM proxy, in all three dialects that it serves.

Behind the proxy stands a scripted provider, so that its own translation of streams, tools and results is
what the agent has to cope with. Skipped only where the proxy is not installed (`pip install
'pocketbuild[litellm]'`, or any `litellm` on the path).
"""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest

from agent.decide import StopReason
from agent.errors import RequestRefused
from agent.http import Line
from agent.message import Dialect, UserMessage
from agent.providers.catalogue import choose, custom
from agent.redact import Redactor
from agent.retry import RetryPolicy
from agent.runner import Equipment, run
from agent.scripted import Call, Conversation, Expected, ScriptedProvider, Turn
from agent.scripted.conversation import ExpectedResult
from agent.transcript import Transcript
from agent.turn import TurnTaker, request_for
from tests.fakes_provider import FAULT, FolderBuilder, Watcher, make_workspace
from tests.ports import port_to_listen_on

PROXY = shutil.which(
    "litellm", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
)
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(PROXY is None, reason="litellm is not installed"),
]
KEY = "sk-litellm-test-0123456789"
DIALECTS = (Dialect.OPENAI_CHAT, Dialect.OPENAI_RESPONSES, Dialect.ANTHROPIC)
MOCKED = (Dialect.OPENAI_CHAT, Dialect.ANTHROPIC)
"""The proxy cannot stream its own mocked answers in the Responses dialect; it fails with status 500."""
MAIN = "app/src/main/java/Main.java"
READ = Call(tool="read_file", arguments={"path": MAIN})
LIST = Call(tool="list_files", arguments={"pattern": "*.gradle"})
FIX = Call(tool="edit_file", arguments={"path": MAIN, "old": FAULT, "new": "42"})


def told(*names: str) -> Expected:
    return Expected(results=tuple(ExpectedResult(tool=name) for name in names))


SCRIPT = Conversation(
    title="through a proxy",
    turns=(
        Turn(text="I look.", calls=(READ, LIST)),
        Turn(expects=told("read_file", "list_files"), calls=(FIX,)),
        Turn(expects=told("edit_file"), text="One word was wrong – mended."),
    ),
)
CONFIG = """
model_list:
  - model_name: mocked
    litellm_params:
      {{model: hosted_vllm/none, api_key: none, api_base: "{base_url}", mock_response: "Hello, Wörld!"}}
  - model_name: scripted
    litellm_params: {{model: hosted_vllm/scripted, api_key: none, api_base: "{base_url}"}}
general_settings: {{master_key: {key}}}
litellm_settings: {{telemetry: false}}
"""


@asynccontextmanager
async def proxy(server: ScriptedProvider, folder: Path) -> AsyncIterator[str]:
    """Run the proxy in front of a scripted provider, and give its address."""
    port = port_to_listen_on()
    config = folder / "litellm.yaml"
    config.write_text(CONFIG.format(base_url=server.base_url, key=KEY))
    command = [str(PROXY), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "DISABLE_ADMIN_UI": "True"}
    with (folder / "log").open("wb") as log:
        process = await anyio.open_process(
            command, stdout=log, stderr=subprocess.STDOUT, cwd=folder, env=environment
        )
    async with process:
        try:
            with anyio.fail_after(120):
                async with httpx.AsyncClient(trust_env=False) as client:
                    while not await is_ready(client, port):
                        assert process.returncode is None, (folder / "log").read_text()[-2000:]
                        await anyio.sleep(0.2)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


async def is_ready(client: httpx.AsyncClient, port: int) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{port}/health/liveliness")).status_code == 200
    except httpx.TransportError:
        return False


async def test_text_and_tools_come_through_the_proxy_in_each_dialect(tmp_path: Path) -> None:
    async with ScriptedProvider(SCRIPT) as server, proxy(server, tmp_path) as base_url:
        for dialect in DIALECTS:
            folder = tmp_path / dialect
            if dialect in MOCKED:
                await says_hello(base_url, dialect)
            await repairs(base_url, dialect, folder)
            assert server.mismatches == []
        await is_told_of_an_unknown_model(base_url)


async def says_hello(base_url: str, dialect: Dialect) -> None:
    async with Line(choose(custom(base_url, dialect), "mocked"), KEY) as line:
        turns = TurnTaker(line, Watcher(), RetryPolicy(attempts=1))
        message = await turns.take(request_for(line, system="Be kind.", items=(UserMessage("Hi"),)))
    assert message.text == "Hello, Wörld!"


async def repairs(base_url: str, dialect: Dialect, folder: Path) -> None:
    workspace = make_workspace(folder / "w")
    async with Line(choose(custom(base_url, dialect), "scripted"), KEY) as line:
        with Transcript(folder / "run", Redactor([KEY])) as transcript:
            equipment = Equipment(
                line=line,
                builder=FolderBuilder(folder / "builds"),
                transcript=transcript,
                on_progress=Watcher(),
            )
            result = await run("make it build", workspace, equipment, run_id="r1")
    assert (result.reason, result.text) == (StopReason.GREEN, "One word was wrong – mended.")
    assert "answer = 42" in (workspace / MAIN).read_text()


async def is_told_of_an_unknown_model(base_url: str) -> None:
    async with Line(choose(custom(base_url, Dialect.OPENAI_CHAT), "unheard-of"), KEY) as line:
        turns = TurnTaker(line, Watcher(), RetryPolicy(attempts=1))
        with pytest.raises(RequestRefused, match="unheard-of"):
            await turns.take(request_for(line, system="", items=(UserMessage("Hi"),)))
