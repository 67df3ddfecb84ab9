#include "ir/text/layout_text.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/layout.h"
#include "ir/sharding_text.h"
#include "ir/text/text_scanner.h"
#include "support/status.h"

namespace orrery::ir {
namespace layout_text_cc {
namespace {

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

std::string Show(const Mesh& mesh, const SubAxis& sub) {
  const Axis& axis = mesh.axes()[sub.axis];
  if (sub.size == axis.size) return axis.name;
  return absl::StrCat(axis.name, ":(", sub.outer, ")", sub.size);
}

// The first numbers of parts at which an axis is cut: 1, …, its size.
absl::StatusOr<std::vector<int64_t>> CutsOf(const Mesh& mesh, AxisIndex axis,
                                            const std::vector<SubAxis>& wanted) {
  const int64_t size = mesh.size(axis);
  std::vector<int64_t> cuts = {1, size};
  for (const SubAxis& sub : wanted) {
    if (sub.axis != axis) continue;
    if (sub.outer < 1 || sub.size < 1 || size % sub.outer != 0 ||
        size / sub.outer % sub.size != 0) {
      return Wrong(absl::StrCat(mesh.axes()[axis].name, ":(", sub.outer, ")", sub.size,
                                ": found an axis of size ", size, "; wanted a multiple of ",
                                sub.outer, " × ", sub.size));
    }
    cuts.push_back(sub.outer);
    cuts.push_back(sub.outer * sub.size);
  }
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (size_t i = 1; i < cuts.size(); ++i) {
    if (cuts[i] % cuts[i - 1] == 0) continue;
    return Wrong(absl::StrCat("axis ", mesh.axes()[axis].name, " is cut after ", cuts[i - 1],
                              " and after ", cuts[i],
                              " parts; wanted cuts of which each divides the next"));
  }
  return cuts;
}

// "hp-0", or "hp--0" where another axis has that name.
void NameParts(const Mesh& whole, const std::vector<SubAxis>& parts, std::vector<Axis>& axes) {
  std::string hyphen = "-";
  const auto taken = [&] {
    return std::ranges::any_of(whole.axes(), [&](const Axis& axis) {
      const size_t hyphens = axis.name.find(hyphen);
      return hyphens != std::string::npos;
    });
  };
  while (taken()) hyphen += "-";
  int number = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Axis& axis = whole.axes()[parts[i].axis];
    number = i > 0 && parts[i].axis == parts[i - 1].axis ? number + 1 : 0;
    const bool uncut = parts[i].size == axis.size;
    axes.push_back({uncut ? axis.name : absl::StrCat(axis.name, hyphen, number), parts[i].size});
  }
}

// A layout before its mesh is refined.
struct Draft {
  Dims dims;
  std::vector<std::vector<SubAxis>> split;
  std::vector<int64_t> blocks;
  std::vector<std::pair<SubAxis, Reduction>> partial;
};

class Reader {
 public:
  Reader(absl::string_view text, const Mesh& mesh) : scanner_(text), mesh_(mesh) {}

  absl::StatusOr<Draft> Read() {
    ORRERY_RETURN_IF_ERROR(scanner_.Expect("["));
    while (!scanner_.Take("]")) {
      if (!draft_.dims.empty()) ORRERY_RETURN_IF_ERROR(scanner_.Expect(","));
      ORRERY_RETURN_IF_ERROR(Dimension());
    }
    if (scanner_.Take("partial")) ORRERY_RETURN_IF_ERROR(Partial());
    if (!scanner_.AtEnd()) return scanner_.Expected("the end of the layout");
    return std::move(draft_);
  }

 private:
  absl::Status Dimension() {
    ORRERY_ASSIGN_OR_RETURN(const int64_t dim, scanner_.Number("a dimension"));
    if (dim < 0) return scanner_.ExpectedBefore("a dimension that is not negative");
    draft_.dims.push_back(dim);
    draft_.blocks.push_back(kNestedChunks);
    draft_.split.emplace_back();
    if (!scanner_.Take("@")) return absl::OkStatus();
    ORRERY_ASSIGN_OR_RETURN(draft_.split.back(), Axes());
    if (!scanner_.Take("/")) return absl::OkStatus();
    int64_t& block = draft_.blocks.back();
    if (scanner_.Take("balanced")) {
      block = kBalancedChunks;
      return absl::OkStatus();
    }
    ORRERY_ASSIGN_OR_RETURN(block, scanner_.Number("a block size, or balanced"));
    if (block < 1) return scanner_.ExpectedBefore("a block size of at least 1, or balanced");
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<SubAxis>> Axes() {
    std::vector<SubAxis> axes;
    do {
      ORRERY_ASSIGN_OR_RETURN(const SubAxis axis, OneAxis());
      axes.push_back(axis);
    } while (scanner_.Take("."));
    return axes;
  }

  absl::StatusOr<SubAxis> OneAxis() {
    const std::optional<AxisIndex> axis = mesh_.Find(scanner_.Word());
    if (!axis.has_value()) {
      return scanner_.ExpectedBefore(absl::StrCat("an axis of ", ToString(mesh_)));
    }
    SubAxis sub{.axis = *axis, .outer = 1, .size = mesh_.size(*axis)};
    if (!scanner_.Take(":(")) return sub;
    ORRERY_ASSIGN_OR_RETURN(sub.outer, scanner_.Number("the number of outer parts"));
    ORRERY_RETURN_IF_ERROR(scanner_.Expect(")"));
    ORRERY_ASSIGN_OR_RETURN(sub.size, scanner_.Number("the size of the sub-axis"));
    return sub;
  }

  absl::Status Partial() {
    ORRERY_RETURN_IF_ERROR(scanner_.Expect("("));
    do {
      ORRERY_ASSIGN_OR_RETURN(const std::vector<SubAxis> axes, Axes());
      Reduction reduction = Reduction::kSum;
      if (scanner_.Take(":")) {
        const auto named = ParseReduction(scanner_.Letters());
        if (!named.has_value()) return scanner_.ExpectedBefore("sum, avg, product, max or min");
        reduction = *named;
      }
      for (const SubAxis& axis : axes) draft_.partial.emplace_back(axis, reduction);
    } while (scanner_.Take(","));
    return scanner_.Expect(")");
  }

  TextScanner scanner_;
  const Mesh& mesh_;
  Draft draft_;
};

std::vector<SubAxis> AllOf(const Draft& draft) {
  std::vector<SubAxis> all;
  for (const auto& axes : draft.split) all.insert(all.end(), axes.begin(), axes.end());
  for (const auto& [axis, reduction] : draft.partial) all.push_back(axis);
  return all;
}

// The axes of the refined mesh that make up `sub`, the outermost first, behind those of `list`.
absl::Status Append(const MeshRefinement& mesh, const SubAxis& sub, AxisList& used,
                    AxisList& list) {
  for (size_t i = 0; i < mesh.parts.size(); ++i) {
    const SubAxis& part = mesh.parts[i];
    const bool inside = part.outer >= sub.outer && part.outer * part.size <= sub.outer * sub.size;
    if (part.axis != sub.axis || !inside) continue;
    const auto axis = static_cast<AxisIndex>(i);
    if (used.contains(axis)) {
      return Wrong(absl::StrCat("found ", Show(mesh.whole, sub),
                                " where a part of it is used before; wanted each part of an axis ",
                                "at most once"));
    }
    used.push_back(axis);
    list.push_back(axis);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace layout_text_cc

std::string LayoutText(const ReadLayout& layout) {
  const MeshRefinement& mesh = layout.mesh;
  return LayoutTextBy(layout.sharding, layout.dims, [&mesh](const AxisList& axes) {
    std::vector<SubAxis> joined;
    for (const AxisIndex axis : axes.axes()) {
      const SubAxis& part = mesh.parts[axis];
      const bool joins = !joined.empty() && joined.back().axis == part.axis &&
                         joined.back().outer * joined.back().size == part.outer;
      if (joins) {
        joined.back().size *= part.size;
      } else {
        joined.push_back(part);
      }
    }
    std::string text;
    for (const SubAxis& sub : joined) {
      absl::StrAppend(&text, text.empty() ? "" : ".", layout_text_cc::Show(mesh.whole, sub));
    }
    return text;
  });
}

absl::StatusOr<MeshRefinement> RefineMesh(const Mesh& mesh, const std::vector<SubAxis>& wanted) {
  MeshRefinement refinement{.whole = mesh, .refined = {}, .parts = {}};
  for (const SubAxis& sub : wanted) {
    if (sub.axis < mesh.axes().size()) continue;
    return layout_text_cc::Wrong(
        absl::StrCat("found a part of axis ", int{sub.axis}, "; wanted one of ", ToString(mesh)));
  }
  for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(mesh.axes().size()); ++axis) {
    ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> cuts,
                            layout_text_cc::CutsOf(mesh, axis, wanted));
    if (cuts.size() == 1) refinement.parts.push_back({axis, 1, 1});
    for (size_t i = 1; i < cuts.size(); ++i) {
      refinement.parts.push_back({axis, cuts[i - 1], cuts[i] / cuts[i - 1]});
    }
  }
  std::vector<Axis> axes;
  layout_text_cc::NameParts(mesh, refinement.parts, axes);
  if (!Mesh::Fits(axes)) {
    return layout_text_cc::Wrong(absl::StrCat("the sub-axes cut ", ToString(mesh), " into ",
                                              axes.size(), " axes; wanted at most ", kMaxAxes));
  }
  refinement.refined = Mesh(std::move(axes));
  return refinement;
}

absl::StatusOr<ReadLayout> ParseLayout(absl::string_view text, const Mesh& mesh) {
  ORRERY_ASSIGN_OR_RETURN(const layout_text_cc::Draft draft,
                          layout_text_cc::Reader(text, mesh).Read());
  ReadLayout layout;
  ORRERY_ASSIGN_OR_RETURN(layout.mesh, RefineMesh(mesh, layout_text_cc::AllOf(draft)));
  layout.dims = draft.dims;
  AxisList used, partial;
  for (size_t d = 0; d < draft.dims.size(); ++d) {
    AxisList axes;
    for (const SubAxis& sub : draft.split[d]) {
      ORRERY_RETURN_IF_ERROR(layout_text_cc::Append(layout.mesh, sub, used, axes));
    }
    layout.sharding.Set(d, draft.dims.size(), axes, draft.blocks[d]);
  }
  for (const auto& [sub, reduction] : draft.partial) {
    AxisList added;
    ORRERY_RETURN_IF_ERROR(layout_text_cc::Append(layout.mesh, sub, used, added));
    for (const AxisIndex axis : added.axes()) {
      partial.push_back(axis);
      layout.sharding.reductions[axis] = reduction;
    }
  }
  layout.sharding.partial = partial.Sorted();
  ORRERY_RETURN_IF_ERROR(CheckSharding(layout.sharding, layout.dims, layout.mesh.refined));
  return layout;
}

}  // namespace orrery::ir
