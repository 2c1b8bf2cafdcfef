"""The door to litellm, asked in a process of its own against a server on the loopback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from synmod.errors import UnavailableError
from synmod.lm import LanguageModel
from synmod.lm.providers import door

SCRIPT = Path(__file__).with_name("door_script.py")
ROOT = SCRIPT.parents[2]
LATE_S = 1.0  # far above the 50 and 100 ms of a quiet machine: a busy one must not fail the suite


@pytest.fixture(scope="module")
def told():
    """What happened in the other process; nothing but the result is printed, and nothing warns."""
    done = subprocess.run(  # the return code is looked at
        [sys.executable, str(SCRIPT)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=_environment(),
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("RESULT "), done.stdout[:500]
    noise = [line for line in done.stderr.splitlines() if not line.startswith("Executing ")]  # asyncio's slow callbacks
    assert noise == []
    return json.loads(done.stdout.removeprefix("RESULT "))


def _environment(**more):
    """The environment of the other process: this tree, and no proxy in between."""
    import os

    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return kept | {"PYTHONPATH": str(ROOT)} | more


STATUSES = {
    "RequestError": [301, 302, 307, 400, 404, 405, 413, 415, 418, 422],
    "AuthError": [401, 402, 403],
    "RateLimitError": [429],
    "UnavailableError": [408, 409, 425, 500, 501, 502, 503, 504, 529],
}


@pytest.mark.parametrize(("name", "status"), [(name, one) for name, many in STATUSES.items() for one in many])
@pytest.mark.slow
def test_each_status_has_its_class(told, name, status):
    """The table of failures, by status; one request each, and what the provider said."""
    got = told["statuses"][str(status)]
    assert (got["result"]["class"], got["result"]["status"], got["count"]) == (name, status, 1)
    assert f"the provider answered {status}: said {status}" in got["result"]["text"]
    assert got["result"]["transient"] == (name in ("RateLimitError", "UnavailableError"))


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("quota", "AuthError"),
        ("quota-code", "AuthError"),
        ("quota-minute", "RateLimitError"),
        ("payment-link", "RateLimitError"),
        ("context-code", "ContextWindowError"),
        ("context-text", "ContextWindowError"),
        ("context-413", "ContextWindowError"),
        ("redirect", "RequestError"),
    ],
)
def test_words_tell_what_a_status_does_not(told, case, name):
    """An empty account is no rate limit, a long prompt no bad request; a redirect is not followed."""
    got = told["statuses"][case]
    assert (got["result"]["class"], got["count"]) == (name, 1)


def test_retry_after_and_request_id_are_kept(told):
    """Headers of the provider reach the error."""
    got = told["statuses"]["retry-after"]["result"]
    assert (got["retry_after_s"], got["request_id"]) == (7, "req-1")
    assert told["statuses"]["unavailable-retry-after"]["result"]["retry_after_s"] == 3


def test_secrets_that_a_provider_echoes_are_scrubbed(told):
    """Key, header value and credentials of the environment become `***`; nothing is chained."""
    got = told["statuses"]["echo"]["result"]
    assert "bad key *** and *** and ***" in got["text"]
    assert "bad key *** and *** and ***" in got["provider_message"]
    assert not any(one["result"].get("chained") for one in told["statuses"].values())


def test_no_frame_of_a_traceback_holds_a_key(told):
    """Whoever prints the locals of a traceback prints no secret."""
    assert not any(got["result"].get("leaks") for group in ("statuses", "bodies") for got in told[group].values())


def test_no_part_of_a_secret_stays_where_a_text_is_cut(told):
    """What a provider echoes is scrubbed before it is cut to its length."""
    cut = [got["result"] for name, got in told["statuses"].items() if name.startswith("cut-")]
    assert len(cut) == 4
    assert not any("ysk" in one["text"] + one["provider_message"] for one in cut)


def test_rotating_keys_are_scrubbed_however_many_are_in_flight(told):
    """Twenty requests at once, each with another key that the server echoes."""
    assert (told["statuses"]["rotating-echo"]["count"], told["statuses"]["rotating-echo"]["leaked"]) == (20, 0)


def test_a_content_filter_is_a_refusal(told):
    """A prompt that the filter stops is no bad request."""
    got = told["statuses"]["filter-code"]["result"]
    assert (got["class"], got["reason"]) == ("BadReplyError", "refused")


def test_tokens_are_counted_where_a_tokenizer_is_known(told):
    """The tokenizer that litellm carries, without a network; else the estimate."""
    assert 6 <= told["closing"]["tokens"] <= 20
    assert told["closing"]["estimated"] == 7


def test_what_a_provider_says_is_cut(told):
    """At most 2 kB of it."""
    assert len(told["statuses"]["long"]["result"]["provider_message"]) == 2000


def test_a_404_without_v1_says_so(told):
    """The path is taken as given; a 404 says what may be missing."""
    got = told["statuses"]["no-v1"]
    assert got["seen"][0]["path"] == "/chat/completions"
    assert "/v1" in got["result"]["text"]


@pytest.mark.parametrize(
    ("case", "name", "reason"),
    [
        ("html", "BadReplyError", "not_json"),
        ("nothing", "BadReplyError", "not_json"),
        ("list", "BadReplyError", "not_json"),
        ("no-choices", "BadReplyError", "empty"),
        ("filter", "BadReplyError", "refused"),
        ("refusal", "BadReplyError", "refused"),
        ("cut-body", "UnavailableError", None),
    ],
)
def test_replies_that_are_none(told, case, name, reason):
    """Unreadable and refused replies are BadReplyErrors; a body that was cut is the connection's fault."""
    got = told["bodies"][case]
    assert (got["result"]["class"], got["result"]["reason"], got["count"]) == (name, reason, 1)


def test_a_reply_tells_what_the_provider_told(told):
    """Text, reasoning, finish reason, usage and id."""
    bodies = {name: got["result"] for name, got in told["bodies"].items()}
    assert (bodies["text"]["text"], bodies["text"]["finish_reason"], bodies["text"]["usage"]) == (
        "hello",
        "stop",
        [7, 3, 0, 0],
    )
    assert (bodies["text"]["model"], bodies["text"]["request_id"]) == ("openai/some-model", "chatcmpl-1")
    assert bodies["text"]["cost"] is None
    assert bodies["length"]["finish_reason"] == "length"
    assert bodies["reasoning"]["reasoning"] == "because"
    assert bodies["null"]["text"] == ""
    assert (bodies["no-usage"]["usage"][:2], bodies["no-usage"]["estimated"]) == ([3, 10], True)


def test_reasoning_of_a_server_fills_its_field(told):
    """Of a server nothing is known, so the field is asked for; a provider that is known to reason is not asked."""
    for case, asked in {"thought": True, "thought-native": False}.items():
        got = told["bodies"][case]
        assert got["result"]["json"] == {"thinking": "because", "a": 1}
        assert ('"thinking"' in json.dumps(got["seen"][0]["body"])) == asked
        assert got["count"] == 1


def test_repair_and_retry_reach_the_wire_exactly(told):
    """As many requests as said, never more."""
    counts = {name: told["bodies"][name]["count"] for name in ("fenced", "repaired", "retried", "lasting")}
    assert counts == {"fenced": 1, "repaired": 2, "retried": 3, "lasting": 3}
    assert told["bodies"]["repaired"]["result"]["usage"] == [14, 6, 0, 0]
    assert [turn["role"] for turn in told["bodies"]["repaired"]["seen"][1]["body"]["messages"]] == [
        "user",
        "assistant",
        "user",
    ]


def test_no_key_of_the_environment_reaches_an_api_base(told):
    """Whatever the environment holds, a server of the caller's sees the given key, or the text `none`."""
    seen = [one for group in ("statuses", "bodies", "requests") for got in told[group].values() for one in got["seen"]]
    assert len(seen) > 60
    assert "sk-environment-secret" not in json.dumps(seen)
    assert told["requests"]["no-key"]["seen"][0]["headers"]["authorization"] == "Bearer none"
    assert told["requests"]["plain"]["seen"][0]["headers"]["authorization"] == "Bearer sk-given-secret-key-1"


@pytest.mark.parametrize(
    "model", ["vllm/m", "hosted_vllm/m", "ollama/m", "lm_studio/m", "llamafile/m", "anthropic/claude-x", "groq/m"]
)
def test_an_api_base_speaks_chat_completions(told, model):
    """Any model with an `api_base`, and every local server, is asked as an OpenAI-compatible endpoint."""
    (seen,) = told["requests"][model]["seen"]
    assert seen["path"] == "/v1/chat/completions"
    assert seen["body"]["model"] == model.partition("/")[2]
    assert seen["headers"]["authorization"] == "Bearer none"


def test_by_hand_the_providers_own_protocol(told):
    """`adapter="litellm"` speaks as the provider does, with an explicit key."""
    (seen,) = told["requests"]["native"]["seen"]
    assert seen["path"].endswith("/messages")
    assert seen["headers"]["x-api-key"] == "none"
    assert told["requests"]["native"]["result"]["text"] == "hi"


def test_headers_and_extra_fields_are_sent(told):
    """`headers` and `extra_body` reach the server."""
    (seen,) = told["requests"]["plain"]["seen"]
    assert seen["headers"]["x-mine"] == "yes"
    assert seen["body"]["guided"] == {"x": 1}
    assert seen["body"]["messages"] == [{"role": "user", "content": "Hi"}]


def test_no_parameter_is_dropped(told):
    """Every sampling parameter reaches a server that may know it."""
    (seen,) = told["requests"]["every"]["seen"]
    for name, value in told["every"].items():
        assert seen["body"][name] == value


def test_the_schema_is_sent_as_it_is(told):
    """Native JSON schema; `strict` only within the strict subset; a valid name; nothing rewritten."""
    strict = told["requests"]["strict"]["seen"][0]["body"]["response_format"]
    assert strict["type"] == "json_schema"
    assert strict["json_schema"]["strict"] is True
    assert strict["json_schema"]["schema"]["properties"] == {"a": {"type": "integer"}}
    loose = told["requests"]["open"]["seen"][0]["body"]["response_format"]["json_schema"]
    assert "strict" not in loose
    assert loose["name"] == "My_Answer"
    assert loose["schema"] == {"type": "object", "properties": {"a": {"type": "integer"}}, "title": "My Answer!"}


def test_other_levels_tell_the_schema_in_the_text(told):
    """JSON mode and text only: the model reads the schema, once."""
    for case, field in {"json": {"type": "json_object"}, "prompt": None, "call-level": None}.items():
        body = told["requests"][case]["seen"][0]["body"]
        assert body.get("response_format") == field
        assert '"integer"' in body["messages"][0]["content"]
    assert len(told["requests"]["told"]["seen"][0]["body"]["messages"]) == 2


def test_a_server_that_refuses_the_field_gets_a_proposal(told):
    """No silent second call: a RequestError that proposes structured="prompt"."""
    got = told["requests"]["refused-field"]
    assert (got["result"]["class"], got["count"]) == ("RequestError", 1)
    assert "structured='prompt'" in got["result"]["text"]


def test_rotating_keys_are_asked_for_each_request(told):
    """A callable gives the key of each request, retries included."""
    keys = [one["headers"]["authorization"] for one in told["requests"]["rotating"]["seen"]]
    assert keys == ["Bearer one-key-1", "Bearer two-key-2"]


def test_a_key_that_cannot_be_sent_is_no_lost_connection(told):
    """The end of a line is taken off; another fault of a key is an AuthError that shows nothing of it, unsent."""
    assert told["requests"]["newline"]["seen"][0]["headers"]["authorization"] == "Bearer sk-given-secret-key-1"
    for case in ("two-lines", "no-ascii"):
        got = told["requests"][case]
        assert (got["result"]["class"], got["result"]["attempts"], got["count"]) == ("AuthError", 0, 0)
        assert "one" not in got["result"]["text"].replace("one line", "")
    assert (told["keyless"]["class"], told["keyless"]["attempts"]) == ("AuthError", 0)


def test_time_limits_hold(told):
    """`timeout_s` and `attempt_timeout_s`, at most 50 ms late, and the connection is closed."""
    assert told["times"]["call"]["class"] == told["times"]["attempt"]["class"] == "ModelTimeout"
    assert 0.3 <= told["times"]["call"]["elapsed_s"] < 0.3 + LATE_S
    assert told["times"]["attempt"]["attempts"] == 2


def test_cancelling_closes_the_connection(told):
    """Within 100 ms (promise A2)."""
    assert told["times"]["cancelled"]["broken"] is True
    assert told["times"]["cancelled"]["seconds"] < LATE_S


def test_a_refused_connection_is_unavailable(told):
    """Nobody listens: transient, without a status, all attempts used."""
    got = told["times"]["refused"]
    assert (got["class"], got["status"], got["attempts"]) == ("UnavailableError", None, 2)


def test_aclose_ends_what_litellm_left(told):
    """The logging task is gone, and the model still works."""
    assert told["closing"]["before"] > told["closing"]["after"] == 1
    assert told["closing"]["again"] == "x"
    assert told["closing"]["count"] == 32


def test_nothing_is_imported_before_it_is_needed(told):
    """A missing key and an embedded model need no litellm."""
    assert told["before_import"]["imported"] is False
    assert told["before_import"]["openai/m"]["class"] == "AuthError"


@pytest.mark.parametrize(
    ("case", "name", "says"),
    [
        ("azure", "AuthError", "AZURE_API_KEY"),
        ("unknown", "RequestError", "no_such_provider"),
        ("ability", "RequestError", "reasoning_effort"),
        ("top_k", "RequestError", "top_k"),
    ],
)
def test_what_litellm_knows_is_refused_before_sending(told, case, name, says):
    """Missing credentials are named; an unknown provider and a refused parameter cost no request."""
    got = told["refused"][case]
    assert (got["class"], got["attempts"]) == (name, 0)
    assert says in got["text"]


def test_the_import_leaves_nothing_behind(told):
    """Hints and handlers are quiet, nothing is dropped, no callback is installed, the filter is gone."""
    assert told["state"] == {
        "handlers": [["NullHandler"]] * 3,
        "suppress": True,
        "drop_params": False,
        "callbacks": [[], [], []],
        "mode": "PRODUCTION",
        "map": "True",
        "filters": [],
    }


def test_every_exception_class_is_mapped(told):
    """A new exception class of litellm fails here, until it has a place in the table."""
    assert told["classes"]["unmapped"] == []
    assert len(told["classes"]["mapped"]) > 25


REFUSED = """
import asyncio, importlib.metadata, sys, synmod.errors as e
from synmod.lm import LanguageModel
from synmod.lm.providers import door

def ask(about):
    for _ in range(2):
        try:
            asyncio.run(LanguageModel("openai/m", api_key="x")("hi"))
        except e.UnavailableError as error:
            print(about, error.attempts, *str(error).splitlines())

for place in sys.argv[1:]:
    sys.path.insert(0, place)
    ask("malware")
    sys.path.remove(place)
found = door.version
def gone(name): raise importlib.metadata.PackageNotFoundError(name)
door.version = gone
ask("missing")
door.version = found
print("imported", "litellm" in sys.modules)
sys.modules["litellm"] = None
ask("broken")
print(asyncio.run(LanguageModel("embedded/nearest")("works")).text)
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """What a process is told where litellm is none that may be used: one line for each call."""
    places = []
    for release in sorted(door.MALWARE):
        places.append(tmp_path_factory.mktemp("malware"))
        (places[-1] / "litellm").mkdir()
        (places[-1] / "litellm" / "__init__.py").write_text("print('IMPORTED')")
        about = places[-1] / f"litellm-{release}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: litellm\nVersion: {release}\n")
    done = subprocess.run(
        [sys.executable, "-c", REFUSED, *map(str, places)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=_environment(),
    )
    return done.stdout.splitlines()


def test_releases_with_malware_are_refused_by_name(refused):
    """They are not even imported, whenever they are asked for, and no request counts."""
    told = [line for line in refused if line.startswith("malware")]
    wanted = [release for release in sorted(door.MALWARE) for _ in range(2)]
    assert len(told) == len(wanted) == 4
    for line, release in zip(told, wanted, strict=True):
        assert line.startswith("malware 0")
        assert f"litellm {release} carries malware" in line
        assert "pip install" in line
    assert "IMPORTED" not in refused
    assert "imported False" in refused


@pytest.mark.parametrize("way", ["missing", "broken"])
def test_missing_litellm_is_unavailable_with_the_install_line(refused, way):
    """Everything else keeps working, and a later call tries again."""
    told = [line for line in refused if line.startswith(way)]
    assert len(told) == 2
    assert all('pip install "litellm>=1.84,<2"' in line for line in told)
    assert refused[-1] == "works"


def test_trio_is_refused_with_a_word():
    """Network adapters need asyncio."""
    import trio

    async def ask():
        with pytest.raises(UnavailableError, match="trio"):
            await LanguageModel("openai/m", api_base="http://127.0.0.1:9/v1")("x")

    trio.run(ask)
