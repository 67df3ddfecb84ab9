#include "cost_models/cost_model.h"

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cost_models/measured.h"
#include "ir/op_info.h"
#include "support/check.h"

namespace orrery::cost_models {

#define ORRERY_COST_MODEL(Name, file) extern const CostModelInfo k##Name##CostModel;
#include "cost_models/cost_models.def"
#undef ORRERY_COST_MODEL

namespace cost_model_cc {
namespace {

constexpr std::array kCostModels = {
#define ORRERY_COST_MODEL(Name, file) &k##Name##CostModel,
#include "cost_models/cost_models.def"
#undef ORRERY_COST_MODEL
};

// What a record's function of the local types says about the op.
template <typename T>
T Count(T (*count)(const ir::OpTypes&, const ir::TypeList&), const OpView& op) {
  if (count == nullptr) return T{};
  // On the stack for up to two results of up to four dimensions: only optimizers have more. Whole
  // copies take 8 ns for a MatMulGrad; making types and setting their dims took 31 ns.
  ir::TypeList results;
  for (const ir::TensorType* type : op.results) results.push_back(*type);
  const ir::Mesh no_mesh;  // the types are local already
  return count({op.attributes, op.operands, no_mesh}, results);
}

}  // namespace
}  // namespace cost_model_cc

std::optional<Duration> CostModel::Fused(Flops, Bytes, const cluster::Device&) const {
  return std::nullopt;
}

std::string CostModel::DoubtAbout(const cluster::Device&) const { return ""; }

absl::StatusOr<ChosenCollective> CostModel::Choose(const CollectiveRequest& request,
                                                   const cluster::Topology& topology,
                                                   const CollectiveChoice& choice) const {
  return ChooseCollective(request, topology, choice);
}

ChosenCollective CostModel::Plan(const CollectiveRequest& request,
                                 const cluster::Topology& topology,
                                 const CollectiveChoice& choice) const {
  absl::StatusOr<ChosenCollective> chosen = Choose(request, topology, choice);
  if (!chosen.ok()) chosen = Choose(request, topology, {});
  ORRERY_CHECK(chosen.ok()) << chosen.status().message();
  return *std::move(chosen);
}

Flops FlopsOf(const OpView& op) {
  return Flops(cost_model_cc::Count(ir::GetOpInfo(op.kind).flops, op));
}

Flops RecomputedFlopsOf(const OpView& op) {
  return Flops(cost_model_cc::Count(ir::GetOpInfo(op.kind).recomputed_flops, op));
}

Flops ModelFlopsOf(const OpView& op) {
  if (!ir::GetOpInfo(op.kind).matrix_product) return Flops(0);
  return Flops(FlopsOf(op).count() - RecomputedFlopsOf(op).count());
}

ir::ProductShapes ProductsOf(const OpView& op) {
  return cost_model_cc::Count(ir::GetOpInfo(op.kind).products, op);
}

Bytes BytesMovedBy(const OpView& op) {
  const ir::OpInfo& info = ir::GetOpInfo(op.kind);
  if (info.op_class == ir::OpClass::kView) return Bytes(0);
  if (info.bytes != nullptr) return Bytes(cost_model_cc::Count(info.bytes, op));
  Bytes moved;
  for (const ir::TensorType* type : op.operands) moved += ir::SizeOf(*type);
  for (const ir::TensorType* type : op.results) moved += ir::SizeOf(*type);
  return moved;
}

std::span<const CostModelInfo* const> AllCostModels() { return cost_model_cc::kCostModels; }

absl::StatusOr<std::unique_ptr<const CostModel>> MakeCostModel(absl::string_view name) {
  for (const CostModelInfo* info : cost_model_cc::kCostModels) {
    if (info->name == name) return info->make();
  }
  if (absl::ConsumePrefix(&name, "measured:")) return MakeMeasuredCostModel(std::string(name));
  const auto append_name = [](std::string* out, const CostModelInfo* info) {
    absl::StrAppend(out, info->name);
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "cost model '", name, "' is unknown; wanted one of ",
      absl::StrJoin(cost_model_cc::kCostModels, ", ", append_name), ", or measured:FILE"));
}

}  // namespace orrery::cost_models
