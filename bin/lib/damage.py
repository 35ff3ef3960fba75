"""Changes rows of a stream's table behind Twinstream's back, as a careless tool might: for the demo."""

from __future__ import annotations

import sys
from pathlib import Path

from deltalake import DeltaTable

page = "/cart"
table = DeltaTable(str(next((Path(sys.argv[1]) / "_twinstream").glob("g*-*"))))
for kind in ("base", "partial"):
    rows = f"_kind = '{kind}' and page = '{page}' and views > 20"
    changed = table.update(updates={"views": "views + 7"}, predicate=rows)["num_updated_rows"]
    if changed:
        break
print(f"{changed} rows of {page} have 7 views more now than they should have.")
