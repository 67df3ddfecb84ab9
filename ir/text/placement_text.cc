#include <array>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/layout.h"
#include "ir/sharding_text.h"
#include "ir/text/layout_text.h"
#include "ir/text/text_scanner.h"
#include "support/status.h"

namespace orrery::ir {
namespace placement_text_cc {
namespace {

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

// What one axis of the mesh does.
struct Placement {
  std::optional<size_t> dim = {};  // that it splits
  int64_t split_factor = 1;        // axes further right of this product split it first
  std::optional<Reduction> partial = {};
};

class Reader {
 public:
  Reader(absl::string_view text, const Mesh& mesh, size_t rank)
      : scanner_(text), mesh_(mesh), rank_(rank) {}

  absl::StatusOr<Sharding> Read() {
    ORRERY_RETURN_IF_ERROR(Placements());
    for (size_t d = 0; d < rank_; ++d) ORRERY_RETURN_IF_ERROR(SetByFactors(d));
    if (scanner_.Take("order")) ORRERY_RETURN_IF_ERROR(Order());
    if (!scanner_.AtEnd()) return scanner_.Expected("the end of the placements");
    return sharding_;
  }

 private:
  absl::Status Placements() {
    const bool bracket = scanner_.Take("[") || scanner_.Take("(");
    for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(mesh_.axes().size()); ++axis) {
      if (axis > 0) ORRERY_RETURN_IF_ERROR(scanner_.Expect(","));
      ORRERY_ASSIGN_OR_RETURN(const Placement placement, OnePlacement());
      placements_[axis] = placement;
      if (!placement.partial.has_value()) continue;
      sharding_.partial.push_back(axis);
      sharding_.reductions[axis] = *placement.partial;
    }
    if (scanner_.Sees(",")) {
      return scanner_.Expected(
          absl::StrCat(mesh_.axes().size(), " placements, one an axis of ", ToString(mesh_)));
    }
    if (bracket && !scanner_.Take("]")) ORRERY_RETURN_IF_ERROR(scanner_.Expect(")"));
    return CheckSharding(sharding_, Dims(rank_, 1), mesh_);  // of reductions that do not mix
  }

  absl::StatusOr<Placement> OnePlacement() {
    const std::string word = scanner_.Letters();
    if (word == "R" || word == "Replicate") {
      if (scanner_.Take("(")) ORRERY_RETURN_IF_ERROR(scanner_.Expect(")"));
      return Placement();
    }
    if (word == "S" || word == "Shard") return Shard(false);
    if (word == "_S" || word == "_StridedShard") return Shard(true);
    if (word == "P" || word == "Partial") return Partial();
    if (word.size() > 1 && word[0] == 'P') {
      if (const auto reduction = ParseReduction(absl::string_view(word).substr(1))) {
        return Placement{.partial = reduction};
      }
    }
    return scanner_.ExpectedBefore("a placement: S0, R, P, P(max), or _S(0, 2)");
  }

  // "sum", with or without its parentheses.
  absl::StatusOr<Placement> Partial() {
    if (!scanner_.Take("(")) return Placement{.partial = Reduction::kSum};
    if (scanner_.Take(")")) return Placement{.partial = Reduction::kSum};
    const auto reduction = ParseReduction(scanner_.Letters());
    if (!reduction.has_value()) return scanner_.ExpectedBefore("sum, avg, product, max or min");
    ORRERY_RETURN_IF_ERROR(scanner_.Expect(")"));
    return Placement{.partial = reduction};
  }

  absl::StatusOr<Placement> Shard(bool strided) {
    const bool parenthesis = scanner_.Take("(");
    if (parenthesis && scanner_.Take("dim")) ORRERY_RETURN_IF_ERROR(scanner_.Expect("="));
    Placement placement;
    ORRERY_ASSIGN_OR_RETURN(placement.dim, Dimension());
    if (strided) {
      ORRERY_RETURN_IF_ERROR(scanner_.Expect(","));
      if (scanner_.Take("split_factor") || scanner_.Take("sf")) {
        ORRERY_RETURN_IF_ERROR(scanner_.Expect("="));
      }
      ORRERY_ASSIGN_OR_RETURN(placement.split_factor, scanner_.Number("the split factor"));
    }
    if (parenthesis) ORRERY_RETURN_IF_ERROR(scanner_.Expect(")"));
    return placement;
  }

  absl::StatusOr<size_t> Dimension() {
    const auto rank = static_cast<int64_t>(rank_);
    const std::string wanted = absl::StrCat("a dimension below ", rank_);
    ORRERY_ASSIGN_OR_RETURN(const int64_t dim, scanner_.Number(wanted));
    if (dim < -rank || dim >= rank) return scanner_.ExpectedBefore(wanted);
    return static_cast<size_t>(dim < 0 ? dim + rank : dim);
  }

  // From the right: an axis stands behind those further right of which the product is its factor.
  absl::Status SetByFactors(size_t dim) {
    std::vector<AxisIndex> order;
    for (size_t axis = mesh_.axes().size(); axis-- > 0;) {
      const Placement& placement = placements_[axis];
      if (placement.dim != dim) continue;
      int64_t product = 1;
      size_t position = 0;
      while (product < placement.split_factor && position < order.size()) {
        product *= mesh_.size(order[position++]);
      }
      if (product != placement.split_factor) {
        return Wrong(absl::StrCat("axis ", axis, ": found split factor ", placement.split_factor,
                                  "; wanted the number of parts that axes further right make of ",
                                  "dimension ", dim));
      }
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(position),
                   static_cast<AxisIndex>(axis));
    }
    AxisList axes;
    for (const AxisIndex axis : order) axes.push_back(axis);
    sharding_.Set(dim, rank_, axes);
    return absl::OkStatus();
  }

  // "(0:1.0, 2:4.3)": all axes of a dimension, the outermost first.
  absl::Status Order() {
    ORRERY_RETURN_IF_ERROR(scanner_.Expect("("));
    do {
      ORRERY_ASSIGN_OR_RETURN(const size_t dim, Dimension());
      ORRERY_RETURN_IF_ERROR(scanner_.Expect(":"));
      AxisList axes;
      do {
        ORRERY_RETURN_IF_ERROR(TakeAxis(dim, axes));
      } while (scanner_.Take("."));
      if (axes.Sorted() != sharding_.at(dim).Sorted()) {
        return scanner_.ExpectedBefore(
            absl::StrCat("the order of all axes that split dimension ", dim));
      }
      sharding_.Set(dim, rank_, axes);
    } while (scanner_.Take(","));
    return scanner_.Expect(")");
  }

  absl::Status TakeAxis(size_t dim, AxisList& axes) {
    const std::string wanted =
        absl::StrCat("an axis that splits dimension ", dim, ", each at most once");
    ORRERY_ASSIGN_OR_RETURN(const int64_t axis, scanner_.Number(wanted));
    const auto index = static_cast<AxisIndex>(axis);
    if (axis < 0 || axis >= kMaxAxes || !sharding_.at(dim).contains(index) ||
        axes.contains(index)) {
      return scanner_.ExpectedBefore(wanted);
    }
    axes.push_back(index);
    return absl::OkStatus();
  }

  TextScanner scanner_;
  const Mesh& mesh_;
  size_t rank_;
  std::array<Placement, kMaxAxes> placements_;
  Sharding sharding_;
};

std::string OnePlacementText(const Sharding& sharding, size_t rank, AxisIndex axis, bool is_long) {
  for (size_t d = 0; d < rank; ++d) {
    if (!sharding.at(d).contains(axis)) continue;
    return is_long ? absl::StrCat("Shard(", d, ")") : absl::StrCat("S", d);
  }
  if (!sharding.partial.contains(axis)) return is_long ? "Replicate" : "R";
  const Reduction reduction = sharding.reductions[axis];
  if (is_long) return absl::StrCat("Partial(", ToString(reduction), ")");
  return reduction == Reduction::kSum ? "P" : absl::StrCat("P(", ToString(reduction), ")");
}

// Of the dimensions whose axes are not in ascending order.
std::string OrderText(const Sharding& sharding, size_t rank) {
  std::vector<std::string> entries;
  for (size_t d = 0; d < rank; ++d) {
    const AxisList axes = sharding.at(d);
    if (axes == axes.Sorted()) continue;
    const auto append = [](std::string* out, AxisIndex axis) { absl::StrAppend(out, int{axis}); };
    entries.push_back(absl::StrCat(d, ":", absl::StrJoin(axes.axes(), ".", append)));
  }
  if (entries.empty()) return "";
  return absl::StrCat(" order(", absl::StrJoin(entries, ","), ")");
}

}  // namespace
}  // namespace placement_text_cc

absl::StatusOr<Sharding> ParsePlacements(absl::string_view text, const Mesh& mesh, size_t rank) {
  return placement_text_cc::Reader(text, mesh, rank).Read();
}

absl::StatusOr<std::string> PlacementText(const Sharding& sharding, const Dims& dims,
                                          const Mesh& mesh, PlacementStyle style) {
  ORRERY_ASSIGN_OR_RETURN(const Sharding nested, InNestedChunks(sharding, dims, mesh));
  const bool is_long = style == PlacementStyle::kLong;
  std::vector<std::string> placements;
  for (AxisIndex axis = 0; axis < static_cast<AxisIndex>(mesh.axes().size()); ++axis) {
    placements.push_back(placement_text_cc::OnePlacementText(nested, dims.size(), axis, is_long));
  }
  const std::string text = absl::StrJoin(placements, is_long ? ", " : ",");
  return absl::StrCat(is_long ? "[" : "", text, is_long ? "]" : "",
                      placement_text_cc::OrderText(nested, dims.size()));
}

}  // namespace orrery::ir
