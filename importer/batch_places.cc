#include "importer/batch_places.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/printable.h"
#include "ir/batch.h"
#include "ir/tensor.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::importer {
namespace {

using ir::AttributeSet;
using ir::Dims;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

constexpr int kMaxPasses = 64;
constexpr int kMaxDepth = 64;

int64_t Product(const Dims& dims, size_t from, size_t to) {
  int64_t product = 1;
  for (size_t d = from; d < to; ++d) product *= dims[d];
  return product;
}

Dims WithTwice(Dims dims, int dim) {
  if (dim >= 0) dims[static_cast<size_t>(dim)] *= 2;
  return dims;
}

}  // namespace

BatchPlaces::BatchPlaces(const ir::Function& function)
    : function_(function), batch_(ir::BatchOf(function)), places_(function.value_limit()) {}

absl::Status BatchPlaces::Find() {
  for (const ir::Input& input : function_.inputs()) {
    if (ir::HasBatch(function_, input)) places_[input.value] = {.dim = 0};
  }
  for (const OpId op : function_.order()) {  // what an earlier search has found
    if (function_.kind(op) != OpKind::kExpand) continue;
    places_[function_.result(op)].dim =
        static_cast<int>(function_.attributes(op).Int("batch_dim", -1));
  }
  // One pass finds all that follows from the inputs; what ops asked of others takes another one.
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    asked_ = false;
    for (const OpId op : function_.order()) ORRERY_RETURN_IF_ERROR(Visit(op));
    if (!asked_) return absl::OkStatus();
  }
  return absl::InvalidArgumentError("the batch is nowhere to be found for certain");
}

const AttributeSet& BatchPlaces::AttributesOf(OpId op) const {
  const auto found = attributes_.find(op.index());
  return found == attributes_.end() ? function_.attributes(op) : found->second;
}

std::optional<size_t> BatchPlaces::ExpandedDim(OpId op, size_t k) const {
  const auto found = expansions_.find({op.index(), k});
  if (found == expansions_.end()) return std::nullopt;
  return found->second;
}

void BatchPlaces::SetAttributes(OpId op, AttributeSet attributes) {
  attributes_[op.index()] = std::move(attributes);
}

absl::Status BatchPlaces::Fails(OpId op, absl::string_view why) const {
  const absl::string_view name = function_.value_name(function_.result(op));
  return absl::InvalidArgumentError(
      absl::StrCat(function_.name(), ": ", function_.info(op).name,
                   name.empty() ? std::string() : absl::StrCat(" ", Show(name)),
                   " cannot follow the batch: ", why));
}

BatchPlace BatchPlaces::PlaceOfOperand(OpId op, size_t k) const {
  if (const auto dim = ExpandedDim(op, k); dim.has_value()) return {.dim = static_cast<int>(*dim)};
  return places_[function_.operands(op)[k]];
}

bool BatchPlaces::AnyBatched(OpId op) const {
  for (size_t k = 0; k < function_.operands(op).size(); ++k) {
    if (PlaceOfOperand(op, k).has_batch()) return true;
  }
  return false;
}

absl::Status BatchPlaces::Visit(OpId op) {
  if (!AnyBatched(op)) return absl::OkStatus();  // an Expand that makes the batch has its place
  if (function_.kind(op) == OpKind::kReshape) return VisitReshape(op);
  if (function_.kind(op) == OpKind::kSlice) ORRERY_RETURN_IF_ERROR(VisitSlice(op));
  if (function_.kind(op) == OpKind::kExpand) VisitExpand(op);
  if (function_.kind(op) == OpKind::kGather &&
      PlaceOfOperand(op, 0).dim == function_.attributes(op).Int("axis", 0)) {
    return Fails(op, "it takes samples out of the batch");
  }
  if (function_.kind(op) == OpKind::kConcat && VisitConcat(op)) return absl::OkStatus();
  const absl::StatusOr<ir::TypeList> doubled = Doubled(op);
  std::string trouble(doubled.status().message());
  std::vector<Place> places;
  for (int32_t j = 0; trouble.empty() && j < function_.result_count(op); ++j) {
    const auto place = ResultPlace(op, j, (*doubled)[static_cast<size_t>(j)].dims);
    trouble = std::string(place.status().message());
    if (place.ok()) places.push_back(*place);
  }
  if (!trouble.empty()) return Request(op) ? absl::OkStatus() : Fails(op, trouble);
  for (int32_t j = 0; j < function_.result_count(op); ++j) {
    places_[function_.result(op, j)] = places[static_cast<size_t>(j)];
  }
  return absl::OkStatus();
}

absl::StatusOr<ir::TypeList> BatchPlaces::Doubled(OpId op) const {
  const auto operands = function_.operands(op);
  std::vector<ir::TensorType> types;
  for (size_t k = 0; k < operands.size(); ++k) {
    types.push_back(function_.type(operands[k]));
    types.back().dims = WithTwice(types.back().dims, PlaceOfOperand(op, k).dim);
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

absl::StatusOr<BatchPlace> BatchPlaces::ResultPlace(OpId op, int32_t j, const Dims& doubled) const {
  const Dims& dims = function_.type(function_.result(op, j)).dims;
  Place place;
  for (size_t d = 0; d < dims.size() && d < doubled.size(); ++d) {
    if (dims[d] == doubled[d]) continue;
    if (place.has_batch()) {
      return absl::InvalidArgumentError("its result has the batch in two dimensions");
    }
    if (doubled[d] != 2 * dims[d]) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", d, " of its result, of ",
                                                     dims[d], ", does not grow with the batch"));
    }
    place.dim = static_cast<int>(d);
  }
  if (!place.has_batch()) return place;
  const int64_t size = dims[static_cast<size_t>(place.dim)];
  const auto operands = function_.operands(op);
  for (size_t k = 0; k < operands.size(); ++k) {
    const Place from = PlaceOfOperand(op, k);
    if (!from.has_batch()) continue;
    if (function_.type(operands[k]).dims[static_cast<size_t>(from.dim)] != size) continue;
    place.outer = from.outer;
    place.inner = from.inner;
    return place;
  }
  if (size == batch_) return place;
  return absl::InvalidArgumentError("its result has the samples in another order");
}

// The dimension of the result in which what comes before the batch, and what comes after it, have
// their ends.
absl::Status BatchPlaces::VisitReshape(OpId op) {
  const Place from = PlaceOfOperand(op, 0);
  const Dims& dims = function_.type(function_.operands(op)[0]).dims;
  const Dims& to = function_.type(function_.result(op)).dims;
  const auto at = static_cast<size_t>(from.dim);
  const int64_t before = Product(dims, 0, at) * from.outer;
  const int64_t after = Product(dims, at + 1, dims.size()) * from.inner;
  std::optional<Place> found;
  for (size_t d = 0; d < to.size(); ++d) {
    const int64_t left = Product(to, 0, d), right = Product(to, d + 1, to.size());
    if (left == 0 || right == 0 || before % left != 0 || after % right != 0) continue;
    const Place place = {
        .dim = static_cast<int>(d), .outer = before / left, .inner = after / right};
    const bool exact = place.outer == 1 && place.inner == 1;
    if (exact || !found.has_value()) found = place;
    if (exact) break;
  }
  if (!found.has_value()) {
    return Fails(op, absl::StrCat("no dimension of [", absl::StrJoin(to, ","), "] has the batch ",
                                  batch_, " of [", absl::StrJoin(dims, ","), "]"));
  }
  std::vector<int64_t> shape(to.begin(), to.end());
  shape[static_cast<size_t>(found->dim)] = -1;
  AttributeSet attributes = function_.attributes(op);
  attributes.Set("shape", shape);
  SetAttributes(op, std::move(attributes));
  places_[function_.result(op)] = *found;
  return absl::OkStatus();
}

absl::Status BatchPlaces::VisitSlice(OpId op) {
  const Place place = PlaceOfOperand(op, 0);
  AttributeSet attributes = AttributesOf(op);
  std::vector<int64_t> lists[4];
  constexpr absl::string_view kLists[] = {"axes", "starts", "ends", "steps"};
  for (size_t i = 0; i < 4; ++i) lists[i] = attributes.Ints(kLists[i]);
  const auto axis = std::find(lists[0].begin(), lists[0].end(), place.dim);
  if (axis == lists[0].end()) return absl::OkStatus();
  const auto row = axis - lists[0].begin();
  const int64_t size =
      function_.type(function_.operands(op)[0]).dims[static_cast<size_t>(place.dim)];
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
void BatchPlaces::VisitExpand(OpId op) {
  AttributeSet attributes = AttributesOf(op);
  std::vector<int64_t> shape = attributes.Ints("shape");
  const size_t rank = function_.type(function_.operands(op)[0]).dims.size();
  const size_t at = shape.size() - rank + static_cast<size_t>(PlaceOfOperand(op, 0).dim);
  const auto& from = function_.type(function_.operands(op)[0]).dims;
  if (at >= shape.size() || shape[at] != from[static_cast<size_t>(PlaceOfOperand(op, 0).dim)]) {
    return;
  }
  shape[at] = -1;
  attributes.Set("shape", shape);
  SetAttributes(op, std::move(attributes));
}

// Along the batch: the parts follow each other.
bool BatchPlaces::VisitConcat(OpId op) {
  const int64_t axis = function_.attributes(op).Int("axis", 0);
  Place place = {.dim = static_cast<int>(axis), .outer = 0};
  for (size_t k = 0; k < function_.operands(op).size(); ++k) {
    const Place part = PlaceOfOperand(op, k);
    if (part.dim != axis) return false;
    if (k > 0 && part.inner != place.inner) return false;
    place.inner = part.inner;
    place.outer += part.outer;
  }
  places_[function_.result(op)] = place;
  return true;
}

ir::ShardingRule BatchPlaces::RuleOf(OpId op) const {
  const ir::OpInfo& info = function_.info(op);
  if (info.sharding == nullptr) return {};
  std::vector<const ir::TensorType*> types;
  for (const ValueId operand : function_.operands(op)) types.push_back(&function_.type(operand));
  ir::TypeList results;
  for (int32_t j = 0; j < function_.result_count(op); ++j) {
    results.push_back(function_.type(function_.result(op, j)));
  }
  return info.sharding(
      {.attributes = function_.attributes(op), .operands = types, .mesh = function_.mesh()},
      results);
}

bool BatchPlaces::Request(OpId op) {
  const ir::ShardingRule rule = RuleOf(op);
  bool any = false;
  for (size_t k = 0; k < rule.operands.size(); ++k) {
    const Place place = PlaceOfOperand(op, k);
    if (!place.has_batch()) continue;
    const int8_t factor = rule.operands[k][static_cast<size_t>(place.dim)];
    for (size_t m = 0; factor != ir::kNoFactor && m < rule.operands.size(); ++m) {
      if (PlaceOfOperand(op, m).has_batch()) continue;
      for (size_t d = 0; d < rule.operands[m].size(); ++d) {
        if (rule.operands[m][d] == factor) any |= RequestOperand(op, m, d, 0);
      }
    }
  }
  asked_ |= any;
  return any;
}

bool BatchPlaces::RequestOperand(OpId op, size_t k, size_t dim, int depth) {
  const ValueId value = function_.operands(op)[k];
  if (depth > kMaxDepth || places_[value].has_batch() || ExpandedDim(op, k).has_value()) {
    return false;
  }
  if (function_.type(value).dims[dim] != batch_) return false;
  if (RequestOfProducer(value, dim, depth)) return true;
  if (!CanExpand(value, dim)) return false;
  expansions_[{op.index(), k}] = dim;
  return true;
}

// An Expand may make the batch; what is made of values that have the size of the batch follows
// when these do.
bool BatchPlaces::RequestOfProducer(ValueId value, size_t dim, int depth) {
  const OpId op = function_.producer(value);
  if (!op.valid()) return false;
  if (function_.kind(op) == OpKind::kExpand) {
    const Dims& from = function_.type(function_.operands(op)[0]).dims;
    const size_t made = function_.type(value).dims.size() - from.size();
    if (dim < made || from[dim - made] == 1) {
      AttributeSet attributes = AttributesOf(op);
      attributes.Set("batch_dim", static_cast<int64_t>(dim));
      SetAttributes(op, std::move(attributes));
      places_[value] = {.dim = static_cast<int>(dim)};
      return true;
    }
  }
  if (batch_ == 1) return false;  // where it is used it can be expanded
  const ir::ShardingRule rule = RuleOf(op);
  const auto j = static_cast<size_t>(value.index() - function_.result(op).index());
  if (j >= rule.results.size() || rule.results[j][dim] == ir::kNoFactor) return false;
  bool any = false;
  for (size_t k = 0; k < rule.operands.size(); ++k) {
    for (size_t d = 0; d < rule.operands[k].size(); ++d) {
      if (rule.operands[k][d] == rule.results[j][dim]) any |= RequestOperand(op, k, d, depth + 1);
    }
  }
  return any;
}

bool BatchPlaces::CanExpand(ValueId value, size_t dim) const {
  const ir::TensorType& type = function_.type(value);
  if (type.dims[dim] == 1) return true;
  const OpId op = function_.producer(value);
  return op.valid() && function_.kind(op) == OpKind::kConstant &&
         OneRow(function_.attributes(op), type, dim).has_value();
}

std::optional<AttributeSet> OneRow(const AttributeSet& constant, const ir::TensorType& type,
                                   size_t dim) {
  if (constant.Find("fill") != nullptr) return constant;
  const std::optional<ir::Tensor> tensor = ir::ConstantTensor(constant, type);
  if (!tensor.has_value() || tensor->size() == 0) return std::nullopt;
  const ir::AroundDim around = ir::SplitAround(type.dims, dim);
  Dims dims = type.dims;
  dims[dim] = 1;
  ir::Tensor row(type.dtype, dims);
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t i = 0; i < around.inner; ++i) {
      const int64_t first = o * around.size * around.inner + i;
      row.CopyElement(o * around.inner + i, *tensor, first);
      for (int64_t s = 1; s < around.size; ++s) {
        if (tensor->Number(first + s * around.inner) != tensor->Number(first)) return std::nullopt;
      }
    }
  }
  return ir::ConstantAttributes(row);
}

}  // namespace orrery::importer
