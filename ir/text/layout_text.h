#ifndef ORRERY_IR_TEXT_LAYOUT_TEXT_H_
#define ORRERY_IR_TEXT_LAYOUT_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/mesh.h"
#include "ir/type.h"

// Three ways to write a layout: ours, tensorcraft's and DTensor's. Each is read and printed; what
// is printed reads back as the same layout. Errors name the position in the text: "at 7: found ')';
// wanted the name of an axis".

namespace orrery::ir {

// Ours, as in the types of the IR: "[64@dp,512@hp.dp/100] partial(hp:max)". The axes of a dimension
// stand behind its size, the outermost first, and behind them the block: a number, or "balanced";
// without one, nested chunks. Partial axes of one reduction stand together, those of another behind
// a comma: "partial(dp,hp.pp:avg)". Without a reduction it is a sum.

/// A part of an axis, as Shardy writes it: hp:(2)4 is the sub-axis of size 4 inside of the 2 outer
/// parts of hp. An axis whose size is not outer × size × something does not have it.
struct SubAxis {
  AxisIndex axis = 0;
  int64_t outer = 1;
  int64_t size = 1;

  friend bool operator==(const SubAxis&, const SubAxis&) = default;
};

/// A mesh whose axes are parts of the axes of another: the same ranks by the same numbers.
struct MeshRefinement {
  Mesh whole;
  Mesh refined;
  std::vector<SubAxis> parts;  // by axis of `refined`: what part of `whole` it is
};

/// The coarsest refinement of `mesh` that has all of `wanted` as axes or runs of axes. An axis hp
/// that is cut becomes hp-0, hp-1 and so on, the outermost first; with more hyphens where an axis
/// has such a name already. An error for sub-axes that an axis does not have, or that cut it at
/// positions of which none divides the other, and for more than kMaxAxes axes.
absl::StatusOr<MeshRefinement> RefineMesh(const Mesh& mesh, const std::vector<SubAxis>& wanted);

/// A layout with the tensor and the mesh that its text tells of.
struct ReadLayout {
  MeshRefinement mesh;
  Dims dims;
  Sharding sharding;  // on mesh.refined
};

/// Reads our form, sub-axes too: "[512@hp:(1)2.dp] partial(hp:(2)4)".
absl::StatusOr<ReadLayout> ParseLayout(absl::string_view text, const Mesh& mesh);

/// The text that ParseLayout reads: neighbouring parts of an axis become one sub-axis, all of them
/// the axis.
std::string LayoutText(const ReadLayout& layout);

// tensorcraft's: "D_[4,2,4]⊥{(0,1),∅}(100,∅)", and in ASCII "D_[4,2,4]{(0,1),-}(100,-)". Axes are
// numbered, and here called a0, a1 and so on.

/// A layout of a tensor of `rank` dimensions, and its mesh.
struct TensorcraftLayout {
  Mesh mesh;
  size_t rank = 0;
  Sharding sharding;
};

/// Reads either form. A split dimension without a block has blocks of 1.
absl::StatusOr<TensorcraftLayout> ParseTensorcraft(absl::string_view text);

/// The layout of the parts "(0,1),-" and "100,-". No blocks at all are blocks of 1 throughout.
absl::StatusOr<TensorcraftLayout> ParseTensorcraftParts(const Mesh& mesh, absl::string_view mapping,
                                                        absl::string_view blocks);

/// Which of tensorcraft's two forms is written.
enum class TextStyle : uint8_t { kAscii, kUnicode };

/// The layout in tensorcraft's form. InvalidArgument where parts are not blocks of one size, dealt
/// in turn, or values are partial.
absl::StatusOr<std::string> TensorcraftText(const Sharding& sharding, const Dims& dims,
                                            const Mesh& mesh, TextStyle style);

/// Whether tensorcraft has such a layout: every rank holds at least one element, and nothing is
/// partial.
absl::Status CheckTensorcraft(const Sharding& sharding, const Dims& dims, const Mesh& mesh);

// DTensor's: one placement an axis of the mesh. "[Shard(0), Replicate, Partial(sum)]", or short
// "S0,R,P". Several axes of one dimension split it in ascending order, unless the text goes on with
// the order of a dimension: "S0,S0 order(0:1.0)", or says it as DTensor did before:
// "_StridedShard(0, split_factor=2), Shard(0)", where axes further right of product 2 come first.

/// Reads either form; `rank` is that of the tensor. A negative dimension counts from the last.
absl::StatusOr<Sharding> ParsePlacements(absl::string_view text, const Mesh& mesh, size_t rank);

/// Which of DTensor's two forms is written: "S0,R,P", or "[Shard(0), Replicate, Partial(sum)]".
enum class PlacementStyle : uint8_t { kShort, kLong };

/// Its text. An error where parts are not nested chunks.
absl::StatusOr<std::string> PlacementText(const Sharding& sharding, const Dims& dims,
                                          const Mesh& mesh, PlacementStyle style);

}  // namespace orrery::ir

#endif  // ORRERY_IR_TEXT_LAYOUT_TEXT_H_
