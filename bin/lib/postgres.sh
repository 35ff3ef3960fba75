# shellcheck shell=bash
# Sourced after debian.sh: PostgreSQL's server programs, from Debian's packages where they are missing.

has_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

# The server's programs are all that is needed: the package must not make or start a database of its own.
need_postgres() {
    local no_cluster=/etc/postgresql-common/createcluster.d/twinstream.conf
    if has_postgres || [[ -n ${TWINSTREAM_POSTGRES_BIN:-} ]]; then
        return
    fi
    if may_install; then
        echo "== PostgreSQL: installing Debian's package (no database is started)"
        as_root mkdir -p "${no_cluster%/*}"
        echo 'create_main_cluster = false' | as_root tee "$no_cluster" >/dev/null
        apt_install_first postgresql || true
        as_root rm -f "$no_cluster"
    fi
    has_postgres || echo "== PostgreSQL's server programs are missing, so what needs them will fail: install" \
        "the package postgresql, or name the folder of initdb in TWINSTREAM_POSTGRES_BIN." >&2
}
