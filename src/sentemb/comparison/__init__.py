"""Table IV: many rankers on one log, chosen on dev, measured on test, compared honestly."""
