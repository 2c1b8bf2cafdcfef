"""Rows on other processes and machines: an executor for `evaluate` and `fit`, on a cluster of Dask.

Floor: 12. Purpose: a program goes to the workers as the text of saving, rows and values as JSON, and what became of
each row comes back as JSON. State: on a worker, the last programs that it has read, and the models of `setup`. Speed:
about half a millisecond of CPU here for a row; batches of about a second. Must never know: optimizers, the journal, a
provider.
"""

from .executor import DaskExecutor

__all__ = ["DaskExecutor"]
