#include "importer/rebind.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/rebuild.h"
#include "ir/verifier.h"
#include "support/status.h"

namespace orrery::importer {
namespace {

using ir::TensorType;

bool HasBatch(const ir::Function& function, const ir::Input& input) {
  return input.role == ir::InputRole::kData && !function.type(input.value).dims.empty();
}

absl::StatusOr<ir::Function> Verified(absl::StatusOr<ir::Function> function) {
  if (!function.ok()) return function;
  ORRERY_RETURN_IF_ERROR(ir::Verify(*function));
  return function;
}

// The global batch of a loss, which need not be that of the data: it counts all microbatches.
std::optional<ir::AttributeSet> ScaleLossBatch(ir::OpKind kind, const ir::AttributeSet& attributes,
                                               int64_t old_batch, int64_t batch) {
  if (kind != ir::OpKind::kLoss && kind != ir::OpKind::kLossGrad) return std::nullopt;
  const __int128 scaled = static_cast<__int128>(attributes.Int("batch", 0)) * batch / old_batch;
  if (scaled < 1 || scaled > INT64_MAX) return std::nullopt;
  ir::AttributeSet changed = attributes;
  changed.Set("batch", static_cast<int64_t>(scaled));
  return changed;
}

// "x": the name of the input that has the batch, for the advice.
std::string BatchInput(const ir::Function& function) {
  for (const ir::Input& input : function.inputs()) {
    if (HasBatch(function, input)) return std::string(function.value_name(input.value));
  }
  return "";
}

absl::Status Explain(const ir::Function& function, int64_t batch, const absl::Status& status) {
  const absl::Status where =
      Annotate(status, absl::StrCat("batch ", batch, " in place of ", BatchOf(function)));
  const std::string advice = absl::StrCat(
      "; try to export the model with a dynamic batch: torch.onnx.export(…, dynamic_axes={'",
      BatchInput(function), "': {0: 'batch'}})");
  return absl::Status(where.code(), absl::StrCat(where.message(), advice));
}

}  // namespace

int64_t BatchOf(const ir::Function& function) {
  for (const ir::Input& input : function.inputs()) {
    if (HasBatch(function, input)) return function.type(input.value).dims[0];
  }
  return 0;
}

absl::StatusOr<ir::Function> WithBatch(const ir::Function& function, int64_t batch) {
  const int64_t old_batch = BatchOf(function);
  if (old_batch == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("has no data input with a batch; wanted one to set to ", batch));
  }
  const ir::Rebuild change = {.input =
                                  [&](const ir::Input& input, const TensorType& type) {
                                    TensorType changed = type;
                                    if (HasBatch(function, input) && type.dims[0] == old_batch)
                                      changed.dims[0] = batch;
                                    return changed;
                                  },
                              .attributes =
                                  [&](ir::OpKind kind, const ir::AttributeSet& attributes) {
                                    return ScaleLossBatch(kind, attributes, old_batch, batch);
                                  }};
  absl::StatusOr<ir::Function> changed = Verified(ir::RebuildWithInputs(function, change));
  if (!changed.ok()) return Explain(function, batch, changed.status());
  return changed;
}

absl::StatusOr<ir::Function> WithDType(const ir::Function& function, ir::DType dtype) {
  const auto convert = [dtype](TensorType type) {
    if (ir::IsFloat(type.dtype)) type.dtype = dtype;
    return type;
  };
  const ir::Rebuild change = {
      .input =
          [&](const ir::Input& input, const TensorType& type) {
            const bool keeps =
                input.role == ir::InputRole::kState || input.role == ir::InputRole::kAccumulator;
            return keeps ? type : convert(type);
          },
      .uninferred = [&](ir::OpKind, const TensorType& type) { return convert(type); }};
  absl::StatusOr<ir::Function> changed = Verified(ir::RebuildWithInputs(function, change));
  if (changed.ok()) return changed;
  return Annotate(changed.status(), absl::StrCat("element type ", ToString(dtype)));
}

}  // namespace orrery::importer
