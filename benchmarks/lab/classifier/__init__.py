"""The classifier of the SIF paper, appendix A.2."""
