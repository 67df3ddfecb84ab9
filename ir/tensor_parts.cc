#include "ir/tensor_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "ir/layout.h"
#include "ir/sharding_text.h"
#include "support/check.h"

namespace orrery::ir {
namespace tensor_parts_cc {
namespace {

int64_t Coordinate(const Mesh& mesh, int64_t rank, AxisIndex axis) {
  return rank / mesh.stride(axis) % mesh.size(axis);
}

// Calls use(position in the part, position in the whole) for every element of a part of dims `part`
// that begins at `begin` in a whole of dims `whole`, and that is not beyond its end.
template <typename Use>
void ForEachPosition(const Dims& part, const Dims& begin, const Dims& whole, Use use) {
  const Dims strides = StridesOf(whole);
  int64_t first = 0;
  for (size_t d = 0; d < begin.size(); ++d) first += begin[d] * strides[d];
  Dims held = part;  // the strides of the part are those of all of it
  for (size_t d = 0; d < held.size(); ++d) held[d] = std::min(held[d], whole[d] - begin[d]);
  if (std::ranges::any_of(held, [](int64_t size) { return size <= 0; })) return;
  const Dims here = StridesOf(part);
  for (Odometer at(held, {strides, here}); !at.done(); at.Next()) {
    use(at.offset(1), first + at.offset(0));
  }
}

// Where two ranks have what both hold of a dimension: position in the first part, in the second.
using Positions = std::vector<std::pair<int64_t, int64_t>>;

Positions HeldByBoth(const Part& first, const Part& second) {
  Positions both;
  int64_t at = 0;
  for (const Range& range : first.Ranges()) {
    for (int64_t element = range.begin; element < range.end; ++element, ++at) {
      if (!second.contains(element)) continue;
      const int64_t from = element - second.begin;
      both.emplace_back(at, from / second.stride * second.length + from % second.stride);
    }
  }
  return both;
}

// One number for what ranks reduce.
template <typename Number>
Number ReduceNumbers(Reduction reduction, Number a, Number b) {
  switch (reduction) {
    case Reduction::kProduct:
      return a * b;
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kMin:
      return std::min(a, b);
    default:
      return a + b;
  }
}

void ReduceTensor(Reduction reduction, const Tensor& from, Tensor& into) {
  if (reduction == Reduction::kSum || reduction == Reduction::kAverage) {
    return AddTensor(from, into);
  }
  for (int64_t i = 0; i < from.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (into.is_float()) {
      into.floats()[at] = ReduceNumbers(reduction, into.floats()[at], from.floats()[at]);
    } else {
      into.ints()[at] = ReduceNumbers(reduction, into.ints()[at], from.ints()[at]);
    }
  }
}

// to[i] += from[j].
void AddNumber(Tensor& to, int64_t i, const Tensor& from, int64_t j) {
  const auto a = static_cast<size_t>(i), b = static_cast<size_t>(j);
  if (to.is_float()) {
    to.floats()[a] += from.floats()[b];
  } else {
    to.ints()[a] = static_cast<int64_t>(static_cast<uint64_t>(to.ints()[a]) +
                                        static_cast<uint64_t>(from.ints()[b]));
  }
}

}  // namespace
}  // namespace tensor_parts_cc

int64_t PartOf(const Mesh& mesh, int64_t rank, const AxisList& axes) {
  int64_t part = 0;
  for (const AxisIndex axis : axes.axes()) {
    part = part * mesh.size(axis) + tensor_parts_cc::Coordinate(mesh, rank, axis);
  }
  return part;
}

int64_t RestOf(const Mesh& mesh, int64_t rank, const AxisList& axes) {
  int64_t rest = rank;
  for (const AxisIndex axis : axes.axes()) {
    rest -= tensor_parts_cc::Coordinate(mesh, rank, axis) * mesh.stride(axis);
  }
  return rest;
}

std::vector<int64_t> AllRanks(const Mesh& mesh) {
  std::vector<int64_t> ranks(static_cast<size_t>(mesh.empty() ? 1 : mesh.size()));
  for (size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = static_cast<int64_t>(rank);
  return ranks;
}

Share ShareOf(const TensorType& type, const Mesh& mesh, int64_t rank) {
  Share share{.first = {}, .whole = type.dims};
  for (size_t d = 0; d < type.dims.size(); ++d) {
    share.first.push_back(HeldPart(SplitOf(type.sharding, type.dims, d), mesh, rank).begin);
  }
  return share;
}

void CopyHeld(const Tensor& part, const Holder& from, const Holder& to, const Mesh& mesh,
              Tensor& held) {
  const Dims from_strides = StridesOf(part.dims()), to_strides = StridesOf(held.dims());
  Dims counts;
  std::vector<tensor_parts_cc::Positions> positions;
  for (size_t d = 0; d < part.dims().size(); ++d) {
    positions.push_back(tensor_parts_cc::HeldByBoth(
        HeldPart(SplitOf(to.type.sharding, to.type.dims, d), mesh, to.rank),
        HeldPart(SplitOf(from.type.sharding, from.type.dims, d), mesh, from.rank)));
    counts.push_back(std::ssize(positions.back()));
    if (counts.back() == 0) return;
  }
  for (Odometer at(counts, {}); !at.done(); at.Next()) {
    int64_t here = 0, there = 0;
    for (size_t d = 0; d < counts.size(); ++d) {
      const auto& [held_at, part_at] = positions[d][static_cast<size_t>(at.at()[d])];
      here += held_at * to_strides[d];
      there += part_at * from_strides[d];
    }
    held.CopyElement(here, part, there);
  }
}

Tensor Neutral(const Tensor& part, Reduction reduction) {
  if (reduction != Reduction::kSum && reduction != Reduction::kProduct) return part;
  Tensor neutral(part.dtype(), part.dims());
  for (int64_t i = 0; i < neutral.size() && reduction == Reduction::kProduct; ++i) {
    neutral.SetNumber(i, 1);
  }
  return neutral;
}

Tensor Reduced(std::span<const Tensor* const> parts, const Sharding& sharding, const AxisList& axes,
               const Mesh& mesh) {
  Tensor reduced = *parts[0];
  int64_t averaged = 1;
  Reduction reduction = Reduction::kSum;
  for (const AxisIndex axis : axes.axes()) {
    const Reduction last = std::exchange(reduction, sharding.reductions[axis]);
    const auto adds = [](Reduction r) { return r == Reduction::kSum || r == Reduction::kAverage; };
    ORRERY_CHECK(axis == axes.axes().front() || last == reduction ||
                 (adds(last) && adds(reduction)))
        << ToString(last) << " and " << ToString(reduction) << " are not one reduction";
    if (reduction == Reduction::kAverage) averaged *= mesh.size(axis);
  }
  for (const Tensor* const part : parts.subspan(1)) {
    tensor_parts_cc::ReduceTensor(reduction, *part, reduced);
  }
  for (int64_t i = 0; averaged > 1 && i < reduced.size(); ++i) {
    reduced.SetNumber(i, reduced.Number(i) / static_cast<double>(averaged));
  }
  return reduced;
}

Tensor Scatter(const Tensor& whole, const TensorType& type, const Mesh& mesh, int64_t rank) {
  TensorType given = type;
  given.dims = whole.dims();
  Tensor part(whole.dtype(), LocalDims(given.sharding, given.dims, mesh, rank));
  const TensorType all = whole.type();
  CopyHeld(whole, {.type = all}, {.type = given, .rank = rank}, mesh, part);
  for (const AxisIndex axis : type.sharding.partial.axes()) {
    if (PartOf(mesh, rank, AxisList(axis)) == 0) continue;
    part = Neutral(part, type.sharding.reductions[axis]);
  }
  return part;
}

Tensor Gather(std::span<const Tensor> parts, const TensorType& type, const Mesh& mesh,
              std::span<const int64_t> ranks, double& disagreement) {
  // Ranks that differ only along axes that nothing is split or partial over hold the same.
  const AxisList& partial = type.sharding.partial;
  AxisList used = partial;
  for (const AxisList& axes : type.sharding.split) {
    for (const AxisIndex axis : axes.axes()) used.push_back(axis);
  }
  const TensorType all{.dtype = type.dtype, .dims = type.dims, .sharding = {}};
  std::map<int64_t, std::map<int64_t, Tensor>> replicas;  // of each its summands
  for (size_t i = 0; i < ranks.size(); ++i) {
    Tensor& summand = replicas[RestOf(mesh, ranks[i], used)]
                          .try_emplace(PartOf(mesh, ranks[i], partial), type.dtype, type.dims)
                          .first->second;
    CopyHeld(parts[i], {.type = type, .rank = ranks[i]}, {.type = all}, mesh, summand);
  }
  std::vector<Tensor> wholes;
  for (const auto& [rest, summands] : replicas) {
    std::vector<const Tensor*> list;
    for (const auto& [number, summand] : summands) list.push_back(&summand);
    wholes.push_back(Reduced(list, type.sharding, partial, mesh));
    disagreement = std::max(disagreement, Distance(wholes.front(), wholes.back()));
  }
  return wholes.front();
}

Tensor SlicePart(const Tensor& whole, size_t dim, int64_t part, int64_t parts) {
  const int64_t rows = (whole.dims()[dim] + parts - 1) / parts;
  return SliceRows(whole, dim, part * rows, rows);
}

Tensor SliceRows(const Tensor& whole, size_t dim, int64_t begin, int64_t rows) {
  Dims dims = whole.dims(), first(dims.size(), 0);
  dims[dim] = rows;
  first[dim] = begin;
  Tensor slice(whole.dtype(), dims);
  tensor_parts_cc::ForEachPosition(dims, first, whole.dims(), [&](int64_t to, int64_t from) {
    slice.CopyElement(to, whole, from);
  });
  return slice;
}

void PastePart(const Tensor& part, size_t dim, int64_t number, Tensor& whole) {
  PasteRows(part, dim, number * part.dims()[dim], whole);
}

void PasteRows(const Tensor& part, size_t dim, int64_t begin, Tensor& whole) {
  Dims first(part.dims().size(), 0);
  first[dim] = begin;
  tensor_parts_cc::ForEachPosition(part.dims(), first, whole.dims(), [&](int64_t from, int64_t to) {
    whole.CopyElement(to, part, from);
  });
}

double Distance(const Tensor& a, const Tensor& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a.dims() != b.dims()) return kInfinity;
  double largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.Number(i), y = b.Number(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double difference = std::abs(x - y);
    largest = std::isnan(difference) ? kInfinity : std::max(largest, difference);
  }
  return largest;
}

void AddTensor(const Tensor& from, Tensor& sum) {
  for (int64_t i = 0; i < from.size(); ++i) tensor_parts_cc::AddNumber(sum, i, from, i);
}

}  // namespace orrery::ir
