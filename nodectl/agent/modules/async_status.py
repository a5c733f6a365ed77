"""async_status: what came of a task that was started with `async`."""

from __future__ import annotations

from nodectl.agent import jobs
from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Ask about a task that was started with async, or remove its file",
    params={
        "jid": Param("str", "The job: ansible_job_id of the task's result.", required=True),
        "mode": Param("str", "cleanup removes the job's file.", default="status", choices=("status", "cleanup")),
    },
    returns={
        "ansible_job_id": "the job", "started": "true", "finished": "true when it has ended; the job's own result then stands beside it",
        "results_file": "the job's file", "erased": "the file that cleanup removed",
    },
    example="- async_status: {jid: \"{{ build.ansible_job_id }}\"}\n  register: job\n  until: job is finished\n  retries: 60\n  delay: 10\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    if args["mode"] == "status":
        return jobs.status(system, args["jid"])
    erased = jobs.path_of(system, args["jid"]) if check else jobs.forget(system, args["jid"])
    return Outcome(values={"ansible_job_id": args["jid"], "erased": erased, "started": False, "finished": False})
