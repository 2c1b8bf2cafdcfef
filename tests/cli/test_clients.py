"""Clients that others have written, each against a server that the command has started."""

import asyncio
import json
import os
import shutil
import subprocess

import pytest

from tests.cli.conftest import HOSTILE, ask, served

pytestmark = pytest.mark.slow
SECRET = {**os.environ, "SYNMOD_TOKEN": "secret-token"}


def test_the_openai_sdk(shop):
    """Plain and streamed: the same content; failures have the SDK's classes."""
    openai = pytest.importorskip("openai")
    with served("echo.json", env=SECRET) as (address, _):
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="secret-token", max_retries=0)
        turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
        assert [model.id for model in client.models.list()] == ["echo"]
        whole = client.chat.completions.create(model="echo", messages=turns, temperature=0)
        assert whole.choices[0].message.content == "Hello"
        stream = client.chat.completions.create(
            model="echo", messages=turns, stream=True, stream_options={"include_usage": True}
        )
        chunks = [*stream]
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello"
        assert chunks[-1].usage.total_tokens == 0
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="echo", messages=turns, n=2)
        with pytest.raises(openai.NotFoundError, match="no program"):
            client.chat.completions.create(model="gpt", messages=turns)
        wrong = openai.OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0)
        with pytest.raises(openai.AuthenticationError):
            wrong.models.list()
        client.close()
        wrong.close()


async def test_the_client_of_mcp(shop):
    """Over streamable HTTP: tools, results, failures, many calls at once, and one that is cancelled."""
    from mcp import Client

    with served("echo.json", "wait.json", "--concurrency", "4") as (address, _):
        async with Client(f"{address}/mcp") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["echo", "wait"]
            results = await asyncio.gather(*[client.call_tool("echo", {"text": str(n)}) for n in range(50)])
            assert [result.structured_content["text"] for result in results] == [str(n) for n in range(50)]
            result = await client.call_tool("echo", {"text": 1})
            assert (result.is_error, "/text: wanted string" in result.content[0].text) == (True, True)
            call = asyncio.create_task(client.call_tool("wait", {"text": "1000"}))
            await until_in_flight(address, 1)
            call.cancel()
            await until_in_flight(address, 0)


async def until_in_flight(address, count):
    """Wait until so many calls are in flight."""
    while f"synmod_in_flight {count}\n" not in (await asyncio.to_thread(ask, address, "/metrics"))[1]:
        pass


def curl(*arguments):
    """Return what curl prints."""
    return subprocess.run(["curl", "-sS", *arguments], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_curl(shop):
    """The lines of the page: a call, a stream, a failure, a run."""
    with served("answer.json", "--runs", "runs", env=SECRET) as (address, _):
        body = (
            "-H",
            "authorization: Bearer secret-token",
            "-H",
            "content-type: application/json",
            "-d",
            '{"text": "x"}',
        )
        assert json.loads(curl(f"{address}/call", *body)) == {"answer": HOSTILE}
        *_, result, rest = curl("-N", f"{address}/stream", *body).split("\n\n")
        assert (result.splitlines()[0], rest) == ("event: result", "")
        assert "HTTP/1.1 201 Created" in curl("-i", f"{address}/runs", *body)
        head, _, text = curl("-i", f"{address}/call", *body[2:]).partition("\n\n")
        assert head.splitlines()[0] == "HTTP/1.1 401 Unauthorized"
        assert json.loads(text)["status"] == 401


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture
async def page():
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


async def test_a_person_tries_a_program(shop, page):
    """The token is asked for and kept in the tab; the answer is shown; hostile text stays text."""
    with served("answer.json", env=SECRET) as (address, _):
        await page.goto(address)
        await page.fill("#token", "wrong")
        await page.dispatch_event("#token", "change")
        await page.wait_for_selector("#problem:has-text('token')")
        await page.fill("#token", "secret-token")
        await page.dispatch_event("#token", "change")
        await page.fill("textarea", HOSTILE)
        await page.click("#send")
        await page.wait_for_selector("#usage:has-text('tokens')")
        assert HOSTILE in await page.text_content("#answer")
        assert await page.query_selector("#answer img") is None
        await page.reload()
        await page.wait_for_selector("textarea")


async def test_a_person_answers_runs(shop, page):
    """One question after the other, of a run that the page has started and of one before; what is typed stays."""
    with served("clerk.json", "twice.json", "--runs", "runs") as (address, _):
        run_id = json.loads(ask(address, "/runs/twice", {"text": "old"})[1])["id"]
        while json.loads(ask(address, f"/runs/{run_id}")[1])["state"] != "waiting":
            pass
        await page.goto(address)
        await page.select_option("#program", "twice")
        await page.fill("#questions form:has-text('old') textarea", "typed")
        await page.fill("#form textarea", "new")
        await page.click("#begin")
        for text, answers in {"new": ("so", "so"), "old": (None, "then")}.items():
            for question, answer in zip(("What", "Why"), answers, strict=True):
                form = f"#questions form:has-text('{text}'):has-text('{question}')"
                if answer is not None:
                    await page.fill(f"{form} textarea", answer)
                await page.click(f"{form} button")
        await page.wait_for_selector("#answer:has-text('old typed then')")
        await page.wait_for_selector("#questions form", state="detached")
        assert json.loads(ask(address, f"/runs/{run_id}")[1])["outputs"] == {"text": "old typed then"}
