"""Streams of chat completions over real connections: packets cut anywhere, faults in the middle, hanging up."""

import asyncio
import json
from time import perf_counter

import pytest
from hypothesis import given, settings, strategies as st

import synmod as sm
from synmod.errors import AuthError, BadReplyError, ModelTimeout, RateLimitError, RequestError, UnavailableError
from synmod.lm import LanguageModel
from synmod.lm.streaming import ServerSentEvents
from tests.lm.loopback import DONE, KEY, STOP, Answer, Loopback, completion, failure, record, streamed

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": ""}}
WORDS = ["choices", "delta", "index", "tool_calls", "function", "arguments", "content", "usage", "error", "id"]
ADD = {"name": "add", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}


async def read(*answers, adapter=None, call=None, **given):
    """Read one stream from a server; return its pieces, the reply or the error, and the requests that arrived."""
    async with Loopback(*answers) as server:
        about = {"api_base": server.base, "api_key": KEY, "attempts": 1, "adapter": adapter} | given
        lm = LanguageModel("openai/some-model", **about)
        lm.backoff = False
        pieces = []
        try:
            async with await lm("Hi", stream=True, **(call or {})) as stream:
                async for piece in stream:
                    pieces.append(piece)
            got = stream.reply
        except sm.ModelError as error:
            got = error
        await lm.aclose()
        return pieces, got, server.arrived


def texts(pieces):
    """What the pieces added."""
    return [piece.text for piece in pieces]


async def test_a_stream_is_asked_for_with_its_usage():
    """The request asks for a stream and its usage; pieces come one by one; the final record has the tokens."""
    pieces, reply, (arrived,) = await read(streamed("Hel", "lo"), price=(1, 2))
    assert (arrived.body["stream"], arrived.body["stream_options"]) == (True, {"include_usage": True})
    assert texts(pieces) == ["Hel", "lo", ""]
    assert (reply.text, reply.finish_reason, reply.request_id) == ("Hello", "stop", "chatcmpl-1")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.estimated) == (7, 3, False)
    assert reply.usage.cost_usd == pytest.approx(13e-6)


async def test_usage_that_the_provider_leaves_out_is_estimated():
    """And marked."""
    _, reply, _ = await read(Answer(packets=(record({"content": "Hello"}), STOP, DONE)))
    assert (reply.usage.completion_tokens, reply.usage.estimated) == (2, True)


# -- packets ---------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", ": a comment\n", "event: message\nid: 7\n", "retry: 3\r\n"]),
    st.randoms(use_true_random=False),
)
def test_events_do_not_depend_on_packets(data, ending, between, random):
    """Any line ending, comments and other fields, cut at any byte, also in the middle of a character or line ending."""
    body = "".join(f"{between}data: {text}{ending}{ending}" for text in data).encode()
    events, found, at = ServerSentEvents(), [], 0
    while at < len(body):
        size = random.choice([1, 2, 3, 7, 50])
        found += events.feed(body[at : at + size])
        at += size
    found += events.feed(b"\n\n")
    assert [event.decode() for event in found] == data
    assert events.held <= 2


def test_the_last_event_may_lack_its_end_and_data_may_take_lines():
    """Lines of data are joined; a field without a space, or without data, counts as the standard has it."""
    events = ServerSentEvents()
    assert list(events.feed(b"\n\ndata:one\ndata: two\n\ndata: three")) == [b"one\ntwo"]
    assert list(events.feed(b"\n\n")) == [b"three"]


def test_a_byte_order_mark_may_begin_a_stream():
    """The first event counts."""
    assert list(ServerSentEvents().feed(b"\xef\xbb\xbfdata: one\n\ndata: two\n\n")) == [b"one", b"two"]


@pytest.mark.parametrize("size", [1, 3, 10_000])
async def test_a_stream_cut_into_any_packets_is_the_same(size):
    """Byte by byte, and everything at once: the same texts, with characters of several bytes."""
    whole = b": hello\r\n\r\n" + b"".join(streamed("Grü", "ße, 世界", " 🎉").packets).replace(b"\n\n", b"\r\n\r\n")
    whole = whole.replace(b"\\u00fc", "ü".encode()).replace(b"\\u4e16", "世".encode())
    packets = tuple(whole[at : at + size] for at in range(0, len(whole), size))
    pieces, reply, _ = await read(Answer(packets=packets))
    assert texts(pieces) == ["Grü", "ße, 世界", " 🎉", ""]
    assert reply.usage.prompt_tokens == 7


# -- ends ------------------------------------------------------------------------------------------------------------


async def test_a_missing_end_mark_is_no_fault_once_the_reply_has_finished():
    """Some servers leave [DONE] out."""
    _, reply, _ = await read(Answer(packets=(record({"content": "Hello"}), STOP)))
    assert reply.text == "Hello"


@pytest.mark.parametrize("cut", [True, False], ids=["broken", "closed"])
async def test_a_stream_that_ends_too_soon_is_unavailable_and_not_retried(cut):
    """The pieces came, then the error; one request, though attempts are left; what came is counted."""
    pieces, error, arrived = await read(Answer(packets=(record({"content": "Hel"}),), cut=cut), attempts=3)
    assert texts(pieces) == ["Hel"]
    assert isinstance(error, UnavailableError)
    assert "not retried" in str(error)
    assert (len(arrived), error.attempts, error.streamed) == (1, 1, True)


async def test_a_stream_that_breaks_after_the_reply_finished_is_whole():
    """Nothing is lost but perhaps the usage."""
    _, reply, _ = await read(Answer(packets=(record({"content": "Hello"}), STOP), cut=True))
    assert (reply.text, reply.usage.estimated) == ("Hello", True)


async def test_failures_before_the_first_piece_are_retried():
    """A status, a stream that ends before it begins, an error record: then the stream comes."""
    broken = Answer(packets=(record({"role": "assistant", "content": ""}),), cut=True)
    refused = Answer(packets=(b'data: {"error": {"message": "busy", "code": 503}}\n\n',))
    pieces, reply, arrived = await read(failure(500, retry_after="0"), broken, refused, streamed("yes"), attempts=4)
    assert (texts(pieces), reply.text, len(arrived)) == (["yes", ""], "yes", 4)
    assert [attempt.status for attempt in reply.attempts] == [500, None, 503, 200]


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"message": "boom", "code": 502}, UnavailableError, 502),
        ({"message": "boom", "type": "server_error", "code": None}, UnavailableError, 500),
        ({"message": "slow down", "type": "rate_limit_exceeded"}, RateLimitError, 429),
        ({"message": "no money", "code": "insufficient_quota"}, AuthError, 429),
        ({"message": "a bad field", "type": "invalid_request_error"}, RequestError, 400),
        ({"message": "too much", "code": "context_length_exceeded"}, sm.ContextWindowError, 400),
        ({"message": "authentication_error: the service is down", "type": None}, UnavailableError, 500),
        ("boom", UnavailableError, 500),
    ],
)
async def test_an_error_record_in_a_stream_has_its_class(error, kind, status):
    """By its code, else by its words; raised after the pieces before it; the key is not in it."""
    event = b"data: " + json.dumps({"error": error}).encode() + b"\n\n"
    pieces, got, arrived = await read(Answer(packets=(record({"content": "Hel"}), event)), attempts=2)
    assert (type(got), got.status, texts(pieces), len(arrived)) == (kind, status, ["Hel"], 1)


@pytest.mark.parametrize("text", ["{" + KEY, '{"error": {"code": NaN}}', '{"choices": [{"delta": {"x": Infinity}}]}'])
async def test_a_record_that_is_not_json_is_a_bad_reply(text):
    """It is shown, without the key; a number that JSON does not have is none."""
    _, error, _ = await read(Answer(packets=(record({"content": "a"}), f"data: {text}\n\n".encode())))
    assert (type(error), error.reason) == (BadReplyError, "not_json")
    assert KEY not in str(error)


async def test_an_event_named_error_is_an_error_record():
    """Also where its data is the error itself."""
    for data in ('{"message": "boom", "code": 503}', '{"error": {"message": "boom", "code": 503}}'):
        packets = (record({"content": "Half"}), f"event: error\ndata: {data}\n\n".encode(), DONE)
        pieces, error, _ = await read(Answer(packets=packets))
        assert (texts(pieces), type(error), error.status) == (["Half"], UnavailableError, 503)
        assert "boom" in str(error)


async def test_a_reply_that_is_streamed_whole_is_read():
    """A record with a `message` in place of pieces; one behind the pieces repeats nothing."""
    whole = json.dumps({"choices": [{"message": {"content": "all of it"}, "finish_reason": "stop"}]}).encode()
    for before in ((), (record({"content": "all of it"}),)):
        pieces, reply, _ = await read(Answer(packets=(*before, b"data: " + whole + b"\n\n", DONE)))
        assert (texts(pieces), reply.text) == (["all of it", ""], "all of it")


async def test_reasoning_that_nests_too_deep_is_a_bad_reply():
    """What a provider wants again beside the calls of tools must be JSON of ours."""
    deep = [{"type": "redacted_thinking", "data": json.loads("[" * 60 + "]" * 60)}]
    call = {"id": "1", "function": {"name": "add", "arguments": "{}"}}
    packets = (record({"thinking_blocks": deep, "tool_calls": [call]}), STOP, DONE)
    _, error, _ = await read(Answer(packets=packets), call={"tools": [ADD]})
    assert (type(error), error.reason) == (BadReplyError, "not_json")


@pytest.mark.parametrize("packets", [(DONE,), (record(usage={"prompt_tokens": 1}), DONE), (b"data: {}\n\n", DONE)])
async def test_a_stream_without_a_choice_is_an_outage(packets):
    """As without streaming: nothing was answered, so there is no empty reply."""
    pieces, error, _ = await read(Answer(packets=packets))
    assert (pieces, type(error)) == ([], UnavailableError)


async def test_an_error_that_is_the_record_itself_is_raised():
    """As some servers send it, with a mark of the end behind it: else the reply would just be shorter."""
    event = b'data: {"object": "error", "message": "out of memory", "code": 503}\n\n'
    pieces, error, _ = await read(Answer(packets=(record({"content": "Hel"}), event, DONE)))
    assert (texts(pieces), type(error), error.status) == (["Hel"], UnavailableError, 503)
    assert "out of memory" in str(error)


async def test_a_page_is_not_a_stream():
    """What a proxy answers in its place is quoted, as without streaming."""
    _, error, _ = await read(Answer(raw=b"<html>Sign in</html>", headers={"content-type": "text/html"}))
    assert (type(error), error.provider_message) == (UnavailableError, "<html>Sign in</html>")


async def test_a_server_that_refuses_stream_options_is_told_of():
    """The error names the way out, and the field can be sent as null."""
    _, error, _ = await read(failure(400, "unknown field: stream_options"))
    assert "extra_body={'stream_options': None}" in str(error)
    _, _, (arrived,) = await read(streamed("a"), extra_body={"stream_options": None})
    assert arrived.body["stream_options"] is None


async def test_a_server_that_does_not_stream_gives_one_piece():
    """A plain answer to a request for a stream is read as a whole."""
    pieces, reply, _ = await read(completion("Hello"))
    assert [(piece.text, piece.done) for piece in pieces] == [("Hello", True)]
    assert reply.usage.prompt_tokens == 7


# -- what comes in pieces ----------------------------------------------------------------------------------------------


ANSWER = {"type": "object", "title": "Reply", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def answering(*texts, index=0, name="Reply"):
    """The records of a call that comes in pieces."""
    first = {"index": index, "id": f"c{index}", "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [{"index": index, "function": {"arguments": text}} for text in texts]
    return [record({"tool_calls": [piece]}) for piece in (first, *pieces)]


async def test_an_answer_in_the_arguments_of_a_tool_is_streamed_as_text():
    """Piece by piece, as one that the server writes as text."""
    packets = (*answering('{"text": ', '"a', 'b"}'), record(finish_reason="tool_calls"), DONE)
    pieces, reply, _ = await read(Answer(packets=packets), call={"tools": [ADD], "schema": ANSWER})
    assert [piece.text for piece in pieces] == ['{"text": ', '"a', 'b"}', ""]
    assert [piece.partial for piece in pieces] == [{}, {"text": "a"}, {"text": "ab"}, {"text": "ab"}]
    assert (reply.json, reply.tool_calls) == ({"text": "ab"}, ())


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_streamed_call_beside_an_answer_wins(is_first):
    """As in a reply that comes whole: the answer is in neither the reply nor the turn that goes back."""
    answer = answering('{"text": "ab"}', index=0 if is_first else 1)
    call = answering('{"x": 1}', index=1 if is_first else 0, name="add")
    packets = (*(answer + call if is_first else call + answer), record(finish_reason="tool_calls"), DONE)
    _, reply, _ = await read(Answer(packets=packets), call={"tools": [ADD], "schema": ANSWER})
    assert (reply.json, reply.text, [call.name for call in reply.tool_calls]) == (None, "", ["add"])
    assert (reply.message["content"], len(reply.message["tool_calls"])) == (None, 1)


async def test_tool_calls_come_whole():
    """Their pieces are put together, by their index; the last piece has them, checked."""

    def part(index, **function):
        return {"index": index, "function": function}

    begin = [{**CALL, "index": 0}, {**CALL, "index": 1, "id": "call_2"}]
    packets = (
        record({"content": "Let me see."}),
        record({"tool_calls": begin}),
        record({"tool_calls": [part(0, arguments='{"x"'), part(1, arguments='{"x": ')]}),
        record({"tool_calls": [part(1, arguments="2}")]}),
        record({"tool_calls": [part(0, arguments=": 1}")]}),
        record(finish_reason="tool_calls"),
        DONE,
    )
    pieces, reply, _ = await read(Answer(packets=packets), call={"tools": [ADD]})
    assert [len(piece.tool_calls) for piece in pieces] == [0, 2]
    assert [(call.id, call.name, call.arguments) for call in pieces[-1].tool_calls] == [
        ("call_1", "add", {"x": 1}),
        ("call_2", "add", {"x": 2}),
    ]
    assert reply.tool_calls == pieces[-1].tool_calls


async def test_calls_that_share_an_index_are_told_apart_by_id():
    """As one provider numbers them."""
    calls = [
        {**CALL, "index": 0, "id": f"c{n}", "function": {"name": "add", "arguments": f'{{"x": {n}}}'}} for n in (1, 2)
    ]
    packets = tuple(record({"tool_calls": [call]}) for call in calls)
    pieces, _, _ = await read(Answer(packets=(*packets, record(finish_reason="tool_calls"))), call={"tools": [ADD]})
    assert [call.arguments for call in pieces[-1].tool_calls] == [{"x": 1}, {"x": 2}]


@pytest.mark.parametrize(
    "pieces",
    [
        [{"index": 0, "function": {"name": "add"}}, {"index": 0, "id": "c", "function": {"arguments": '{"x": 1}'}}],
        [{"index": 0, "id": "c", "function": {"name": "add", "arguments": {"x": 1}}}],
        [
            {"index": 0, "id": "c", "function": {"name": "add", "arguments": "{}"}},
            {"index": 0, "function": {"arguments": '{"x": '}},
            {"index": 0, "function": {"arguments": "1}"}},
        ],
    ],
)
async def test_calls_in_the_manner_of_other_servers(pieces):
    """The id in a later piece; the arguments as an object, not as its text, or behind an empty one."""
    packets = [record({"tool_calls": [piece]}) for piece in pieces]
    answer = Answer(packets=(*packets, record(finish_reason="tool_calls"), DONE))
    _, reply, _ = await read(answer, call={"tools": [ADD]})
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [("c", "add", {"x": 1})]


async def test_bad_arguments_are_a_bad_reply_without_repair():
    """They are never handed out."""
    call = {**CALL, "index": 0, "function": {"name": "add", "arguments": '{"x": "one"}'}}
    answer = Answer(packets=(record({"tool_calls": [call]}), record(finish_reason="tool_calls"), DONE))
    pieces, error, arrived = await read(answer, call={"tools": [ADD]}, attempts=3)
    assert (pieces, type(error), error.reason, len(arrived)) == ([], BadReplyError, "tool", 1)


async def test_reasoning_and_refusals_are_pieces_of_their_own_kind():
    """Reasoning is handed on as such; a refusal is an error, not text."""
    pieces, reply, _ = await read(
        Answer(
            packets=(record({"reasoning_content": "Hm"}), record({"reasoning": "m."}), record({"content": "Yes"}), STOP)
        )
    )
    assert [(piece.reasoning, piece.text) for piece in pieces] == [("Hm", ""), ("m.", ""), ("", "Yes"), ("", "")]
    assert reply.reasoning == "Hmm."
    pieces, error, _ = await read(Answer(packets=(record({"refusal": "I can"}), record({"refusal": "not"}), STOP)))
    assert (pieces, error.reason) == ([], "refused")


async def test_thinking_blocks_are_put_together():
    """Up to each signature; what has none is left out, and what the provider has redacted is kept as it is."""
    call = {**CALL, "index": 0, "function": {"name": "add", "arguments": '{"x": 1}'}}
    redacted = {"type": "redacted_thinking", "data": "..."}
    blocks = [[{"thinking": "a"}], [{"thinking": "b", "signature": "s"}, redacted], [{"thinking": "unsigned"}]]
    packets = [record({"thinking_blocks": [{"type": "thinking", **each} for each in some]}) for some in blocks]
    packets += [record({"tool_calls": [call]}), record(finish_reason="tool_calls")]
    _, reply, _ = await read(Answer(packets=tuple(packets)), call={"tools": [ADD]})
    whole = {"type": "thinking", "thinking": "ab", "signature": "s"}
    assert reply.message["thinking_blocks"] == [whole, redacted]


async def test_other_choices_are_left_out():
    """Of several answers the first is read."""
    other = json.loads(record({"content": "no"})[6:])
    other["choices"][0]["index"] = 1
    packets = (record({"content": "yes"}), b"data: " + json.dumps(other).encode() + b"\n\n", STOP)
    _, reply, _ = await read(Answer(packets=packets))
    assert reply.text == "yes"


async def test_a_schema_shows_what_is_known_so_far():
    """Partial values grow; the last is the valid one."""
    pieces, reply, _ = await read(streamed('{"a', '": "so', " far", '"}'), call={"schema": SCHEMA})
    assert [piece.partial for piece in pieces] == [{}, {"a": "so"}, {"a": "so far"}, {"a": "so far"}, {"a": "so far"}]
    assert reply.json == pieces[-1].partial


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=25)
@given(st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(WORDS, ANYTHING)), min_size=1, max_size=3), ANYTHING)
def test_nonsense_is_a_model_error_or_a_reply(records, delta):
    """Whatever JSON a server streams, where a field may be of any kind: nothing else is raised."""
    events = [json.dumps({"choices": [{"delta": delta}]}), *map(json.dumps, records)]
    packets = tuple(f"data: {event}\n\n".encode() for event in events)
    _, got, _ = asyncio.run(read(Answer(packets=packets), call={"tools": [ADD]}))
    assert isinstance(got, sm.ModelError | sm.LMReply)


# -- hanging up --------------------------------------------------------------------------------------------------------


async def test_closing_early_hangs_up_and_counts_what_came():
    """Within 100 ms the server sees it; tokens and cost are estimated; the call counts as cancelled."""
    forever = asyncio.Event()
    async with Loopback(Answer(packets=(record({"content": "Hello "}), forever.wait))) as server:
        lm = LanguageModel("openai/m", api_base=server.base, api_key=KEY, price=(1, 1))
        with sm.track_usage() as usage, sm.budget(tokens=100) as budget:
            async with await lm("Hi", stream=True) as stream:
                async for piece in stream:
                    assert piece.text == "Hello "
                    began = perf_counter()
                    break
        await asyncio.wait_for(server.hung_up.wait(), 5)
        assert perf_counter() - began < 0.1
        assert (usage.completion_tokens, usage.estimated, usage.calls) == (2, True, 0)
        assert budget.used.tokens == usage.prompt_tokens + 2 == 3
        assert (lm.counters.cancelled, lm.cumulated_calls, lm.cumulated_completion_tokens) == (1, 0, 2)
        assert lm.cumulated_cost_usd == pytest.approx(3e-6)
        await lm.aclose()


async def test_a_slow_reader_holds_the_provider_back():
    """A server that could send gigabytes gets rid of what buffers hold, and no more."""
    sent = 0
    event = record({"content": "x" * 1_000})

    def send():
        nonlocal sent
        sent += 1

    async def count():
        send()

    packets = tuple(packet for _ in range(20_000) for packet in (event, count))
    async with Loopback(Answer(packets=packets)) as server:
        lm = LanguageModel("openai/m", api_base=server.base, api_key=KEY)
        async with await lm("Hi", stream=True) as stream:
            await anext(stream)
            before = -1
            while sent != before:  # until the server waits
                before = sent
                await asyncio.sleep(0.05)
            assert sent < 15_000
        await lm.aclose()


async def test_a_cancellation_anywhere_frees_the_connection():
    """At the k-th wait, for every k: no task is left, no connection is held, and the next stream works."""
    async with Loopback(streamed("a", "b", "c")) as server:
        lm = LanguageModel("openai/m", api_base=server.base, api_key=KEY, limit=1)

        async def reading():
            async with await lm("Hi", stream=True) as stream:
                return [piece.text async for piece in stream]

        tasks = asyncio.all_tasks()
        for k in range(100):
            reader = asyncio.create_task(reading())
            for _ in range(k):
                await asyncio.sleep(0)
            reader.cancel()
            try:
                assert await reader == ["a", "b", "c", ""]
                break
            except asyncio.CancelledError:
                assert {task for task in asyncio.all_tasks() - tasks if "synmod" in repr(task)} == set()
        else:
            raise AssertionError("no stream was read to its end")
        assert await asyncio.wait_for(reading(), 5) == ["a", "b", "c", ""]
        await lm.aclose()
    assert lm.counters.cancelled > 5


async def test_a_connection_is_used_again_after_a_stream():
    """Three streams over one connection: the end of each body is read."""
    async with Loopback(streamed("a")) as server:
        lm = LanguageModel("openai/m", api_base=server.base, api_key=KEY)
        for _ in range(3):
            async with await lm("Hi", stream=True) as stream:
                assert [piece.text async for piece in stream] == ["a", ""]
        await lm.aclose()
        assert len(server.arrived) == 3
        assert len({arrived.port for arrived in server.arrived}) == 1


async def test_a_server_that_does_not_end_its_stream_is_not_waited_for():
    """After the end mark the reply is there at once."""
    forever = asyncio.Event()
    pieces, reply, _ = await asyncio.wait_for(
        read(Answer(packets=(record({"content": "a"}), STOP, DONE, forever.wait))), 3
    )
    assert (len(pieces), reply.text) == (2, "a")


async def test_slow_bytes_run_into_the_time_limits():
    """`attempt_timeout_s` ends a stream that stalls, retried only before its first piece."""
    forever = asyncio.Event()
    stalled = Answer(packets=(record({"content": "a"}), forever.wait))
    pieces, error, arrived = await read(stalled, attempts=3, attempt_timeout_s=0.1)
    assert (texts(pieces), type(error), len(arrived)) == (["a"], ModelTimeout, 1)
    silent = Answer(packets=(forever.wait,))
    pieces, reply, arrived = await read(silent, streamed("b"), attempts=3, attempt_timeout_s=0.3)
    assert (texts(pieces), reply.text, len(arrived)) == (["b", ""], "b", 2)


@pytest.mark.slow
async def test_a_reply_is_read_up_to_32_mib():
    """No server can fill the memory with one line."""
    line = b"data: " + b"x" * 2**20
    pieces, error, _ = await read(Answer(packets=(line, *[b"x" * 2**20] * 34)))
    assert (type(error), error.reason, pieces) == (BadReplyError, "not_json", [])
    assert "32 MiB" in str(error)
