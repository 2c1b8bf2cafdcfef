"""Values without structure: States, their algebra, and fitting them to a graph.

Floor: 5, inside tree. Purpose: the ordered mapping of paths to leaves, JSON, differences, partition, gathering with
every fault named. State: none. Speed: unchanged leaves are shared. Must never know: live objects.
"""
