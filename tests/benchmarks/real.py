"""What prompts are worth on a real small model: layouts and optimizers on one set of rows, with 95 % intervals.

`python -m tests.benchmarks.real [program ...]`; programs: bare, examples, nearest (8 examples per input, out of all
train rows), random, bootstrap, mipro, dspy. It starts the server of `tests/real`, or measures the one of `--api-base`,
or a model in the process: `python -m tests.benchmarks.real examples random nearest --model embedded/nearest`. The train
rows are halved: what is trained sees no test row before the end. The rows are eight classes of Banking77
(`banking8.md`), `train.jsonl` and `test.jsonl` of a folder, or those of a file that name their `split`:
`--rows examples/data/tickets.jsonl --label category`. Tokens and CPU time are those of a row.
"""

import argparse
import asyncio
import importlib.util
import json
import math
import random
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import synmod as sm
from synmod.optimizers import BootstrapFewShot, Mipro, RandomFewShot
from tests.real.server import FOLDER, Server

HERE = Path(__file__).parent
INSTRUCTIONS = "Classify the message of a bank customer by its intent."
PROPOSALS = [
    "Name the intent of the message of a bank customer.",
    "A customer writes to a bank. Which of the intents fits the message best?",
    "Read the message. Reply with the intent whose words are nearest to what the customer wants.",
]
SAMPLING = {"temperature": 0, "max_tokens": 48}
OPTIMIZERS = {
    "random": lambda: RandomFewShot(max_examples=8),
    "bootstrap": lambda: BootstrapFewShot(max_examples=8),
    "mipro": lambda: Mipro(proposals={"0/instructions": PROPOSALS}, max_examples=8, patience=3),
}
COLUMNS = "{:<12}{:<8}{:>10}  {:<14}{:>8}{:>10}{:>8}{:>9}{:>8}"
HEADS = ("program", "layout", "right", "95 %", "prompt", "generated", "calls", "seconds", "CPU ms")


class Query(sm.DataModel):
    text: str


def wilson(right, total, z=1.96):
    """Return the ends of the interval of a share."""
    center = (right + z * z / 2) / (total + z * z)
    spread = z * math.sqrt(right * (total - right) / total + z * z / 4) / (total + z * z)
    return center - spread, center + spread


def read_rows(source, split, label=None):
    """Return the rows of one split, `train` or `test`, and the name of their label, by default the field beside `text`.

    The source is a folder with a file for each split, or a file whose rows name their split.
    """
    [path] = [source] if source.is_file() else source.glob(f"*{split}.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    label = label or next(name for name in rows[0] if name != "text")
    rows = [row for row in rows if (row.get("split", split) == "train") == (split == "train")]
    return [{"text": row["text"], label: row[label]} for row in rows], label


def halves(rows, label):
    """Return train and validation rows: of each class every other row."""
    rows = sorted(rows, key=lambda row: row[label])  # stable
    return rows[::2], rows[1::2]


def one_per_class(rows, label, seed):
    """Return one row of each class, in random order, as examples."""
    draw = random.Random(seed)
    chosen = [draw.choice([row for row in rows if row[label] == name]) for name in sorted({row[label] for row in rows})]
    draw.shuffle(chosen)
    return [as_example(row, label) for row in chosen]


def as_example(row, label):
    """Return a row as an example."""
    return {"inputs": {"text": row["text"]}, "outputs": {label: row[label]}}


def sorter(lm, data, layout, examples=(), pool=()):
    """Return the program: one call that sorts a text into the classes of the train rows, by examples or from a pool."""
    classes = Literal[tuple(sorted({row[data.label] for row in data.train}))]
    generator = sm.Generator(
        {data.label: classes}, instructions=data.instructions, examples=list(examples), language_model=lm, layout=layout
    )
    return sm.Sequential([sm.Input(Query), sm.Nearest(generator, k=8, pool=pool) if pool else generator])


async def measure(name, layout, lm, data, seed):
    """Return the line of a program of ours."""
    examples = one_per_class(data.train, data.label, seed) if name == "examples" else ()
    pool = [as_example(row, data.label) for row in data.train] if name == "nearest" else ()
    program, calls, note = sorter(lm, data, layout, examples, pool), 0, ""
    started = time.perf_counter()
    if name in OPTIMIZERS:
        program.compile("exact_match", OPTIMIZERS[name]())
        fit, validation = halves(data.train, data.label)
        history = await program.fit(fit, validation_data=validation, seed=seed, budget=data.budget, progress=False)
        calls, note = history.spent.lm_calls, f"  validation {history.best.score:.2f}"
    cpu = time.process_time()
    evaluation = await sm.evaluate(program, data.test, reward="exact_match", progress=False)
    cpu, seconds, usage = time.process_time() - cpu, time.perf_counter() - started, evaluation.usage
    tokens = (usage.prompt_tokens / evaluation.total, usage.completion_tokens / evaluation.total)
    right = sum(result.score == 1 for result in evaluation.results)
    note += f"  {len(evaluation.errors)} failed" if evaluation.errors else ""
    return (
        line(name, layout, right, evaluation.total, *tokens, calls + usage.calls, seconds, cpu / evaluation.total)
        + note
    )


def line(name, layout, right, total, prompt, generated, calls, seconds, cpu):
    """Return a line of the table."""
    low, high = wilson(right, total)
    return COLUMNS.format(
        name, layout, f"{right} of {total}", f"{low:.2f} to {high:.2f}", f"{prompt:.0f}", f"{generated:.1f}", calls,
        f"{seconds:.0f}", f"{cpu * 1e3:.1f}",
    )  # fmt: skip


def by_dspy(base, data, seed):
    """Return the line of DSPy's random search over examples, which has the same rows and as many sets."""
    import dspy

    lm = dspy.LM("openai/smollm2", api_base=base, api_key="x", cache=False, timeout=3_600, **SAMPLING)
    classes = Literal[tuple(sorted({row[data.label] for row in data.train}))]
    fields = {"text": (str, dspy.InputField()), data.label: (classes, dspy.OutputField())}
    predict = dspy.Predict(dspy.make_signature(fields, data.instructions))

    def examples(rows):
        return [dspy.Example(row).with_inputs("text") for row in rows]

    def metric(example, prediction, _trace=None):
        return example[data.label] == prediction.get(data.label)

    def is_right(example):
        try:
            return metric(example, program(text=example.text))
        except dspy.utils.exceptions.AdapterParseError:
            return False  # a reply that cannot be read

    started = time.perf_counter()
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        search = dspy.BootstrapFewShotWithRandomSearch(metric, max_labeled_demos=8, num_candidate_programs=13)
        fit, validation = map(examples, halves(data.train, data.label))
        program = search.compile(predict, trainset=fit, valset=validation)
        spent, cpu = len(lm.history), time.process_time()
        right = sum(map(is_right, examples(data.test)))
    cpu, used = time.process_time() - cpu, [call["usage"] for call in lm.history[spent:]]
    prompt, generated = (sum(use[f"{kind}_tokens"] for use in used) / len(used) for kind in ("prompt", "completion"))
    seconds, total = time.perf_counter() - started, len(data.test)
    return line("dspy", "its own", right, total, prompt, generated, len(lm.history), seconds, cpu / len(used))


async def table(base, options):
    """Print the lines as they are measured."""
    (train, label), (test, _) = (read_rows(options.rows, split, options.label) for split in ("train", "test"))
    data = SimpleNamespace(
        train=train, test=test, label=label, instructions=options.instructions, budget=options.budget
    )
    print(COLUMNS.format(*HEADS), flush=True)
    for name in options.programs:
        if name == "dspy":
            known = importlib.util.find_spec("dspy")
            skipped = "dspy        skipped: it is not installed"
            print(await asyncio.to_thread(by_dspy, base, data, options.seed) if known else skipped, flush=True)
            continue
        for layout in options.layout:
            where = {"api_base": base, "limit": 4, "timeout_s": 3_600, **SAMPLING} if base else {}
            lm = sm.LanguageModel(options.model, **where)
            print(await measure(name, layout, lm, data, options.seed), flush=True)


def main(arguments=None):
    """Read the options, start the server, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.real")
    names = ["bare", "examples", "nearest", *OPTIMIZERS, "dspy"]
    parser.add_argument("programs", nargs="*", metavar="program", help=f"of {', '.join(names)}; all by default")
    parser.add_argument("--layout", nargs="+", choices=["turns", "tags"], default=["turns", "tags"])
    parser.add_argument("--rows", type=Path, default=HERE, help="a folder with train.jsonl and test.jsonl, or a file")
    parser.add_argument("--label", help="the field to tell from `text`")
    parser.add_argument("--instructions", default=INSTRUCTIONS)
    parser.add_argument("--budget", type=int, default=400, help="runs of the program per training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--api-base", help="a server that runs already")
    parser.add_argument("--model", default="openai/smollm2", help="on that server, or embedded/nearest")
    options = parser.parse_args(arguments)
    in_process = options.model.startswith("embedded/")
    options.programs = options.programs or names[: -1 if in_process else None]
    if unknown := {*options.programs} - {*names}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if not in_process and not options.api_base and not FOLDER.exists():
        parser.error("llama.cpp is not installed: python tests/real/server.py install")
    with tempfile.TemporaryDirectory() as folder:
        with nullcontext() if in_process or options.api_base else Server(Path(folder, "log"), "plain") as server:
            asyncio.run(table(server.base if server else options.api_base, options))


if __name__ == "__main__":
    main()
