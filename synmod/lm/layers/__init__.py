"""The layers of a model call, each a file that does one thing around the next; `stack` says their order.

Floor: 5, inside lm. Purpose: events, time, checks, repair, retries, budgets, sending. State: what one `ModelCall`
carries from layer to layer. Speed: a few microseconds each. Must never know: providers, prompts, modules.
"""
