"""Encoders by name: parameters, forward and backward of one tower each."""

from sentemb.models.towers.registry import ENCODERS

__all__ = ["ENCODERS", "make_encoder"]

make_encoder = ENCODERS.make
