#include "transforms/substitutions/check_attributes.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/tensor.h"
#include "support/status.h"
#include "transforms/substitutions/draw_rule.h"

namespace orrery::transforms::substitutions {
namespace check_attributes_cc {
namespace {

using ir::Attribute;

// All that can be seen of an op.
struct Outcome {
  std::vector<ir::TensorType> types;
  std::vector<uint64_t> values;  // bits of all elements: NaN is equal to itself
  double flops = 0, recomputed_flops = 0;
  int64_t bytes = 0;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// An op on operands, whose attributes may be others.
class Trial {
 public:
  Trial(const WorkTable& works, const Work& work) : work_(work) {
    RandomBits random(1);
    for (const ir::TypeId type : work.operands) {
      types_.push_back(&works.type(type));
      tensors_.push_back(DrawTensor(*types_.back(), {.elements = ElementDraw::kQuarters}, random));
    }
  }

  // Nothing where the op does not take its operands so.
  std::optional<Outcome> Run(const ir::AttributeSet& attributes) const {
    const ir::Mesh no_mesh;
    const ir::OpTypes op = {attributes, types_, no_mesh};
    ir::TypeList results;
    if (!ir::InferTypes(work_.kind, op, results).ok()) return std::nullopt;
    Outcome outcome;
    outcome.types.assign(results.begin(), results.end());
    std::vector<const ir::Tensor*> operands;
    for (const ir::Tensor& tensor : tensors_) operands.push_back(&tensor);
    const auto values = ir::Evaluate(work_.kind, attributes, operands, outcome.types);
    if (!values.ok()) return std::nullopt;
    for (const ir::Tensor& tensor : *values) {
      for (int64_t e = 0; e < tensor.size(); ++e) {
        outcome.values.push_back(std::bit_cast<uint64_t>(tensor.Number(e)));
      }
    }
    const ir::OpInfo& info = ir::GetOpInfo(work_.kind);
    if (info.flops != nullptr) outcome.flops = info.flops(op, results);
    if (info.recomputed_flops != nullptr)
      outcome.recomputed_flops = info.recomputed_flops(op, results);
    if (info.bytes != nullptr) outcome.bytes = info.bytes(op, results);
    return outcome;
  }

  // Whether any value of the attribute makes a difference.
  bool Reads(absl::string_view name, const Attribute& given,
             const ir::AttributeSet& attributes) const {
    ir::AttributeSet without;
    for (const auto& [other, value] : attributes.attributes()) {
      if (other != name) without.Set(other, value);
    }
    const std::optional<Outcome> plain = Run(without);
    const auto differs = [&](const Attribute& value) {
      ir::AttributeSet with = without;
      with.Set(name, value);
      return Run(with) != plain;
    };
    const Attribute values[] = {given,
                                Attribute(int64_t{1}),
                                Attribute(int64_t{7}),
                                Attribute(0.375),
                                Attribute(std::string("?")),
                                Attribute(std::vector<int64_t>{1}),
                                Attribute(std::vector<double>{0.375})};
    return std::ranges::any_of(values, differs);
  }

 private:
  const Work& work_;
  std::vector<const ir::TensorType*> types_;
  std::vector<ir::Tensor> tensors_;
};

}  // namespace
}  // namespace check_attributes_cc

absl::Status CheckAttributes(const Rule& rule, const Dataflow& side, const WorkTable& works) {
  for (size_t i = static_cast<size_t>(side.inputs); i < side.nodes.size(); ++i) {
    const Work& work = works[side.nodes[i].work];
    const ir::AttributeSet& attributes = works.attributes(work.attributes);
    if (attributes.empty()) continue;
    const check_attributes_cc::Trial trial(works, work);
    for (const auto& [name, value] : attributes.attributes()) {
      if (trial.Reads(name, value, attributes)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(Where(rule), ": ", ir::GetOpInfo(work.kind).name, " reads no attribute '",
                       name, "'; wanted one that it reads, or none"));
    }
  }
  return absl::OkStatus();
}

}  // namespace orrery::transforms::substitutions
