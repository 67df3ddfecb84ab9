#ifndef ORRERY_TOOLS_EMITTERS_MODEL_SHAPE_H_
#define ORRERY_TOOLS_EMITTERS_MODEL_SHAPE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

// What a built-in decoder is made of, for systems that are told so in numbers.

namespace orrery::tools {

/// Keys of the family gpt, those left out as the family has them. So many fields: a key each.
struct ModelShape {
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
  int64_t vocab = 0, sequence = 0;
  int64_t experts = 0, topk = 0, expert_ffn = 0, shared_ffn = 0, dense_layers = 0;
  int64_t q_rank = 0, kv_rank = 0, rope_dim = 0, v_dim = 0;  // of latent attention
  bool swiglu = false, rms = false, rotary = false, learned = false, bias = false, tied = false;
  bool latent = false;
  double dropout = 0, attention_dropout = 0;
  bool adapters = false;
};

/// That of a built-in model of the family gpt, as --model names it; nothing for others.
std::optional<ModelShape> ShapeOfModel(absl::string_view model);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_EMITTERS_MODEL_SHAPE_H_
