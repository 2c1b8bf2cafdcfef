"""Optimizers: what makes a program's Variables better against a reward, each in one chapter.

Floor: 10. Purpose: six ways to search, over four shared pieces: harvest, halving, the pool, reflection. State: none
beside the `OptState` Variables of each optimizer. Must never know: Program, files, how a row is run.
"""

from synmod.train import Optimizer

from .bootstrap_few_shot import BootstrapFewShot
from .gepa import Gepa
from .mipro import Mipro
from .omega import Omega
from .random_few_shot import RandomFewShot
from .reflect import Reflect

__all__ = ["BootstrapFewShot", "Gepa", "Mipro", "Omega", "Optimizer", "RandomFewShot", "Reflect"]
