#include "transforms/sharding/facts/axis_use.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::transforms {
namespace axis_use_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// A kind of layer, or nothing for what belongs to its neighbours.
using Layer = absl::string_view;

// How far layers are looked for: over views, norms, residuals and communication.
constexpr int kReach = 6;

class Finder {
 public:
  Finder(const Function& function, ir::AxisIndex axis)
      : function_(function), axis_(axis), users_(function.value_limit()) {
    for (const OpId op : function.order()) {
      for (const ValueId operand : function.operands(op)) {
        if (!users_[operand].valid()) users_[operand] = op;
      }
    }
  }

  void AddTo(std::vector<AxisUse>& uses) const {
    for (const OpId op : function_.order()) {
      const ir::OpInfo& info = function_.info(op);
      if (info.op_class == ir::OpClass::kCollective) {
        if (Communicates(op)) ++UseOf(LayerNear(op), uses).collectives[std::string(info.name)];
        continue;
      }
      const Layer layer = LayerOf(op);
      if (layer.empty() || absl::EndsWith(info.name, "Grad")) continue;
      const std::string split = SplitOf(op);
      if (!split.empty()) UseOf(layer, uses).splits.insert(split);
    }
  }

 private:
  static AxisUse& UseOf(Layer layer, std::vector<AxisUse>& uses) {
    const auto found = std::ranges::find(uses, layer, &AxisUse::layer);
    if (found != uses.end()) return *found;
    AxisUse& use = uses.emplace_back();
    use.layer = std::string(layer);
    return use;
  }

  bool Communicates(OpId op) const {
    ir::AxisList axes;
    return ir::ParseAxes(function_.attributes(op), function_.mesh(), axes).ok() &&
           axes.contains(axis_);
  }

  // Of an op by itself, and of a product by what makes its rows or reads them.
  Layer LayerOf(OpId op) const {
    const absl::string_view name = function_.info(op).name;
    if (absl::StartsWith(name, "Attention")) return "attention";
    if (absl::StartsWith(name, "CrossEntropy")) return "logits";
    if (absl::StartsWith(name, "Conv")) return "convolution";
    if (absl::StartsWith(name, "Lstm") || absl::StartsWith(name, "Gru")) return "recurrent";
    if (absl::StartsWith(name, "SelectiveScan")) return "state space";
    const bool table = name == "Gather" && Rank(function_.operands(op)[0]) == 2;
    if (table || name == "GatherGrad") return "embedding";
    if (!function_.info(op).matrix_product) return "";
    if (Rank(function_.operands(op)[1]) > 2) return "experts";
    for (const OpId near : {After(op), Before(op)}) {
      if (!near.valid()) continue;
      const absl::string_view other = function_.info(near).name;
      if (absl::StartsWith(other, "Attention")) return "attention";
      if (absl::StartsWith(other, "CrossEntropy")) return "logits";
      if (absl::StartsWith(other, "SelectiveScan")) return "state space";
    }
    return "mlp";
  }

  // The next op of a layer along first operands, and along first users.
  OpId Before(OpId op) const {
    for (int i = 0; i < kReach; ++i) {
      op = function_.operands(op).empty() ? OpId() : function_.producer(function_.operands(op)[0]);
      if (!op.valid() || IsLayer(op)) return op;
    }
    return OpId();
  }
  OpId After(OpId op) const {
    for (int i = 0; i < kReach; ++i) {
      op = function_.result_count(op) == 0 ? OpId() : users_[function_.result(op)];
      if (!op.valid() || IsLayer(op)) return op;
    }
    return OpId();
  }
  bool IsLayer(OpId op) const {
    const absl::string_view name = function_.info(op).name;
    return function_.info(op).matrix_product || absl::StartsWith(name, "Attention") ||
           absl::StartsWith(name, "CrossEntropy") || name == "Gather" || name == "GatherGrad";
  }

  // The layer whose results are put together, or whose operands are.
  Layer LayerNear(OpId op) const {
    for (const OpId near : {Before(op), After(op)}) {
      const Layer layer = near.valid() ? LayerOf(near) : "";
      if (!layer.empty()) return layer;
    }
    return "other";
  }

  size_t Rank(ValueId value) const { return function_.type(value).dims.size(); }

  // The dimension of a value that the axis splits; negative: none.
  int DimOf(ValueId value) const {
    const ir::TensorType& type = function_.type(value);
    for (size_t d = 0; d < type.dims.size(); ++d) {
      if (type.sharding.at(d).contains(axis_)) return static_cast<int>(d);
    }
    return -1;
  }

  std::string SplitOf(OpId op) const {
    const auto operands = function_.operands(op);
    const int dim = DimOf(operands[0]), last = static_cast<int>(Rank(operands[0])) - 1;
    if (absl::StartsWith(function_.info(op).name, "Attention")) {
      if (dim < 0) return "";
      if (dim == 0) return "batch";
      return (last == 2 ? dim == 2 : dim == 1) ? "heads" : "sequence";
    }
    if (absl::StartsWith(function_.info(op).name, "SelectiveScan") && dim > 1) return "heads";
    const bool reads_table = function_.kind(op) == OpKind::kGather;
    if (reads_table && dim >= 0) return dim == 0 ? "vocabulary" : "width";
    if (reads_table) return OfRows(DimOf(operands[1]));
    if (!function_.info(op).matrix_product || operands.size() < 2) return OfRows(dim);
    if (const int weight = DimOf(operands[1]); weight >= 0) {
      const bool flip = function_.attributes(op).Int("transpose_w", 0) != 0;
      const int columns = static_cast<int>(Rank(operands[1])) - (flip ? 2 : 1);
      if (function_.info(op).name.substr(0, 4) == "Conv") return weight == 0 ? "columns" : "rows";
      if (Rank(operands[1]) > 2 && weight == 0) return "experts";
      return weight == columns ? "columns" : "rows";
    }
    return dim == last ? "" : OfRows(dim);
  }

  static std::string OfRows(int dim) { return dim < 0 ? "" : dim == 0 ? "batch" : "sequence"; }

  const Function& function_;
  const ir::AxisIndex axis_;
  IdTable<ValueId, OpId> users_;  // the first of each value
};

// "AllReduce" as "all-reduces".
std::string PluralOf(absl::string_view name, int count) {
  std::string text;
  for (const char c : name) {
    const bool upper = absl::ascii_isupper(static_cast<unsigned char>(c));
    if (upper && !text.empty()) text += '-';
    text += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return absl::StrCat(count, " ", text, count == 1 ? "" : "s");
}

}  // namespace
}  // namespace axis_use_cc

std::vector<AxisUse> UsesOfAxis(std::span<const ir::Function* const> functions,
                                absl::string_view axis) {
  std::vector<AxisUse> uses;
  for (const ir::Function* function : functions) {
    const std::optional<ir::AxisIndex> index = function->mesh().Find(axis);
    if (!index.has_value() || function->mesh().size(*index) < 2) continue;
    axis_use_cc::Finder(*function, *index).AddTo(uses);
  }
  return uses;
}

std::string ToString(const std::vector<AxisUse>& uses) {
  std::vector<std::string> layers;
  for (const AxisUse& use : uses) {
    std::vector<std::string> parts(use.splits.begin(), use.splits.end());
    for (const auto& [name, count] : use.collectives) {
      parts.push_back(axis_use_cc::PluralOf(name, count));
    }
    layers.push_back(absl::StrCat(use.layer, ": ", absl::StrJoin(parts, ", ")));
  }
  return absl::StrJoin(layers, "; ");
}

}  // namespace orrery::transforms
