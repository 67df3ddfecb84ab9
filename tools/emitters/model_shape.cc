#include "tools/emitters/model_shape.h"

#include "importer/builtin_models.h"

namespace orrery::tools {

std::optional<ModelShape> ShapeOfModel(absl::string_view model) {
  const std::optional<importer::BuiltinValues> found = importer::FindBuiltinValues(model);
  if (!found.has_value() || found->family != "gpt") return std::nullopt;
  const ir::ModelValues& values = found->values;
  ModelShape shape;
  shape.layers = values.Int("layers");
  shape.hidden = values.Int("hidden");
  shape.heads = values.Int("heads");
  shape.kv_heads = values.Int("kv_heads", shape.heads);
  shape.head_dim = values.Int("head_dim", shape.hidden / shape.heads);
  shape.vocab = values.Int("vocab");
  shape.sequence = values.Int("seq");
  shape.swiglu = values.Text("mlp") == "swiglu";
  // As ir/models/gpt.cc has it.
  shape.ffn =
      values.Int("ffn", shape.swiglu ? (8 * shape.hidden / 3 + 255) / 256 * 256 : 4 * shape.hidden);
  shape.rms = values.Text("norm", shape.swiglu ? "rms" : "layer") == "rms";
  const std::string position = values.Text("position", shape.swiglu ? "rotary" : "learned");
  shape.rotary = position == "rotary";
  shape.learned = position == "learned";
  shape.bias = values.Int("bias", shape.swiglu ? 0 : 1) != 0;
  shape.tied = values.Int("tied_embeddings", shape.swiglu ? 0 : 1) != 0;
  shape.dropout = values.Number("dropout");
  shape.attention_dropout =
      values.Has("attention_dropout") ? values.Number("attention_dropout") : shape.dropout;
  shape.experts = values.Int("experts");
  shape.topk = values.Int("topk");
  shape.expert_ffn = values.Int("expert_ffn", shape.ffn);
  shape.shared_ffn = values.Int("shared_ffn");
  shape.dense_layers = values.Int("dense_layers");
  shape.latent = values.Text("attention") == "latent";
  shape.q_rank = values.Int("q_rank");
  shape.kv_rank = values.Int("kv_rank");
  shape.rope_dim = values.Int("rope_dim");
  shape.v_dim = values.Int("v_dim", shape.head_dim);
  shape.adapters = values.Int("lora") > 0;
  return shape;
}

}  // namespace orrery::tools
