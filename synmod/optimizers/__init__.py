"""Optimizers: what makes a program's Variables better against a reward, each in one chapter.

Floor: 10. Purpose: six ways to search, over four shared pieces: harvest, halving, the pool, reflection. State: none
beside the `OptState` Variables of each optimizer. Must never know: Program, files, how a row is run.
"""

from synmod.train import Optimizer as Optimizer

from .bootstrap_few_shot import BootstrapFewShot as BootstrapFewShot
from .gepa import Gepa as Gepa
from .mipro import Mipro as Mipro
from .omega import Omega as Omega
from .random_few_shot import RandomFewShot as RandomFewShot
from .reflect import Reflect as Reflect
