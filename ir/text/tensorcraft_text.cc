#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/layout.h"
#include "ir/text/layout_text.h"
#include "ir/text/text_scanner.h"
#include "support/status.h"

namespace orrery::ir {
namespace tensorcraft_text_cc {
namespace {

constexpr absl::string_view kNothing = "∅";
constexpr absl::string_view kShardedOver = "⊥";

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

bool TakeNothing(TextScanner& scanner) { return scanner.Take(kNothing) || scanner.Take("-"); }

absl::StatusOr<Mesh> TakeMesh(TextScanner& scanner) {
  std::vector<Axis> axes;
  ORRERY_RETURN_IF_ERROR(scanner.Expect("["));
  while (!scanner.Take("]")) {
    if (!axes.empty()) ORRERY_RETURN_IF_ERROR(scanner.Expect(","));
    ORRERY_ASSIGN_OR_RETURN(const int64_t size, scanner.Number("the size of an axis"));
    axes.push_back({absl::StrCat("a", axes.size()), size});
    if (!Mesh::Fits(axes)) {
      return scanner.ExpectedBefore("up to 7 axes of at least 1, and up to 2^40 ranks");
    }
  }
  return Mesh(std::move(axes));
}

absl::Status TakeAxis(TextScanner& scanner, const Mesh& mesh, AxisList& used, AxisList& axes) {
  const std::string wanted =
      absl::StrCat("an axis from 0 to ", mesh.axes().size(), " - 1, each at most once");
  ORRERY_ASSIGN_OR_RETURN(const int64_t axis, scanner.Number(wanted));
  if (axis < 0 || axis >= static_cast<int64_t>(mesh.axes().size()) ||
      used.contains(static_cast<AxisIndex>(axis))) {
    return scanner.ExpectedBefore(wanted);
  }
  used.push_back(static_cast<AxisIndex>(axis));
  axes.push_back(static_cast<AxisIndex>(axis));
  return absl::OkStatus();
}

// "∅", "0" or "(0,1)".
absl::StatusOr<AxisList> TakeAxes(TextScanner& scanner, const Mesh& mesh, AxisList& used) {
  AxisList axes;
  if (TakeNothing(scanner)) return axes;
  if (!scanner.Take("(")) {
    ORRERY_RETURN_IF_ERROR(TakeAxis(scanner, mesh, used, axes));
    return axes;
  }
  while (!scanner.Take(")")) {
    if (!axes.empty()) ORRERY_RETURN_IF_ERROR(scanner.Expect(","));
    if (!axes.empty() && scanner.Take(")")) break;  // "(0,)", as Python prints it
    ORRERY_RETURN_IF_ERROR(TakeAxis(scanner, mesh, used, axes));
  }
  return axes;
}

// Entries up to `end`, or to the end of the text where that is empty.
template <typename TakeEntry>
absl::Status TakeEntries(TextScanner& scanner, absl::string_view end, TakeEntry take) {
  const auto done = [&] { return end.empty() ? scanner.AtEnd() : scanner.Take(end); };
  for (bool first = true; !done(); first = false) {
    if (!first) ORRERY_RETURN_IF_ERROR(scanner.Expect(","));
    ORRERY_RETURN_IF_ERROR(take());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<AxisList>> TakeMapping(TextScanner& scanner, absl::string_view end,
                                                  const Mesh& mesh) {
  std::vector<AxisList> mapping;
  AxisList used;
  ORRERY_RETURN_IF_ERROR(TakeEntries(scanner, end, [&]() -> absl::Status {
    ORRERY_ASSIGN_OR_RETURN(const AxisList axes, TakeAxes(scanner, mesh, used));
    mapping.push_back(axes);
    return absl::OkStatus();
  }));
  return mapping;
}

// Nothing and -1 are both -1.
absl::StatusOr<std::vector<int64_t>> TakeBlocks(TextScanner& scanner, absl::string_view end) {
  std::vector<int64_t> blocks;
  ORRERY_RETURN_IF_ERROR(TakeEntries(scanner, end, [&]() -> absl::Status {
    absl::StatusOr<int64_t> block = scanner.Number("a block size, or none: -");
    if (block.ok() && *block < 1 && *block != -1) {
      return scanner.ExpectedBefore("a block size of at least 1, or none: -");
    }
    if (!block.ok() && !TakeNothing(scanner)) return block.status();
    blocks.push_back(block.value_or(-1));
    return absl::OkStatus();
  }));
  return blocks;
}

absl::StatusOr<TensorcraftLayout> Assemble(Mesh mesh, const std::vector<AxisList>& mapping,
                                           const std::vector<int64_t>& blocks) {
  TensorcraftLayout layout{.mesh = std::move(mesh), .rank = mapping.size(), .sharding = {}};
  if (!blocks.empty() && blocks.size() != mapping.size()) {
    return Wrong(absl::StrCat("found ", blocks.size(), " blocks for ", mapping.size(),
                              " dimensions; wanted one a dimension, - where it is not split"));
  }
  for (size_t d = 0; d < mapping.size(); ++d) {
    const int64_t block = blocks.empty() || blocks[d] < 0 ? 1 : blocks[d];
    layout.sharding.Set(d, mapping.size(), mapping[d], block);
  }
  return layout;
}

std::string MappingText(const Sharding& sharding, size_t rank, absl::string_view nothing) {
  std::vector<std::string> entries;
  for (size_t d = 0; d < rank; ++d) {
    const AxisList axes = sharding.at(d);
    std::string& entry = entries.emplace_back(nothing);
    if (axes.empty()) continue;
    entry = absl::StrJoin(axes.axes(), ",", [](std::string* out, AxisIndex axis) {
      absl::StrAppend(out, int{axis});
    });
    if (axes.axes().size() > 1) entry = absl::StrCat("(", entry, ")");
  }
  return absl::StrJoin(entries, ",");
}

}  // namespace
}  // namespace tensorcraft_text_cc

absl::StatusOr<TensorcraftLayout> ParseTensorcraft(absl::string_view text) {
  TextScanner scanner(text);
  ORRERY_RETURN_IF_ERROR(scanner.Expect("D_"));
  ORRERY_ASSIGN_OR_RETURN(Mesh mesh, tensorcraft_text_cc::TakeMesh(scanner));
  scanner.Take(tensorcraft_text_cc::kShardedOver);
  ORRERY_RETURN_IF_ERROR(scanner.Expect("{"));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<AxisList> mapping,
                          tensorcraft_text_cc::TakeMapping(scanner, "}", mesh));
  std::vector<int64_t> blocks;
  if (scanner.Take("(")) {
    ORRERY_ASSIGN_OR_RETURN(blocks, tensorcraft_text_cc::TakeBlocks(scanner, ")"));
  }
  if (!scanner.AtEnd()) return scanner.Expected("the end of the layout");
  return tensorcraft_text_cc::Assemble(std::move(mesh), mapping, blocks);
}

absl::StatusOr<TensorcraftLayout> ParseTensorcraftParts(const Mesh& mesh, absl::string_view mapping,
                                                        absl::string_view blocks) {
  TextScanner axes(mapping), sizes(blocks);
  ORRERY_ASSIGN_OR_RETURN(const std::vector<AxisList> lists,
                          tensorcraft_text_cc::TakeMapping(axes, "", mesh));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                          tensorcraft_text_cc::TakeBlocks(sizes, ""));
  return tensorcraft_text_cc::Assemble(mesh, lists, numbers);
}

absl::StatusOr<std::string> TensorcraftText(const Sharding& sharding, const Dims& dims,
                                            const Mesh& mesh, TextStyle style) {
  if (!sharding.partial.empty()) {
    return tensorcraft_text_cc::Wrong(
        absl::StrCat("the values are partial over ", mesh.Names(sharding.partial),
                     "; wanted whole ones, as tensorcraft knows no others"));
  }
  ORRERY_ASSIGN_OR_RETURN(const Sharding blocked, InBlocks(sharding, dims, mesh));
  const bool ascii = style == TextStyle::kAscii;
  const absl::string_view nothing = ascii ? "-" : tensorcraft_text_cc::kNothing;
  std::vector<std::string> sizes, blocks;
  for (const Axis& axis : mesh.axes()) sizes.push_back(absl::StrCat(axis.size));
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool split = !blocked.at(d).empty();
    blocks.push_back(split ? absl::StrCat(blocked.block(d)) : std::string(nothing));
  }
  return absl::StrCat("D_[", absl::StrJoin(sizes, ","), "]",
                      ascii ? "" : tensorcraft_text_cc::kShardedOver, "{",
                      tensorcraft_text_cc::MappingText(blocked, dims.size(), nothing), "}(",
                      absl::StrJoin(blocks, ","), ")");
}

absl::Status CheckTensorcraft(const Sharding& sharding, const Dims& dims, const Mesh& mesh) {
  ORRERY_RETURN_IF_ERROR(CheckSharding(sharding, dims, mesh));
  if (!sharding.partial.empty()) {
    return tensorcraft_text_cc::Wrong(absl::StrCat(
        "found values partial over ", mesh.Names(sharding.partial), "; wanted whole ones"));
  }
  ORRERY_ASSIGN_OR_RETURN(const Sharding blocked, InBlocks(sharding, dims, mesh));
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t parts = mesh.size(blocked.at(d)), size = dims[d], block = blocked.block(d);
    if (blocked.at(d).empty()) continue;
    // All parts but the last are full, and the last one begins before the end.
    const int64_t most = parts == 1 ? size : std::max<int64_t>(1, (size - 1) / (parts - 1));
    if (size >= parts && block <= most) continue;
    return tensorcraft_text_cc::Wrong(absl::StrCat(
        "dimension ", d, " of ", size, " in ", parts, " parts by blocks of ", block,
        " leaves some ranks without any; wanted ",
        size < parts ? "a size of at least " : "blocks of at most ", size < parts ? parts : most));
  }
  return absl::OkStatus();
}

}  // namespace orrery::ir
