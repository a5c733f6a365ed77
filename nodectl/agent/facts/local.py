"""Facts that the node's own files give: /etc/ansible/facts.d/*.fact, INI or JSON, or programs that print one of them."""

from __future__ import annotations

import configparser
import glob
import json
import os
from typing import Any, Dict, List, Tuple

from nodectl.agent.contract import Failed
from nodectl.agent.system import System

# One program that gives facts; Ansible's whole setup has 10 s by default.
LIMIT = 10.0


def collect(system: System, folder: str) -> Tuple[Dict[str, Any], List[str]]:
    """(name of the file -> its facts, warnings)."""
    facts: Dict[str, Any] = {}
    warnings: List[str] = []
    for path in sorted(glob.glob(os.path.join(folder, "*.fact"))):
        name = os.path.basename(path)[: -len(".fact")]
        try:
            facts[name] = parse(_content(system, path))
        except (Failed, ValueError, configparser.Error) as error:
            warnings.append(f"{path} gives no facts: {error}")
    return facts, warnings


def _content(system: System, path: str) -> str:
    if os.access(path, os.X_OK):
        done = system.run([path], timeout=LIMIT)
        if done.rc != 0:
            raise Failed(f"exit code {done.rc}: {done.stderr.strip()}")
        return done.stdout
    return (system.read(path) or b"").decode("utf-8", "replace")


def parse(content: str) -> Any:
    """JSON, else INI. Raises ValueError or configparser.Error."""
    try:
        return json.loads(content)
    except ValueError:
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string(content)
        return {section: dict(parser.items(section)) for section in parser.sections()}
