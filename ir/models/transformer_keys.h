#ifndef ORRERY_IR_MODELS_TRANSFORMER_KEYS_H_
#define ORRERY_IR_MODELS_TRANSFORMER_KEYS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ir/models/model.h"

// What families of transformers have alike: keys, and which of their values go together.

namespace orrery::ir {

inline constexpr ModelKey kHiddenKey = {
    .name = "hidden", .fallback = "768", .summary = "width of the residual stream", .max = 1 << 20};
inline constexpr ModelKey kHeadsKey = {
    .name = "heads", .fallback = "12", .summary = "attention heads", .max = 1 << 14};
inline constexpr ModelKey kKvHeadsKey = {.name = "kv_heads",
                                         .fallback = "",
                                         .summary = "heads of keys and values [heads]",
                                         .max = 1 << 14};
inline constexpr ModelKey kSeqKey = {
    .name = "seq", .fallback = "1024", .summary = "tokens a sample", .max = 1 << 24};
inline constexpr ModelKey kVocabKey = {
    .name = "vocab", .fallback = "50257", .summary = "tokens there are", .max = 1 << 24};
inline constexpr ModelKey kFlashKey = {.name = "flash",
                                       .fallback = "0",
                                       .summary = "attention keeps sums in place of probabilities",
                                       .choices = "0|1"};
inline constexpr ModelKey kDropoutKey = {.name = "dropout",
                                         .fallback = "0",
                                         .summary = "ratio of residual dropout",
                                         .min = 0,
                                         .max = 0.99,
                                         .real = true};
inline constexpr ModelKey kAttentionDropoutKey = {
    .name = "attention_dropout",
    .fallback = "",
    .summary = "of attention's probabilities [dropout]",
    .min = 0,
    .max = 0.99,
    .real = true};
inline constexpr ModelKey kTopkKey = {
    .name = "topk", .fallback = "2", .summary = "experts a token goes to", .max = 1 << 12};
inline constexpr ModelKey kExpertFfnKey = {
    .name = "expert_ffn", .fallback = "", .summary = "width of an expert [ffn]", .max = 1 << 24};
inline constexpr ModelKey kSharedFfnKey = {
    .name = "shared_ffn",
    .fallback = "0",
    .summary = "width of the experts that all tokens go to, together; 0: none",
    .min = 0,
    .max = 1 << 24};
inline constexpr ModelKey kCapacityFactorKey = {
    .name = "capacity_factor",
    .fallback = "1",
    .summary = "slots of the experts over the tokens that go to them",
    .min = 0.01,
    .max = 1000,
    .real = true};

/// An error unless heads share `hidden` evenly, or have a width of their own, and heads of keys and
/// values are shared evenly.
absl::Status CheckHeads(const ModelValues& values, int64_t hidden, int64_t heads, int64_t kv_heads);

/// An error where a token goes to more experts than there are.
absl::Status CheckTopk(int64_t topk, int64_t experts);

}  // namespace orrery::ir

#endif  // ORRERY_IR_MODELS_TRANSFORMER_KEYS_H_
