#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/ops/kernels.h"

// Ops among pipeline stages, and ops that carry a value from one microbatch to the next.

namespace orrery::ir {

namespace distributed_cc {
namespace {

TensorType SameAs(const TensorType& x) {
  return {.dtype = x.dtype, .dims = x.dims, .sharding = x.sharding};
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
  const int64_t at = op.attributes.Int("dim", 0);
  bool fits = at >= 0 && static_cast<size_t>(at) < all.dims.size() &&
              all.dims.size() == part.dims.size() && all.dtype == part.dtype;
  for (size_t d = 0; fits && d < all.dims.size(); ++d) {
    if (static_cast<int64_t>(d) != at) {
      fits = all.dims[d] == part.dims[d];
    } else if (const int64_t rows = part.dims[d], begin = op.attributes.Int("begin", -1);
               begin >= 0) {
      fits = rows > 0 && rows <= all.dims[d] && begin <= all.dims[d] - rows;
    } else {
      fits = rows > 0 && all.dims[d] % rows == 0;
    }
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("cannot collect ", ToString(part, op.mesh),
                                                   " into ", ToString(all, op.mesh),
                                                   "; wanted whole parts along dimension ", at));
  }
  if (all.sharding != part.sharding) {
    return absl::InvalidArgumentError(absl::StrCat("cannot collect ", ToString(part, op.mesh),
                                                   " into ", ToString(all, op.mesh),
                                                   "; wanted both sharded alike"));
  }
  results.push_back(SameAs(all));
  return absl::OkStatus();
}

}  // namespace
}  // namespace distributed_cc

extern const OpInfo kSendOp = {
    .name = "Send",
    .summary = "x to the Receive of the same `tag` in stage `to`",
    .op_class = OpClass::kSend,
    .operands = 1,
    .results = 0,
    .infer = distributed_cc::InferNothing,
    .infer_sharding = distributed_cc::KeepSharding,
};

// Its type is the one that its text or its builder gives.
extern const OpInfo kReceiveOp = {
    .name = "Receive",
    .summary = "what the Send of the same `tag` in stage `from` sends",
    .op_class = OpClass::kReceive,
    .operands = 0,
};

// A checkpoint that runs a function again makes more than is asked for.
extern const OpInfo kDropOp = {
    .name = "Drop",
    .summary = "nothing: x is made, and of no use",
    .op_class = OpClass::kView,
    .operands = 1,
    .results = 0,
    .infer = distributed_cc::InferNothing,
    .infer_sharding = distributed_cc::KeepSharding,
    .evaluate = [](Evaluation&) { return absl::OkStatus(); },
};

extern const OpInfo kAccumulateOp = {
    .name = "Accumulate",
    .summary = "the sum so far plus x; in the first microbatch x itself",
    .operands = 2,
    .infer = distributed_cc::InferAccumulate,
    .flops = distributed_cc::AccumulateFlops,
    .infer_sharding = distributed_cc::KeepSharding,
    .evaluate = [](Evaluation& e) { return EvaluateBinary(e, std::plus<>()); },
    .in_place_from = 0,
    .linear = true,
};

extern const OpInfo kCollectOp = {
    .name = "Collect",
    .summary =
        "x written into its microbatch's rows of the batch so far, along dimension `dim`; from row "
        "`begin` on where microbatches are not alike",
    .op_class = OpClass::kView,
    .operands = 2,
    .infer = distributed_cc::InferCollect,
    .infer_sharding = distributed_cc::KeepSharding,
    .in_place_from = 0,
    .linear = true,
};

}  // namespace orrery::ir
