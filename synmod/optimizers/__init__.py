"""Optimizers: what makes a program's Variables better against a reward.

Floor: 10. Purpose: nine ways to search, over four shared pieces, which also serve optimizers of one's own: the pool of
examples, halving, the pool of candidates, reflection. State: none beside the `OptState` Variables of each optimizer.
Must never know: Program, files, how a row is run.
"""

from synmod.train import Optimizer, records_of

from .bootstrap_few_shot import BootstrapFewShot
from .example_pool import ExamplePool, examples_from_labels, examples_from_runs, successive_halving
from .exhaustive import GridSearch, Prune
from .gepa import Gepa
from .mipro import Mipro
from .omega import Omega
from .random_few_shot import RandomFewShot
from .reflect import Reflect
from .reflection import Child, Evidence, Reflective, evidence, minibatch_gain, minibatches

__all__ = [
    "BootstrapFewShot", "Child", "Evidence", "ExamplePool", "Gepa", "GridSearch", "Mipro", "Omega", "Optimizer",
    "Prune", "RandomFewShot", "Reflect", "Reflective", "evidence", "examples_from_labels", "examples_from_runs",
    "minibatch_gain", "minibatches", "records_of", "successive_halving",
]
