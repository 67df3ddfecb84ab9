#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_TERMS_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_TERMS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "ir/tensor.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/rule.h"

// What graphs of an alphabet are made of: each op on each value once, with its results on random
// whole numbers, by which graphs are compared.

namespace orrery::transforms::substitutions {

/// An op on certain values.
struct Term {
  int32_t op = 0;  // of the alphabet
  std::vector<Port> operands;
};

/// A graph: its ops, ascending, by their nodes.
using TermGraph = std::vector<int32_t>;

/// See the top of this file. `alphabet` and `variables` have to stay.
class Terms {
 public:
  /// The inputs of the alphabet at these sizes.
  Terms(const Alphabet& alphabet, const Variables& variables);

  const Dataflow& flow() const { return flow_; }
  WorkTable& works() { return works_; }
  const Term& term(int32_t node) const { return terms_[static_cast<size_t>(node)]; }
  /// Of the elements and dims of a value; of two values that are not equal, hardly ever the same.
  uint64_t hash(Port port) const {
    return hashes_[static_cast<size_t>(port.node)][static_cast<size_t>(port.result)];
  }
  /// How many results a node has.
  int32_t results(int32_t node) const {
    return static_cast<int32_t>(works_[flow_.nodes[static_cast<size_t>(node)].work].results.size());
  }
  /// The node of an op on operands; -1 where it does not take them.
  int32_t Find(int32_t op, const std::vector<Port>& operands);

 private:
  int32_t Add(int32_t op, const std::vector<Port>& operands);
  void Keep(std::vector<ir::Tensor> results);

  const Alphabet& alphabet_;
  const Variables& variables_;
  WorkTable works_;
  Dataflow flow_;
  std::vector<Term> terms_;
  std::deque<std::vector<ir::Tensor>> tensors_;
  std::vector<std::vector<uint64_t>> hashes_;
  std::map<std::vector<int32_t>, int32_t> nodes_;
};

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_TERMS_H_
