"""Run ansible-core's own modules, all in this one process: `python ansible_oracle.py jobs.json results.json`.

A job is {name, module, args, root}; each is run twice, and the tree below root is copied to ROOT.first in between.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import shutil
import sys
import tempfile
from typing import Any

from ansible.module_utils.testing import patch_module_args


def prepared(module: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What the controller's half of Ansible makes of a task before the module sees it."""
    if module in ("command", "shell"):
        args = {("_raw_params" if key == "cmd" else key): value for key, value in args.items()}
        return "command", {**args, "_uses_shell": module == "shell"}
    if module == "copy" and "content" in args:
        handle, path = tempfile.mkstemp(dir=os.path.dirname(sys.argv[2]))
        with os.fdopen(handle, "w") as file:
            file.write(args["content"])
        return module, {**{key: value for key, value in args.items() if key != "content"}, "src": path}
    return module, args


def run(module: str, args: dict[str, Any]) -> dict[str, Any]:
    name, ready = prepared(module, args)
    code = importlib.import_module(f"ansible.modules.{name}")
    said = io.StringIO()
    with patch_module_args(ready), contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        try:
            code.main()
        except Exception as error:  # noqa: BLE001 -- what Ansible shows as a traceback is a failed task there
            return {"failed": True, "msg": repr(error)}
    result: dict[str, Any] = json.loads(said.getvalue().strip().splitlines()[-1])
    return result


def main() -> None:
    with open(sys.argv[1]) as file:
        jobs = json.load(file)
    os.umask(0o022)
    results = {}
    for job in jobs:
        first = run(job["module"], job["args"])
        shutil.copytree(job["root"], f"{job['root']}.first", symlinks=True)
        results[job["name"]] = {"first": first, "second": run(job["module"], job["args"])}
    with open(sys.argv[2], "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main()
