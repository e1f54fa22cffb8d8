# SPDX-License-Identifier: Apache-2.0
"""Networks of transformers that read sound and text, and those that read both images and text."""

import torch
import transformers
from torch import nn

from network import Network, Port

TOKENS = 128
_SMALL_VOCABULARY = 8000  # rows of an embedding cost memory and no time


def _tokens(length=TOKENS):
    return [Port("input_ids", ("N", length), "int64"), Port("attention_mask", ("N", length), "int64")]


class Called(nn.Module):
    """A model of transformers, called with named arguments; the first named output that it has is the answer."""

    def __init__(self, model, arguments, output, **options):
        super().__init__()
        self.model, self.arguments, self.output, self.options = model, arguments, output, options

    def forward(self, *inputs):
        return self.model(**dict(zip(self.arguments, inputs)), **self.options)[self.output]


def _network(model, ports, output="last_hidden_state", **options):
    return Network(Called(model, [port.name for port in ports], output, **options), ports, [output])


def encoder(kind, attention="sdpa", **sizes):
    """A text encoder of transformers by the name of its configuration."""

    def build():
        config = getattr(transformers, kind + "Config")(vocab_size=_SMALL_VOCABULARY, attn_implementation=attention, **sizes)
        return _network(getattr(transformers, kind + "Model")(config), _tokens())

    return build


def t5_encoder():
    config = transformers.T5Config(vocab_size=_SMALL_VOCABULARY, d_model=512, num_layers=6, is_gated_act=False)
    model = transformers.T5EncoderModel(config)
    for name, module in model.named_modules():
        if name.endswith(".q"):
            module.seeded_gain = 0.125  # T5 does not scale its scores
    return _network(model, _tokens())


class DecoderStep(nn.Module):
    """One token of a decoder behind `past` others: keys and values come in, those with the new token's go out."""

    def __init__(self, model, layers):
        super().__init__()
        self.model, self.layers = model, layers

    def forward(self, *inputs):
        input_ids, past = inputs[0], inputs[1:]
        cache = transformers.DynamicCache()
        for i in range(self.layers):
            cache.update(past[2 * i], past[2 * i + 1], i)
        answer = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
        grown = [part for layer in answer.past_key_values.layers for part in (layer.keys, layer.values)]
        return (answer.logits, *grown)


def _decoder_step(model, layers, heads, head, past):
    ports = [Port("input_ids", ("N", 1), "int64")]
    outputs = ["logits"]
    for i in range(layers):
        ports += [Port(f"past.{i}.{part}", ("N", heads, past, head)) for part in ("key", "value")]
        outputs += [f"present.{i}.{part}" for part in ("key", "value")]
    return Network(DecoderStep(model, layers), ports, outputs)


def gpt2_step(past=127):
    config = transformers.GPT2Config(vocab_size=_SMALL_VOCABULARY, n_layer=12, attn_implementation="eager")
    return _decoder_step(transformers.GPT2LMHeadModel(config), 12, 12, 64, past)


def llama_step(past=127):
    config = transformers.LlamaConfig(
        vocab_size=_SMALL_VOCABULARY, hidden_size=768, intermediate_size=2048, num_hidden_layers=8, num_attention_heads=12,
        num_key_value_heads=4,
    )  # fmt: skip
    return _decoder_step(transformers.LlamaForCausalLM(config), 8, 4, 64, past)


def gpt2_prompt():
    config = transformers.GPT2Config(vocab_size=_SMALL_VOCABULARY, n_layer=12, attn_implementation="eager")
    return _network(transformers.GPT2Model(config), [Port("input_ids", ("N", TOKENS), "int64")], use_cache=False)


def llama_prompt():
    config = transformers.LlamaConfig(
        vocab_size=_SMALL_VOCABULARY, hidden_size=768, intermediate_size=2048, num_hidden_layers=8, num_attention_heads=12,
        num_key_value_heads=4,
    )  # fmt: skip
    return _network(transformers.LlamaModel(config), [Port("input_ids", ("N", TOKENS), "int64")], use_cache=False)


def clip_text():
    config = transformers.CLIPTextConfig(vocab_size=_SMALL_VOCABULARY, bos_token_id=0, eos_token_id=_SMALL_VOCABULARY - 1)
    return _network(transformers.CLIPTextModel(config), [Port("input_ids", ("N", 77), "int64")])


def clip_vision():
    model = transformers.CLIPVisionModel(transformers.CLIPVisionConfig())
    return _network(model, [Port("pixel_values", ("N", 3, 224, 224))], "pooler_output")


def _sound(model, samples):
    return _network(model, [Port("input_values", ("N", samples))])


def wav2vec2(layers=6):
    return _sound(transformers.Wav2Vec2Model(transformers.Wav2Vec2Config(num_hidden_layers=layers)), 16000)


def hubert(layers=6):
    config = transformers.HubertConfig(num_hidden_layers=layers, feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True)
    return _sound(transformers.HubertModel(config), 16000)


class WhisperEncoder(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, features):
        return self.encoder(features).last_hidden_state


def whisper_encoder():
    config = transformers.WhisperConfig(
        d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536, decoder_layers=1, vocab_size=_SMALL_VOCABULARY,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    module = WhisperEncoder(transformers.WhisperModel(config).encoder)
    return Network(module, [Port("features", ("N", 80, 3000))], ["last_hidden_state"])


def spectrogram_transformer():
    config = transformers.ASTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536, num_hidden_layers=6, max_length=256)
    return _network(transformers.ASTModel(config), [Port("input_values", ("N", 256, 128))])
