"""An Ansible callback that writes one JSON line per result: what real ansible-playbook did, to compare with."""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.callback import CallbackBase


def _shown(result: dict[str, Any]) -> Any:
    """What a debug task shows: its message, or one for each item of its loop."""
    if "results" in result:
        return [_shown(one) for one in result["results"]]
    if result.get("skipped") or result.get("failed"):
        return "skipped" if result.get("skipped") else "failed"
    return result.get("msg")


class CallbackModule(CallbackBase):  # type: ignore[misc]  # ansible carries no types
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "sequence"

    def _write(self, data: dict[str, Any]) -> None:
        with open(os.environ["NODECTL_ORACLE_OUT"], "a", encoding="utf-8") as out:
            out.write(json.dumps(data, default=str) + "\n")

    def _result(self, result: Any, status: str) -> None:
        """Without meta tasks: they are shown, but counted nowhere."""
        if result._task.action.removeprefix("ansible.builtin.") == "meta":
            return
        module = result._task.action.removeprefix("ansible.builtin.")
        one_failed = status in ("failed", "ignored") and "results" not in result._result
        shown = {"shown": "failed" if one_failed else _shown(result._result)} if module == "debug" and status != "skipped" else {}
        self._write({"host": result._host.get_name(), "task": result._task.name or module, "status": status, **shown})

    def v2_runner_on_ok(self, result: Any) -> None:
        self._result(result, "changed" if result._result.get("changed") else "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._result(result, "ignored" if ignore_errors else "failed")

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._result(result, "skipped")

    def v2_playbook_on_stats(self, stats: Any) -> None:
        for host in stats.processed:
            self._write({"host": host, "stats": {key: value for key, value in stats.summarize(host).items() if key != "failures"} | {"failed": stats.summarize(host)["failures"]}})
