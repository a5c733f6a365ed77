"""The rules of hardening as data: each with its reason, told in the page, and setting only what the role knows how to set and to give back."""

from __future__ import annotations

from typing import Any

from nodectl.diagnostics.model import Collector
from nodectl.lang.load import load_vars_file
from nodectl.shipped import shipped

ROLE = shipped("roles") / "hardening"
RULES: list[dict[str, Any]] = load_vars_file(ROLE / "vars" / "main.yml", Collector())["hardening_rules"]
# What a rule may set; the words without a value of their own are read by the templates of the role.
KINDS = {
    *("sshd", "sysctl", "modules", "files", "lines", "modes", "packages", "units", "sudo", "pam", "audit", "mounts"),
    *("kex", "groups", "pam_unix", "su", "groups_made", "homes", "firewall", "firewall_out", "restarts", "jail", "needrestart", "banner"),
}


def test_ids_are_unique_and_every_rule_sets_something_for_a_reason() -> None:
    ids = [rule["id"] for rule in RULES]
    assert sorted(set(ids)) == sorted(ids)
    assert [rule["id"] for rule in RULES if not rule["why"].strip() or not set(rule) & KINDS] == []
    assert {key for rule in RULES for key in rule} - KINDS == {"id", "why", "applied"}


def test_a_rule_is_off_only_by_the_word_that_the_role_reads() -> None:
    assert {rule["applied"] for rule in RULES if "applied" in rule} == {False}


def test_the_page_tells_every_rule_with_its_reason() -> None:
    page = (ROLE / "README.md").read_text().partition("## Rules\n")[2]
    on, _, off = page.partition("Off, unless switched on")
    for text, rules in ((on, [r for r in RULES if "applied" not in r]), (off, [r for r in RULES if "applied" in r])):
        rows = [line for line in text.splitlines() if line.startswith("| `")]
        assert rows == [f"| `{rule['id']}` | {' '.join(rule['why'].split())} |" for rule in rules]


def test_every_variable_has_its_row_and_its_type() -> None:
    names = list(load_vars_file(ROLE / "defaults" / "main.yml", Collector()))
    options = load_vars_file(ROLE / "meta" / "argument_specs.yml", Collector())["argument_specs"]["main"]["options"]
    rows = [line.split("`")[1] for line in (ROLE / "README.md").read_text().partition("## How")[0].splitlines() if line.startswith("| `")]
    assert rows == names == list(options)
