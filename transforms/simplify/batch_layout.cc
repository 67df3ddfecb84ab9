#include "transforms/simplify/batch_layout.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace orrery::transforms {
namespace batch_layout_cc {
namespace {

// A part of a dimension of the base, with so many samples.
struct Piece {
  size_t dim = 0;
  int64_t size = 1;
  int64_t samples = 1;
};

// What is left to take, from `at` on.
struct Pieces {
  std::vector<Piece> left;
  size_t at = 0;
};

// Moves pieces into a dimension of `size`; false where ends do not meet.
bool Take(int64_t size, Pieces& pieces, std::vector<Piece>& taken) {
  auto& [left, at] = pieces;
  while (size > 1) {
    if (at == left.size()) return false;
    Piece& piece = left[at];
    if (size % piece.size == 0) {
      size /= piece.size;
      taken.push_back(piece);
      ++at;
    } else if (piece.size % size == 0 && size % piece.samples == 0) {
      taken.push_back({.dim = piece.dim, .size = size, .samples = piece.samples});
      piece.size /= size;
      piece.samples = 1;
      size = 1;
    } else {
      return false;
    }
  }
  return true;
}

// The pieces of each of the dimensions `to`; nothing where ends do not meet.
std::optional<std::vector<std::vector<Piece>>> Cut(const Regrouping& from, const ir::Dims& to) {
  Pieces pieces;
  auto& [left, at] = pieces;
  for (const size_t dim : OrderOf(from.groups)) {
    if (from.base[dim] < 1) return std::nullopt;
    const int64_t samples = dim == from.batch ? from.samples : 1;
    left.push_back({.dim = dim, .size = from.base[dim], .samples = samples});
  }
  std::vector<std::vector<Piece>> taken(to.size());
  for (size_t k = 0; k < to.size(); ++k) {
    if (to[k] < 1 || !Take(to[k], pieces, taken[k])) return std::nullopt;
  }
  for (; at < left.size(); ++at) {
    if (left[at].size != 1 || taken.empty()) return std::nullopt;
    taken.back().push_back(left[at]);
  }
  return taken;
}

// A piece by its position: in which group, and which of that.
struct Position {
  size_t group = 0, index = 0;
};

}  // namespace
}  // namespace batch_layout_cc

std::vector<size_t> OrderOf(const DimGroups& groups) {
  std::vector<size_t> order;
  for (const std::vector<size_t>& group : groups) {
    order.insert(order.end(), group.begin(), group.end());
  }
  return order;
}

bool BatchIsOutermost(const DimGroups& groups, size_t batch) {
  const std::vector<size_t> order = OrderOf(groups);
  return !order.empty() && order[0] == batch;
}

bool KeepsOrder(const DimGroups& groups) {
  const std::vector<size_t> order = OrderOf(groups);
  return std::is_sorted(order.begin(), order.end());
}

DimGroups Permuted(const DimGroups& groups, const std::vector<int64_t>& perm) {
  DimGroups permuted;
  permuted.reserve(perm.size());
  for (const int64_t dim : perm) permuted.push_back(groups[static_cast<size_t>(dim)]);
  return permuted;
}

bool BatchIsInside(const Regrouping& value) {
  for (const std::vector<size_t>& group : value.groups) {
    const auto batch = std::ranges::find(group, value.batch);
    if (batch == group.end()) continue;
    return std::any_of(group.begin(), batch, [&](size_t dim) { return value.base[dim] > 1; });
  }
  return false;
}

std::optional<Regrouping> Regroup(const Regrouping& from, const ir::Dims& to) {
  using batch_layout_cc::Piece;
  using batch_layout_cc::Position;
  const auto taken = batch_layout_cc::Cut(from, to);
  if (!taken.has_value()) return std::nullopt;
  std::vector<std::vector<Position>> pieces(
      from.base.size());  // of each dimension, outermost first
  for (size_t k = 0; k < taken->size(); ++k) {
    for (size_t i = 0; i < (*taken)[k].size(); ++i) {
      pieces[(*taken)[k][i].dim].push_back({.group = k, .index = i});
    }
  }
  Regrouping regrouping{.base = {}, .groups = {}, .batch = 0, .samples = from.samples};
  std::vector<std::vector<std::pair<size_t, size_t>>> members(to.size());  // index, new dimension
  std::optional<Position> before;
  for (size_t dim = 0; dim < from.base.size(); ++dim) {
    bool batch = dim == from.batch;  // which stays by itself
    if (batch) before.reset();
    for (const Position& at : pieces[dim]) {
      const int64_t size = (*taken)[at.group][at.index].size;
      const bool joins =
          before.has_value() && before->group == at.group && before->index + 1 == at.index;
      if (joins) {
        regrouping.base.back() *= size;
      } else {
        regrouping.base.push_back(size);
        members[at.group].emplace_back(at.index, regrouping.base.size() - 1);
      }
      if (batch) regrouping.batch = regrouping.base.size() - 1;
      before.reset();
      if (!batch) before = at;
      batch = false;
    }
  }
  for (std::vector<std::pair<size_t, size_t>>& group : members) {
    std::ranges::sort(group);
    std::vector<size_t>& dims = regrouping.groups.emplace_back();
    for (const auto& [index, dim] : group) dims.push_back(dim);
  }
  return regrouping;
}

}  // namespace orrery::transforms
