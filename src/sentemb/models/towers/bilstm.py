"""The bidirectional LSTM: one from left to right and one from right to left."""

from sentemb.models.towers.lstm import LSTM


class BiLSTM(LSTM):
    """Two LSTMs that read in opposite directions, their outputs side by side (2 n numbers).

    They are trained together: the cosine is that of the joined vectors. Words are reversed within
    each text's own length; the letters of a word are not reversed.
    """

    name = "bilstm"
    directions = 2
