"""The suite's environments. Importing this package registers them with Gymnasium and PettingZoo."""

from .registration import register_environments

register_environments()
