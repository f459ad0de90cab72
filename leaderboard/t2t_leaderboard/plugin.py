"""What this room registers: names, and the code behind each."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry


@hookimpl
def register_commands(registry: Registry) -> None:
    registry.add("bench", "t2t_leaderboard.cli.bench:bench", "The valid/optimal leaderboard of policies on the evaluation sets.")
    registry.add("verify", "t2t_leaderboard.cli.verify:verify", "Rescore every answer of a bench folder or a submission.")
    registry.add("compare", "t2t_leaderboard.cli.compare:compare", "Two rows on the same instances: paired difference, interval.")
    registry.add("merge", "t2t_leaderboard.cli.merge:merge", "Parts of a bench, or of an order of instances, as one.")
    registry.add("submit", "t2t_leaderboard.cli.submit:submit", "Make a submission folder from a row of a bench folder.")
    registry.add("site", "t2t_leaderboard.cli.site:site", "One static site of all submissions, checked.")
    designers = "t2t_leaderboard.cli.designers:bench_designers"
    registry.add("bench-designers", designers, "The leaderboard of designers, from study folders.")
