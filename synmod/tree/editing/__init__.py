"""Writing into a live program: values, structure, attributes and metadata, all or nothing.

Floor: 5, inside tree, above functional. Purpose: update, pop, set_attributes, set_metadata.
State: none. Must never know: overlays' layers.
"""
