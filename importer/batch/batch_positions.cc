#include "importer/batch/batch_positions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/batch.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/tensor.h"
#include "support/check.h"
#include "support/printable.h"
#include "support/status.h"

namespace orrery::importer {
namespace batch_positions_cc {
namespace {

using ir::Dims;
using ir::OpId;
using ir::ValueId;

// Ops are visited again when one asked for a change before them. A graph that has this many of
// those for each op is none that anybody trains.
constexpr size_t kMostVisits = 256;

constexpr absl::string_view kOtherRows = "it reads a constant that differs from sample to sample";

int64_t Product(const Dims& dims, size_t from, size_t to) {
  int64_t product = 1;
  for (size_t d = from; d < to; ++d) product *= dims[d];
  return product;
}

Dims WithTwice(Dims dims, const BatchPosition& position) {
  for (const int dim : {position.dim, position.second}) {
    if (dim >= 0) dims[static_cast<size_t>(dim)] *= 2;
  }
  return dims;
}

}  // namespace
}  // namespace batch_positions_cc

BatchPositions::BatchPositions(const ir::Function& function, BatchSearch search)
    : function_(function),
      batch_(ir::BatchOf(function)),
      search_(std::move(search)),
      positions_(function.value_limit()),
      steps_(function.op_limit()) {}

absl::Status BatchPositions::Find() {
  FindSources();
  if (search_.size == BatchSize::kRare) ORRERY_RETURN_IF_ERROR(FindMade());
  for (bool asked = true; asked;) {
    ORRERY_RETURN_IF_ERROR(VisitAll());
    failed_step_ = function_.order().size();
    ORRERY_ASSIGN_OR_RETURN(asked, RequestOutputs());
  }
  FindWhetherViewsMove();
  return absl::OkStatus();
}

absl::Status BatchPositions::VisitAll() {
  const std::vector<ir::OpId>& order = function_.order();
  for (size_t step = std::exchange(next_, order.size()); step < order.size(); step = next_) {
    failed_step_ = step;
    next_ = step + 1;  // Visit may set it back
    ORRERY_RETURN_IF_ERROR(Visit(order[step]));
    if (++visits_ < batch_positions_cc::kMostVisits * order.size()) continue;
    return absl::InvalidArgumentError("the batch is nowhere to be found for certain");
  }
  return absl::OkStatus();
}

// Data, and what an earlier search has found.
void BatchPositions::FindSources() {
  for (const ir::Input& input : function_.inputs()) {
    if (ir::HasBatch(function_, input)) positions_[input.value] = {.dim = 0};
  }
  for (size_t step = 0; step < function_.order().size(); ++step) {
    const ir::OpId op = function_.order()[step];
    steps_[op] = step;
    const int64_t dim = function_.attributes(op).Int("batch_dim", -1);
    const ir::Dims& dims = function_.type(function_.result(op)).dims;
    if (function_.kind(op) != ir::OpKind::kExpand || dim < 0 ||
        dim >= static_cast<int64_t>(dims.size())) {
      continue;
    }
    positions_[function_.result(op)] = {.dim = static_cast<int>(dim),
                                        .inner = dims[static_cast<size_t>(dim)] / batch_,
                                        .uniform = true};
  }
}

// With a rare batch nobody need ask for what grows with it.
absl::Status BatchPositions::FindMade() {
  for (const ir::OpId op : function_.order()) {
    if (function_.kind(op) == ir::OpKind::kExpand) ORRERY_RETURN_IF_ERROR(FindMadeByExpand(op));
    for (size_t k = 0; k < function_.operands(op).size(); ++k) {
      ORRERY_RETURN_IF_ERROR(FindMadeByConstant(op, k));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<size_t>> BatchPositions::GrowingDim(ir::OpId op,
                                                                 const ir::Dims& dims) const {
  std::optional<size_t> found;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0 || dims[d] % batch_ != 0) continue;
    if (found.has_value()) return Fails(op, "a value has the batch in two dimensions");
    found = d;
  }
  return found;
}

absl::Status BatchPositions::FindMadeByExpand(ir::OpId op) {
  const ir::Dims& from = function_.type(function_.operands(op)[0]).dims;
  const ir::Dims& to = function_.type(function_.result(op)).dims;
  ORRERY_ASSIGN_OR_RETURN(const std::optional<size_t> dim, GrowingDim(op, to));
  if (!dim.has_value() || positions_[function_.result(op)].has_batch()) return absl::OkStatus();
  const size_t made = to.size() - from.size();
  if (*dim >= made && from[*dim - made] == to[*dim]) return absl::OkStatus();
  RequestOfExpand(op, {.dim = static_cast<int>(*dim), .inner = to[*dim] / batch_});
  return absl::OkStatus();
}

absl::Status BatchPositions::FindMadeByConstant(ir::OpId op, size_t k) {
  const ir::ValueId value = function_.operands(op)[k];
  const ir::OpId producer = function_.producer(value);
  if (!producer.valid() || function_.kind(producer) != ir::OpKind::kConstant)
    return absl::OkStatus();
  const ir::TensorType& type = function_.type(value);
  ORRERY_ASSIGN_OR_RETURN(const std::optional<size_t> dim, GrowingDim(op, type.dims));
  if (!dim.has_value()) return absl::OkStatus();
  if (!OneRow(function_.attributes(producer), type, *dim).has_value()) {
    return Fails(op, batch_positions_cc::kOtherRows);
  }
  expansions_[{op.index(), k}] = {
      .dim = static_cast<int>(*dim), .inner = type.dims[*dim] / batch_, .uniform = true};
  return absl::OkStatus();
}

const ir::AttributeSet& BatchPositions::AttributesOf(ir::OpId op) const {
  const auto found = attributes_.find(op.index());
  return found == attributes_.end() ? function_.attributes(op) : found->second;
}

std::optional<size_t> BatchPositions::ExpandedDim(ir::OpId op, size_t k) const {
  const auto found = expansions_.find({op.index(), k});
  if (found == expansions_.end()) return std::nullopt;
  return static_cast<size_t>(found->second.dim);
}

bool BatchPositions::CountsSamples(ir::OpId op, size_t k) const {
  const auto found = expansions_.find({op.index(), k});
  return found != expansions_.end() && found->second.counts;
}

void BatchPositions::SetAttributes(ir::OpId op, ir::AttributeSet attributes) {
  attributes_[op.index()] = std::move(attributes);
}

absl::Status BatchPositions::Fails(ir::OpId op, absl::string_view why) const {
  const absl::string_view name = function_.value_name(function_.result(op));
  return absl::InvalidArgumentError(
      absl::StrCat(function_.name(), ": ", function_.info(op).name,
                   name.empty() ? std::string() : absl::StrCat(" ", Show(name)),
                   " cannot follow the batch: ", why));
}

BatchPosition BatchPositions::PositionOfOperand(ir::OpId op, size_t k) const {
  const auto found = expansions_.find({op.index(), k});
  return found != expansions_.end() ? found->second : positions_[function_.operands(op)[k]];
}

bool BatchPositions::AnyBatched(ir::OpId op) const {
  for (size_t k = 0; k < function_.operands(op).size(); ++k) {
    if (PositionOfOperand(op, k).has_batch()) return true;
  }
  return false;
}

// Ops that mix what they read along a dimension.
absl::Status BatchPositions::CheckSamplesStay(ir::OpId op) const {
  for (size_t k = 0; k < function_.operands(op).size(); ++k) {
    if (PositionOfOperand(op, k).second < 0) continue;
    switch (function_.kind(op)) {
      case ir::OpKind::kReshape:
      case ir::OpKind::kSlice:
      case ir::OpKind::kExpand:
      case ir::OpKind::kConcat:
      case ir::OpKind::kGather:
        return Fails(op, "it reads a value that has the batch in two dimensions");
      default:
        break;
    }
  }
  const int dim = PositionOfOperand(op, 0).dim;
  if (function_.kind(op) == ir::OpKind::kGather && dim == function_.attributes(op).Int("axis", 0)) {
    return Fails(op, "it takes samples out of the batch");
  }
  if (dim < 0) return absl::OkStatus();
  const absl::string_view why =
      ir::MixesAlong(function_.kind(op), function_.attributes(op), static_cast<size_t>(dim));
  return why.empty() ? absl::OkStatus() : Fails(op, why);
}

absl::Status BatchPositions::Visit(ir::OpId op) {
  if (!AnyBatched(op)) return absl::OkStatus();  // an Expand that makes the batch has its position
  ORRERY_RETURN_IF_ERROR(CheckSamplesStay(op));
  if (function_.kind(op) == ir::OpKind::kReshape) return VisitReshape(op);
  if (VisitPartsOfBatch(op)) return absl::OkStatus();
  if (function_.kind(op) == ir::OpKind::kSlice) ORRERY_RETURN_IF_ERROR(VisitSlice(op));
  if (function_.kind(op) == ir::OpKind::kExpand) ORRERY_RETURN_IF_ERROR(VisitExpand(op));
  if (function_.kind(op) == ir::OpKind::kConcat && VisitConcat(op)) return absl::OkStatus();
  const absl::StatusOr<ir::TypeList> doubled = Doubled(op);
  std::string trouble(doubled.status().message());
  std::vector<Position> positions;
  for (int32_t j = 0; trouble.empty() && j < function_.result_count(op); ++j) {
    const auto position = ResultPosition(op, j, (*doubled)[static_cast<size_t>(j)].dims);
    trouble = std::string(position.status().message());
    if (position.ok()) positions.push_back(*position);
  }
  if (!trouble.empty() && Request(op)) return absl::OkStatus();
  if (!trouble.empty() && ReadsOtherRows(op)) return Fails(op, batch_positions_cc::kOtherRows);
  if (!trouble.empty()) return Fails(op, trouble);
  for (int32_t j = 0; j < function_.result_count(op); ++j) {
    positions_[function_.result(op, j)] = positions[static_cast<size_t>(j)];
  }
  return absl::OkStatus();
}

absl::StatusOr<ir::TypeList> BatchPositions::Doubled(ir::OpId op) const {
  const auto operands = function_.operands(op);
  std::vector<ir::TensorType> types;
  for (size_t k = 0; k < operands.size(); ++k) {
    types.push_back(function_.type(operands[k]));
    types.back().dims = batch_positions_cc::WithTwice(types.back().dims, PositionOfOperand(op, k));
  }
  std::vector<const ir::TensorType*> pointers;
  for (const ir::TensorType& type : types) pointers.push_back(&type);
  ir::TypeList results;
  ORRERY_RETURN_IF_ERROR(ir::InferTypes(
      function_.kind(op),
      {.attributes = AttributesOf(op), .operands = pointers, .mesh = function_.mesh()}, results));
  if (static_cast<int32_t>(results.size()) != function_.result_count(op)) {
    return absl::InvalidArgumentError("it would make another number of results");
  }
  return results;
}

absl::StatusOr<BatchPosition> BatchPositions::ResultPosition(ir::OpId op, int32_t j,
                                                             const ir::Dims& doubled) const {
  const ir::Dims& dims = function_.type(function_.result(op, j)).dims;
  Position position;
  for (size_t d = 0; d < dims.size() && d < doubled.size(); ++d) {
    if (dims[d] == doubled[d]) continue;
    if (position.has_batch()) {
      const bool alike = dims[d] == dims[static_cast<size_t>(position.dim)];
      if (position.second >= 0 || !alike || doubled[d] != 2 * dims[d]) {
        return absl::InvalidArgumentError("its result has the batch in two dimensions");
      }
      position.second = static_cast<int>(d);
      continue;
    }
    if (doubled[d] != 2 * dims[d]) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", d, " of its result, of ",
                                                     dims[d], ", does not grow with the batch"));
    }
    position.dim = static_cast<int>(d);
  }
  if (position.second >= 0) {
    position.outer = dims[static_cast<size_t>(position.dim)] / batch_;
    return position;
  }
  if (!position.has_batch()) return position;
  const int dim = position.dim;
  const int64_t size = dims[static_cast<size_t>(dim)];
  const auto operands = function_.operands(op);
  bool found = false;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Position from = PositionOfOperand(op, k);
    if (!from.has_batch() || (found && !position.uniform)) continue;
    if (function_.type(operands[k]).dims[static_cast<size_t>(from.dim)] != size) continue;
    position = from;
    position.dim = dim;
    position.second = -1;  // that was looked for above
    found = true;
  }
  if (found || size == batch_) return position;
  return absl::InvalidArgumentError("its result has the samples in another order");
}

// The dimension of the result in which what comes before the batch, and what comes after it, have
// their ends.
absl::Status BatchPositions::VisitReshape(ir::OpId op) {
  const Position from = PositionOfOperand(op, 0);
  const ir::Dims& dims = function_.type(function_.operands(op)[0]).dims;
  const ir::Dims& to = function_.type(function_.result(op)).dims;
  const auto at = static_cast<size_t>(from.dim);
  const int64_t before = batch_positions_cc::Product(dims, 0, at) * from.outer;
  const int64_t after = batch_positions_cc::Product(dims, at + 1, dims.size()) * from.inner;
  const bool by_rank = search_.in_reshape == BatchInReshape::kByRank && to.size() >= dims.size();
  const bool outside = search_.in_reshape == BatchInReshape::kOutside || by_rank;
  const auto end = dims.begin() + from.dim;  // dimensions before the batch that stay stay before it
  const bool kept = by_rank && std::equal(dims.begin(), end, to.begin());
  const bool same = kept && dims[at] == to[at];
  const std::vector<Position> found =
      BatchInShape(to, before, after,
                   {.outside = outside, .first = kept ? at : 0, .same = same ? from.dim : -1});
  possible_[op.index()] = found.size();
  const auto choice = search_.choices.find(op.index());
  const size_t chosen = choice == search_.choices.end() ? 0 : choice->second;
  if (chosen >= found.size()) {
    return Fails(op, absl::StrCat("no dimension of [", absl::StrJoin(to, ","), "] has the batch ",
                                  batch_, " of [", absl::StrJoin(dims, ","), "]"));
  }
  std::vector<int64_t> shape(to.begin(), to.end());
  shape[static_cast<size_t>(found[chosen].dim)] = -1;
  ir::AttributeSet attributes = function_.attributes(op);
  attributes.Set("shape", shape);
  SetAttributes(op, std::move(attributes));
  Position& position = positions_[function_.result(op)];
  position = found[chosen];
  position.views = position.outer % from.views == 0 ? from.views : 1;
  return absl::OkStatus();
}

absl::Status BatchPositions::VisitSlice(ir::OpId op) {
  const Position position = PositionOfOperand(op, 0);
  ir::AttributeSet attributes = AttributesOf(op);
  std::vector<int64_t> lists[4];
  constexpr absl::string_view kLists[] = {"axes", "starts", "ends", "steps"};
  for (size_t i = 0; i < 4; ++i) lists[i] = attributes.Ints(kLists[i]);
  const auto axis = std::find(lists[0].begin(), lists[0].end(), position.dim);
  if (axis == lists[0].end()) return absl::OkStatus();
  const auto row = axis - lists[0].begin();
  const int64_t size =
      function_.type(function_.operands(op)[0]).dims[static_cast<size_t>(position.dim)];
  if (lists[1][static_cast<size_t>(row)] != 0 || lists[2][static_cast<size_t>(row)] < size ||
      (lists[3].size() > static_cast<size_t>(row) && lists[3][static_cast<size_t>(row)] != 1)) {
    return Fails(op, "it takes part of the batch");
  }
  for (size_t i = 0; i < 4; ++i) {
    if (static_cast<size_t>(row) >= lists[i].size()) continue;
    lists[i].erase(lists[i].begin() + row);
    attributes.Set(kLists[i], lists[i]);
  }
  if (lists[0].empty()) dropped_.insert(op.index());
  SetAttributes(op, std::move(attributes));
  return absl::OkStatus();
}

// The dimension that has the batch stays that of the operand.
absl::Status BatchPositions::VisitExpand(ir::OpId op) {
  ir::AttributeSet attributes = AttributesOf(op);
  if (attributes.Find("batch_dim") != nullptr) {
    return Fails(op, "its result has the batch in two dimensions");
  }
  std::vector<int64_t> shape = attributes.Ints("shape");
  const size_t rank = function_.type(function_.operands(op)[0]).dims.size();
  const size_t at = shape.size() - rank + static_cast<size_t>(PositionOfOperand(op, 0).dim);
  const auto& from = function_.type(function_.operands(op)[0]).dims;
  if (at >= shape.size() || shape[at] != from[static_cast<size_t>(PositionOfOperand(op, 0).dim)]) {
    return absl::OkStatus();
  }
  shape[at] = -1;
  attributes.Set("shape", shape);
  SetAttributes(op, std::move(attributes));
  return absl::OkStatus();
}

}  // namespace orrery::importer
