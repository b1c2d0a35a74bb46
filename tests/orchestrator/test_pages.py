"""The pages in a real browser, over a running service with fake phones."""

import json
import re
import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.test_access import READ_WRITE, token_for
from tests.orchestrator.test_builds import ended
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
)
MANY = 600_000
"""Lines of a log that is higher than a browser lays out: the scroll bar stands for more than it measures."""
PATIENCE_MS = 180_000
expect.set_options(timeout=PATIENCE_MS)
WRONG = "/data/x/app/src/Main.java:1: error: ';' expected"


@asynccontextmanager
async def browsing(**options: Any) -> AsyncIterator[Page]:
    """A tab of a browser; what its console complains of fails the test."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=PATIENCE_MS)
        page = await browser.new_page(viewport={"width": 1200, "height": 1000}, **options)
        page.set_default_timeout(PATIENCE_MS)
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        yield page
        # A browser says every answer of 4xx, of which 401 and 404 are part of the pages' work.
        assert [text for text in complaints if "status of 40" not in text] == []
        await browser.close()


async def submit(running: Running, workspace: Path, **wish: Any) -> str:
    answer = await running.http.post("/v1/builds", json={"path": str(workspace), **wish})
    assert answer.is_success, answer.text
    build_id: str = answer.json()["id"]
    return build_id


async def build(running: Running, workspace: Path) -> str:
    build_id = await submit(running, workspace)
    await ended(running, build_id)
    return build_id


@needs_browser
async def test_a_failed_build_shows_its_cause_and_leads_to_its_line_of_the_log(
    start: Start, projects: Path
) -> None:
    lines = [f"line {n}" for n in range(30_000)]
    lines[20_000:20_000] = [
        "\x1b[31m> Task :app:compileDebugJavaWithJavac FAILED\x1b[0m",
        WRONG,
        "",
        "1 error",
    ]
    lines += ["", "FAILURE: Build failed with an exception.", "", "BUILD FAILED in 1s"]
    workspace = make_workspace(projects / "hello", exit_code=1, lines=["\n".join(lines)])
    async with start("p1") as running, browsing() as page:
        build_id = await build(running, workspace)
        await page.goto(f"{running.url}/builds/{build_id}")
        await expect(page.locator("body[data-ended]")).to_be_attached()
        await expect(page.locator("#badge")).to_have_text("failed")
        cause = page.locator("#causes li").first
        assert "app/src/Main.java:1" in await cause.inner_text()
        await cause.locator("a").click()
        target = page.locator(".log .target")
        await expect(target).to_contain_text("';' expected")
        await expect(target).to_be_in_viewport()
        assert re.search(r"#L20002$", page.url)
        assert await page.locator(".log .rows > div").count() < 200
        failed_task = page.locator(".log .rows > div", has_text="FAILED").first
        await expect(failed_task.locator("span.c31")).to_have_count(1)


@needs_browser
async def test_any_line_of_a_log_is_reached_by_its_address_by_search_and_by_scrolling(
    start: Start, projects: Path
) -> None:
    workspace = make_workspace(projects / "hello", lines=["\n".join(f"line {n}" for n in range(1, MANY + 1))])
    async with start("p1") as running, browsing() as page:
        build_id = await build(running, workspace)
        await page.goto(f"{running.url}/builds/{build_id}#L345678")
        await expect(page.locator(".log .target")).to_have_text("345678line 345678")
        await page.fill("#search input", "line 59999[89]$")
        await page.press("#search input", "Enter")
        await expect(page.locator("#hits")).to_have_text("1 of 2")
        await expect(page.locator(".log .target")).to_contain_text("line 599998")
        await page.click("#next")
        await expect(page.locator(".log .target")).to_contain_text("line 599999")
        await page.evaluate("document.querySelector('.log').scrollTop = 0")
        await expect(page.locator(".log .rows > div").first).to_have_text("1line 1")
        await page.mouse.move(600, 900)
        await page.mouse.wheel(0, 18 * 7)
        await expect(page.locator(".log .rows > div").first).to_have_text("8line 8")
        await page.fill("#search input", "(")
        await page.press("#search input", "Enter")
        await expect(page.locator("#fault")).to_contain_text("regular expression")


@needs_browser
async def test_a_running_build_is_followed_to_its_end(start: Start, projects: Path) -> None:
    workspace = make_workspace(projects / "hello", lines=[f"line {n}" for n in range(40)], line_s=0.02)
    async with start("p1") as running, browsing() as page:
        build_id = await submit(running, workspace)
        await page.goto(f"{running.url}/builds/{build_id}")
        await expect(page.locator("#badge")).to_have_text("succeeded")
        await expect(page.locator(".log .rows > div").last).to_contain_text("line 39")
        await expect(page.locator("#artifacts button")).to_have_count(1)
        await expect(page.locator("#tasks tr").first).to_contain_text(":app:")
        async with page.expect_download() as download:
            await page.click("#artifacts button")
        saved = (await (await download.value).path()).read_bytes()
        assert saved == (await running.http.get(f"/v1/builds/{build_id}/artifacts/0")).content


@needs_browser
async def test_the_first_page_lists_phones_and_builds_and_leads_to_them(start: Start, projects: Path) -> None:
    async with start("p1") as running, browsing() as page:
        build_id = await build(running, make_workspace(projects / "hello"))
        await build(running, make_workspace(projects / "other"))
        await page.goto(running.url)
        await expect(page.locator("#builds tr")).to_have_count(2)
        await expect(page.locator("#phones tr")).to_contain_text("p1")
        await expect(page.locator("#phones tr")).to_contain_text("jdk 17.0.9")
        await page.fill("#filter input", "hello")
        await expect(page.locator("#builds tr")).to_have_count(1)
        await page.click(f"text={build_id}")
        await expect(page.locator("#badge")).to_have_text("succeeded")


@needs_browser
async def test_what_a_log_says_never_becomes_markup(start: Start, projects: Path) -> None:
    script = "<img src=x onerror=document.title='taken'><script>document.title='taken'</script>"
    nasty = f"{script}\x1b]0;t\x07\x1b[2Jend"
    async with start("p1") as running, browsing() as page:
        build_id = await build(running, make_workspace(projects / "hello", lines=[nasty]))
        await page.goto(f"{running.url}/builds/{build_id}")
        await expect(page.locator(".log .rows > div").first).to_contain_text("<img src=x")
        assert await page.locator(".log img, .log script").count() == 0
        assert "taken" not in await page.title()
        assert (await page.locator(".log .rows > div").first.inner_text()).endswith("</script>end")


@needs_browser
async def test_a_service_that_wants_a_token_asks_the_person_and_shows_only_what_the_token_sees(
    start: Start, projects: Path
) -> None:
    async with start("p1", require_token=True) as running, browsing() as page:
        headers = {owner: await token_for(running, owner, READ_WRITE) for owner in ("ann", "bob")}
        secrets = {owner: sent["authorization"].split()[1] for owner, sent in headers.items()}
        running.http.headers.update(headers["ann"])
        build_id = await build(running, make_workspace(projects / "hello"))
        await page.goto(f"{running.url}/builds/{build_id}")
        await page.fill("dialog input", secrets["bob"])
        await page.click("dialog button")
        await expect(page.locator("#fault")).to_contain_text("there is no build")
        await page.evaluate("sessionStorage.clear()")
        await page.reload()
        await page.fill("dialog input", secrets["ann"])
        await page.click("dialog button")
        await expect(page.locator("#badge")).to_have_text("succeeded")


@needs_browser
async def test_the_api_is_searched_opened_and_copied_as_a_command_that_works(
    start: Start, projects: Path
) -> None:
    async with start("p1") as running, browsing() as page:
        document = (await running.http.get("/openapi.json")).json()
        count = sum(len(methods) for methods in document["paths"].values())
        await page.goto(f"{running.url}/docs")
        await expect(page.locator(".operation")).to_have_count(count)
        await page.fill("#find", "POST retry")
        await expect(page.locator(".operation:visible")).to_have_count(1)
        await page.fill("#find", "list_builds")
        await page.click("#list_builds > summary")
        opened = page.locator("#list_builds")
        for told in ("outcome", '"succeeded" | "failed"', "1…200, by default 50", '"is_cancel_asked": false'):
            await expect(opened).to_contain_text(told)
        await expect(opened.locator(".copied pre")).to_have_text(f"curl '{running.url}/v1/builds'")
        await page.goto(f"{running.url}/docs#create_build")
        body = page.locator("#create_build")
        await expect(body).to_contain_text("assembleDebug")
        command = shlex.split(await body.locator(".copied pre").inner_text())
        sent = json.loads(command[command.index("-d") + 1])
        assert sent == document["components"]["schemas"]["BuildRequest"]["examples"][0]
        assert command[:4] == ["curl", "-X", "POST", f"{running.url}/v1/builds"]
        for each in await page.locator(".operation").all():
            await each.evaluate("box => { box.open = true }")
        await expect(page.locator(".operation[open] .copied pre")).to_have_count(count)
        assert "undefined" not in await page.locator("main").inner_text()


@needs_browser
async def test_no_page_asks_any_other_host(start: Start, projects: Path) -> None:
    async with start("p1") as running, browsing() as page:
        build_id = await build(running, make_workspace(projects / "hello"))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for path in ("/", "/docs", f"/builds/{build_id}"):
            await page.goto(running.url + path)
            await expect(page.locator("body[data-ready], body[data-ended]")).to_be_attached()
        assert [url for url in asked if not url.startswith(f"{running.url}/")] == []
        assert len(asked) > 10


async def test_frames_hold_no_data_need_no_token_and_load_nothing_from_elsewhere(start: Start) -> None:
    names = ("build.js", "docs.js", "schema.js", "page.css", "icon.svg")
    paths = ["/", "/docs", "/builds/anything", *(f"/static/{name}" for name in names)]
    async with start(require_token=True) as running:
        for path in paths:
            answer = await running.http.get(path)
            assert answer.status_code == 200, path
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", answer.text), path


async def test_only_the_files_of_pages_are_given(start: Start) -> None:
    async with start() as running:
        for name in ("../app.py", "..%2fapp.py", "%2e%2e/app.py", "__init__.py", "nothing.js", "index"):
            answer = await running.http.get(f"/static/{name}")
            assert answer.status_code == 404, name
            assert answer.headers["content-type"].startswith("application/problem+json")


async def test_a_page_of_another_site_changes_nothing(start: Start, projects: Path) -> None:
    async with start("p1") as running:
        build_id = await build(running, make_workspace(projects / "hello"))
        for origin in ("http://evil.example", "http://127.0.0.1:1", "null", "http://[", "http://localhost"):
            refused = await running.http.post(f"/v1/builds/{build_id}/retry", headers={"origin": origin})
            assert (refused.status_code, refused.json()["code"]) == (403, "cross_origin"), origin
        own = {"origin": running.url}
        assert (await running.http.post(f"/v1/builds/{build_id}/cancel", headers=own)).is_success
