"""Texts from outside, as both databases take them."""

from __future__ import annotations


def storable(text: str) -> str:
    """Without NUL and without halves of surrogate pairs: reasons and errors may quote any input."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
