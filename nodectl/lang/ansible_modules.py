"""Names of modules that Ansible has, as data: for one of them that nodectl lacks, "did you mean" would mislead."""

from __future__ import annotations

# All of ansible.builtin in ansible-core 2.19 (the files of ansible/modules, without what is no module of its own there).
_BUILTIN = """
add_host apt apt_key apt_repository assemble assert async_status blockinfile command copy cron deb822_repository debconf debug dnf dnf5
dpkg_selections expect fail fetch file find gather_facts get_url getent git group group_by hostname import_playbook import_role import_tasks
include_role include_tasks include_vars iptables known_hosts lineinfile meta mount_facts package package_facts pause ping pip raw reboot replace
rpm_key script service service_facts set_fact set_stats setup shell slurp stat subversion systemd systemd_service sysvinit tempfile template
unarchive uri user validate_argument_spec wait_for wait_for_connection yum yum_repository
"""
# All of ansible.posix 2.
_POSIX = "acl at authorized_key firewalld firewalld_info mount patch rhel_facts rhel_rpm_ostree rpm_ostree_upgrade seboolean selinux synchronize sysctl"
# What playbooks for servers use of community.general: a choice by hand, for it has some six hundred.
_GENERAL = """
alternatives apk archive bundler capabilities composer cpanm cronvar datadog_event dconf dpkg_divert filesize filesystem flatpak gem git_config
github_release gitlab_runner haproxy homebrew htpasswd ini_file interfaces_file ipmi_boot ipmi_power iptables_state iso_create iso_extract java_cert
java_keystore kernel_blacklist ldap_attrs ldap_entry listen_ports_facts locale_gen logrotate lvg lvg_rename lvm_pv lvol mail make modprobe monit
nmcli npm open_iscsi openssl_pkcs12 opkg osx_defaults pacman pam_limits pamd parted pids pip_package_info pipx portage proxmox read_csv redfish_command
redfish_info redhat_subscription rhsm_repository runit sefcontext selinux_permissive selogin seport slack snap snmp_facts ssh_config sudoers supervisorctl
sysrc syspatch systemd_info terraform timezone ufw wakeonlan xattr xfs_quota xml yarn zfs zfs_facts zpool zypper zypper_repository
"""
ANSIBLE_MODULES = frozenset(f"{_BUILTIN} {_POSIX} {_GENERAL}".split())
NOT_HERE = "Ansible has this module; this version of nodectl does not (`nodectl doc` lists those that are there)"
