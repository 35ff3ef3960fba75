#!/usr/bin/env bash
# bin/demo --kafka: a broker, a long-lived query and one that stands by; a kill, a take-over, handovers, and the proof.
set -euo pipefail

root=$(cd -P "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
pipelines=$root/bin/lib/demo_pipelines
source "$root/bin/lib/environment.sh"
source "$root/bin/lib/demo_shell.sh"
# Whoever stands by has less to wait for.
export TWINSTREAM_LEASE_SECONDS=10

end_more() { "$root/bin/kafka" stop >/dev/null 2>&1 || true; }
failed() {
    local status=$?
    end ${runners[@]+"${runners[@]}"}
    end_more
    exit "$status"
}
trap failed EXIT

frontier() {
    "$root/bin/twinstream" status clicks --json 2>/dev/null |
        "$root/.venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin).get("frontier") or 0)' || echo 0
}

# follow TXID: waits until the frontier is beyond it.
follow() {
    local now began=$SECONDS
    for _ in {1..120}; do
        now=$(frontier)
        if ((now > $1)); then
            say "The frontier is txid $now, $((SECONDS - began)) s later."
            return
        fi
        sleep 1
    done
    echo "Nothing new was committed." >&2
    return 1
}

heading "1. A broker, and a topic with clicks: some come twice, some late, some are broken"
"$root/bin/setup" --quiet --kafka
say "\$ bin/kafka start"
eval "$("$root/bin/kafka" start)"
twinstream generate clicks --events 60000 --duplicates 0.02 --late 0.01 --poison 0.001 --seed 7
twinstream lint clicks

heading "2. Continuous mode: one long-lived query, and a second one that stands by"
begin continuous clicks --every "2 seconds"
first=$begun
follow 0
begin continuous clicks --every "2 seconds" --standby
sleep 15
twinstream status clicks

heading "3. The first one is killed while clicks keep coming: the other one takes over"
before=$(frontier)
kill -KILL -- "-$first"
{ wait "$first" || true; } 2>/dev/null
twinstream generate clicks --events 40000 --duplicates 0.02 --seed 8
follow "$before"

heading "4. Handed over to micro-batches, and back, at a frontier"
twinstream generate clicks --events 20000 --duplicates 0.02 --seed 9
twinstream handover clicks --to microbatch --reason "the demo"
twinstream generate clicks --events 20000 --duplicates 0.02 --seed 10
twinstream handover clicks --to continuous --every "2 seconds" --seconds 20 --reason "the demo"
twinstream drain clicks
twinstream status clicks

heading "5. Are these numbers right? Every click is read from the topic again, and counted by the plain query"
twinstream reconcile clicks
twinstream certificate clicks --verify
trap - EXIT
end ${runners[@]+"${runners[@]}"}
end_more

heading "Done in $SECONDS s: nothing of it is running any more; all files are in $home"
