"""synmod: an async module system for LLM programs."""
