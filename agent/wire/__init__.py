"""Normalize what providers stream. Nothing here does I/O."""
