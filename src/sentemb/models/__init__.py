"""Encoders by name: parameters, forward and backward of one tower each."""

from sentemb.errors import SentembError

# The settings of each, known without waiting for Numba.
ENCODERS = {
    "lstm": ("cells", "forget_gate", "peepholes", "bag"),
    "bilstm": ("cells", "forget_gate", "peepholes", "bag"),
    "rnn": ("cells", "bag"),
    "bag": ("cells",),
    "dssm": ("cells", "hidden"),
    "clsm": ("cells", "hidden", "window"),
}
RECURRENT = ("lstm", "bilstm", "rnn")


def make_encoder(name, **settings):
    """The encoder called ``name`` with its settings (cells, ...)."""
    from sentemb.models.bilstm import BiLSTM
    from sentemb.models.feed_forward import CLSM, DSSM, Bag
    from sentemb.models.lstm import LSTM
    from sentemb.models.rnn import RNN

    if name not in ENCODERS:
        raise SentembError(f"model must be one of {', '.join(ENCODERS)}, not {name!r}")
    for setting in settings:
        if setting not in ENCODERS[name]:
            own = ", ".join(ENCODERS[name])
            raise SentembError(f"a {name} has no {setting}, only {own}; leave it out")
    known = {encoder.name: encoder for encoder in (RNN, LSTM, BiLSTM, Bag, DSSM, CLSM)}
    return known[name](**settings)
