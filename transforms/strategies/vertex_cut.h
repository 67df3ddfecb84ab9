#ifndef ORRERY_TRANSFORMS_STRATEGIES_VERTEX_CUT_H_
#define ORRERY_TRANSFORMS_STRATEGIES_VERTEX_CUT_H_

#include <cstdint>
#include <vector>

namespace orrery::transforms::strategies {

/// Nodes between a left and a right end.
struct CutProblem {
  std::vector<int64_t> weight;                   // [node], above 0
  std::vector<std::vector<int32_t>> neighbours;  // [node], both ways
  std::vector<bool> touches_left;                // [node]: the left end
  std::vector<bool> touches_right;
};

/// Which nodes lie to the left of the nodes of least weight that separate the ends: of several such
/// cuts, the leftmost, so that few lie there. By maximum flow (Menger 1927; Edmonds & Karp 1972).
std::vector<bool> LeftOfLeastCut(const CutProblem& problem);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_VERTEX_CUT_H_
