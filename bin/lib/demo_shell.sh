# shellcheck shell=bash
# Sourced by the demos on the command line: a home of their own, commands that are shown, and an end that leaves nothing.

readonly home=$root/.demo
child='' runners=()
bold='' plain=''
if [[ -t 1 ]]; then
    bold=$'\e[1m' plain=$'\e[0m'
fi

heading() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
say() { printf '%s\n' "$*"; }

# Asks process groups to end, then makes them.
end() {
    local group
    for group; do
        kill -INT -- "-$group" 2>/dev/null || true
    done
    for group; do
        for _ in {1..100}; do
            kill -0 -- "-$group" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL -- "-$group" 2>/dev/null || true
    done
}

# What a demo has started besides its commands.
end_more() { :; }

stop() {
    trap '' INT TERM HUP
    exec 2>/dev/null
    end ${child:+"$child"} ${runners[@]+"${runners[@]}"}
    end_more
    say "The demo was stopped; nothing of it is running any more."
    exit 130
}
trap stop INT TERM HUP

# In the background, because bash would not hear a signal while it waits for a command in the foreground.
job() {
    local status=0
    "$@" </dev/null &
    child=$!
    wait "$child" || status=$?
    child=''
    return "$status"
}

twinstream() {
    say "\$ bin/twinstream $*"
    job "$root/bin/twinstream" "$@"
}

# In the background, until the demo ends it or is stopped itself; its number is in $begun.
begin() {
    say "\$ bin/twinstream $* &"
    "$root/bin/twinstream" "$@" </dev/null &
    begun=$!
    runners+=("$begun")
}

# From here on each command is a process group of its own: stopping the demo stops all of it, Spark's Java included.
set -m

# Nothing but the demo's own places: whatever the caller's settings name stays untouched.
unset "${!TWINSTREAM_@}" SPARK_HOME SPARK_CONF_DIR PYSPARK_SUBMIT_ARGS SPARK_REMOTE SPARK_CONNECT_MODE_ENABLED
export TWINSTREAM_HOME=$home TWINSTREAM_PIPELINES=${pipelines:-$root/include/pipelines}
# Every command here is over before Java's optimising compiler would pay.
export JAVA_TOOL_OPTIONS="${JAVA_TOOL_OPTIONS:+$JAVA_TOOL_OPTIONS }-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
mkdir -p "$home"
exec 8>"$home/lock"
if command -v flock >/dev/null && ! flock -n 8; then
    echo "Another demo is running in $home: stop it with Ctrl-C, then start this one." >&2
    exit 1
fi
find "$home" -mindepth 1 -maxdepth 1 ! -name lock ! -name demo.json -exec rm -rf {} +
