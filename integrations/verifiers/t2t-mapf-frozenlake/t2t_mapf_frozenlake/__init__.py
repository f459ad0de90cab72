"""MAPF-FrozenLake as a taskset of verifiers."""

from t2t_mapf_frozenlake.taskset import MAPFFrozenLakeTaskset

__all__ = ["MAPFFrozenLakeTaskset"]
