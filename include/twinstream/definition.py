"""What makes two definitions the same: their results, not their wording.

A pipeline's generation is tied to the hash of its definition. A comment or another layout must not change it, and
whatever could change a result must.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from twinstream.errors import DefinitionError
from twinstream.prepare.canonical import canonical_sql
from twinstream.prepare.reach import canonical_callable

__all__ = ["canonical_callable", "canonical_sql", "hash_definition"]


def hash_definition(parts: Mapping[str, object]) -> str:
    """A fingerprint of the parts of a definition, which must be what JSON can hold: 32 hexadecimal digits."""
    try:
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"The definition cannot be hashed: {error}.") from error
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]
