#include <algorithm>
#include <numeric>
#include <vector>

#include "importer/batch/batch_positions.h"
#include "ir/op_kind.h"
#include "ir/ops/movement.h"
#include "ir/sharding_rule.h"

// Views of samples that are encoded together follow each other in the batch: two images of each,
// all first ones and then all second ones. Parts of a batch of such views are views again.

namespace orrery::importer {
namespace batch_views_cc {
namespace {

// From where to where a Slice or Split takes its parts along `dim`, of `size`; empty where it takes
// none there, or others than in a row.
std::vector<int64_t> Cuts(const ir::Function& function, ir::OpId op, int64_t dim, int64_t size) {
  const ir::AttributeSet& attributes = function.attributes(op);
  std::vector<int64_t> cuts;
  if (function.kind(op) == ir::OpKind::kSplit) {
    if (attributes.Int("axis", 0) != dim) return {};
    for (int64_t at = 0; const int64_t part : attributes.Ints("sizes")) {
      if (cuts.empty()) cuts.push_back(at);
      cuts.push_back(at += part);
    }
    return cuts;
  }
  const std::vector<int64_t> axes = attributes.Ints("axes"), steps = attributes.Ints("steps");
  const auto axis = std::ranges::find(axes, dim);
  if (function.kind(op) != ir::OpKind::kSlice || axis == axes.end()) return {};
  const auto i = static_cast<size_t>(axis - axes.begin());
  if (i < steps.size() && steps[i] != 1) return {};
  const int64_t end = attributes.Ints("ends")[i];
  return {attributes.Ints("starts")[i], end > size ? size : end};
}

}  // namespace
}  // namespace batch_views_cc

std::optional<BatchPosition> BatchPositions::TakesViews(ir::OpId op) const {
  if (!of_views_.contains(op.index())) return std::nullopt;
  return PositionOfOperand(op, 0);
}

// Whether `op` takes whole views out of a batch of several.
bool BatchPositions::VisitPartsOfBatch(ir::OpId op) {
  const Position position = PositionOfOperand(op, 0);
  if (position.dim < 0 || position.outer < 2 || position.second >= 0) return false;
  const int64_t size =
      function_.type(function_.operands(op)[0]).dims[static_cast<size_t>(position.dim)];
  const int64_t view = size / position.outer;
  const std::vector<int64_t> cuts = batch_views_cc::Cuts(function_, op, position.dim, size);
  if (cuts.empty() || view < 1) return false;
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (cuts[i] < 0 || cuts[i] % view != 0 || (i > 0 && cuts[i] <= cuts[i - 1])) return false;
  }
  of_views_.insert(op.index());
  for (int32_t j = 0; j < function_.result_count(op); ++j) {
    Position& part = positions_[function_.result(op, j)];
    part = position;
    part.outer = (cuts[static_cast<size_t>(j) + 1] - cuts[static_cast<size_t>(j)]) / view;
    part.views = part.outer;
  }
  return true;
}

// Along the batch: the parts follow each other.
bool BatchPositions::VisitConcat(ir::OpId op) {
  const int64_t axis = function_.attributes(op).Int("axis", 0);
  Position position = {.dim = static_cast<int>(axis), .outer = 0};
  for (size_t k = 0; k < function_.operands(op).size(); ++k) {
    const Position part = PositionOfOperand(op, k);
    if (part.dim != axis) return false;
    if (k > 0 && part.inner != position.inner) return false;
    position.inner = part.inner;
    position.outer += part.outer;
  }
  of_views_.insert(op.index());
  position.views = position.outer;
  positions_[function_.result(op)] = position;
  return true;
}

// Whether `op` does the same whichever way views stand in the batch. What joins and parts them does
// where they are all that stands outside of it.
bool BatchPositions::KeepsViews(ir::OpId op) const {
  const bool joins = of_views_.contains(op.index());
  const ir::ShardingRule rule = joins ? ir::ShardingRule() : ir::RuleOf(function_, op);
  const ir::ValueId result = function_.result(op);
  int64_t views = 0;  // of all operands
  for (size_t k = 0; k < function_.operands(op).size(); ++k) {
    const Position position = PositionOfOperand(op, k);
    if (joins && (position.views != position.outer || position.inner != 1)) return false;
    if (joins || !position.has_batch() || position.uniform) continue;
    if (views != 0 && views != position.views) return false;
    views = position.views;
    if (views == 1) continue;
    if (function_.kind(op) == ir::OpKind::kReshape) return positions_[result].views == views;
    const auto dim = static_cast<size_t>(position.dim);
    if (k >= rule.operands.size() || rule.operands[k][dim] == ir::kNoFactor) return false;
  }
  return views < 2 || positions_[result].second < 0;
}

void BatchPositions::FindWhetherViewsMove() {
  for (const ir::OpId op : function_.order()) views_move_ = views_move_ && KeepsViews(op);
  for (const ir::Output& output : function_.outputs()) {
    views_move_ = views_move_ && positions_[output.value].views == 1;
  }
}

}  // namespace orrery::importer
