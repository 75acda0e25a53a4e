"""One LSTM from left to right and one from right to left."""

from sentemb.models.lstm import LSTM


class BiLSTM(LSTM):
    """Two LSTMs that read in opposite directions, their embeddings side by side (dim = 2 n).

    They are trained together: the cosine is that of the joined vectors. Words are reversed within
    each text's own length; the letters of a word are not.
    """

    name = "bilstm"
    directions = 2
