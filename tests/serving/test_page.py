"""The page: nothing from elsewhere, and what a person does with it in a real browser."""

import re
import shutil

import pytest

import synmod as sm
from tests.serving.client import answering, echo, get, serving
from tests.serving.test_runs import Clerk

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


async def test_the_page_loads_nothing_from_elsewhere():
    """One file under a strict policy; it needs no token, and shows no secret."""
    x = await get(sm.serve(echo(), token="secret-token"), "/")
    page, policy = x.content.decode(), x.answer_headers["content-security-policy"]
    assert x.status == 200
    assert x.answer_headers["content-type"] == "text/html"
    assert not re.search(r"https?://|//[a-z]|\bsrc=|<link|@import|innerHTML|\beval\b", page)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    nonce = re.search(r"script-src 'nonce-([\w-]+)'", policy)[1]
    assert page.count(f'nonce="{nonce}"') == 2
    assert nonce not in (await get(sm.serve(echo()), "/")).content.decode()
    assert "secret-token" not in page


@pytest.fixture
async def browser_page():
    """A page of headless Chromium, which fails the test on an error in the console."""
    playwright = pytest.importorskip("playwright.async_api")
    if BROWSER is None:
        pytest.skip("there is no Chromium here")
    async with playwright.async_playwright() as p:
        browser = await p.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = await browser.new_page()
        faults = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)
        yield page
        await browser.close()
        assert not faults


@pytest.mark.slow
async def test_a_person_tries_a_program(browser_page):
    """The token is asked for and kept in the tab; the answer is streamed; hostile text stays text."""
    page = browser_page
    app = sm.serve(
        answering(lambda text: [sm.LMChunk('{"answer": "'), sm.LMChunk(text), sm.LMChunk('"}')]), token="t-0123"
    )
    async with serving(app) as address:
        await page.goto(address)
        await page.fill("#token", "wrong")
        await page.dispatch_event("#token", "change")
        await page.wait_for_selector("#problem:has-text('token')")
        await page.fill("#token", "t-0123")
        await page.dispatch_event("#token", "change")
        await page.fill("textarea", "<img src=x onerror=alert(1)>")
        await page.click("#send")
        await page.wait_for_selector("#usage:has-text('tokens')")
        assert "<img src=x" in await page.text_content("#answer")
        assert await page.query_selector("#answer img") is None
        await page.reload()
        await page.wait_for_selector("textarea")


@pytest.mark.slow
async def test_a_person_answers_a_run(browser_page, tmp_path):
    """A run is started in the page, its question answered there, and its result shown."""
    page = browser_page
    app = sm.serve({"clerk": Clerk([], name="clerk"), "echo": echo()}, runs=tmp_path)
    async with serving(app) as address:
        await page.goto(address)
        await page.fill("textarea", "x")
        await page.click("#begin")
        await page.wait_for_selector("#questions form")
        assert "Send it?" in await page.text_content("#questions")
        await page.check("#questions input[type=checkbox]")
        await page.click("#questions button")
        await page.wait_for_selector("#answer:has-text('draft sent')")
        await page.wait_for_selector("#questions form", state="detached")
        app.open_runs().stop()
