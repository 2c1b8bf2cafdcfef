"""An evaluation through batch jobs in a process of its own: `python -m tests.lm.batch_child <base> <folder> <rows>`."""

import sys

import synmod as sm
from tests.lm.loopback import KEY


class Query(sm.DataModel):
    q: str


def agrees(outputs):
    """Reward: the second call answered."""
    return float(outputs["b"] == "y")


async def main(base, folder, count):
    jobs = sm.BatchJobs(quiet_s=0.05, poll_s=0.02)
    lm = sm.LanguageModel("openai/m", api_base=base, api_key=KEY, batch=jobs, attempts=3)
    steps = [sm.Generator({name: str}, name=name, structured="prompt", language_model=lm) for name in "ab"]
    rows = [sm.Example(str(at), Query(q=f"q{at}"), None) for at in range(count)]
    evaluation = await sm.evaluate(sm.Sequential(steps), rows, reward=agrees, concurrency=1_000, run=folder)
    print(evaluation.score, len(evaluation.results))


if __name__ == "__main__":
    sm.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
