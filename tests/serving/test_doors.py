"""Who may enter: hosts, origins, addresses and tokens."""

import pytest

import synmod as sm
from tests.serving.client import Client, echo, get, post

LOCAL = ["localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:80", "[::1]", "[::1]:8000", "Shop.example"]
ELSEWHERE = [("10.0.0.5", 80), ("203.0.113.9", 80), ("0.0.0.0", 80), None, ("/run/app.sock", None)]
EVIL = [
    "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.1@evil.example", "",
    "127.0.0.1:80@evil", "127.0.0.1 evil", "[::1].evil", "10.0.0.1", "0.0.0.0",
]  # fmt: skip


@pytest.mark.parametrize("host", EVIL)
@pytest.mark.parametrize("path", ["/", "/call", "/health", "/metrics", "/v1/models"])
async def test_another_host_is_a_421(host, path):
    """A page cannot rebind its name to the loopback."""
    assert (await get(sm.serve(echo()), path, headers={"host": host})).status == 421


@pytest.mark.parametrize("host", LOCAL)
async def test_loopback_and_listed_hosts_are_let_in(host):
    """With or without a port, in any case."""
    assert (await get(sm.serve(echo(), hosts=["shop.example"]), "/health", headers={"host": host})).status == 200


@pytest.mark.parametrize("host", ["fd00::1", "[fd00::1]"])
async def test_an_address_of_ipv6_may_be_listed(host):
    """With or without brackets; what is no name of a host stays outside."""
    app = sm.serve(echo(), hosts=[host])
    assert (await get(app, "/health", headers={"host": "[fd00::1]:8000"})).status == 200
    assert (await get(app, "/health", headers={"host": "bad host"})).status == 421


@pytest.mark.parametrize("host", ["*", "", "https://shop.example"])
def test_a_listed_host_is_a_name(host):
    """A pattern would let in requests without a valid host."""
    with pytest.raises(sm.errors.ArgumentError, match="names or addresses"):
        sm.serve(echo(), hosts=[host])


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://127.0.0.1:8000", 200),
        ("https://127.0.0.1:8000", 200),
        ("https://shop.example", 200),
        ("https://evil.example", 403),
        ("http://127.0.0.1:8001", 403),
        ("https://shop.example.evil", 403),
        ("null", 403),
        ("", 403),
    ],
)
async def test_a_foreign_origin_is_a_403(origin, status):
    """Its own origin and those of `cors` are let in; the latter may read the answer."""
    app = sm.serve(echo(), cors=["https://shop.example"])
    x = await post(app, "/call", {"text": "x"}, headers={"origin": origin})
    assert x.status == status
    allowed = x.answer_headers.get("access-control-allow-origin")
    assert allowed == ("https://shop.example" if origin == "https://shop.example" else None)


async def test_a_preflight_of_a_listed_origin_is_answered():
    """The browser asks before it sends a token."""
    app = sm.serve(echo(), cors=["https://shop.example"], token="secret")
    headers = {
        "origin": "https://shop.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
    }
    x = await Client("OPTIONS", "/call", headers=headers).ask(app)
    assert x.status == 200
    assert "authorization" in x.answer_headers["access-control-allow-headers"]


@pytest.mark.parametrize("server", ELSEWHERE)
async def test_without_a_token_only_the_loopback_is_answered(server):
    """A request that came in elsewhere is a 403; `token=False` opens the door."""
    assert (await post(sm.serve(echo()), "/call", {"text": "x"}, server=server)).status == 403
    assert (await post(sm.serve(echo(), token=False), "/call", {"text": "x"}, server=server)).status == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("Bearer secret-token", 200),
        ("bearer  secret-token ", 200),
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer secret", 401),
        ("Bearer secret-token2", 401),
        ("Basic secret-token", 401),
        ("secret-token", 401),
        ("Bearer sécret", 401),
    ],
)
async def test_a_wrong_token_is_a_401(sent, status):
    """With how to send it; pages and probes need none."""
    app = sm.serve(echo(), token="secret-token")
    x = await post(app, "/call", {"text": "x"}, headers={"authorization": sent}, server=("10.0.0.5", 80))
    assert x.status == status
    assert ("www-authenticate" in x.answer_headers) == (status == 401)
    assert b"secret-token" not in x.content
    assert [(await get(app, path)).status for path in ("/health", "/ready", "/metrics")] == [200, 200, 401]


async def test_the_token_of_the_environment(monkeypatch):
    """An empty one is none."""
    monkeypatch.setenv("SYNMOD_TOKEN", "from-the-environment")
    assert (await post(sm.serve(echo()), "/call", {"text": "x"})).status == 401
    assert (await post(sm.serve(echo(), token=False), "/call", {"text": "x"})).status == 200
    monkeypatch.setenv("SYNMOD_TOKEN", "")
    assert (await post(sm.serve(echo()), "/call", {"text": "x"})).status == 200


async def test_failures_of_chat_completions_have_openais_shape():
    """At the door, too."""
    x = await get(sm.serve(echo(), token="secret-token"), "/v1/models")
    assert x.status == 401
    assert x.json["error"]["type"] == "authentication_error"
