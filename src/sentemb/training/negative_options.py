"""How many negatives a training of two towers takes, and from which epoch on hard ones."""

ALL = "all"
# The first epoch, counted from 1, with hard negatives: earlier, the ranking that they are drawn
# from is too poor.
HARD_FROM_EPOCH = 3
HARD_NEGATIVES = 3
# Titles per query to draw them from: the very best ones are often as right as the clicked one.
HARD_AMONG = 30
# Negatives per pair where they are drawn.
DRAWN_NEGATIVES = 4
