"""How many parameters a model has."""

from sentemb.models.face import Face


def trained_parameters(model: Face) -> int:
    """Number of trainable parameters: the input rows seen in training, plus all dense arrays.

    Input rows that a model did not see in training are zero, see `WordReader.initialise`.
    """
    total = 0
    for weights in model.weight_sets():
        table = weights["table"]
        total += int(table.any(axis=1).sum()) * table.shape[1]
        total += sum(array.size for name, array in weights.items() if name != "table")
    return total


def stored_parameters(model: Face) -> int:
    """Number of all parameters in a model's file, the rows that training did not see included."""
    return sum(array.size for weights in model.weight_sets() for array in weights.values())


def parameter_fact(model: Face) -> str:
    """Both numbers, to read; one if they are equal."""
    trained, stored = trained_parameters(model), stored_parameters(model)
    if trained == stored:
        return f"{trained:,}"
    return f"{trained:,} trained, as in sentemb compare; {stored:,} stored, with untrained rows"
