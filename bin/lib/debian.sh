# shellcheck shell=bash
# Sourced by the programs in bin/: installs Debian packages where that is allowed without asking anyone.

may_install() {
    command -v apt-get >/dev/null || return 1
    ((EUID == 0)) || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

as_root() {
    if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

apt_quietly() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

# apt_install_first PACKAGE...: installs the first of them that this release has; its output is shown if that fails.
apt_install_first() {
    local log package status=1
    log=$(mktemp)
    apt_quietly update >"$log" 2>&1 || true
    for package; do
        if [[ -n $(apt-cache madison "$package" 2>/dev/null) ]]; then
            status=0
            apt_quietly install -y --no-install-recommends "$package" >>"$log" 2>&1 || status=$?
            break
        fi
    done
    ((status == 0)) || tail -n 20 "$log" >&2
    rm -f "$log"
    return "$status"
}
