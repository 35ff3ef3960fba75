"""Quality: what was counted, turned by Great Expectations into a verdict that people can read."""

from twinstream.quality.gates import gate

__all__ = ["gate"]
