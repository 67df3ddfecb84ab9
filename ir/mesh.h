#ifndef ORRERY_IR_MESH_H_
#define ORRERY_IR_MESH_H_

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace orrery::ir {

/// An axis of a mesh, by its position in it. A mesh has at most kMaxAxes.
using AxisIndex = uint8_t;
/// The most axes that a mesh may have.
inline constexpr int kMaxAxes = 7;
/// The most ranks that a mesh may have: no product of axis sizes overflows.
inline constexpr int64_t kMaxRanks = int64_t{1} << 40;

/// Some axes in an order that matters: eight bytes, compared as values.
class AxisList {
 public:
  constexpr AxisList() = default;
  constexpr explicit AxisList(AxisIndex axis) : count_(1) { axes_[0] = axis; }

  bool empty() const { return count_ == 0; }
  std::span<const AxisIndex> axes() const { return {axes_.data(), count_}; }
  /// Whether the axis is in the list.
  bool contains(AxisIndex axis) const;
  /// Appends `axis`, which must not be there yet.
  void push_back(AxisIndex axis);
  /// The same axes in ascending order: of a sum over several axes, which has no order.
  AxisList Sorted() const;
  /// The list without `axis`.
  AxisList Without(AxisIndex axis) const;

  friend auto operator<=>(const AxisList&, const AxisList&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const AxisList& list) {
    return H::combine(std::move(h), list.count_, list.axes_);
  }

 private:
  uint8_t count_ = 0;
  std::array<AxisIndex, kMaxAxes> axes_ = {};
};

/// One axis of a mesh: how many ranks differ along it alone.
struct Axis {
  std::string name;  // "dp", "hp", "pp"
  int64_t size = 1;

  friend bool operator==(const Axis&, const Axis&) = default;
};

/// Named axes over which a function is sharded. Ranks are numbered with the last axis fastest: in
/// mesh(dp=2, hp=2, pp=4) rank 1 is dp0 hp0 pp1.
class Mesh {
 public:
  Mesh() = default;
  /// Aborts unless `Fits(axes)`.
  explicit Mesh(std::vector<Axis> axes);
  /// Whether `axes` make a mesh: at most kMaxAxes of sizes of at least 1, at most kMaxRanks ranks,
  /// and names that differ, of letters, digits, _ and -, not all digits.
  static bool Fits(const std::vector<Axis>& axes);

  const std::vector<Axis>& axes() const { return axes_; }
  bool empty() const { return axes_.empty(); }
  /// Number of ranks: the product of all sizes.
  int64_t size() const;
  /// The axis called `name`, or nothing.
  std::optional<AxisIndex> Find(absl::string_view name) const;
  int64_t size(AxisIndex axis) const { return axes_[axis].size; }
  /// The product of the sizes of `list`; 1 for none.
  int64_t size(const AxisList& list) const;
  /// Distance in rank numbers between neighbours along `axis`.
  int64_t stride(AxisIndex axis) const;
  /// "dp.hp": the names of `list`.
  std::string Names(const AxisList& list) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<Axis> axes_;
};

/// "mesh(dp=2, hp=4)".
std::string ToString(const Mesh& mesh);

}  // namespace orrery::ir

#endif  // ORRERY_IR_MESH_H_
