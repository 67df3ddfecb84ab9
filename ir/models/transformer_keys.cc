#include "ir/models/transformer_keys.h"

#include "absl/strings/str_cat.h"

namespace orrery::ir {

absl::Status CheckHeads(const ModelValues& values, int64_t hidden, int64_t heads,
                        int64_t kv_heads) {
  if (!values.Has("head_dim") && hidden % heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("hidden is ", hidden, "; wanted a multiple of ",
                                                   heads, " heads, or try head_dim"));
  }
  if (heads % kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("heads is ", heads, "; wanted a multiple of ", kv_heads, " kv_heads"));
  }
  return absl::OkStatus();
}

absl::Status CheckTopk(int64_t topk, int64_t experts) {
  if (topk <= experts) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("topk is ", topk, "; wanted at most ", experts, " experts"));
}

}  // namespace orrery::ir
