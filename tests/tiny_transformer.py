"""Small embeddings that are made on the spot: for sentence-transformers, and as an ONNX file."""

import numpy as np
import pytest

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
_CELLS = 16


def write_tokeniser(folder, texts):
    """Write ``tokenizer.json`` for the words of some texts; return how many it knows."""
    tokenizers = pytest.importorskip("tokenizers")
    words = sorted({word for text in texts for word in text.lower().split()})
    vocabulary = {word: n for n, word in enumerate([*SPECIAL, *words])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.Lowercase()
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    return len(vocabulary)


def write_onnx(folder, texts, seed=0):
    """Write ``onnx/model.onnx``, which gives each token a random vector, and its tokeniser."""
    onnx = pytest.importorskip("onnx")
    size = write_tokeniser(folder, texts)
    table = np.random.default_rng(seed).standard_normal((size, _CELLS)).astype(np.float32)
    tensor, of = onnx.TensorProto, onnx.helper.make_tensor_value_info
    gather = onnx.helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])
    graph = onnx.helper.make_graph(
        [gather],
        "embedding",
        [of("input_ids", tensor.INT64, ["b", "t"])],
        [of("last_hidden_state", tensor.FLOAT, ["b", "t", _CELLS])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    imports = [onnx.helper.make_opsetid("", 17)]
    (folder / "onnx").mkdir()
    path = folder / "onnx/model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=imports, ir_version=9), str(path))
    return path


def write_transformer(folder, texts, pooling="mean", prompts=None):
    """Write a folder that SentenceTransformer opens; return the model."""
    transformers = pytest.importorskip("transformers", reason="the extra bench is not installed")
    library = pytest.importorskip("sentence_transformers")
    torch = pytest.importorskip("torch")
    size = write_tokeniser(folder, texts)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=size,
        hidden_size=_CELLS,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=_CELLS,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    transformers.BertModel(config).save_pretrained(folder)
    marks = dict(zip(("pad", "unk", "cls", "sep"), SPECIAL, strict=True))
    transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        **{f"{name}_token": mark for name, mark in marks.items()},
    ).save_pretrained(folder)
    modules = library.sentence_transformer.modules
    first = modules.Transformer(str(folder))
    layers = [first, modules.Pooling(_CELLS, pooling), modules.Normalize()]
    model = library.SentenceTransformer(modules=layers, device="cpu", prompts=prompts)
    model.max_seq_length = 12
    model.save(str(folder))
    return model


def as_onnx(model, folder):
    """Write the transformer of ``model`` into its folder as an ONNX file."""
    import torch

    class States(torch.nn.Module):
        def forward(self, input_ids, attention_mask):
            given = {"input_ids": input_ids, "attention_mask": attention_mask}
            return self.network(**given).last_hidden_state

    states = States()
    states.network = model[0].model.eval()
    states.network.set_attn_implementation("eager")
    ones, axes = torch.ones((2, 5), dtype=torch.long), {0: "b", 1: "t"}
    names = ["input_ids", "attention_mask", "last_hidden_state"]
    path = folder / "model.onnx"
    torch.onnx.export(
        states,
        (ones, ones),
        str(path),
        input_names=names[:2],
        output_names=names[2:],
        dynamic_axes=dict.fromkeys(names, axes),
        dynamo=False,
        opset_version=17,
    )
    return path
