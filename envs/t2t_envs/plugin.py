"""What this room brings through the door."""

from __future__ import annotations
