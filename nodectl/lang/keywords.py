"""The words of the language, as data."""

from __future__ import annotations

from collections.abc import Mapping

# What tasks, blocks, roles and plays share, and what nodectl does with it: everything here is pushed down to the tasks.
SHARED = (
    "name", "when", "tags", "vars", "become", "become_user", "become_method", "become_flags", "environment", "ignore_errors",
    "ignore_unreachable", "no_log", "delegate_to", "delegate_facts", "run_once", "any_errors_fatal", "check_mode", "diff", "timeout", "notify", "connection",
    "remote_user", "port",
    "collections", "module_defaults", "throttle",
)  # fmt: skip
TASK = (
    *SHARED, "args", "action", "local_action", "loop", "loop_control", "register", "changed_when", "failed_when", "until", "retries", "delay", "listen",
    "async", "poll",
)  # fmt: skip
BLOCK = (*SHARED, "block", "rescue", "always")
ROLE = (*SHARED, "role")
IMPORT_PLAYBOOK = ("import_playbook", "name", "when", "tags", "vars")
PLAY = (
    "name", "hosts", "gather_facts", "gather_subset", "become", "become_user", "become_method", "become_flags", "vars", "vars_files", "roles", "tasks",
    "pre_tasks", "post_tasks", "handlers", "tags", "serial", "strategy", "max_fail_percentage", "any_errors_fatal", "force_handlers", "environment",
    "ignore_errors", "ignore_unreachable", "no_log", "check_mode", "diff", "timeout", "run_once", "connection", "remote_user", "port",
    "collections", "order", "module_defaults", "throttle", "vars_prompt",
)  # fmt: skip
LOOP_CONTROL = ("loop_var", "index_var", "label", "pause", "extended", "extended_allitems", "break_when")
SECTIONS = ("pre_tasks", "roles", "tasks", "post_tasks")
STRATEGIES = ("linear", "free", "host_pinned")
ORDERS = ("inventory", "reverse_inventory", "sorted", "reverse_sorted", "shuffle")
PROMPT = ("name", "prompt", "default", "private", "confirm", "unsafe")

# Words of Ansible that nodectl does not do: silently leaving them out would change what a playbook means.
REFUSED: Mapping[str, str] = {
    "debugger": "run with -v, or with --start-at-task",
    "become_exe": "nodectl runs sudo from its fixed PATH",
    "gather_timeout": "facts are bounded by nodectl itself",
    "fact_path": "local facts are read from /etc/ansible/facts.d",
    "include": "write include_tasks or import_tasks",
}  # fmt: skip

# Whose modules are known without their collection's name.
PREFIXES = ("ansible.builtin.", "ansible.legacy.", "ansible.posix.", "community.general.", "community.crypto.", "nodectl.")
STATIC = ("import_tasks", "import_role")
DYNAMIC = ("include_tasks", "include_role")
# For "did you mean": names of modules that people write; the catalogue of the engine decides what exists.
COMMON_MODULES = (
    "apt", "assert", "blockinfile", "command", "copy", "debug", "dnf", "fail", "fetch", "file", "filesystem", "find", "get_url", "group", "hostname",
    "import_role", "import_tasks", "include_role", "include_tasks", "include_vars", "lineinfile", "meta", "modprobe", "mount", "package", "pause",
    "ping", "pip", "reboot", "replace", "scratch_disks", "script", "service", "set_fact", "setup", "shell", "slurp", "stat", "sysctl", "systemd",
    "template", "unarchive", "uri", "user", "wait_for", "wait_for_connection", "yum",
)  # fmt: skip
