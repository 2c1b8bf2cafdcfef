"""Reflection: better values from a model, the cheap test that a child must pass, and the pool of those that did."""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, sqrt
from typing import Any, ClassVar, Final, NamedTuple

from synmod.data import JsonDataModel, dump_json, problems
from synmod.errors import (
    AuthError,
    BudgetExceeded,
    ConfigError,
    EvaluationError,
    JournalError,
    TrainerError,
    UnboundModelError,
)
from synmod.leaves import Json, is_array, is_object
from synmod.module import Module
from synmod.scope import caused_by_enclosing_limit
from synmod.train import (
    Bench,
    FeedbackItem,
    Optimizer,
    Proposer,
    ReflectionInputs,
    TargetKind,
    characters_of,
    most_characters,
)
from synmod.tree import OptState, State, Variable, state as state_of

_FATAL: Final = (AuthError, ConfigError, UnboundModelError)
_REMEMBERED: Final = 6
_MOST_RECORDS, _MOST_CHARACTERS, _CUT = 12, 24_000, 600
_MEDIA: Final = {"media_type", "data", "url"}  # the fields of `sm.Image`, `sm.Audio`, `sm.File` alone
_FAILED_STEPS: Final = 3
_SENTENCE_END: Final = re.compile(r"[.!?:;]\s+|\n")
_WORD: Final = re.compile(r"\w+")


class Evidence(NamedTuple):
    """What a parent did on some train rows.

    Attributes:
        parent: The State that was run.
        rows: Ids.
        items: The feedback of each target's module.
        blame: The paths that failures blame, the most blamed first.
    """

    parent: State
    rows: Sequence[str]
    items: Mapping[str, Sequence[FeedbackItem]]
    blame: Sequence[str]


class Child(NamedTuple):
    """A State with better values, what it was made on, and what it gained there."""

    state: State
    found: Evidence
    gain: float

    @property
    def changes(self) -> dict[str, Json]:
        """Its values that are not its parent's, by path."""
        leaves = self.found.parent.diff(self.state)
        return {path: leaf.value for path, (_, leaf) in leaves.items() if leaf is not None}


async def evidence(bench: Bench, parent: State, rows: Sequence[str]) -> Evidence:
    """Run a parent on train rows, and see what its failures blame."""
    rollouts = await bench.evaluate(parent, rows, split="train", calls=True)
    items = await bench.feedback(rollouts)
    counts = bench.blamed(items, rollouts)
    return Evidence(parent, rows, items, sorted(counts, key=lambda path: -counts[path]))


def minibatches(bench: Bench, parents: Sequence[State], size: int) -> list[list[str]]:
    """Draw disjoint train rows for each parent: half of them known to fail under it, as far as there are such."""
    rows = bench.rng("minibatches").sample(bench.train, len(bench.train))
    batches: list[list[str]] = []
    for parent in parents:
        known = bench.scores(parent, "train")
        failing = {row: None for row in rows if known.get(row, bench.best_score) < bench.best_score}
        first = list(failing)[: size // 2]
        rest = [row for row in rows if row not in failing] + list(failing)[size // 2 :]
        batches.append(first + rest[: size - len(first)])
        rows = [row for row in rows if row not in batches[-1]]
    return batches


async def gain_in_two_waves(bench: Bench, child: State, found: Evidence) -> float:
    """Return what a child gains on the rows of its parent; rows that cannot gain run only if others did.

    Source: the minibatch test of GEPA; differs: exact for less than half of its price.
    """
    old = bench.scores(found.parent, "train")
    open_rows = [row for row in found.rows if row in old and old[row] < bench.best_score]
    closed_rows = [row for row in found.rows if row in old and row not in open_rows]
    gain = 0.0
    for rows in (open_rows, closed_rows):
        await bench.evaluate(child, rows, split="train")
        new = bench.scores(child, "train")
        gain += fsum(new[row] - old[row] for row in rows if row in new)
        if gain <= 0:
            break
    return gain


# -- what a proposer receives ------------------------------------------------------------------------------------------


def question(
    bench: Bench, state: State, path: str, records: Sequence[Json], accepted: Any = (), tried: Any = (), hint: str = ""
) -> JsonDataModel[Any]:
    """Return what a proposer is asked about one target.

    Args:
        bench: Knows the targets.
        state: Their values.
        path: The target.
        records: The result of `records_of`.
        accepted: Values that were accepted.
        tried: Values that were tried.
        hint: Advice for this question alone.
    """
    target = bench.targets[path]
    asked: dict[str, Any] = {
        "task": bench.task,
        "path": path,
        "description": target.description,
        "current": state[path].value,
        "others": {other: _cut(state[other].value) for other in bench.targets if other != path},
        "records": records,
        "accepted": list(accepted),
        "tried": list(tried),
        "hint": hint,
        "value_schema": dict(target.schema),
    }
    return JsonDataModel[Any](asked, data_model=ReflectionInputs)


def _cut(value: Json) -> str:
    """Return the first characters of a value as text."""
    text = value if isinstance(value, str) else dump_json(value)
    return text if len(text) <= _CUT else f"{text[:_CUT]}..."


def records_of(items: Sequence[FeedbackItem], best: float, expected: Sequence[Json] = ()) -> list[dict[str, Json]]:
    """Return feedback as records for a proposer: failing ones first, at most 12, 24,000 characters together.

    Args:
        items: The feedback of one module.
        best: The highest score there is.
        expected: The target of each row, where rows have one.
    """

    def score(item: FeedbackItem) -> float:
        return best if item.feedback.score is None else item.feedback.score

    records: list[dict[str, Json]] = []
    room = _MOST_CHARACTERS
    for item in sorted(items, key=score)[:_MOST_RECORDS]:
        target = item.feedback.target
        if target is None and item.row < len(expected):
            target = expected[item.row]
        record: dict[str, Json] = {
            "inputs": _without_media(item.inputs),
            "outputs": _without_media(item.outputs),
            "expected": _without_media(target),
            "score": item.feedback.score,
            "critique": item.feedback.critique,
        }
        room -= len(dump_json(record))
        if room < 0 and records:
            break
        records.append(record)
    return records


def _without_media(json: Json) -> Json:
    """Return JSON with a word in place of images, sounds and files, whose base64 tells a proposer nothing."""
    if is_object(json):
        if {*json} == _MEDIA:
            return f"({json['media_type'] or 'image'})"
        return {name: _without_media(part) for name, part in json.items()}
    return [*map(_without_media, json)] if is_array(json) else json


def copies_prompt(value: Json, proposer: Module, current: Json, texts: Iterable[str]) -> bool:
    """Whether a value is a text of the prompt that asked for it: one or more whole sentences, whatever their case.

    Args:
        value: The proposed value.
        proposer: Its own texts, such as its instructions, are part of the prompt.
        current: The value to replace.
        texts: Other texts of the prompt; each counts as a sentence.
    """
    if not isinstance(value, str):
        return False
    prompt = [str(field.description) for field in ReflectionInputs.model_fields.values()]
    prompt += [leaf.value for leaf in state_of(proposer).values() if isinstance(leaf.value, str)]
    prompt += proposer.reply_descriptions(current) if isinstance(proposer, Proposer) else ()
    sentences = {_words(text) for text in (*texts, *(part for text in prompt for part in _SENTENCE_END.split(text)))}
    words = rest = _words(value)
    for sentence in sorted(sentences - {""}, key=len, reverse=True):
        rest = rest.replace(sentence, "")
    return rest != words and not rest


def _words(text: str) -> str:
    """Return the words of a text in lower case, each between spaces."""
    return "".join(f" {word} " for word in _WORD.findall(text.casefold()))


# -- optimizers that reflect -------------------------------------------------------------------------------------------


class Reflective(Optimizer):
    """An optimizer that gets better values from a model, and remembers what was accepted and tried."""

    kinds: ClassVar[tuple[TargetKind, ...]] = ("instruction", "value")
    ends: ClassVar[bool] = True
    needs_reward = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.proposer: Module = self.proposer or Proposer(self.language_model)
        self.accepted, self.tried, self.asked = (
            self.add_variable({}, schema={"type": "object"}, name=name, type=OptState)
            for name in ("accepted", "tried", "asked")
        )

    def assigned(self, bench: Bench, found: Sequence[Evidence], *, joint: bool) -> list[tuple[Evidence, Sequence[str]]]:
        """Return what each slot mends: its most blamed path that no earlier slot took; where none is left, all of them.

        Args:
            bench: Takes a line for each slot that has nothing to mend.
            found: The evidence of each slot.
            joint: Whether every second slot mends all its blamed paths in one child.
        """
        taken: set[str] = set()
        slots: list[tuple[Evidence, Sequence[str]]] = []
        for number, each in enumerate(found):
            if not each.blame:
                bench.log("reflect", [], "perfect", rows=len(each.rows))
            else:
                free = [] if joint and number % 2 else [path for path in each.blame if path not in taken][:1]
                taken.update(free)
                slots.append((each, free or each.blame))
        return slots

    async def survivors(self, bench: Bench, slots: Sequence[tuple[Evidence, Sequence[str]]]) -> list[Child]:
        """Make a child for each slot at once, and return those that gain on their rows."""

        async def tested(found: Evidence, paths: Sequence[str]) -> Child | None:
            state = await self.child(bench, found, paths)
            return None if state is None else Child(state, found, await gain_in_two_waves(bench, state, found))

        made = await bench.gather(*(tested(*slot) for slot in slots))
        children = [child for child in made if child is not None]
        for child in children:
            if child.gain <= 0:
                bench.log("reflect", child.changes, "no_gain", child.gain, len(child.found.rows))
                self.remember(child, accepted=False)
        return [child for child in children if child.gain > 0]

    async def wins(self, bench: Bench, child: Child, block: int, ids: Sequence[str] | None = None) -> bool:
        """Whether a child wins a race against its parent; remember it."""
        race = await bench.race(child.state, child.found.parent, block=block, ids=ids)
        bench.log("reflect", child.changes, "accepted" if race.kept else "worse", race.gain, race.rows)
        self.remember(child, accepted=race.kept)
        return race.kept

    async def child(self, bench: Bench, found: Evidence, paths: Sequence[str], hint: str = "") -> State | None:
        """Return a State with better values at some paths; None where the model gave none that can be used."""
        state = found.parent
        for path in paths:
            value = await self._value(bench, found, state, path, hint)
            state = state if value is None else state.replace({path: value})
        if state == found.parent:
            return None
        bench.candidate(state, found.parent, operator="reflect")
        return state

    async def _value(self, bench: Bench, found: Evidence, state: State, path: str, hint: str) -> Json | None:
        """Return a better value of one target: requested once more, with the reason, where the first cannot be used."""
        target = bench.targets[path]
        records = records_of(found.items[path], bench.best_score, [bench.expected(row) for row in found.rows])
        accepted, tried = (memory.value.get(path, []) for memory in (self.accepted, self.tried))
        current: Any = state[path].value
        most, texts = most_characters(self.proposer, current), (target.description, hint)
        for _ in range(2):
            inputs = question(bench, state, path, records, accepted, tried, hint)
            try:
                value = (await bench.ask(self.proposer, inputs))["value"]
            except Exception as error:
                if caused_by_enclosing_limit(error) or isinstance(error, BudgetExceeded | JournalError):
                    raise
                if isinstance(error, _FATAL):
                    cause = str(error).rstrip(".")
                    raise EvaluationError(f"the proposer cannot be asked: {cause}. {bench.advice}") from error
                bench.log("reflect", [path], "failed")
                self._count("failed", f"{type(error).__name__}: {error}")
                return None
            self._count("answered")
            if faults := problems(target.schema, value):
                word, why = "invalid", f"misses its schema: {faults[0].wanted} wanted, {faults[0].got} got"
            elif characters_of(value) > most:
                word, why = "invalid", f"has {characters_of(value)} characters; at most {most:.0f} are allowed"
            elif copies_prompt(value, self.proposer, current, texts):
                word, why = "duplicate", "repeats a text of this prompt"
            elif bench.knows(state.replace({path: value})):
                word, why = "duplicate", "was tried before"
            else:
                return value
            bench.log("reflect", [path], word)
            hint = f"{hint} Your last answer {why}: write another one. It was {dump_json(value):.{_CUT}}".strip()
        return None

    def _count(self, word: str, error: str = "") -> None:
        """Note that the model answered or failed in this step."""
        before = self.asked.value
        self.asked.assign({**before, word: True, "error": max(before.get("error", ""), error)})

    def end_step(self, accepted: bool) -> None:
        """Count steps without an accepted candidate, and those in which the model answered nothing but errors.

        Raises:
            TrainerError: Three of the latter in a row.
        """
        self.note(accepted)
        asked = self.asked.value
        failed = 0 if asked.get("answered") else asked.get("failed_steps", 0) + asked.get("failed", False)
        self.asked.assign({"failed_steps": failed})
        if failed >= _FAILED_STEPS:
            raise TrainerError(
                f"{type(self).__name__}: in {failed} steps the proposer gave nothing but errors, such as "
                f"{asked['error'].rstrip('.')}. Mend the cause and run the same line again."
            )

    def remember(self, child: Child, *, accepted: bool) -> None:
        """Note the values of a child that are not its parent's, for the next questions."""
        for memory in (self.tried, self.accepted) if accepted else (self.tried,):
            known = dict(memory.value)
            for path, value in child.changes.items():
                known[path] = [*known.get(path, []), value][-_REMEMBERED:]
            memory.assign(known)


# -- the candidates that an optimizer keeps ----------------------------------------------------------------------------


class Pool:
    """Candidates with their bounds, over a Variable of an optimizer.

    Args:
        kept: What each candidate changes of the seed.
        bench: Knows the scores.
        lcb: How many standard errors of a score in the whole range a bound lies below the mean.
    """

    def __init__(self, kept: Variable, bench: Bench, lcb: float) -> None:
        self._kept, self._bench, self._lcb = kept, bench, lcb

    def members(self) -> list[State]:
        """Return the candidates, oldest first: the seed alone, before others are kept."""
        values: list[dict[str, Json]] = self._kept.value or [{}]
        return [self._bench.seed.replace(each) for each in values]

    def keep(self, members: Iterable[State]) -> None:
        """Keep these candidates, each once, and no others."""
        changes = (self._bench.seed.diff(state) for state in dict.fromkeys(members))
        self._kept.assign([{path: leaf.value for path, (_, leaf) in each.items() if leaf} for each in changes])

    def bound(self, state: State) -> float:
        """Return the lower bound of a candidate's mean score on validation rows; without rows that of the worst."""
        bench = self._bench
        scores = list(bench.scores(state).values()) or [bench.best_score - bench.width]
        return fsum(scores) / len(scores) - self._lcb * bench.width / sqrt(len(scores))

    def ranked(self) -> list[State]:
        """Return the candidates by their bounds, the highest first; of equal ones the older."""
        return sorted(self.members(), key=self.bound, reverse=True)
