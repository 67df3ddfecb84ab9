#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/layout.h"
#include "ir/sharding_text.h"
#include "ir/text/layout_text.h"
#include "support/status.h"
#include "tools/redistribution/redistribution.h"

// How redistributions are written on the command line.

namespace orrery::tools {
namespace redistribution_text_cc {
namespace {

// "2,8" or "dp=2,hp=8".
absl::StatusOr<ir::Mesh> ParseMesh(absl::string_view text) {
  std::vector<ir::Axis> axes;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> halves = absl::StrSplit(item, '=');
    ir::Axis axis{.name =
                      halves.size() == 2 ? std::string(halves[0]) : absl::StrCat("a", axes.size())};
    if (halves.size() > 2 || !absl::SimpleAtoi(halves.back(), &axis.size)) axis.size = 0;
    axes.push_back(std::move(axis));
  }
  if (ir::Mesh::Fits(axes)) return ir::Mesh(std::move(axes));
  return absl::InvalidArgumentError(absl::StrCat(
      "--mesh '", text, "': wanted 1 to ", ir::kMaxAxes,
      " sizes of at least 1, with or without names that differ, and at most 2^40 ranks, as in 2,8 "
      "or dp=2,hp=8"));
}

// What costs and memory are counted of without overflow.
bool IsWithinLimits(const ir::Dims& dims) {
  constexpr int64_t kMostElements = int64_t{1} << 56;
  int64_t elements = 1;
  for (const int64_t size : dims) {
    if (size < 0 || elements > kMostElements / std::max<int64_t>(size, 1)) return false;
    elements *= std::max<int64_t>(size, 1);
  }
  return dims.size() <= redistribution::PackedLayout::kMaxDims;
}

absl::StatusOr<ir::Dims> ParseShape(absl::string_view text) {
  ir::Dims dims;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    if (!absl::SimpleAtoi(item, &dims.emplace_back(0))) dims.back() = 0;
  }
  if (std::ranges::find(dims, 0) == dims.end() && IsWithinLimits(dims)) return dims;
  return absl::InvalidArgumentError(
      absl::StrCat("--shape '", text, "': wanted 1 to ", redistribution::PackedLayout::kMaxDims,
                   " sizes of at least 1, and at most 2^56 elements, as in 8192,1024"));
}

bool StartsWithWord(absl::string_view text) {
  return !text.empty() &&
         (absl::ascii_isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_');
}

// What a layout is written in, by its first characters.
Notation NotationOf(absl::string_view text) {
  if (absl::StartsWith(text, "D_")) return Notation::kMapping;
  if (absl::ConsumePrefix(&text, "[") && !StartsWithWord(text)) return Notation::kAxes;
  absl::ConsumePrefix(&text, "(");  // of a mapping, or a tuple of placements as Python prints it
  return StartsWithWord(text) ? Notation::kPlacements : Notation::kMapping;
}

absl::StatusOr<ir::TensorcraftLayout> ParseMapping(const RedistributionText& text,
                                                   const std::string& layout,
                                                   const std::string& blocks) {
  if (absl::StartsWith(layout, "D_")) return ir::ParseTensorcraft(layout);
  ORRERY_ASSIGN_OR_RETURN(const ir::Mesh mesh, ParseMesh(text.mesh));
  return ir::ParseTensorcraftParts(mesh, layout, blocks);
}

// Blocks are of layouts that do not say so themselves.
absl::Status CheckBlocks(const RedistributionText& text, Notation notation) {
  const auto check = [&](absl::string_view flag, const std::string& blocks,
                         const std::string& layout) -> absl::Status {
    const bool has_none = notation != Notation::kMapping || absl::StartsWith(layout, "D_");
    if (blocks.empty() || !has_none) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("--", flag, "-blocks '", blocks, "': --", flag,
                                                   " is '", layout,
                                                   "'; wanted one written as (0,1),-"));
  };
  ORRERY_RETURN_IF_ERROR(check("from", text.from_blocks, text.from));
  return check("to", text.to_blocks, text.to);
}

absl::Status ReadMappings(const RedistributionText& text, redistribution::Problem& problem) {
  ORRERY_ASSIGN_OR_RETURN(const ir::TensorcraftLayout from,
                          Annotated(ParseMapping(text, text.from, text.from_blocks), "--from"));
  ORRERY_ASSIGN_OR_RETURN(const ir::TensorcraftLayout to,
                          Annotated(ParseMapping(text, text.to, text.to_blocks), "--to"));
  problem.mesh = from.mesh;
  problem.from = from.sharding;
  problem.to = to.sharding;
  const auto sizes = [](const ir::Mesh& mesh) {
    std::vector<int64_t> list;
    for (const ir::Axis& axis : mesh.axes()) list.push_back(axis.size);
    return list;
  };
  if (sizes(from.mesh) != sizes(to.mesh)) {
    return absl::InvalidArgumentError("--from and --to are on two meshes; wanted one");
  }
  if (from.rank == problem.dims.size() && to.rank == problem.dims.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--from has ", from.rank, " dimensions, --to ",
                                                 to.rank, "; wanted the ", problem.dims.size(),
                                                 " of --shape"));
}

absl::Status ReadPlacements(const RedistributionText& text, redistribution::Problem& problem) {
  ORRERY_ASSIGN_OR_RETURN(problem.mesh, ParseMesh(text.mesh));
  const size_t rank = problem.dims.size();
  ORRERY_ASSIGN_OR_RETURN(problem.from,
                          Annotated(ir::ParsePlacements(text.from, problem.mesh, rank), "--from"));
  ORRERY_ASSIGN_OR_RETURN(problem.to,
                          Annotated(ir::ParsePlacements(text.to, problem.mesh, rank), "--to"));
  return absl::OkStatus();
}

// `layout` on a mesh that is refined at least as much as its own.
ir::Sharding Onto(const ir::ReadLayout& layout, const ir::MeshRefinement& mesh) {
  const auto finer = [&](const ir::AxisList& axes) {
    ir::AxisList list;
    for (const ir::AxisIndex axis : axes.axes()) {
      const ir::SubAxis& whole = layout.mesh.parts[axis];
      for (ir::AxisIndex part = 0; part < static_cast<ir::AxisIndex>(mesh.parts.size()); ++part) {
        const ir::SubAxis& sub = mesh.parts[part];
        const bool inside = sub.axis == whole.axis && sub.outer >= whole.outer &&
                            sub.outer < whole.outer * whole.size;
        if (inside) list.push_back(part);
      }
    }
    return list;
  };
  ir::Sharding sharding;
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    sharding.Set(d, layout.dims.size(), finer(layout.sharding.at(d)), layout.sharding.block(d));
  }
  for (const ir::AxisIndex axis : layout.sharding.partial.axes()) {
    ir::AxisList one;
    one.push_back(axis);
    const ir::AxisList parts = finer(one);
    for (const ir::AxisIndex part : parts.axes()) {
      sharding.partial.push_back(part);
      sharding.reductions[part] = layout.sharding.reductions[axis];
    }
  }
  sharding.partial = sharding.partial.Sorted();
  return sharding;
}

absl::Status ReadOurs(const RedistributionText& text, WrittenProblem& written) {
  redistribution::Problem& problem = written.problem;
  ORRERY_ASSIGN_OR_RETURN(const ir::Mesh mesh, ParseMesh(text.mesh));
  ORRERY_ASSIGN_OR_RETURN(const ir::ReadLayout from,
                          Annotated(ir::ParseLayout(text.from, mesh), "--from"));
  ORRERY_ASSIGN_OR_RETURN(const ir::ReadLayout to,
                          Annotated(ir::ParseLayout(text.to, mesh), "--to"));
  if (from.dims != to.dims || (!problem.dims.empty() && problem.dims != from.dims)) {
    return absl::InvalidArgumentError(
        "--from, --to and --shape have unlike sizes; wanted one shape");
  }
  if (!IsWithinLimits(from.dims)) {
    return absl::InvalidArgumentError(absl::StrCat("--from '", text.from, "': wanted at most ",
                                                   redistribution::PackedLayout::kMaxDims,
                                                   " sizes, and at most 2^56 elements"));
  }
  problem.dims = from.dims;
  std::vector<ir::SubAxis> parts = from.mesh.parts;
  parts.insert(parts.end(), to.mesh.parts.begin(), to.mesh.parts.end());
  ORRERY_ASSIGN_OR_RETURN(written.mesh, Annotated(ir::RefineMesh(mesh, parts), "--mesh"));
  problem.mesh = written.mesh.refined;
  problem.from = Onto(from, written.mesh);
  problem.to = Onto(to, written.mesh);
  return absl::OkStatus();
}

}  // namespace
}  // namespace redistribution_text_cc

absl::StatusOr<WrittenProblem> ParseRedistribution(const RedistributionText& text) {
  WrittenProblem written{
      .problem = {}, .notation = redistribution_text_cc::NotationOf(text.from), .mesh = {}};
  redistribution::Problem& problem = written.problem;
  if (text.from.empty() || text.to.empty()) {
    return absl::InvalidArgumentError(
        "--from and --to: wanted a layout each, as in --from S0,S0 --to R,S0");
  }
  if (redistribution_text_cc::NotationOf(text.to) != written.notation) {
    return absl::InvalidArgumentError(
        absl::StrCat("--from '", text.from, "' and --to '", text.to,
                     "' are written in two ways; wanted one of (0,1),- and S0,R and [64@dp,32]"));
  }
  ORRERY_RETURN_IF_ERROR(redistribution_text_cc::CheckBlocks(text, written.notation));
  if (!text.shape.empty() || written.notation != Notation::kAxes) {
    ORRERY_ASSIGN_OR_RETURN(problem.dims, redistribution_text_cc::ParseShape(text.shape));
  }
  if (written.notation == Notation::kMapping) {
    ORRERY_RETURN_IF_ERROR(redistribution_text_cc::ReadMappings(text, problem));
  } else if (written.notation == Notation::kPlacements) {
    ORRERY_RETURN_IF_ERROR(redistribution_text_cc::ReadPlacements(text, problem));
  } else {
    ORRERY_RETURN_IF_ERROR(redistribution_text_cc::ReadOurs(text, written));
  }
  // tensorcraft's notebooks count doubles.
  const int64_t itemsize = written.notation == Notation::kMapping ? 8 : 4;
  problem.itemsize = text.itemsize == 0 ? itemsize : text.itemsize;
  if (problem.itemsize < 1 || problem.itemsize > 64) {
    return absl::InvalidArgumentError(
        absl::StrCat("--itemsize ", text.itemsize, ": wanted 1 to 64 bytes"));
  }
  ORRERY_RETURN_IF_ERROR(
      Annotate(ir::CheckSharding(problem.from, problem.dims, problem.mesh), "--from"));
  ORRERY_RETURN_IF_ERROR(
      Annotate(ir::CheckSharding(problem.to, problem.dims, problem.mesh), "--to"));
  return written;
}

std::string WrittenProblem::Text(const redistribution::PackedLayout& layout) const {
  const ir::Sharding sharding = layout.Unpack(problem.dims.size());
  if (notation == Notation::kAxes) {
    return ir::LayoutText({.mesh = mesh, .dims = problem.dims, .sharding = sharding});
  }
  const absl::StatusOr<std::string> text =
      notation == Notation::kMapping
          ? ir::TensorcraftText(sharding, problem.dims, problem.mesh, ir::TextStyle::kUnicode)
          : ir::PlacementText(sharding, problem.dims, problem.mesh, ir::PlacementStyle::kShort);
  return text.ok() ? *text : ir::LayoutText(sharding, problem.dims, problem.mesh);
}

std::string PlainNumber(double number) {
  if (number == static_cast<double>(static_cast<int64_t>(std::min(number, 1e15)))) {
    return absl::StrCat(static_cast<int64_t>(number));
  }
  const std::string text = nlohmann::json(number).dump();
  return text == "null" ? "inf" : text;
}

}  // namespace orrery::tools
