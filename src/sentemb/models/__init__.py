"""Encoders by name: parameters, forward and backward of one tower each."""

from sentemb.errors import SentembError


def make_encoder(name, **settings):
    """The encoder called ``name`` (rnn, lstm, bilstm) with its settings (cells, ...)."""
    from sentemb.models.bilstm import BiLSTM
    from sentemb.models.lstm import LSTM
    from sentemb.models.rnn import RNN

    known = {encoder.name: encoder for encoder in (RNN, LSTM, BiLSTM)}
    if name not in known:
        raise SentembError(f"model must be one of {', '.join(known)}, not {name!r}")
    try:
        return known[name](**settings)
    except TypeError as error:
        raise SentembError(f"model {name} does not take these settings: {error}") from error
