#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_MOVE_SET_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_MOVE_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ir/mesh.h"
#include "ir/type.h"
#include "transforms/redistribution/packed_layout.h"
#include "transforms/redistribution/step.h"

namespace orrery::transforms::redistribution {

/// What a step costs, each on its own scale; a move set adds it up last.
struct StepCost {
  double launches = 0;         // of a kernel or a collective
  double latency = 0;          // hops, or the unit that the move set charges for them
  double transfer = 0;         // of the bytes over the links that they take
  double copy = 0;             // of bytes rewritten in a device's memory
  double reduction = 0;        // of adding up
  double synchronization = 0;  // of waiting for stragglers
  double memory = 0;           // where memory has a price

  double total() const {
    return launches + latency + transfer + copy + reduction + synchronization + memory;
  }
};

/// What a step works on: the elements of one group of ranks together, as Chan et al. 2007 count
/// them, and the ranks of the group. Nothing of what each rank does by itself.
struct StepVolume {
  double elements = 0;
  int64_t ranks = 0;
};

/// Of a collective of `ranks` in which a rank holds `before` and then `after` elements: what is
/// gathered, what all ranks exchange, the vector that is reduced, the part that is traded.
StepVolume VolumeOfCollective(MoveKind kind, int64_t ranks, int64_t before, int64_t after);

/// A step that may be taken from a layout.
struct Move {
  Step step;
  double cost = 0;   // StepCost::total, in the move set's unit; infinite moves are not made
  int64_t peak = 0;  // elements that the fullest rank holds at once during the step
  double tie = 0;    // of plans of equal cost the one of the least sum is taken; not negative
};

/// The tensor whose layout changes.
struct Problem {
  ir::Mesh mesh;
  ir::Dims dims;
  int64_t itemsize = 4;  // bytes an element
  ir::Sharding from, to;
};

/// Which steps there are and what each costs: tensorcraft's, DTensor's, or those of a cluster. Made
/// for one problem. Pure: the same layout gives the same moves.
class MoveSet {
 public:
  virtual ~MoveSet() = default;

  /// Appends all moves from `layout`, each to another layout, in an order that is always the same.
  virtual void Expand(const PackedLayout& layout, std::vector<Move>& moves) const = 0;
  /// Appends moves for when those of Expand do not lead to the target within a limit, so that there
  /// is an answer. Each costs no less than a way of those to where it leads, were there no limit.
  virtual void LastResort(const PackedLayout&, std::vector<Move>&) const {}
  /// A lower bound of the cost of any way from `layout` to the target, last resorts aside. The
  /// search relies on it; 0 always holds.
  virtual double LowerBound(const PackedLayout&) const { return 0; }
  /// What `step` costs when taken from `before`; its total is the move's cost.
  virtual StepCost CostOf(const PackedLayout& before, const Step& step) const = 0;
  /// The data that `step` works on, and the ranks of a group; nothing where nobody says.
  virtual StepVolume VolumeOf(const PackedLayout&, const Step&) const { return {}; }
  /// Elements that the fullest rank holds in `layout`.
  virtual int64_t Elements(const PackedLayout& layout) const = 0;
  /// The step in the words of its origin: "alltoall_0_1_-1", "all_gather".
  virtual std::string NameOf(const PackedLayout& before, const Step& step) const = 0;
  /// Why a step that the layout before it may allow is none of these moves, as where no group of
  /// ranks could carry it out; "" where nothing speaks against it. Of `step` kind, axes and
  /// dimensions are read.
  virtual std::string Refusal(const PackedLayout&, const Step&) const { return ""; }
  /// Layouts that are one to the move set have one form.
  virtual PackedLayout Normal(const PackedLayout& layout) const { return layout; }
};

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_MOVE_SET_H_
