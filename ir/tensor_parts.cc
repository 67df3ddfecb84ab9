#include "ir/tensor_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

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

// Where the part of `rank` begins.
Dims BeginOf(const TensorType& type, const Dims& part, const Mesh& mesh, int64_t rank) {
  Dims begin;
  for (size_t d = 0; d < part.size(); ++d) {
    begin.push_back(PartOf(mesh, rank, type.sharding.at(d)) * part[d]);
  }
  return begin;
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
  return {.first = tensor_parts_cc::BeginOf(type, LocalType(type, mesh).dims, mesh, rank),
          .whole = type.dims};
}

Tensor Scatter(const Tensor& whole, const TensorType& type, const Mesh& mesh, int64_t rank) {
  TensorType given = type;
  given.dims = whole.dims();
  const Dims dims = LocalType(given, mesh).dims;
  Tensor part(whole.dtype(), dims);
  if (PartOf(mesh, rank, type.sharding.partial) != 0) return part;
  tensor_parts_cc::ForEachPosition(
      dims, tensor_parts_cc::BeginOf(type, dims, mesh, rank), whole.dims(),
      [&](int64_t to, int64_t from) { part.CopyElement(to, whole, from); });
  return part;
}

Tensor Gather(std::span<const Tensor> parts, const TensorType& type, const Mesh& mesh,
              std::span<const int64_t> ranks, double& disagreement) {
  // Ranks that differ only along axes that nothing is split or partial over hold the same.
  AxisList used = type.sharding.partial;
  for (const AxisList& axes : type.sharding.split) {
    for (const AxisIndex axis : axes.axes()) used.push_back(axis);
  }
  std::map<int64_t, Tensor> replicas;
  for (size_t i = 0; i < ranks.size(); ++i) {
    Tensor& replica =
        replicas.try_emplace(RestOf(mesh, ranks[i], used), Tensor(type.dtype, type.dims))
            .first->second;
    const Dims& dims = parts[i].dims();
    tensor_parts_cc::ForEachPosition(
        dims, tensor_parts_cc::BeginOf(type, dims, mesh, ranks[i]), type.dims,
        [&](int64_t from, int64_t to) { tensor_parts_cc::AddNumber(replica, to, parts[i], from); });
  }
  const Tensor& first = replicas.begin()->second;
  for (const auto& [rest, other] : replicas) {
    disagreement = std::max(disagreement, Distance(first, other));
  }
  return first;
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
