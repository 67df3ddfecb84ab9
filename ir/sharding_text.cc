#include "ir/sharding_text.h"

#include <span>

#include "absl/strings/str_cat.h"
#include "support/enum_names.h"

namespace orrery::ir {
namespace sharding_text_cc {
namespace {

constexpr EnumNames<Reduction, 5> kReductions({{"sum", Reduction::kSum},
                                               {"avg", Reduction::kAverage},
                                               {"product", Reduction::kProduct},
                                               {"max", Reduction::kMax},
                                               {"min", Reduction::kMin}});

std::string BlockText(int64_t block) {
  if (block == kNestedChunks) return "";
  return block == kBalancedChunks ? "/balanced" : absl::StrCat("/", block);
}

}  // namespace
}  // namespace sharding_text_cc

std::string LayoutTextBy(const Sharding& sharding, const Dims& dims,
                         absl::FunctionRef<std::string(const AxisList& axes)> names_of) {
  std::string text = "[";
  for (size_t d = 0; d < dims.size(); ++d) {
    absl::StrAppend(&text, d == 0 ? "" : ",", dims[d]);
    const AxisList axes = sharding.at(d);
    if (!axes.empty())
      absl::StrAppend(&text, "@", names_of(axes), sharding_text_cc::BlockText(sharding.block(d)));
  }
  absl::StrAppend(&text, "]");
  if (sharding.partial.empty()) return text;
  absl::StrAppend(&text, " partial(");
  const std::span<const AxisIndex> partial = sharding.partial.axes();
  for (size_t i = 0; i < partial.size();) {
    const Reduction reduction = sharding.reductions[partial[i]];
    absl::StrAppend(&text, i == 0 ? "" : ",");
    AxisList axes;
    for (; i < partial.size() && sharding.reductions[partial[i]] == reduction; ++i) {
      axes.push_back(partial[i]);
    }
    absl::StrAppend(&text, names_of(axes));
    if (reduction != Reduction::kSum) absl::StrAppend(&text, ":", ToString(reduction));
  }
  return absl::StrCat(text, ")");
}

absl::string_view ToString(Reduction reduction) {
  return sharding_text_cc::kReductions.Of(reduction);
}

std::optional<Reduction> ParseReduction(absl::string_view name) {
  if (name == "average") return Reduction::kAverage;
  return sharding_text_cc::kReductions.Find(name);
}

std::string LayoutText(const Sharding& sharding, const Dims& dims, const Mesh& mesh) {
  return LayoutTextBy(sharding, dims, [&mesh](const AxisList& axes) { return mesh.Names(axes); });
}

}  // namespace orrery::ir
