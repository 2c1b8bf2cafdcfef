"""Instances: values that satisfy a schema, drawn at random and the same for the same seed.

Floor: inside testing. Purpose: what `SchemaLM` answers. State: none. Speed: about a millisecond for a data model.
Must never know: a language model, a request.
"""

from synmod.testing.instances.instance import instance_of

__all__ = ["instance_of"]
