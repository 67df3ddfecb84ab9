#include "ir/mesh.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/check.h"

namespace orrery::ir {
namespace mesh_cc {
namespace {

// No point, which joins axes in "dp.hp", and nothing else that the text form would read otherwise.
bool IsAxisName(absl::string_view name) {
  const auto fits = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  };
  const auto digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  return std::all_of(name.begin(), name.end(), fits) &&
         !std::all_of(name.begin(), name.end(), digit);
}

}  // namespace
}  // namespace mesh_cc

bool AxisList::contains(AxisIndex axis) const {
  const auto list = axes();
  return std::find(list.begin(), list.end(), axis) != list.end();
}

void AxisList::push_back(AxisIndex axis) {
  ORRERY_CHECK(count_ < kMaxAxes && !contains(axis)) << "axis " << int{axis};
  axes_[count_++] = axis;
}

AxisList AxisList::Sorted() const {
  AxisList sorted;
  for (AxisIndex axis = 0; axis < kMaxAxes; ++axis) {
    if (contains(axis)) sorted.push_back(axis);
  }
  return sorted;
}

AxisList AxisList::Without(AxisIndex axis) const {
  AxisList rest;
  for (const AxisIndex kept : axes()) {
    if (kept != axis) rest.push_back(kept);
  }
  return rest;
}

Mesh::Mesh(std::vector<Axis> axes) : axes_(std::move(axes)) {
  ORRERY_CHECK(Fits(axes_)) << ToString(*this);
}

bool Mesh::Fits(const std::vector<Axis>& axes) {
  if (axes.size() > kMaxAxes) return false;
  int64_t ranks = 1;
  for (auto axis = axes.begin(); axis != axes.end(); ++axis) {
    if (!mesh_cc::IsAxisName(axis->name) || axis->size < 1 || axis->size > kMaxRanks / ranks)
      return false;
    ranks *= axis->size;
    const auto same = [&](const Axis& other) { return other.name == axis->name; };
    if (std::any_of(axes.begin(), axis, same)) return false;
  }
  return true;
}

int64_t Mesh::size() const {
  int64_t product = 1;
  for (const Axis& axis : axes_) product *= axis.size;
  return product;
}

std::optional<AxisIndex> Mesh::Find(absl::string_view name) const {
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return static_cast<AxisIndex>(i);
  }
  return std::nullopt;
}

int64_t Mesh::size(const AxisList& list) const {
  int64_t product = 1;
  for (const AxisIndex axis : list.axes()) product *= axes_[axis].size;
  return product;
}

int64_t Mesh::stride(AxisIndex axis) const {
  int64_t product = 1;
  for (size_t i = axis + size_t{1}; i < axes_.size(); ++i) product *= axes_[i].size;
  return product;
}

std::string Mesh::Names(const AxisList& list) const {
  return absl::StrJoin(list.axes(), ".", [this](std::string* out, AxisIndex axis) {
    absl::StrAppend(out, axes_[axis].name);
  });
}

std::string ToString(const Mesh& mesh) {
  return absl::StrCat("mesh(",
                      absl::StrJoin(mesh.axes(), ", ",
                                    [](std::string* out, const Axis& axis) {
                                      absl::StrAppend(out, axis.name, "=", axis.size);
                                    }),
                      ")");
}

}  // namespace orrery::ir
