"""Table IV: many rankers on one log; settings are chosen on dev and measured on test."""
