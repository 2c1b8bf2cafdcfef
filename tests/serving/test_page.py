"""The page to try programs; `tests/cli/test_clients.py` opens it in a browser."""

import re

import synmod as sm
from tests.serving.client import echo, get


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
