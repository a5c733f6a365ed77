"""What each code means: shown by `nodectl explain CODE` and kept as docs/errors/<CODE>.md (a test keeps both equal)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """``example`` is a small input that gives the code, ``fix`` says what to do about it."""

    title: str
    explanation: str
    example: str
    fix: str

    def page(self, code: str) -> str:
        """The page of docs/errors."""
        return f"# {code}: {self.title}\n\n{self.explanation}\n\n## Example\n\n```\n{self.example}\n```\n\n## What to do\n\n{self.fix}\n"


# E1xx: the text of a file. E2xx: playbooks, roles and tasks. E3xx: inventory. E4xx: runs and their folders.
CODES: Mapping[str, Code] = {
    "E101": Code(
        "not valid YAML",
        "The file cannot be read as one YAML document. Only the first such place of a file can be told: what follows it has no sure meaning.",
        "- name: Say it: loudly",
        "Look at the line and the one before it: quote texts that hold `: ` or start with a special character, close quotes and brackets, "
        "line up the indentation.",
    ),
    "E102": Code(
        "duplicate key",
        "The same key stands twice in one mapping. YAML, and with it Ansible, would silently keep only the last one.",
        "- file: {path: /tmp/a, state: touch}\n  when: a\n  when: b",
        "Remove one of them, or put both into one: `when: [a, b]`.",
    ),
    "E103": Code(
        "tab in the indentation",
        "YAML indents with spaces only; a tab at the start of a line is an error in it.",
        "all:\n\thosts:",
        "Replace the tab by spaces and set the editor to insert spaces in .yml files.",
    ),
    "E104": Code(
        "unknown YAML tag",
        "A tag such as `!foo` asks for a type that nodectl does not know. `!unsafe` and YAML's own tags (`!!str`, `!!int` …) are read.",
        "value: !python/object {}",
        "Remove the tag, or quote the text if it only starts with an exclamation mark.",
    ),
    "E105": Code(
        "encrypted, and it stays closed",
        "A value (`!vault`) or a whole file is encrypted with ansible-vault or `nodectl vault`, and no password that was given opens it: "
        "none was given, it is the wrong one, or the text was damaged. Going on without it would run roles with an empty secret.",
        "key: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162",
        "Give the password with --vault-password-file FILE, --vault-id LABEL@FILE or --ask-vault-pass. `nodectl vault view FILE` tries a "
        "password and does nothing else. A damaged text has lost a line or a character: take it from where it was written.",
    ),
    "E106": Code(
        "file too large or too deep",
        "The file passes a limit that protects against runaway input: 16 MiB, 100 levels, one million values after aliases are followed.",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]   # … and so on, doubling",
        "Split the file, or write the values out without nested aliases.",
    ),
    "E107": Code(
        "this cannot be a key",
        "A key of a mapping must be a name. A list, a number where a name is wanted, or a `<<` that does not merge a mapping is none.",
        "vars:\n  1: one",
        "Write the key as text, in quotes if it looks like something else.",
    ),
    "E108": Code(
        "template without quotes",
        "A value that starts with `{{` is the start of a mapping for YAML.",
        "name: {{ package }}",
        'Put the whole value in quotes: `name: "{{ package }}"`.',
    ),
    "E109": Code(
        "file cannot be read",
        "The file does not exist, may not be read, or is not UTF-8 text.",
        "nodectl run missing.yml -i hosts.yaml",
        "Check the path and the permissions; save the file as UTF-8.",
    ),
    "E110": Code(
        "base-60 number",
        "YAML 1.1 reads `10:30` without quotes as the number 630. Ansible does the same.",
        "start: 10:30",
        "Write it in quotes: `start: '10:30'`.",
    ),
    "E201": Code(
        "wrong shape of a playbook",
        "A playbook is a list of plays, a task file is a list of tasks, and each of them is a mapping.",
        "hosts: all\ntasks: []",
        "Begin each play and each task with `- `.",
    ),
    "E202": Code(
        "unknown keyword",
        "A play, block, task or role entry has a key that is no keyword of the language. Ansible refuses most of these too; it would mean "
        "something else than you think.",
        "- command: /bin/true\n  wen: ready",
        "Correct the spelling (the message names the nearest keyword), or indent it if it belongs to the module.",
    ),
    "E203": Code(
        "unknown module",
        "The task's module is not one that nodectl has. Modules of ansible.builtin, ansible.posix and community.general are found with and "
        "without that prefix. Where Ansible has the module and nodectl does not, the message says so.",
        "- comand: echo hi",
        "Correct the spelling; `nodectl doc` lists all modules. For one that is not there: `command` with `creates`, or a module that is.",
    ),
    "E204": Code(
        "task without a module",
        "The task has keywords but nothing to do.",
        "- name: Do something\n  when: ready",
        "Add a module with its parameters.",
    ),
    "E205": Code(
        "two modules in one task",
        "A task calls one module. Two of them are most often two tasks whose dash is missing.",
        "- command: echo hi\n  file: {path: /tmp/a, state: touch}",
        "Make the second one a task of its own.",
    ),
    "E206": Code(
        "unknown parameter",
        "The module has no parameter of this name.",
        "- file:\n    path: /tmp/a\n    stat: touch",
        "Correct the spelling; `nodectl doc MODULE` shows all parameters.",
    ),
    "E207": Code(
        "value of the wrong type",
        "The value written for a parameter cannot be what the parameter wants. A bare number for `mode` is the best known: 644 is decimal "
        "and would mean 01204.",
        "- file: {path: /tmp/a, state: touch, mode: 644}",
        "Write the type that is named: modes and versions in quotes, booleans without.",
    ),
    "E208": Code(
        "parameters do not go together",
        "A needed parameter is missing, or two exclude each other.",
        "- copy: {src: a, content: b, dest: /tmp/c}",
        "Give what the message names; `nodectl doc MODULE` shows what belongs together.",
    ),
    "E209": Code(
        "keyword with a wrong value",
        "The keyword wants another kind of value: a list, text, a boolean, a fixed value instead of a template.",
        "- command: /bin/true\n  ignore_errors: perhaps",
        "Write the kind of value that is named under the caret.",
    ),
    "E210": Code(
        "file not found",
        "A file that a task, a play or a role names outright does not exist in any of the places where it is looked for.",
        "- import_tasks: instal.yml",
        "Correct the name, or add the file. In a role: tasks/, files/, templates/ or vars/; else beside the playbook.",
    ),
    "E211": Code(
        "role not found",
        "No folder of this name is in roles/ beside the playbook or in the folders of the roles path.",
        "roles: [bsae]",
        "Correct the name, or add the role.",
    ),
    "E212": Code(
        "no such handler",
        "A task notifies a name that no handler of the play has and to which none listens. The change would be made and the service never restarted.",
        "- template: {src: a.j2, dest: /etc/a}\n  notify: restrt a",
        "Correct the name in `notify`, or add the handler or a `listen`.",
    ),
    "E213": Code(
        "template cannot be read",
        "The text is not valid Jinja: a bracket, a quote or an `end` is missing, or a filter does not exist.",
        'msg: "{{ name | uper }}"',
        "Correct the template; the message is Jinja's own.",
    ),
    "E214": Code(
        "condition with braces",
        "`when`, `until`, `failed_when` and `changed_when` are expressions already; braces render it first and read the result again.",
        'when: "{{ ready }}"',
        "Write it without braces: `when: ready`.",
    ),
    "E215": Code(
        "import closes a circle",
        "A file or role imports itself, directly or through others. Imports are resolved before the run, so this never ends.",
        "# a.yml\n- import_tasks: a.yml",
        "Break the circle; for real recursion use include_tasks with a `when` that ends it.",
    ),
    "E216": Code(
        "argument that the role does not take",
        "The role declares its arguments in meta/argument_specs.yml, and this one is not among them or has another type.",
        "roles:\n  - {role: base, base_memlok: unlimited}",
        "Correct the name or the value; the role's README lists its arguments.",
    ),
    "E217": Code(
        "keyword not supported",
        "Ansible has this keyword and nodectl does not. Leaving it out silently would change what the playbook means.",
        "- command: sleep 60\n  async: 100",
        "Do what the message proposes instead.",
    ),
    "E218": Code(
        "arguments in one text cannot be read",
        "The parameters of this module are written as one text that is not a row of name=value words.",
        "- file: /tmp/a touch",
        "Write the parameters as a mapping below the module.",
    ),
    "E219": Code(
        "block in a wrong form",
        "`rescue` and `always` need a `block`, and a block cannot be a handler.",
        "- rescue:\n    - debug:",
        "Add `block:` with the tasks that may fail; make each handler a task.",
    ),
    "E220": Code(
        "loop in a wrong form",
        "A task has two loops, an empty one, or loops over an import, which is resolved before the run.",
        "- import_tasks: a.yml\n  loop: [1, 2]",
        "Keep one loop; use include_tasks or include_role to loop over tasks.",
    ),
    "E221": Code(
        "not the name of a variable",
        "Names of variables consist of letters, digits and _ and do not start with a digit: others cannot be used in an expression.",
        "- command: id\n  register: my-result",
        "Rename it, for example with _ in place of -.",
    ),
    "E222": Code("play without hosts", "A play must say on which hosts it runs.", "- tasks:\n    - debug:", "Add `hosts: all` or the name of a group."),
    "E223": Code(
        "a result that nobody reads",
        "A task registers its result under a name that no expression, template or variable uses. Often one of the two names is misspelt: the condition "
        "that should have read it then fails in mid-run. `nodectl check` warns, and nothing is refused.",
        "- command: uptime\n  register: reslt\n- debug: {msg: '{{ result.stdout }}'}",
        "Correct the name, or remove `register`. A name that begins with _ says that nobody will read it.",
    ),
    "E224": Code(
        "a handler that nobody notifies",
        "No task notifies this handler, by its name or by what it listens to, so it never runs and what it should restart is never restarted. `nodectl check` "
        "warns, and nothing is refused. Where a `notify` or the name of a role is a template, nothing can be said.",
        "handlers:\n  - name: restart sshd\n    service: {name: ssh, state: restarted}",
        "Add `notify` to the task whose change asks for it, or remove the handler.",
    ),
    "E301": Code(
        "inventory of the wrong shape",
        "An inventory in YAML is a mapping of groups; each has hosts:, children: and vars:, which are mappings too. Read otherwise, hosts "
        "would silently be missing.",
        "gpu:\n  hosts: [n1, n2]",
        "Write each host and each child group as a key with a colon: `hosts: {n1: , n2: }`.",
    ),
    "E302": Code(
        "unknown key in a group",
        "A group has only hosts, children and vars.",
        "gpu:\n  host:\n    n1:",
        "Correct the spelling, or move the key under children, hosts or vars.",
    ),
    "E303": Code(
        "range cannot be read",
        "A range in a host name is [first:last] or [first:last:step], of numbers or of single letters, and not empty.",
        "hosts:\n  gpu-[16:01]:",
        "Write for example gpu-[01:16] or n[a:c].",
    ),
    "E304": Code(
        "no such group or host",
        "A host pattern (of a play, of --limit) names something that the inventory does not have. Ansible would warn, do nothing and report success.",
        "- hosts: gpus   # the group is called gpu",
        "Correct the name; `nodectl inventory --graph` shows what there is.",
    ),
    "E305": Code(
        "host pattern cannot be read",
        "The pattern is empty or its regular expression is not valid.",
        "nodectl ping '~gpu['",
        "Write a group, a host, or all.",
    ),
    "E306": Code(
        "network_tier, disk_tier or file_mounts wrong",
        "The variable has a value that nodectl does not know, or a file mount is incomplete.",
        "file_mounts:\n  data: {source: s3:bucket, mode: MOUNTED}",
        "network_tier and disk_tier are `best` or `standard`. A mount is an absolute path with `source: s3://bucket/prefix` and `mode: "
        "MOUNT` or `MOUNT_CACHED`.",
    ),
    "E307": Code(
        "host named twice",
        "A group names the same host twice, often through two ranges that overlap.",
        "hosts:\n  n[1:3]:\n  n2:",
        "Remove one of them.",
    ),
    "E308": Code(
        "not a host name",
        "A character in it would have another meaning in a pattern or on a command line.",
        "hosts:\n  'n1,n2':",
        "Write each host on a line of its own.",
    ),
    "E309": Code(
        "groups in a circle",
        "A group is its own descendant.",
        "a: {children: {b: }}\nb: {children: {a: }}",
        "Remove one of the two `children` entries.",
    ),
    "E310": Code(
        "line of an INI inventory cannot be read",
        "A line is neither a section, a host with name=value pairs, nor what its section wants; or a section names a group that does not exist.",
        "[gpu:children]\nrack1   # there is no section [rack1]",
        "Correct the line, or write the inventory in YAML.",
    ),
    "E311": Code(
        "inventory without hosts",
        "There is not one host in the inventory. A run would do nothing and a script would take it for success.",
        "all:\n  children:\n    gpu:",
        "Name hosts under the hosts: of a group.",
    ),
    "E312": Code(
        "variables of one group or host in two places",
        "group_vars/NAME.yml, group_vars/NAME.json and a folder group_vars/NAME/ may each hold the variables of NAME. Ansible takes the folder, or "
        "else the first file it finds, and passes over the others without a word.",
        "group_vars/all.yml\ngroup_vars/all/10-users.yml",
        "Put all into the folder, or all into the file.",
    ),
    "E313": Code(
        "waiver that cannot count",
        "verify_waivers excuses checks of a node beforehand. Each says which checks (a name, or a pattern with *), who answers for it, why, and the last day "
        "on which it counts. One that is incomplete, over, or fits no check is refused: silence would let a bad node through.",
        "verify_waivers:\n  - {check: disk.scratch.*, who: ada, why: RMA 4711 is on its way, until: 2020-01-31}",
        "Complete it; remove it where its day has passed, or say anew until when. docs/verification.md lists the names of checks.",
    ),
    "E314": Code(
        "a variable that nothing reads",
        "The name of a variable in the inventory is almost that of one which a role, a connection or the verification reads, and nothing reads it itself. "
        "A default would silently hold in its place. This is a warning.",
        "all:\n  vars:\n    network_teir: standard",
        "Correct the name, or leave it as it is where a playbook of yours reads it by a way that cannot be seen at load.",
    ),
    "E315": Code(
        "setting of verification that cannot be understood",
        "Bars and expectations of hosts.yaml (network_floor, expected_gpus, torch_env, node_profile and the like) are read before any node is asked. A rate "
        "without a unit is in B/s: `network_floor: 300` would pass everything.",
        "all:\n  vars:\n    network_floor: 300",
        "Write the quantity with its unit, for example `300 GB/s`, or what the message says was expected.",
    ),
    "E316": Code(
        "inventory program that gives no inventory",
        "An executable file given as inventory is run with --list, and prints JSON: a mapping of groups with hosts, vars and children, and under `_meta` the "
        "variables of the hosts. This one failed, did not end, or printed something else. No node was touched.",
        "nodectl run site.yml -i cloud.py   # cloud.py ends with 1: token expired",
        "Run it by hand with --list and see what it says.",
    ),
    "E401": Code(
        "no such tag",
        "--tags or --skip-tags names a tag that no task has: nothing would run, or nothing would be left out. Where an include's file is "
        "only known during the run, this is not checked.",
        "nodectl run site.yml -i hosts.yaml --tags disk   # the tag is called disks",
        "Use one of the tags that the message lists.",
    ),
    "E402": Code(
        "no such task to start at",
        "--start-at-task names no task of the playbook, so nothing would run.",
        "nodectl run site.yml -i hosts.yaml --start-at-task 'Instal chrony'",
        "Give the name as `nodectl run --list-tasks` shows it: the task's name, or `role : name`.",
    ),
    "E403": Code(
        "file of owed handlers cannot be read",
        "Handlers that were notified and did not run, because a later task failed, are kept for the next run. The file that keeps them is damaged.",
        ".nodectl/pending/10.0.0.7:22.json cut short by a full disk",
        "Repair it, or remove it once you have restarted those services yourself.",
    ),
    "E404": Code(
        "-e cannot be read",
        "--extra-vars takes NAME=VALUE words, a JSON object in braces, or @FILE with variables in YAML.",
        "nodectl run site.yml -i hosts.yaml -e 'bucket'",
        "Quote a value with blanks (-e \"name='two words'\"); put lists and mappings into JSON or into a file.",
    ),
    "E405": Code(
        "password file cannot be used",
        "--become-password-file names a text file whose first line is sudo's password.",
        "nodectl bootstrap hosts.yaml --become-password-file /dev/null",
        "Write the password into the first line of a file that only you may read (mode 0600).",
    ),
    "E406": Code(
        "folder of a run cannot be used",
        "A run writes its journal, report and handoff into a folder of its own. The folder cannot be made, holds a run already, or holds "
        "none where one is asked for.",
        "nodectl report /tmp",
        "For a new run give another --run-dir; for an old one give a folder under .nodectl/runs (or .nodectl/runs/latest).",
    ),
    "E407": Code(
        "suite cannot be used",
        "--suite names a shipped suite, or the path of a .toml file. Whatever the file leaves unsaid would not be checked, so it has to be complete.",
        "nodectl verify hosts.yaml --suite preflght",
        "Use one of the names that the message lists, or correct the file where it says.",
    ),
    "E408": Code(
        "floors of the site cannot be used",
        "site_floors in hosts.yaml names files with floors of your own, relative to hosts.yaml; without it, site_floors.toml beside hosts.yaml is read. "
        "Each floor needs its origin, its date, its unit and the physical bound that it must not exceed.",
        "[[floor]]\nmetric = \"network.pairs\"\nfloor = 300   # no unit, no source, no date, no bound",
        "Complete the entry that the message names, or write the file anew with `nodectl verify HOSTS --adopt`.",
    ),
    "E409": Code(
        "evidence that does not hold",
        "evidence.json carries the SHA-256 of each of its parts and of the whole. A file that was changed after it was written, or that is something else, "
        "proves nothing, and is not judged again.",
        "nodectl verify --replay handoff/evidence.json   # a figure in it was corrected by hand",
        "Take the file from a place where only you can write, replay the run's own folder, or verify the nodes again.",
    ),
    "E410": Code(
        "a question that nobody can answer",
        "A play asks for a variable (vars_prompt) that has no default, and the command does not run on a terminal.",
        "- hosts: all\n  vars_prompt:\n    - {name: release, prompt: Which release?}",
        "Give the answer with -e NAME=VALUE; for a secret, put it into a vault-encrypted file: -e @answers.yml.",
    ),
    "E411": Code(
        "workload cannot be used",
        "--workload names a shipped workload, or a YAML file that says what is trained: model, parallelism, batch, and what is known of compute, dataset, "
        "checkpoints and constraints. What cannot be meant (more stages than layers, a unit of another kind) would give figures without meaning.",
        "model: {parameters: 12 GB, layers: 48, hidden: 3840}   # a count, not bytes",
        "Correct the places that the message lists; docs/time-model.md names all keys with their units.",
    ),
}
