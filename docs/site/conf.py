"""Sphinx settings of the site; docs/make_site.py collects its pages."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

project = "sentemb"
html_title = "sentemb"
html_theme = "furo"
html_show_sphinx = html_copy_source = html_show_sourcelink = False
html_show_search_summary = False  # a browser does not fetch pages from disk
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["formulas.css"]
exclude_patterns = ["docs/site"]


def setup(app):
    """Formulas as MathML, which browsers draw without a script and without a network."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))


def _inline(writer, node):
    writer.body.append(_mathml(node, "inline"))
    raise SkipNode


def _block(writer, node):
    writer.body.append(_mathml(node, "block"))
    raise SkipNode


def _mathml(node, display):
    return convert(node.astext(), display=display)
