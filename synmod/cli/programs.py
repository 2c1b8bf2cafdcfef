"""The commands on a saved program: show, run, eval, fit, diff."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import Any, Final, TypeAlias

import click

from synmod import data, errors, lm, saving, scope, tree
from synmod.flow import run as run_async
from synmod.journal import Run, durable
from synmod.leaves import did_you_mean, is_object, snake_case, thaw
from synmod.module import Module
from synmod.scope import Question
from synmod.serving.endpoints import ServedProgram, outputs_json
from synmod.train import evaluate as evaluate_rows, load_examples
from synmod.train.examples import rows_without_targets
from synmod.train.rewards import reward_from
from synmod.view.summary import summary_text

Opener: TypeAlias = Callable[[str], Any]
FILE: Final = click.Path(exists=True, dir_okay=False)


def opens_programs(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that opens programs; the command gets a function that opens a file."""

    @wraps(command)
    def with_opener(imports: tuple[str, ...], model: str | None, settings: tuple[str, ...], **options: Any) -> Any:
        return command(partial(open_program, imports=imports, model=model, settings=settings), **options)

    for option in (
        click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of a failure."),
        click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="A Variable for this run."),
        click.option("--model", metavar="PROVIDER/NAME", help="The model in place of every model of the program."),
        click.option("--import", "imports", multiple=True, metavar="MODULE", help="Imported first: it registers."),
    ):
        with_opener = option(with_opener)
    return with_opener


_CONCURRENCY: Final = click.option("--concurrency", type=click.IntRange(1), help="Default: 64, of batch jobs 10,000.")
_RUN: Final = click.option(
    "--run", type=click.Path(file_okay=False), help="Keeps what was paid for: the same line again goes on."
)
_REWARD: Final = click.option("--reward", required=True, help="The name of a reward, such as exact_match.")


def open_program(file: str, imports: tuple[str, ...], model: str | None, settings: tuple[str, ...]) -> Any:
    """Return the program of a file.

    Raises:
        click.UsageError: A module, model or Variable that is not there, or a value that is not JSON.
        LoadError: The file is not a program.
    """
    import importlib

    sys.path.insert(0, "")
    for name in imports:
        try:
            if name[:1] in ("", "."):  # which importlib reports by other errors
                raise ModuleNotFoundError(name=name)
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # one that the module itself imports
            raise click.UsageError(f"--import {name!r}: there is no such module here or installed.") from None
    try:
        live = None if model is None else lm.LanguageModel(model)
    except errors.ConfigError as error:
        raise click.UsageError(f"--model: {error}") from None
    if live is not None:
        lm.set_default_language_model(live)
    program = saving.load(file, language_models=live)
    for setting in settings:
        path, equals, text = argument_text(setting).partition("=")
        variables = tree.variables(program)
        if not equals or path not in variables:
            raise click.UsageError(
                f"--set {setting!r}: write PATH=VALUE, with a path of a Variable.{did_you_mean(path, variables)}"
            )
        is_text = variables[path].schema.get("type") == "string"
        tree.update(program, {path: text if is_text else read_json(text, f"--set {path}")})
    return program


@contextmanager
def explain_usage() -> Generator[None]:
    """Raise UsageError where a name or a number of the command line is wrong for the function that takes it."""
    try:
        yield
    except (errors.ArgumentError, errors.TrainerError) as error:
        raise click.UsageError(str(error)) from None


def argument_text(text: str) -> str:
    """Return an argument as UTF-8 has it, whatever the locale."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def read_json(text: str, where: str) -> Any:
    """Return the JSON of an argument.

    Raises:
        click.UsageError: It is not JSON.
    """
    try:
        return data.parse_json(argument_text(text))
    except errors.DataError as error:
        raise click.UsageError(f'{where}: {error} Quote it: \'{{"text": "..."}}\', or a text: \'"..."\'.') from None


def print_json(value: Any, *, indent: int | None = None) -> None:
    """Write JSON to standard output, in UTF-8 whatever the locale."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=indent).encode(errors="backslashreplace"))


# -- show --------------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("file", type=FILE)
@click.option("--format", "kind", type=click.Choice(["text", "json", "mermaid", "svg"]), default="text")
@opens_programs
def show(opener: Opener, file: str, kind: str) -> None:
    """Show the parts of a program, its inputs and outputs, its Variables, and what it needs."""
    program = opener(file)
    if kind in ("mermaid", "svg"):
        click.echo(program.plot(format=kind).encode())
        return
    served = ServedProgram("program", program)
    document = json.loads(Path(file).read_text("utf-8"))
    records = document["language_models"]
    ids = re.findall(r'"([A-Za-z_][\w.-]*>[A-Za-z_][\w.-]*)"', json.dumps([document["graph"], document["data_models"]]))
    about = {
        "inputs": served.input_schema,
        "outputs": run_async(served.output_schema()),
        "variables": {path: thaw(variable.value) for path, variable in tree.variables(program).items()},
        "models": {name: record["model"] if record.get("type") else None for name, record in records.items()},
        "classes": sorted({name for name in ids if not name.startswith("synmod>")}),
    }
    if kind == "json":
        print_json(about, indent=2)
        return
    lines = summary_text(program, columns=("path", "class", "variables", "tokens", "language_model")).splitlines()
    lines += [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in about.items()]
    for line in lines:
        click.echo(fill(line, 80, subsequent_indent="  ", break_on_hyphens=False).encode())


# -- run ---------------------------------------------------------------------------------------------------------------


@click.command("run")
@click.argument("file", type=FILE)
@click.argument("inputs", required=False)
@click.option("--rows", type=FILE, help="Rows, as JSON lines, JSON, CSV or TSV, in place of one input.")
@click.option("--out", type=click.Path(dir_okay=False), help="Where the outputs of the rows go; standard output else.")
@_CONCURRENCY
@_RUN
@click.option("--stream", is_flag=True, help="Write the pieces of the answer to standard error as they arrive.")
@click.option("--trace", type=click.Path(dir_okay=False), help="Write a page with all calls.")
@opens_programs
def run_program(opener: Opener, file: str, inputs: str | None, stream: bool, trace: str | None, **options: Any) -> int:
    """Run a program on INPUTS (JSON, or - for standard input), or on the rows of a file."""
    if (inputs is None) == (options["rows"] is None):
        raise click.UsageError("give the inputs as JSON, - for standard input, or --rows FILE.")
    if inputs is not None and options["out"] is not None:
        raise click.UsageError("--out is for --rows: the outputs of one input go to standard output.")
    if inputs is None and stream:
        raise click.UsageError("--stream is for one input: the answers to rows arrive at the same time.")
    program = opener(file)
    with ExitStack() as blocks:
        tracer = None if trace is None else blocks.enter_context(scope.trace())
        try:
            if inputs is None:
                return run_async(_run_rows, program, **options)
            text = sys.stdin.buffer.read().decode("utf-8", "replace") if inputs == "-" else str(inputs)
            inputs_json = read_json(text, "the input")
            print_json(outputs_json(_run_asking(program, inputs_json, stream, options["run"])))
            return 0
        finally:
            if tracer is not None:
                tracer.to_html(trace)


def _run_asking(program: Module, inputs: Any, streams: bool, folder: str | None) -> Any:
    """Return what a program returns; a question is asked on the terminal.

    Raises:
        click.ClickException: There is no terminal.
    """
    is_terminal = os.isatty(0) and os.isatty(2)
    with TemporaryDirectory() if folder is None and is_terminal else nullcontext(folder) as run:
        while True:
            try:
                return run_async(_run_once, program, inputs, streams, run)
            except errors.Paused as pause:
                question = pause.questions[0]
                if not is_terminal:
                    hint = "add --run DIR, and this line shows the command that answers it"  # ids are those of a run
                    if folder is not None:
                        place = Path(folder)
                        command = f"synmod runs {place.parent} answer {place.name} {question.id} VALUE"
                        hint = f"{command}, and this line again"
                    raise click.ClickException(f"waiting for the answer to {question.text!r}: {hint}.") from None
                value = "" if question.value is None else f" {json.dumps(thaw(question.value), ensure_ascii=False)}"
                text = click.prompt(f"{question.text}{value} ({json.dumps(question.schema)})", err=True)
                Run(str(run)).answer(question.id, read_answer(question, text))


def read_answer(question: Question, text: str) -> Any:
    """Return the answer in a text: as it is where the schema takes only texts, JSON otherwise."""
    return argument_text(text) if question.schema.get("type") == "string" else read_json(text, "the answer")


async def _run_once(program: Module, json_inputs: Any, streams: bool, folder: str | None) -> Any:
    """Return what a program returns; write the pieces of its answer to standard error."""
    served = ServedProgram("program", program)
    async with nullcontext() if folder is None else durable(folder):
        inputs = served.read_inputs(json_inputs)
        if not streams:
            return await served.call(inputs)
        answering = served.answering
        async with lm.stream(served.call, inputs) as source:
            async for chunk in source:
                if chunk.path in answering:
                    click.echo(chunk.text, err=True, nl=False)
        click.echo("", err=True)
        return source.result


async def _run_rows(program: Module, rows: str, out: str | None, **options: Any) -> int:
    """Run a program on the rows of a file, and write a line for each; return the status."""
    examples = await rows_without_targets(rows, program)
    try:
        results = (await evaluate_rows(program, examples, **options)).results
    except errors.EvaluationError as error:
        results = error.partial.results
        click.echo(f"synmod: {' '.join(str(error).split())}", err=True)
    lines = [
        {"outputs": outputs_json(result.outputs)}
        if result.error is None
        else {"error": {"type": result.error.type, "message": result.error.message}}
        for result in results
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    if out is None:
        click.echo(text.encode(errors="backslashreplace"), nl=False)
    else:
        saving.write_atomic(out, text)
    failed = sum("error" in line for line in lines) + len(examples) - len(lines)
    if failed:
        click.echo(f"synmod: {failed} of {len(examples)} rows failed.", err=True)
    return int(failed > 0)


# -- eval, fit, diff ---------------------------------------------------------------------------------------------------


@click.command("eval")
@click.argument("file", type=FILE)
@click.argument("rows", type=FILE)
@_REWARD
@click.option("--against", type=FILE, help="Another program, to compare with.")
@click.option("--csv", type=click.Path(dir_okay=False), help="Write the results of all rows as CSV.")
@_CONCURRENCY
@_RUN
@opens_programs
def evaluate(opener: Opener, file: str, rows: str, against: str | None, csv: str | None, **options: Any) -> int:
    """Score a program on the rows of a file; with --against the status is 1 where it is worse for certain."""
    program = opener(file)
    folder = options.pop("run")
    with explain_usage():
        options["reward"] = reward_from(options["reward"])

    async def measure(program: Module, run: str | Path | None) -> Any:
        examples = await load_examples(rows, program=program)
        return await evaluate_rows(program, examples, run=run, **options)

    evaluation = run_async(measure, program, folder)
    if csv is not None:
        evaluation.to_csv(csv)
    scores = {"score": evaluation.score, "rows": len(evaluation.results), "failed": len(evaluation.errors)}
    scores |= {"usage": vars(evaluation.usage)}
    if against is None:
        print_json(scores)
        return 0
    old = run_async(measure, opener(against), None if folder is None else Path(folder, "against"))
    comparison = evaluation.compare(old)
    print_json({**scores, "against": old.score, "comparison": comparison.to_json()})
    return int(comparison.high < 0)


@click.command()
@click.argument("file", type=FILE)
@click.argument("rows", type=FILE)
@_REWARD
@click.option("--optimizer", default="RandomFewShot", show_default=True)
@click.option("--budget", type=click.IntRange(1), help="How many rollouts may be paid for.")
@_RUN
@click.option("--out", type=click.Path(dir_okay=False), required=True, help="Where the trained program goes.")
@opens_programs
def fit(opener: Opener, file: str, rows: str, out: str, **options: Any) -> None:
    """Train a program on the rows of a file, and save it."""
    program = opener(file)
    with explain_usage():
        program.compile(reward=options.pop("reward"), optimizer=snake_case(options.pop("optimizer")))
    history = run_async(program.fit(rows, **options))
    saving.save(program, out)
    print_json({"best": history.best.id, "score": history.best.score, "out": out})


@click.command()
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of a failure.")
def diff(old: str, new: str) -> int:
    """Compare two saved programs by Variable: the status is 0 for equal, 1 for different, 2 for unreadable."""
    sides, changes = {"old": _sections(old), "new": _sections(new)}, dict[str, Any]()
    for path in dict.fromkeys([*sides["old"], *sides["new"]]):
        values = {side: sections[path] for side, sections in sides.items() if path in sections}
        if len(values) == 1 or values["old"] != values["new"]:
            changes[path] = values
    print_json(changes, indent=2)
    return int(bool(changes))


def _sections(file: str) -> Mapping[str, Any]:
    """Return the values of a saved program by path, and the sections of its structure."""
    try:
        document = data.parse_json(Path(file).read_bytes(), 200)
        if not (is_object(document) and is_object(document.get("state"))):
            raise errors.DataError("it is not a program that synmod saved.")
    except (errors.DataError, OSError) as error:
        raise click.UsageError(f"{file}: {error}") from None
    structure = {
        f"({name})": document[name] for name in ("graph", "data_models", "language_models") if name in document
    }
    return {**document["state"], **structure}
