#include "ir/mesh.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/check.h"

namespace orrery::ir {

bool AxisList::contains(AxisIndex axis) const {
  const auto list = axes();
  return std::find(list.begin(), list.end(), axis) != list.end();
}

void AxisList::push_back(AxisIndex axis) {
  ORRERY_CHECK(count_ < kMaxAxes && !contains(axis)) << "axis " << int{axis};
  axes_[count_++] = axis;
}

AxisList AxisList::Without(AxisIndex axis) const {
  AxisList rest;
  for (const AxisIndex kept : axes()) {
    if (kept != axis) rest.push_back(kept);
  }
  return rest;
}

Mesh::Mesh(std::vector<Axis> axes) : axes_(std::move(axes)) {
  ORRERY_CHECK(axes_.size() <= kMaxAxes) << axes_.size() << " axes";
  for (size_t i = 0; i < axes_.size(); ++i) {
    ORRERY_CHECK(axes_[i].size >= 1) << axes_[i].name;
    ORRERY_CHECK(Find(axes_[i].name) == static_cast<AxisIndex>(i)) << axes_[i].name << " twice";
  }
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
