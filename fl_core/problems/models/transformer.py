"""Transformers for classifying texts: DistilBERT and BERT, of `transformers`, an optional extra."""

import logging
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self
from zlib import crc32

import torch
from pydantic import model_validator
from torch import Tensor, nn

from fl_core.parts import Count, FieldError
from fl_core.problems.models.layers import KeyedDropout
from fl_core.problems.models.model import Model
from fl_core.problems.problem import InvalidProblemError

PAD, BEGIN = 0, 1  # our own tokens
WORD = re.compile(r"\w+|[^\w\s]")
SMALL = ("layers", "width", "heads", "vocabulary")  # fields of a network with random weights


class Transformer(Model):
    """Base of the encoders: initial weights and tokenisation.

    `weights: random` is a small network with weights drawn from the stream "init", not a pretrained one, and
    words hashed to its vocabulary. Otherwise `weights` is a folder with a pretrained model and its tokenizer,
    or the name of one on the Hugging Face hub; only the last layer is drawn at random then.

    Dropout follows the configuration, with keys that travel with the sample. Attention weights are never
    dropped, since the library would use torch's own generator.
    """

    pooled_steps: ClassVar[int] = 1000
    config: ClassVar[str]  # its class in `transformers`
    network: ClassVar[str]  # likewise
    names: ClassVar[dict[str, str]]  # ours → the configuration's

    weights: str = "random"  # `random`, or a folder or hub's name of a pretrained model
    length: Count = 128  # tokens read of each text
    dropout: bool = True  # whether units are left out in training
    layers: Count = 2  # of the network with random weights; BERT-Tiny (Turc et al., 2019)
    width: Count = 128  # of its hidden states
    heads: Count = 2  # of its attention
    vocabulary: Count = 8192  # to which words are hashed

    @model_validator(mode="after")
    def _pretrained_has_its_own_size(self) -> Self:
        """Refuse sizes for pretrained weights, and a width that the heads do not divide."""
        if not self.random and (fixed_keys := [key for key in SMALL if key in self.model_fields_set]):
            raise ValueError(
                f"{fixed_keys[0]}: the pretrained weights '{self.weights}' determine it. Leave it out"
            )
        if self.width % self.heads:
            raise FieldError("heads", f"must be a divisor of the width {self.width}, not {self.heads}")
        return self

    @property
    def random(self) -> bool:
        """True if the weights are random, not pretrained."""
        return self.weights == "random"

    @property
    def pooled_lr(self) -> float:  # type: ignore[override]
        """The rate of the centralised baseline, higher for training from scratch."""
        return 1e-3 if self.random else 5e-5

    def label(self) -> str:
        return f"{self.reference()} from {self.origin()}"

    def origin(self) -> str:
        return "random weights" if self.random else f"pretrained weights {self.weights}"

    def lacks(self) -> str | None:
        if find_spec("transformers") is None:
            return f"model {self.reference()} needs the package transformers: pip install transformers"
        return None

    def refuses(self, shape: tuple[int, ...], classes: int) -> str | None:
        if shape != (self.length,):
            size = "×".join(map(str, shape))
            return f"model {self.reference()} reads texts of {self.length} tokens, not inputs of {size}"
        return None

    def keyed(self) -> bool:
        return self.dropout

    def tokens(self, texts: list[str]) -> Tensor:
        """Return the tokens [N, length] of texts, int32.

        Raises:
            InvalidProblemError: The pretrained tokenizer is not available.
        """
        if self.random:
            return hashed_words(texts, self.length, self.vocabulary)
        tokenizer = self._pretrained("AutoTokenizer")
        encoded = tokenizer(texts, truncation=True, padding="max_length", max_length=self.length)
        return torch.tensor(encoded["input_ids"], dtype=torch.int32)

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        options = {
            self.names["attention_dropout"]: 0.0,
            "num_labels": classes,
            "attn_implementation": "eager",
        }
        if self.random:
            library = self._library()
            sizes = {self.names[key]: getattr(self, key) for key in SMALL}
            config = getattr(library, self.config)(
                **sizes,
                **options,
                **{self.names["inner"]: 4 * self.width},
                max_position_embeddings=self.length,
                pad_token_id=PAD,
            )
            network = getattr(library, self.network)(config)
        else:
            network = self._pretrained(self.network, ignore_mismatched_sizes=True, **options)
            if (limit := network.config.max_position_embeddings) < self.length:
                raise InvalidProblemError(
                    f"model {self.reference()}: '{self.weights}' reads {limit} tokens, not {self.length}"
                )
        return TextClassifier(network, self.dropout)

    def _pretrained(self, kind: str, **options: Any) -> Any:
        """Return a pretrained object of a class of `transformers`."""
        try:
            return getattr(self._library(), kind).from_pretrained(self.weights, **options)
        except (OSError, ValueError) as error:
            location = "in that folder" if Path(self.weights).is_dir() else "as a folder or on the hub"
            reason = " ".join(str(error).split())
            raise InvalidProblemError(
                f"model {self.reference()}: weights '{self.weights}' not found {location} ({reason:.200}); "
                "give a folder with a pretrained model and its tokenizer, or 'random'"
            ) from None

    def _library(self) -> Any:
        """Return the package `transformers`, without its progress bars."""
        if reason := self.lacks():
            raise InvalidProblemError(reason)
        library: Any = import_module("transformers")
        library.logging.set_verbosity_error()
        library.logging.disable_progress_bar()
        # Hides retries without a network; a final failure is reported in one line.
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        return library


class DistilBERT(Transformer):
    """DistilBERT for classifying texts, small and random or pretrained (Sanh et al., 2019, 1910.01108)."""

    name: ClassVar[str] = "distilbert"
    config: ClassVar[str] = "DistilBertConfig"
    network: ClassVar[str] = "DistilBertForSequenceClassification"
    names: ClassVar[dict[str, str]] = {
        "layers": "n_layers",
        "width": "dim",
        "heads": "n_heads",
        "vocabulary": "vocab_size",
        "inner": "hidden_dim",
        "attention_dropout": "attention_dropout",
    }


class BERT(Transformer):
    """BERT for classifying texts, small and random or pretrained (Devlin et al., NAACL 2019)."""

    name: ClassVar[str] = "bert"
    config: ClassVar[str] = "BertConfig"
    network: ClassVar[str] = "BertForSequenceClassification"
    names: ClassVar[dict[str, str]] = {
        "layers": "num_hidden_layers",
        "width": "hidden_size",
        "heads": "num_attention_heads",
        "vocabulary": "vocab_size",
        "inner": "intermediate_size",
        "attention_dropout": "attention_probs_dropout_prob",
    }


def hashed_words(texts: list[str], length: int, vocabulary: int) -> Tensor:
    """Return tokens [N, length], int32: BEGIN, each word or sign hashed to 2 … vocabulary − 1, PAD.

    No vocabulary has to be learnt from the clients' texts, at the price of hash collisions.
    """
    tokens = torch.full((len(texts), length), PAD, dtype=torch.int32)
    for row, text in zip(tokens, texts, strict=True):
        words = [match[0] for match, _ in zip(WORD.finditer(text.lower()), range(length - 1), strict=False)]
        places = [crc32(word.encode()) % (vocabulary - 2) + 2 for word in words]
        row[: len(words) + 1] = torch.tensor([BEGIN, *places], dtype=torch.int32)
    return tokens


class TextClassifier(nn.Module):
    """The network: tokens [B, length] and dropout keys [B] → logits [B, classes]."""

    def __init__(self, network: Any, dropout: bool) -> None:
        super().__init__()
        self.network = network.eval()  # dropout is replaced below; no other layer depends on the mode
        self.pad = network.config.pad_token_id
        drops = [name for name, layer in network.named_modules() if isinstance(layer, nn.Dropout) and layer.p]
        for number, name in enumerate(drops):
            share = network.get_submodule(name).p if dropout else 0.0
            network.set_submodule(name, InnerDropout(share, number))

    def forward(self, tokens: Tensor, keys: Tensor | None = None) -> Tensor:
        tokens = tokens.long()
        for layer in self.network.modules():
            if isinstance(layer, InnerDropout):
                layer.keys = keys
        # A mask of four dimensions is used unchanged; for others the library reads entries: not under `vmap`.
        dtype = self.network.dtype
        mask = (tokens == self.pad)[:, None, None, :].to(dtype) * torch.finfo(dtype).min
        return self.network(input_ids=tokens, attention_mask=mask).logits


class InnerDropout(KeyedDropout):
    """Dropout inside a network without key arguments: keys are set before every forward pass."""

    keys: Tensor | None = None

    def forward(self, inputs: Tensor, keys: Tensor | None = None) -> Tensor:
        return super().forward(inputs, self.keys)
