#include "cost_models/cost_model.h"

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cost_models/measured.h"
#include "cost_models/measured_kernels.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/optimizer_operands.h"
#include "support/check.h"
#include "support/names/near_names.h"

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

// Elements of 16 bits: software keeps no other ones twice.
int64_t HalfElements(const ir::TensorType& type) {
  return ir::SizeOf(type.dtype) == 2 ? ir::ElementCount(type.dims) : 0;
}

}  // namespace
}  // namespace cost_model_cc

std::optional<Duration> CostModel::Fused(Flops, Bytes, const cluster::Device&) const {
  return std::nullopt;
}

SourceShares CostModel::SourcesOf(const OpView&, const cluster::Device&) const { return {}; }

SourceShares CostModel::SourcesOfFused(Flops, Bytes, const cluster::Device&) const { return {}; }

std::string CostModel::DoubtAbout(const cluster::Device&) const { return ""; }

std::string DoubtAbout(const CostModel& cost_model, const cluster::Cluster& cluster) {
  std::vector<std::string> doubts;
  for (int32_t kind = 0; kind < cluster.kind_count(); ++kind) {
    std::string doubt = cost_model.DoubtAbout(cluster.kind(kind));
    const bool known = std::ranges::find(doubts, doubt) != doubts.end();
    if (!doubt.empty() && !known) doubts.push_back(std::move(doubt));
  }
  return absl::StrJoin(doubts, "; ");
}

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
  const ir::OpInfo& info = ir::GetOpInfo(op.kind);
  // Products of an update are none of the model.
  if (!info.matrix_product || info.op_class == ir::OpClass::kOptimizer) return Flops(0);
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

Bytes ExtraBytesOf(const OpView& op) {
  if (op.choice == nullptr) return Bytes(0);
  const ExtraTraffic& extra = op.choice->extra;
  double rate = 0;
  int64_t elements = op.operands.empty() ? 0 : cost_model_cc::HalfElements(*op.operands[0]);
  switch (op.kind) {
    case ir::OpKind::kAccumulate:
      rate = extra.gradient_sum;
      break;
    case ir::OpKind::kCrossEntropy:
    case ir::OpKind::kCrossEntropyParts:
      rate = extra.loss;
      break;
    case ir::OpKind::kCrossEntropyGrad:
    case ir::OpKind::kCrossEntropyPartsGrad:
      rate = extra.loss_gradient;
      break;
    case ir::OpKind::kRmsNorm:
      rate = extra.norm;
      break;
    case ir::OpKind::kRmsNormGrad:
      rate = extra.norm_gradient;
      break;
    case ir::OpKind::kRotary:
      rate = extra.rotary;
      break;
    case ir::OpKind::kSwiGlu:
      rate = extra.gated;
      break;
    case ir::OpKind::kSwiGluGrad:
      rate = extra.gated_gradient;
      break;
    case ir::OpKind::kDispatch:
      rate = extra.sorting;
      elements = cost_model_cc::HalfElements(*op.results[0]);
      break;
    case ir::OpKind::kCombine:
      rate = extra.sorting;
      break;
    case ir::OpKind::kLinear:
      rate = extra.activation;
      elements = op.results.size() > 1 ? cost_model_cc::HalfElements(*op.results[1]) : 0;
      break;
    default:
      if (ir::GetOpInfo(op.kind).op_class != ir::OpClass::kOptimizer) break;
      rate = extra.update;
      for (size_t i = 1; i < ir::ParameterCount(op.attributes); ++i) {
        elements += cost_model_cc::HalfElements(*op.operands[i]);
      }
  }
  return Bytes(static_cast<int64_t>(rate * static_cast<double>(elements)));
}

std::span<const CostModelInfo* const> AllCostModels() { return cost_model_cc::kCostModels; }

absl::StatusOr<std::unique_ptr<const CostModel>> MakeCostModel(absl::string_view name) {
  for (const CostModelInfo* info : cost_model_cc::kCostModels) {
    if (info->name == name) return info->make();
  }
  if (absl::ConsumePrefix(&name, "kernels:")) {
    return MakeMeasuredKernelsCostModel(std::string(name));
  }
  if (absl::ConsumePrefix(&name, "measured:")) return MakeMeasuredCostModel(std::string(name));
  std::vector<absl::string_view> names;
  for (const CostModelInfo* info : cost_model_cc::kCostModels) names.push_back(info->name);
  const std::string all =
      absl::StrCat("wanted one of ", absl::StrJoin(names, ", "), ", kernels:FILE or measured:FILE");
  return absl::InvalidArgumentError(absl::StrCat("cost model '", name, "' is unknown; ",
                                                 WantedNames(name, names, /*lister=*/"", all)));
}

}  // namespace orrery::cost_models
