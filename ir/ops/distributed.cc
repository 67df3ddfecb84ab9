#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/op_info.h"
#include "ir/ops/kernels.h"

// Ops among ranks, and ops that carry a value from one microbatch to the next.

namespace orrery::ir {

absl::Status ParseAxes(const AttributeSet& attributes, const Mesh& mesh, AxisList& axes) {
  const std::string names = attributes.String("axes", "");
  for (const absl::string_view name : absl::StrSplit(names, '.', absl::SkipEmpty())) {
    const auto axis = mesh.Find(name);
    if (!axis.has_value() || axes.contains(*axis)) {
      return absl::InvalidArgumentError(
          absl::StrCat("axes=\"", names, "\" are no axes of ", ToString(mesh)));
    }
    axes.push_back(*axis);
  }
  if (!axes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("the attribute axes is missing; wanted the axes to work along");
}

namespace {

TensorType SameAs(const TensorType& x) {
  return {.dtype = x.dtype, .dims = x.dims, .sharding = x.sharding};
}

absl::Status InferSame(const OpTypes& op, TypeList& results) {
  results.push_back(SameAs(*op.operands[0]));
  return absl::OkStatus();
}

absl::Status ShardAllReduce(const OpTypes& op, TypeList& results) {
  AxisList axes;
  if (absl::Status status = ParseAxes(op.attributes, op.mesh, axes); !status.ok()) return status;
  for (const AxisIndex axis : axes.axes()) {
    if (!results[0].sharding.partial.contains(axis)) {
      return absl::InvalidArgumentError(
          absl::StrCat("its operand is not partial over ", op.mesh.axes()[axis].name));
    }
    results[0].sharding.partial = results[0].sharding.partial.Without(axis);
  }
  return absl::OkStatus();
}

absl::Status ShardAllGather(const OpTypes& op, TypeList& results) {
  AxisList axes;
  if (absl::Status status = ParseAxes(op.attributes, op.mesh, axes); !status.ok()) return status;
  const int64_t dim = op.attributes.Int("dim", -1);
  if (dim < 0 || dim >= static_cast<int64_t>(results[0].dims.size())) {
    return absl::InvalidArgumentError(absl::StrCat("dim=", dim, " is no dimension of its operand"));
  }
  const auto d = static_cast<size_t>(dim);
  if (results[0].sharding.at(d) != axes) {
    return absl::InvalidArgumentError(
        absl::StrCat("dimension ", dim, " of its operand is not split over ", op.mesh.Names(axes)));
  }
  results[0].sharding.Set(d, results[0].dims.size(), AxisList());
  return absl::OkStatus();
}

absl::Status ShardAllSlice(const OpTypes& op, TypeList& results) {
  AxisList axes;
  if (absl::Status status = ParseAxes(op.attributes, op.mesh, axes); !status.ok()) return status;
  const int64_t dim = op.attributes.Int("dim", -1);
  Sharding& sharding = results[0].sharding;
  if (dim < 0 || dim >= static_cast<int64_t>(results[0].dims.size())) {
    return absl::InvalidArgumentError(absl::StrCat("dim=", dim, " is no dimension of its operand"));
  }
  const auto d = static_cast<size_t>(dim);
  for (const AxisIndex axis : axes.axes()) {
    if (!sharding.at(d).empty() || sharding.Uses(axis)) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", dim,
                       " of its operand is split already, or its operand is "
                       "spread over ",
                       op.mesh.axes()[axis].name));
    }
  }
  if (results[0].dims[d] % op.mesh.size(axes) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("dimension ", dim, " (", results[0].dims[d],
                                                   ") does not divide over ", op.mesh.Names(axes)));
  }
  sharding.Set(d, results[0].dims.size(), axes);
  return absl::OkStatus();
}

absl::Status InferNothing(const OpTypes&, TypeList&) { return absl::OkStatus(); }
absl::Status KeepSharding(const OpTypes&, TypeList&) { return absl::OkStatus(); }

absl::Status InferAccumulate(const OpTypes& op, TypeList& results) {
  if (!(*op.operands[0] == *op.operands[1])) {
    return absl::InvalidArgumentError(
        absl::StrCat("the sum is ", ToString(*op.operands[0], op.mesh), " and the summand ",
                     ToString(*op.operands[1], op.mesh), "; wanted one type"));
  }
  results.push_back(SameAs(*op.operands[0]));
  return absl::OkStatus();
}

double AccumulateFlops(const OpTypes&, const TypeList& results) {
  return static_cast<double>(ElementCount(results[0].dims));
}

absl::Status InferCollect(const OpTypes& op, TypeList& results) {
  const TensorType &all = *op.operands[0], &part = *op.operands[1];
  const bool fits = !all.dims.empty() && all.dims.size() == part.dims.size() &&
                    all.dtype == part.dtype && part.dims[0] > 0 &&
                    all.dims[0] % part.dims[0] == 0 &&
                    std::equal(all.dims.begin() + 1, all.dims.end(), part.dims.begin() + 1);
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("cannot collect ", ToString(part, op.mesh),
                                                   " into ", ToString(all, op.mesh),
                                                   "; wanted whole parts along dimension 0"));
  }
  if (all.sharding != part.sharding) {
    return absl::InvalidArgumentError(absl::StrCat("cannot collect ", ToString(part, op.mesh),
                                                   " into ", ToString(all, op.mesh),
                                                   "; wanted both spread alike"));
  }
  results.push_back(SameAs(all));
  return absl::OkStatus();
}

}  // namespace

extern const OpInfo kAllReduceOp = {
    .name = "AllReduce",
    .summary = "the sum over the ranks along `axes`, on each of them",
    .op_class = OpClass::kCollective,
    .operands = 1,
    .infer = InferSame,
    .infer_sharding = ShardAllReduce,
    .in_place_from = 0,
};

extern const OpInfo kAllGatherOp = {
    .name = "AllGather",
    .summary = "dimension `dim`, split over `axes`, put together on each rank",
    .op_class = OpClass::kCollective,
    .operands = 1,
    .infer = InferSame,
    .infer_sharding = ShardAllGather,
};

// Each rank has the whole already, so nothing moves.
extern const OpInfo kAllSliceOp = {
    .name = "AllSlice",
    .summary = "of dimension `dim`, whole on each rank, the part that falls to it along `axes`",
    .op_class = OpClass::kView,
    .operands = 1,
    .infer = InferSame,
    .infer_sharding = ShardAllSlice,
    .in_place_from = 0,
    .linear = true,
};

extern const OpInfo kSendOp = {
    .name = "Send",
    .summary = "x to the Receive of the same `tag` in stage `to`",
    .op_class = OpClass::kSend,
    .operands = 1,
    .results = 0,
    .infer = InferNothing,
    .infer_sharding = KeepSharding,
};

// Its type is the one that its text or its builder gives.
extern const OpInfo kReceiveOp = {
    .name = "Receive",
    .summary = "what the Send of the same `tag` in stage `from` sends",
    .op_class = OpClass::kReceive,
    .operands = 0,
};

extern const OpInfo kAccumulateOp = {
    .name = "Accumulate",
    .summary = "the sum so far plus x; in the first microbatch x itself",
    .operands = 2,
    .infer = InferAccumulate,
    .flops = AccumulateFlops,
    .infer_sharding = KeepSharding,
    .evaluate = [](Evaluation& e) { return EvaluateBinary(e, std::plus<>()); },
    .in_place_from = 0,
    .linear = true,
};

extern const OpInfo kCollectOp = {
    .name = "Collect",
    .summary = "x written into its microbatch's rows of the batch so far",
    .op_class = OpClass::kView,
    .operands = 2,
    .infer = InferCollect,
    .infer_sharding = KeepSharding,
    .in_place_from = 0,
    .linear = true,
};

}  // namespace orrery::ir
