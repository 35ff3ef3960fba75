"""Replay (Kappa): a new generation is built, proven by the batch, compared with the old one, and then promoted."""

from __future__ import annotations

from dataclasses import dataclass

from twinstream.engine import DrainRequest, Engine
from twinstream.errors import Refused, ShapeMismatch
from twinstream.ledger import Generation
from twinstream.reconcile.generations import compare_generations
from twinstream.reconcile.reconcile import Reconciler
from twinstream.reconcile.result import Comparison, Reconciliation, Verdict
from twinstream.runtime.progress import Progress

MOST_ROUNDS = 5
"""While data keeps coming the old generation may be ahead again; so often the new one catches up."""


@dataclass(frozen=True)
class Replayed:
    """What a replay did."""

    generation: Generation
    proof: Reconciliation
    against: Comparison | None
    """The new generation against the one that readers saw before; None if there is none of the same shape."""


@dataclass(frozen=True)
class Replayer:
    """Builds, proves and promotes generations."""

    engine: Engine
    progress: Progress

    def replay(self, name: str, request: DrainRequest, *, promote: bool = True) -> Replayed:
        """A new generation under the current definition; with `promote` readers see it in the end."""
        for _ in range(MOST_ROUNDS):
            done = self._built(name, request)
            if not promote or done.generation.state == "current":
                return done
            try:
                return Replayed(self.engine.promote(name), done.proof, done.against)
            except Refused as error:
                behind = error
                self.progress.note(f"catching up: {error.what}")
        raise behind

    def _built(self, name: str, request: DrainRequest) -> Replayed:
        old = self.engine.ledger.generations.current(name)
        generation = self.engine.build(name, request, self.progress)
        self.progress.note(f"generation {generation.number} is built up to txid {generation.frontier}, now its proof")
        proof = Reconciler(self.engine, self.progress).reconcile(name, generation=generation, context=request.context)
        if proof.verdict is Verdict.DIFFERENT:
            raise Refused(
                f"Generation {generation.number} of {name} is not what the batch says (reconciliation {proof.id}), "
                "so it is not promoted.",
                untouched="Readers see the generation that they saw before.",
                next_step=f"See `twinstream report {name} --id {proof.id}`.",
            )
        against = None
        if old is not None and old.id != generation.id:
            try:
                against = compare_generations(self.engine, name, generation, old)
            except (ShapeMismatch, Refused) as error:
                self.progress.note(f"not compared with generation {old.number}: {error.what}")
        return Replayed(generation, proof, against)
