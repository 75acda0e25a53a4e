"""Hard negatives: how they are found, by clusters of titles or by a teacher, and drawn."""
