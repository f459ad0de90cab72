"""The policies that `t2t bench` measures if you name none: the testbed's own baselines, as far as they can run here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from t2t_core import advice
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.registry import Spec


def policies(testbed: AnyTestbed) -> Sequence[str]:
    """The policies of a testbed's board, without those whose dependencies are not installed."""
    if not testbed.baselines:
        raise T2TError(f"which policies? {testbed.name} has no default ones", next="--policy SPEC; t2t plugins lists them")
    return [spec for spec in testbed.baselines if not _lacking(spec)]


def _lacking(spec: str) -> list[str]:
    return installed().policies.find(Spec.parse(spec).name).lacking()


def missing(testbed: AnyTestbed, measured: Iterable[str]) -> str | None:
    """The note on a board of the default policies if rows are missing because something is not installed."""
    rows = set(measured)
    unable = [spec for spec in testbed.baselines if _lacking(spec)]
    if not unable or rows & set(unable) or not rows >= set(testbed.baselines) - set(unable):
        return None
    modules = " and ".join(dict.fromkeys(module for spec in unable for module in _lacking(spec)))
    return f"rows not measured ({', '.join(unable)}) need {modules}: {advice.extra('train')}, then the same command adds them"
