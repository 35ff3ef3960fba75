"""What is kept of a batch table: read back as it was, or not at all."""

from __future__ import annotations

from pathlib import Path

from twinstream.reconcile.digests import FORM, BucketDigests, Digest, is_current
from twinstream.reconcile.prints import FILE, Prints, load_prints, save_prints


def test_prints_of_an_older_form_count_as_none(tmp_path: Path) -> None:
    made = Prints(BucketDigests(f"form {FORM} key id", {1: Digest(1, 2, 3)}), None)
    save_prints(tmp_path, made)
    assert load_prints(tmp_path) == made
    assert is_current(made.digests.hexdigest)
    file = tmp_path / FILE
    file.write_text(file.read_text().replace(f"form {FORM} ", f"form {FORM - 1} "))
    assert load_prints(tmp_path) is None
    assert not is_current(BucketDigests(f"form {FORM - 1} key id", {}).hexdigest)
