"""Reads YAML as everybody else does, not as nodectl does."""

from __future__ import annotations

from typing import Any

import yaml


def read_yaml(text: str) -> Any:
    return yaml.safe_load(text)
