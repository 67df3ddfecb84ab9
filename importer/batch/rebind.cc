#include "importer/batch/rebind.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "importer/batch/rebatch.h"
#include "ir/batch.h"
#include "ir/rebuild.h"
#include "ir/verifier.h"
#include "support/status.h"

namespace orrery::importer {
namespace rebind_cc {
namespace {

using ir::TensorType;

absl::StatusOr<ir::Function> Verified(absl::StatusOr<ir::Function> function) {
  if (!function.ok()) return function;
  ORRERY_RETURN_IF_ERROR(ir::Verify(*function));
  return function;
}

// "x": the name of the input that has the batch, for the advice.
std::string BatchInput(const ir::Function& function) {
  for (const ir::Input& input : function.inputs()) {
    if (ir::HasBatch(function, input)) return std::string(function.value_name(input.value));
  }
  return "";
}

absl::Status Explain(const ir::Function& function, int64_t batch, const absl::Status& status) {
  const absl::Status where =
      Annotate(status, absl::StrCat("batch ", batch, " in place of ", ir::BatchOf(function)));
  if (absl::StrContains(where.message(), "; try ")) return where;
  const std::string advice = absl::StrCat(
      "; try to export the model with a dynamic batch: torch.onnx.export(…, dynamic_axes={'",
      BatchInput(function), "': {0: 'batch'}})");
  return absl::Status(where.code(), absl::StrCat(where.message(), advice));
}

// The floating-point type of most elements of parameters; of data, where there are none.
ir::DType OwnDType(const ir::Function& function) {
  for (const ir::InputRole role : {ir::InputRole::kParameter, ir::InputRole::kData}) {
    std::map<ir::DType, int64_t> elements;
    for (const ir::Input& input : function.inputs()) {
      const TensorType& type = function.type(input.value);
      if (input.role != role || !ir::IsFloat(type.dtype)) continue;
      elements[type.dtype] += ir::ElementCount(type.dims);
    }
    const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto most = std::max_element(elements.begin(), elements.end(), fewer);
    if (most != elements.end()) return most->first;
  }
  return ir::DType::kF32;
}

}  // namespace
}  // namespace rebind_cc

absl::StatusOr<ir::Function> WithBatch(const ir::Function& function, int64_t batch) {
  if (ir::BatchOf(function) == 0) return ir::ChangeBatch(function, batch, ir::LossBatch::kScales);
  const absl::StatusOr<ir::Function> free = MakeBatchFree(function);
  if (!free.ok()) return rebind_cc::Explain(function, batch, free.status());
  const auto with = [&](int64_t other) {
    return rebind_cc::Verified(ir::ChangeBatch(*free, other, ir::LossBatch::kScales));
  };
  absl::StatusOr<ir::Function> changed = with(batch);
  if (changed.ok()) return changed;
  const int64_t own = ir::BatchOf(function);
  if (batch > 2 * own && with(2 * own).ok()) {  // it follows its batch: this one is too large
    return Annotate(changed.status(), absl::StrCat("batch ", batch, " in place of ", own,
                                                   ": is too large; try a smaller one"));
  }
  return rebind_cc::Explain(function, batch, changed.status());
}

absl::StatusOr<ir::Function> WithDType(const ir::Function& function, ir::DType dtype) {
  const ir::DType own = rebind_cc::OwnDType(function);
  const auto convert = [own, dtype](ir::TensorType type) {
    if (type.dtype == own) type.dtype = dtype;
    return type;
  };
  const auto attributes = [own, dtype](ir::OpKind, const ir::AttributeSet& set) {
    std::optional<ir::AttributeSet> changed;
    if (ir::ParseDType(set.String("to", "")) == own) {
      changed = set;
      changed->Set("to", std::string(ir::ToString(dtype)));
    }
    return changed;
  };
  const ir::Rebuild change = {
      .input =
          [&](const ir::Input& input, const ir::TensorType& type) {
            const bool keeps =
                input.role == ir::InputRole::kState || input.role == ir::InputRole::kAccumulator;
            return keeps ? type : convert(type);
          },
      .uninferred = [&](ir::OpId, const ir::TensorType& type) { return convert(type); },
      .attributes = attributes};
  absl::StatusOr<ir::Function> changed =
      rebind_cc::Verified(ir::RebuildWithInputs(function, change));
  if (changed.ok()) return changed;
  return Annotate(changed.status(), absl::StrCat("element type ", ToString(dtype)));
}

}  // namespace orrery::importer
