#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "support/status.h"

// ONNX ops whose result has a size that depends on data. They become constants where the data is
// known; a training step of unknown size cannot be simulated.

namespace orrery::importer {
namespace data_dependent_cc {
namespace {

absl::Status DependsOnData(const NodeContext& c, int i) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the size of its result depends on data, on '", c.node().input(i),
      "'; wanted sizes that are known beforehand; try to export the model with fixed sizes, or "
      "without this part"));
}

absl::Status LowerNonZero(NodeContext& c) {
  const ir::Tensor* x = c.KnownInput(0);
  if (x == nullptr) return DependsOnData(c, 0);
  const size_t rank = x->dims().size();
  std::vector<std::vector<int64_t>> positions(std::max<size_t>(rank, 1));
  for (ir::Odometer at(x->dims(), {}); !at.done(); at.Next()) {
    if (x->Number(at.index()) == 0) continue;
    if (rank == 0) positions[0].push_back(0);
    for (size_t d = 0; d < rank; ++d) positions[d].push_back(at.at()[d]);
  }
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& row : positions) all.insert(all.end(), row.begin(), row.end());
  const ir::Dims dims = {static_cast<int64_t>(positions.size()),
                         static_cast<int64_t>(positions[0].size())};
  return c.Return(c.Constant(ir::Tensor::OfInts(ir::DType::kI64, dims, std::move(all))));
}

// With a condition that is known it is a Gather, whatever x is.
absl::Status LowerCompress(NodeContext& c) {
  const ir::Tensor* condition = c.KnownInput(1);
  if (condition == nullptr) return DependsOnData(c, 1);
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < condition->size(); ++i) {
    if (condition->Number(i) != 0) kept.push_back(i);
  }
  ir::ValueId x = c.input(0);
  int64_t axis = 0;
  if (c.Attribute("axis") != nullptr) {
    ORRERY_ASSIGN_OR_RETURN(const size_t position,
                            ir::NormalizeAxis(c.Int("axis", 0), c.type(x).dims.size()));
    axis = static_cast<int64_t>(position);
  } else {
    const std::vector<int64_t> flat = {ir::ElementCount(c.type(x).dims)};
    ORRERY_ASSIGN_OR_RETURN(x, c.Op(ir::OpKind::kReshape, {x}, {{"shape", flat}}));
  }
  const int64_t size = c.type(x).dims[static_cast<size_t>(axis)];
  if (!kept.empty() && kept.back() >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the condition keeps element ", kept.back(), " of a dimension of ", size));
  }
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId ids, c.Constant(ir::Tensor::OfShape(kept)));
  return c.Return(c.Op(ir::OpKind::kGather, {x, ids}, {{"axis", axis}}));
}

// Slices of x along a dimension, as lists of numbers.
std::vector<std::vector<double>> SlicesOf(const ir::Tensor& x, const ir::AroundDim& around) {
  std::vector<std::vector<double>> slices(static_cast<size_t>(around.size));
  for (int64_t i = 0; i < x.size(); ++i) {
    slices[static_cast<size_t>(i / around.inner % around.size)].push_back(x.Number(i));
  }
  return slices;
}

struct Distinct {
  std::vector<int64_t> first, inverse, counts;
};

// The distinct slices, in their order or in that of their first positions.
Distinct Distinguish(const std::vector<std::vector<double>>& slices, bool sorted) {
  std::map<std::vector<double>, int64_t> first;
  for (size_t i = 0; i < slices.size(); ++i) first.emplace(slices[i], static_cast<int64_t>(i));
  Distinct distinct;
  for (const auto& [slice, position] : first) distinct.first.push_back(position);
  if (!sorted) std::sort(distinct.first.begin(), distinct.first.end());
  std::map<int64_t, int64_t> rank;
  for (const int64_t position : distinct.first) {
    rank.emplace(position, static_cast<int64_t>(rank.size()));
  }
  distinct.counts.resize(distinct.first.size(), 0);
  for (const std::vector<double>& slice : slices) {
    distinct.inverse.push_back(rank.at(first.at(slice)));
    ++distinct.counts[static_cast<size_t>(distinct.inverse.back())];
  }
  return distinct;
}

absl::Status LowerUnique(NodeContext& c) {
  const ir::Tensor* known = c.KnownInput(0);
  if (known == nullptr) return DependsOnData(c, 0);
  ir::Tensor x = known->Reshaped({known->size()});
  size_t axis = 0;
  if (c.Attribute("axis") != nullptr) {
    ORRERY_ASSIGN_OR_RETURN(axis, ir::NormalizeAxis(c.Int("axis", 0), known->dims().size()));
    x = *known;
  }
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x.Number(i) != x.Number(i)) return absl::InvalidArgumentError("holds not-a-number");
  }
  const ir::AroundDim around = ir::SplitAround(x.dims(), axis);
  const Distinct distinct = Distinguish(SlicesOf(x, around), c.Int("sorted", 1) != 0);
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId values, c.Constant(x));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId ids, c.Constant(ir::Tensor::OfShape(distinct.first)));
  ORRERY_ASSIGN_OR_RETURN(const ir::ValueId y, c.Op(ir::OpKind::kGather, {values, ids},
                                                    {{"axis", static_cast<int64_t>(axis)}}));
  c.SetOutput(0, y);
  const std::vector<int64_t>* const lists[] = {&distinct.first, &distinct.inverse,
                                               &distinct.counts};
  for (int i = 0; i < 3; ++i) {
    ORRERY_ASSIGN_OR_RETURN(const ir::ValueId list, c.Constant(ir::Tensor::OfShape(*lists[i])));
    c.SetOutput(i + 1, list);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace data_dependent_cc

extern const OnnxOp kNonZeroOnnxOp = {.type = "NonZero", .lower = data_dependent_cc::LowerNonZero};

extern const OnnxOp kCompressOnnxOp = {
    .type = "Compress", .inputs = 2, .lower = data_dependent_cc::LowerCompress};

extern const OnnxOp kUniqueOnnxOp = {.type = "Unique", .lower = data_dependent_cc::LowerUnique};

}  // namespace orrery::importer
