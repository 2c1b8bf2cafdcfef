"""Rows in other processes and on other machines: an executor for `evaluate` and `fit` on a Dask cluster.

Floor: 12. Purpose: a program goes to the workers as the text of `sm.dumps`, rows and values go as JSON, and the result
of each row comes back as JSON. State: on a worker, the programs read last, and the models of `setup`. Speed: about half
a millisecond of the caller's CPU per row; batches of about a second. Must never know: optimizers, the journal, a
provider.
"""

from .executor import DaskExecutor

__all__ = ["DaskExecutor"]
