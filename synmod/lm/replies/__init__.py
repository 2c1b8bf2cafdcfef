"""Replies: from the text of a model to the value that was asked for, with nothing guessed.

Floor: 5, inside lm, below the layers. Purpose: the JSON in a text, the kinds a schema wants, native reasoning.
State: none. Speed: one strict parse in the common case. Must never know: requests, retries, adapters.
"""
