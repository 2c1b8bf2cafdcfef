"""Which model is worth its price: every way to answer is measured, and the frontier of quality and dollars is drawn.

    python examples/frontier.py [--rows 200] [--most 0.002] [--folder out/frontier] [--seed 0]

A program sorts letters as urgent or not. Which model answers, and how many votes it has, are two Choices. The models
are doubles, each with a price and a known share of right answers, so the true quality of every combination is known,
too. `GridSearch` runs all of them on the same rows; the frontier holds those that none beats in quality and dollars,
which is drawn with 95 % intervals. Then the best one within a budget per letter is applied.
"""

import argparse
import random
from math import log10
from pathlib import Path

import synmod as sm
from synmod.testing import FunctionLM

MODELS = {"tiny": (0.60, 0.1), "small": (0.75, 0.5), "old": (0.70, 2.0), "middle": (0.92, 3.0), "large": (0.95, 12.0)}
"""Name of a model: its share of right answers, and its price in USD per million tokens."""
VOTES = (1, 3, 5)
TOKENS = 400
PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 320" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="#ffffff"/><path d="M50,30 V290 H640" fill="none" stroke="#24292f"/>
<text x="50" y="22">share of right answers</text><text x="640" y="308" text-anchor="end">USD per letter</text>
{shapes}</svg>
"""


class Letter(sm.DataModel):
    """What arrived."""

    number: int


class Verdict(sm.DataModel):
    """Whether somebody must look at it today."""

    urgent: bool


def double(name, seed):
    """Return a model that is right on a known share of the letters, drawn afresh for each vote."""
    share, usd = MODELS[name]

    def reply(request):
        number = request.messages[-1]["content"].strip('{}"number: ')
        is_right = random.Random(f"{seed}/{name}/{number}/{request.sample}").random() < share
        text = Verdict(urgent=is_urgent(int(number)) == is_right).model_dump_json()
        return sm.LMReply(text, usage=sm.Usage(prompt_tokens=TOKENS))

    return FunctionLM(reply, name=name, price=(usd, usd))


def is_urgent(number):
    """Return the truth about a letter."""
    return number % 3 == 0


def true_point(name, votes):
    """Return the true quality of a combination, which is that of a majority of independent votes, and its price."""
    share, usd = MODELS[name]
    return votes_win(share, votes), votes * TOKENS * usd / 1e6


def votes_win(share, votes, right=0):
    """Return the probability that most votes are right, some of which are known to be."""
    if votes == 0:
        return float(right > 0)
    return share * votes_win(share, votes - 1, right + 1) + (1 - share) * votes_win(share, votes - 1, right - 1)


def true_frontier():
    """Return the combinations that none beats in truth."""
    points = {(name, votes): true_point(name, votes) for name in MODELS for votes in VOTES}
    return {
        key
        for key, (quality, usd) in points.items()
        if not any(q >= quality and c <= usd and (q, c) != (quality, usd) for q, c in points.values())
    }


def combination(candidate):
    """Return the model and the votes of a candidate."""
    name, votes = (candidate.state[path].value for path in ("module/language_model", "n"))
    return name, votes


def draw(history, points, path):
    """Write the picture: combinations as circles, the frontier as a line with intervals; dollars by powers of 10."""
    costs = [true_point(name, votes)[1] for name in MODELS for votes in VOTES]
    low, high = log10(min(costs)), log10(max(costs))

    def place(usd, score):
        return f"{60 + 520 * (log10(usd) - low) / (high - low):.1f}", f"{280 - 480 * (score - 0.5):.1f}"

    shapes, line = [], []
    for candidate in history.candidates:
        x, y = place(true_point(*combination(candidate))[1], candidate.score)
        shapes.append(f'<circle cx="{x}" cy="{y}" r="3" fill="none" stroke="#6e7781"/>')
    for point in points:
        usd, (name, votes) = point.means["cost_usd"], combination(point.candidate)
        x, y = place(usd, point.means["score"])
        bottom, top = (place(usd, end)[1] for end in point.intervals["score"])
        shapes.append(f'<path d="M{x},{bottom} V{top}" stroke="#1f6feb"/>')
        shapes.append(f'<text x="{x}" y="{y}" dx="5" dy="14">{name} x{votes}</text>')
        line.append(f"{x},{y}")
    shapes.append(f'<polyline points="{" ".join(line)}" fill="none" stroke="#1f6feb" stroke-width="2"/>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PICTURE.format(shapes="".join(shapes)), encoding="utf-8")


async def main(count, most, folder, seed):
    """Measure, print, draw, and pick."""
    models = sm.Choice({name: double(name, seed) for name in MODELS})
    desk = sm.Majority(sm.Generator(Verdict, language_model=models), sm.Choice(VOTES))
    rows = [sm.Example(str(n), Letter(number=n), {"urgent": is_urgent(n)}) for n in range(count)]
    trainer = sm.Trainer(desk, reward="exact_match", seed=seed)
    history = await trainer.fit([sm.Batch(rows[:1])], eval_data=rows, optimizer=sm.optimizers.GridSearch())
    print(f"{len(history.candidates)} combinations, {history.spent.rollouts:,} rollouts\n")

    points, true = history.frontier("score", "cost_usd"), true_frontier()
    print("model   votes  score  95 % interval  true   USD per letter  on the true frontier")
    for point in points:
        name, votes = combination(point.candidate)
        (low, high), quality = point.intervals["score"], true_point(name, votes)[0]
        usd, on = point.means["cost_usd"], "yes" if (name, votes) in true else "no"
        print(
            f"{name:7} {votes:5}  {point.means['score']:.3f}  {low:.3f} to {high:.3f} {quality:.3f}  {usd:14.6f}  {on}"
        )
    measured = {combination(point.candidate) for point in points}
    print(f"\nof the true frontier, measured as such: {len(true & measured)} of {len(true)}")

    draw(history, points, folder / "frontier.svg")
    history.to_html(folder / "history.html")
    print(f"written: {folder / 'frontier.svg'}, {folder / 'history.html'}")

    best = history.pick(cost_usd=most)
    sm.update(desk, best.state)
    name, votes = combination(best)
    print(f"the best for {most:g} USD per letter: {name}, votes: {votes}, score {best.score:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=200, help="letters that each combination answers (default: 200)")
    parser.add_argument("--most", type=float, default=0.002, help="USD per letter at most (default: 0.002)")
    parser.add_argument("--folder", type=Path, default=Path("out/frontier"), help="where the pictures go")
    parser.add_argument("--seed", type=int, default=0, help="seed of the doubles (default: 0)")
    arguments = parser.parse_args()
    sm.run(main, arguments.rows, arguments.most, arguments.folder, arguments.seed)
