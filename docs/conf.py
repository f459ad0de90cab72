"""Sphinx configuration: pages by hand, reference from docstrings, `--help` and the registry."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from t2t_core import __version__  # noqa: E402

project = "t2t-core"
author = "the t2t-core developers"
copyright = "2026, the t2t-core developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
extensions += ["registry_pages", "environment_pages", "job_pages", "plan_pages"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"t2t-core {release}"
html_static_path = ["_static"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_mock_imports = ["vllm"]
nitpicky = False
suppress_warnings = ["myst.xref_missing", "autodoc.mocked_object"]
