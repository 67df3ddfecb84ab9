#ifndef ORRERY_LOWERING_NETWORK_BOUNDARY_MOVE_H_
#define ORRERY_LOWERING_NETWORK_BOUNDARY_MOVE_H_

#include <cstdint>
#include <vector>

#include "ir/mesh.h"
#include "ir/type.h"
#include "support/units.h"

// How a value goes from the ranks of one stage to those of another, where the two are not alike:
// cross-mesh resharding (Zheng et al., Alpa, OSDI 2022, section 6; Zhuang et al., MLSys 2023).
//
// Each receiver gets what it lacks from ranks that have it, and nothing twice. Where several
// receivers hold the same, each gets a share of it, and they gather it among themselves, as links
// within a stage are the faster ones (the local all-gather): so as few bytes cross as can.

namespace orrery::lowering {

/// One rank sends to another, by their numbers within their stages.
struct BoundaryMessage {
  int32_t from = 0;
  int32_t to = 0;
  Bytes bytes;

  friend bool operator==(const BoundaryMessage&, const BoundaryMessage&) = default;
};

/// All that it takes to bring a value over.
struct BoundaryMove {
  /// In an order in which no rank sends, or gets, two of a round; round by round.
  std::vector<BoundaryMessage> messages;
  ir::AxisList gather;  // along which receivers then gather; empty: nothing is left to gather
};

/// A value as the ranks of a stage hold it.
struct BoundaryEnd {
  const ir::TensorType& type;
  const ir::Mesh& mesh;
};

/// The move of a value of equal dims on both sides. Of a partial value each part goes to the
/// receivers of its number, modulo how many they are. With `replica` of each side not -1 only those
/// ranks along "dp" take part, and dimensions that "dp" splits are their own: a microbatch that one
/// replica makes and one takes.
BoundaryMove MoveAcross(const BoundaryEnd& from, const BoundaryEnd& to, int32_t from_replica = -1,
                        int32_t to_replica = -1);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_BOUNDARY_MOVE_H_
