"""Pair models: two texts in, one score out."""

from sentemb.models.pairs.registry import PAIR_MODELS

__all__ = ["PAIR_MODELS", "make_pair_model"]

make_pair_model = PAIR_MODELS.make
