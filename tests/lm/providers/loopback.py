"""A chat-completions server on the loopback: replies as scripted, counts requests, keeps headers and bodies."""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Seen:
    """One request that arrived."""

    path: str
    headers: dict
    body: dict


@dataclass
class Answer:
    """What the server says to one request."""

    status: int = 200
    body: object = None
    headers: dict = field(default_factory=dict)
    delay_s: float = 0.0
    cut: bool = False
    raw: bytes | None = None


def completion(text="hello", *, finish_reason="stop", usage=(7, 3), **message):
    """A chat completion with one choice."""
    return Answer(
        200,
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "served-model",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish_reason,
                    "message": {"role": "assistant", "content": text, **message},
                }
            ],
            "usage": {
                "prompt_tokens": usage[0],
                "completion_tokens": usage[1],
                "total_tokens": sum(usage),
            },
        },
    )


def failure(status, message="it failed", *, code=None, kind="server_error", **headers):
    """An error body of the chat-completions shape."""
    error = {"message": message, "type": kind, "param": None, "code": code}
    return Answer(status, {"error": error}, {name.replace("_", "-"): value for name, value in headers.items()})


class Loopback:
    """A server in a thread: `with Loopback([answer, ...]) as server: ...`; the last answer is repeated."""

    def __init__(self, answers=None):
        self.answers = list(answers or [completion()])
        self.seen = []
        self.broken = threading.Event()
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                server.handle(self, body)

            def log_message(self, *args):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # the five of the library are too few for a crowd that connects at once

            def handle_error(self, request, client_address):
                server.broken.set()

        self._server = Server(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def handle(self, handler, body):
        with self._lock:
            self.seen.append(Seen(handler.path, dict(handler.headers.items()), json.loads(body or b"{}")))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        deadline = time.monotonic() + answer.delay_s
        while time.monotonic() < deadline:
            time.sleep(0.01)
            if _closed(handler.connection):
                self.broken.set()
                handler.close_connection = True
                return
        payload = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
        payload = payload.replace(b"{authorization}", handler.headers.get("authorization", "").encode())
        handler.send_response(answer.status)
        handler.send_header("content-type", "application/json")
        for name, value in answer.headers.items():
            handler.send_header(name, str(value))
        handler.send_header("content-length", str(len(payload) + (50 if answer.cut else 0)))
        handler.end_headers()
        handler.wfile.write(payload)
        if answer.cut:
            handler.close_connection = True

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def _closed(connection):
    """Whether the client has hung up."""
    import select
    import socket

    readable, _, _ = select.select([connection], [], [], 0)
    if not readable:
        return False
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True
