"""Pages of the public web as text, and nothing of this host's networks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from agent.errors import ToolFault
from agent.message import ToolCall
from agent.tools.tool import CallContext, Output
from agent.tools.web import WebFetch, WebFetcher, is_public, page_text
from tests.fakes_provider import Watcher

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1",
        "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00::1", "::ffff:127.0.0.1",
        "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1", "5f00::1", "3fff::1",
        "192.0.0.8", "192.88.99.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2001:db8::1",
        "2002:7f00:0001::", "ff02::1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_not_reached(address: str) -> None:
    assert not is_public(address, 443)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"])
def test_public_addresses_are_reached_on_the_ports_of_the_web(address: str) -> None:
    assert is_public(address, 443)
    assert is_public(address, 80)
    assert not is_public(address, 22)


@asynccontextmanager
async def pages(**answers: bytes) -> AsyncIterator[tuple[WebFetcher, int, list[str]]]:
    """Serve pages by the first word of their path; every name stands for this server."""
    looked_up: list[str] = []

    async def serve(stream: SocketStream) -> None:
        async with stream:
            request = b""
            while b"\r\n\r\n" not in request:
                request += await stream.receive()
            name = request.split()[1].decode().strip("/")
            asked_for = request.split(b"host: ")[1].split()[0]
            await stream.send(b"HTTP/1.1 " + answers[name].replace(b"HOST", asked_for))

    async def resolve(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return ["10.0.0.1"] if host == "inside.example" else ["127.0.0.1"]

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        port = listener.extra(SocketAttribute.local_port)
        tasks.start_soon(listener.serve, serve)
        yield WebFetcher(resolve, lambda address, port: address == "127.0.0.1"), port, looked_up
        tasks.cancel_scope.cancel()


async def fetch(fetcher: WebFetcher, url: str) -> Output:
    context = CallContext(ToolCall("c", "web_fetch", {}), lambda note: None, Watcher())
    return await fetcher.fetch(WebFetch(url=url), context)


def answer(status: str, head: str, body: bytes = b"") -> bytes:
    return f"{status}\r\n{head}\r\nconnection: close\r\n\r\n".encode() + body


PAGE = (
    b"<html><head><title>T</title><script>x()</script></head>"
    b"<body><nav>menu</nav><p>Hello HOST</p></body></html>"
)


async def test_a_page_is_text_and_the_server_hears_the_name() -> None:
    async with pages(page=answer("200 OK", "content-type: text/html", PAGE)) as (fetcher, port, _):
        output = await fetch(fetcher, f"http://docs.example:{port}/page")
    assert (
        output.text
        == f"http://docs.example:{port}/page answered with status 200\n\nT\n\nHello docs.example:{port}"
    )


async def test_each_redirect_is_looked_up_and_checked_anew() -> None:
    moved = answer("302 Found", "location: http://inside.example/secret\r\ncontent-length: 0")
    async with pages(page=moved) as (fetcher, port, looked_up):
        with pytest.raises(ToolFault, match=r"inside\.example port 80 is not on the public web"):
            await fetch(fetcher, f"http://docs.example:{port}/page")
    assert looked_up == ["docs.example", "inside.example"]


async def test_redirects_without_end_end() -> None:
    async with pages(page=answer("302 Found", "location: /page\r\ncontent-length: 0")) as (fetcher, port, _):
        with pytest.raises(ToolFault, match="redirects more than 5 times"):
            await fetch(fetcher, f"http://docs.example:{port}/page")


@pytest.mark.parametrize(
    ("head", "body", "told"),
    [
        ("content-type: image/png", b"x", "is image/png, not text"),
        ("content-type: text/plain", b"x" * (3 << 20), "larger than 2097152 bytes"),
    ],
)
async def test_what_is_no_text_or_too_large_is_refused(head: str, body: bytes, told: str) -> None:
    async with pages(page=answer("200 OK", head, body)) as (fetcher, port, _):
        with pytest.raises(ToolFault, match=told):
            await fetch(fetcher, f"http://docs.example:{port}/page")


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://x.example/", "http://", "http://user:pw@x.example/"]
)
async def test_what_is_no_plain_web_address_is_refused(url: str) -> None:
    with pytest.raises(ToolFault, match="no plain http or https address"):
        await fetch(WebFetcher(), url)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://0/", "http://2130706433/"]
)
async def test_this_host_cannot_be_reached_under_any_name(url: str) -> None:
    with pytest.raises(ToolFault, match=r"not on the public web|cannot be looked up"):
        await fetch(WebFetcher(), url)


def test_the_main_part_of_a_page_is_preferred() -> None:
    main = b"<main><h1>Title</h1><p>a <b>b</b></p><form>f</form></main>"
    html = b"<body><p>around</p>" + main + b"<footer>x</footer></body>"
    assert page_text(html).split() == ["Title", "a", "b"]
