#!/usr/bin/env bash
# bin/demo --no-airflow: the engine alone generates events, drains them exactly once, proves the result, damages and
# mends it.
set -euo pipefail

root=$(cd -P "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
source "$root/bin/lib/environment.sh"
source "$root/bin/lib/demo_shell.sh"

dead_letters() {
    "$root/bin/twinstream" dead "$1" | "$root/.venv/bin/python" -c '
import csv, sys

rows = list(csv.DictReader(sys.stdin))
for row in rows[:4]:
    print("txid {txid}, {reason}: {record:.90}".format(**row))
print(f"… and {len(rows) - 4} more")
'
}

count_of() {
    "$root/bin/twinstream" status "$1" --json |
        "$root/.venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["accounting"][sys.argv[1]])' "$2"
}

heading "1. The pipelines"
twinstream list

heading "2. Events: some come late, some are broken"
twinstream generate page_views --events 300000 --late 0.02 --poison 0.001 --seed 7
twinstream generate orders --events 100000 --late 0.01 --poison 0.001 --seed 7

heading "3. Drain: transactions of about 30 000 records, each committed exactly once"
twinstream drain page_views --batch-records 30000
twinstream drain orders --batch-records 30000

heading "4. Where it stands: every record is in exactly one class"
twinstream status page_views

heading "5. The result"
twinstream read page_views --limit 5

heading "6. What is not in it"
say "\$ bin/twinstream dead page_views"
job dead_letters page_views
say "$(count_of page_views late) records came after their window was closed: bin/twinstream late page_views"

heading "7. Fold: a plain Delta table for every other engine"
twinstream fold page_views

heading "8. Drain again: nothing is new, so nothing is done and no Spark is started"
twinstream drain page_views
twinstream drain orders

heading "9. Are these numbers right? The result is recomputed from the source, and compared row by row"
twinstream reconcile page_views

heading "10. Somebody edits the stream's table behind our back"
job "$root/.venv/bin/python" "$root/bin/lib/damage.py" "$home/tables/page_views"
say "(A difference is exit code 1: a scheduler notices.)"
twinstream reconcile page_views || true

heading "11. Repair: the batch becomes the newest base, and the proof is made again"
twinstream repair page_views
twinstream certificate page_views --verify

heading "Done in $SECONDS s"
cat <<TEXT
  definitions   include/pipelines/page_views.py, orders.py
  results       $home/tables (Delta; page_views is folded)
  ledger        $home/ledger.db
  reports       $home/reports/page_views (open the .html files in a browser)

Try next, with  export TWINSTREAM_HOME=$home
  bin/twinstream read orders --limit 5                   the other result: orders, cleaned and kept one by one
  bin/twinstream read page_views --as-of 3 --limit 5     the result as it was after transaction 3
  bin/twinstream generate orders --seed 8                more events, then: bin/twinstream drain orders
  bin/twinstream lint                                    what each pipeline guarantees, and why
  bin/twinstream new my_pipeline                         one of your own
TEXT
