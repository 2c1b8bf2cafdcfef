"""Messages of a conversation as data models: turns, parts of their content, media, tool calls.

Floor: 3, inside data, above models. Purpose: the chat-completions shape, checked.
State: none. Speed: loaded on first use, since pydantic takes its time.
Must never know: language models, files, the network.
"""
