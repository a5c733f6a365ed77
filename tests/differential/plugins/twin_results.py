"""An Ansible callback that writes the whole result of every task as one JSON line."""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):  # type: ignore[misc]  # ansible carries no types
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "twin_results"

    def _write(self, result: Any, status: str) -> None:
        with open(os.environ["NODECTL_TWIN_OUT"], "a", encoding="utf-8") as out:
            out.write(json.dumps({"task": result._task.name, "status": status, "result": result._result}, default=str) + "\n")

    def v2_runner_on_ok(self, result: Any) -> None:
        self._write(result, "changed" if result._result.get("changed") else "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._write(result, "failed")

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._write(result, "skipped")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._write(result, "unreachable")
