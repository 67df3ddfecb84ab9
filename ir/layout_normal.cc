#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "ir/layout.h"

// Normal forms of layouts. Along an idle axis only the first coordinate holds anything; the other
// axes of a split are its core. Idle axes may stand in any order, in front of blocks and behind
// nested chunks; which elements a rank holds says the rest: the order of the core, and its kind.

namespace orrery::ir {
namespace layout_normal_cc {
namespace {

struct Form {
  SplitDimension core;
  AxisList idle;  // ascending
};

int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b == 0 ? 0 : 1); }

AxisList WithoutSingles(const AxisList& axes, const Mesh& mesh) {
  AxisList kept;
  for (const AxisIndex axis : axes.axes()) {
    if (mesh.size(axis) > 1) kept.push_back(axis);
  }
  return kept;
}

// Nested chunks: all axes inside of the chunks of one element are idle.
Form NestedForm(const SplitDimension& split, const Mesh& mesh) {
  Form form{.core = {.size = split.size, .axes = {}, .block = kNestedChunks}, .idle = {}};
  int64_t length = split.size;
  for (const AxisIndex axis : split.axes.axes()) {
    (length <= 1 ? form.idle : form.core.axes).push_back(axis);
    length = CeilDivide(length, mesh.size(axis));
  }
  return form;
}

// Blocks: all axes outside of a first round that holds everything are idle.
Form CyclicForm(const SplitDimension& split, const Mesh& mesh) {
  Form form{.core = {.size = split.size, .axes = split.axes, .block = split.block}, .idle = {}};
  const int64_t blocks = CeilDivide(split.size, split.block);
  for (const AxisIndex axis : split.axes.axes()) {
    if (mesh.size(form.core.axes.Without(axis)) < blocks) break;
    form.core.axes = form.core.axes.Without(axis);
    form.idle.push_back(axis);
  }
  return form;
}

Form FormByKind(const SplitDimension& split, const Mesh& mesh) {
  if (split.size == 0) return {.core = split, .idle = {}};
  if (split.block == kNestedChunks) return NestedForm(split, mesh);
  if (split.block > 0) return CyclicForm(split, mesh);
  if (split.size >= mesh.size(split.axes)) return {.core = split, .idle = {}};
  return CyclicForm({split.size, split.axes, 1}, mesh);  // balanced: one element each, then none
}

// Whether nested chunks lie where flat parts do: those of blocks of `block` in one round, or, where
// that is kBalancedChunks, balanced ones. A part of balanced chunks is balanced in itself, so that
// both can be compared axis by axis. At most 2^7 lengths: a chunk is full, or short.
class NestedAgainst {
 public:
  NestedAgainst(const Mesh& mesh, int64_t block) : mesh_(mesh), block_(block) {}

  bool Same(int64_t length, AxisList axes) const {
    if (axes.empty()) return block_ < 0 || length <= block_;
    const AxisIndex axis = axes.axes().front();
    const int64_t count = mesh_.size(axis);
    axes = axes.Without(axis);
    const int64_t parts = mesh_.size(axes);
    const int64_t chunk = std::max<int64_t>(CeilDivide(length, count), 1);
    const int64_t full = length / chunk;
    // Where the flat parts begin grows evenly, or more slowly from some position on: what agrees at
    // the first, at the last full, and at the short chunk agrees throughout.
    for (const int64_t child : {std::min<int64_t>(1, count), full, std::min(full + 1, count)}) {
      const int64_t begins = child > full ? length : child * chunk;
      if (FlatBegin(length, child * parts, count * parts) != begins) return false;
    }
    return Same(chunk <= length ? chunk : 0, axes) && Same(length - full * chunk, axes);
  }

 private:
  int64_t FlatBegin(int64_t length, int64_t part, int64_t parts) const {
    if (block_ < 0) return length / parts * part + std::min(part, length % parts);
    int64_t begin = 0;
    return __builtin_mul_overflow(part, block_, &begin) ? length : std::min(length, begin);
  }

  const Mesh& mesh_;
  int64_t block_;
};

// The block of flat parts that lie as `core` does; kNestedChunks or kBalancedChunks where there is
// none but itself.
int64_t FlatBlock(const SplitDimension& core, const Mesh& mesh) {
  if (core.block > 0) return core.block;
  const int64_t first = LargestPart(core, mesh);
  if (core.block == kNestedChunks) {
    if (NestedAgainst(mesh, first).Same(core.size, core.axes)) return first;
    const bool balanced = core.size >= mesh.size(core.axes) &&
                          NestedAgainst(mesh, kBalancedChunks).Same(core.size, core.axes);
    return balanced ? kBalancedChunks : kNestedChunks;
  }
  const int64_t parts = mesh.size(core.axes), larger = core.size % parts;
  return larger == 0 || larger == parts - 1 ? first : kBalancedChunks;
}

Form FormOf(const Sharding& sharding, const Dims& dims, const Mesh& mesh, size_t dim) {
  SplitDimension split = SplitOf(sharding, dims, dim);
  split.axes = WithoutSingles(split.axes, mesh);
  Form form = FormByKind(split, mesh);
  form.idle = form.idle.Sorted();
  if (form.core.axes.empty()) {
    form.core.block = kNestedChunks;
    return form;
  }
  form.core.block = FlatBlock(form.core, mesh);
  return form;
}

// What a form is called: nested chunks where they can say it, with the idle axes inside of them;
// else blocks, with the idle axes outside.
SplitDimension Named(const Form& form, const Mesh& mesh) {
  SplitDimension named = form.core;
  const int64_t first = form.core.axes.empty() ? form.core.size : LargestPart(form.core, mesh);
  const bool fits = form.core.axes.empty() || form.core.block == kNestedChunks ||
                    NestedAgainst(mesh, form.core.block).Same(form.core.size, form.core.axes);
  if (fits && (form.idle.empty() || first == 1)) {
    named.block = kNestedChunks;
    for (const AxisIndex axis : form.idle.axes()) named.axes.push_back(axis);
    return named;
  }
  if (form.idle.empty()) return named;
  named.axes = form.idle;
  for (const AxisIndex axis : form.core.axes.axes()) named.axes.push_back(axis);
  if (form.core.axes.empty()) named.block = form.core.size;
  return named;
}

bool IsEmpty(const Dims& dims) { return std::ranges::find(dims, 0) != dims.end(); }

Sharding PartialOnly(const Sharding& sharding, const Mesh& mesh) {
  Sharding kept;
  const AxisList ascending = sharding.partial.Sorted();
  for (const AxisIndex axis : ascending.axes()) {
    if (mesh.size(axis) == 1) continue;
    kept.partial.push_back(axis);
    kept.reductions[axis] = sharding.reductions[axis];
  }
  return kept;
}

absl::Status Uneven(size_t dim, int64_t size, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("dimension ", dim, " of ", size,
                                                 " is split into parts that are not ", wanted,
                                                 "; wanted those"));
}

}  // namespace
}  // namespace layout_normal_cc

Sharding Normalized(const Sharding& sharding, const Dims& dims, const Mesh& mesh) {
  Sharding normal = layout_normal_cc::PartialOnly(sharding, mesh);
  if (layout_normal_cc::IsEmpty(dims)) return normal;  // nothing to hold
  for (size_t d = 0; d < dims.size(); ++d) {
    const SplitDimension named =
        layout_normal_cc::Named(layout_normal_cc::FormOf(sharding, dims, mesh, d), mesh);
    normal.Set(d, dims.size(), named.axes, named.block);
  }
  return normal;
}

absl::StatusOr<Sharding> InBlocks(const Sharding& sharding, const Dims& dims, const Mesh& mesh) {
  Sharding blocked = sharding;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (sharding.at(d).empty() || sharding.block(d) > 0) continue;
    layout_normal_cc::Form form = layout_normal_cc::FormOf(sharding, dims, mesh, d);
    const int64_t block = form.core.axes.empty() ? std::max<int64_t>(dims[d], 1) : form.core.block;
    if (dims[d] > 0 && block <= 0)
      return layout_normal_cc::Uneven(d, dims[d], "blocks of one size");
    const AxisList before = sharding.at(d);
    AxisList axes = before;
    if (!form.idle.empty()) {  // where single axes stand does not matter
      axes = form.idle;
      for (const AxisIndex axis : form.core.axes.axes()) axes.push_back(axis);
      for (const AxisIndex axis : before.axes()) {
        if (mesh.size(axis) == 1) axes.push_back(axis);
      }
    }
    blocked.Set(d, dims.size(), axes, std::max<int64_t>(block, 1));
  }
  return blocked;
}

absl::StatusOr<Sharding> InNestedChunks(const Sharding& sharding, const Dims& dims,
                                        const Mesh& mesh) {
  Sharding nested = sharding;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (sharding.block(d) == kNestedChunks) continue;
    const SplitDimension named =
        layout_normal_cc::Named(layout_normal_cc::FormOf(sharding, dims, mesh, d), mesh);
    if (named.block != kNestedChunks) return layout_normal_cc::Uneven(d, dims[d], "nested chunks");
    const AxisList before = sharding.at(d);
    AxisList axes = named.axes;
    for (const AxisIndex axis : before.axes()) {
      if (mesh.size(axis) == 1) axes.push_back(axis);
    }
    nested.Set(d, dims.size(), axes);
  }
  return nested;
}

bool SameOwnership(const Sharding& a, const Sharding& b, const Dims& dims, const Mesh& mesh) {
  if (layout_normal_cc::PartialOnly(a, mesh) != layout_normal_cc::PartialOnly(b, mesh))
    return false;
  if (layout_normal_cc::IsEmpty(dims)) return true;
  std::array<bool, kMaxAxes> idle_a = {}, idle_b = {};
  for (size_t d = 0; d < dims.size(); ++d) {
    const layout_normal_cc::Form form_a = layout_normal_cc::FormOf(a, dims, mesh, d),
                                 form_b = layout_normal_cc::FormOf(b, dims, mesh, d);
    if (form_a.core != form_b.core) return false;
    for (const AxisIndex axis : form_a.idle.axes()) idle_a[axis] = true;
    for (const AxisIndex axis : form_b.idle.axes()) idle_b[axis] = true;
  }
  return idle_a == idle_b;
}

}  // namespace orrery::ir
