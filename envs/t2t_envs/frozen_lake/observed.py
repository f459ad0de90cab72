"""What the paper saw designers do on the lake (its section on their behaviour), by the number of `t2t analyze` that counts it."""

from __future__ import annotations

from collections.abc import Mapping

OBSERVED: Mapping[str, str] = {
    "loud_over_informative": "the most prominent cue is followed, not the most informative",
    "distance_to_round_0": "a shown round-0 configuration becomes a default",
    "cells_rewritten": "V1, V2: nearly all; V3, V6: only the sizes the breakdown points at",
    "rewrites_at_failing": "V3, V6: high",
    "healthy_rewritten": "full rewrites often made healthy sizes worse",
    "levels_monotone": "V1, V2, V5: 1",
    "edit_follows_breakdown": "V4, V6 edit from the raw breakdown",
    "edit_follows_summary": "V5 lets its last summary override the breakdown",
    "share_near_boundary": "V6 puts the budget at the boundary",
    "boundary_shift": "V6: up",
    "centre_shift": "V6 moves the budget inward (below 0), to 7x7, in the next round",
    "groups_kept": "base gave large maps up in round 1; checkpoint kept all eight sizes (1)",
    "levels_follow_order": "V1, V2, V5: monotone in map size (near 1); V6: flat, then down",
}
