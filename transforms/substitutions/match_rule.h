#ifndef ORRERY_TRANSFORMS_SUBSTITUTIONS_MATCH_RULE_H_
#define ORRERY_TRANSFORMS_SUBSTITUTIONS_MATCH_RULE_H_

#include <optional>
#include <span>
#include <vector>

#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/rule.h"

// Where in a flow a side of a rule stands, and what the other side is there.

namespace orrery::transforms::substitutions {

/// A rule read in one direction.
struct Direction {
  const Rule* rule = nullptr;
  bool backward = false;  // from right to left

  const RuleSide& from() const { return backward ? rule->right : rule->left; }
  const RuleSide& to() const { return backward ? rule->left : rule->right; }
};

/// The directions in which rules can be read: from a side with an op, of inputs and variables that
/// it names all.
std::vector<Direction> DirectionsOf(std::span<const Rule> rules);

/// A place where the side that is replaced stands.
struct Match {
  std::vector<Port> values;  // by value of the side; inputs first
  Variables variables;
};

/// A flow with what a matcher asks of it: which nodes are of a kind, and which read a node.
class Matcher {
 public:
  Matcher(const WorkTable& works, const Dataflow& flow);

  /// All places where `direction.from()` stands, at most `limit`, in an order that follows from the
  /// flow alone.
  std::vector<Match> Find(const Direction& direction, size_t limit) const;

 private:
  friend class MatchWalk;
  const WorkTable& works_;
  const Dataflow& flow_;
  std::vector<std::vector<int32_t>> users_;  // by node, ascending
  absl::flat_hash_map<ir::OpKind, std::vector<int32_t>> by_kind_;
};

/// The ops of a side on values that stand in a flow, of which `nodes` are to be added behind
/// `flow_size`.
struct Instance {
  std::vector<Node> nodes;
  std::vector<Port> returns;
};

/// A flow's types of values, those of nodes that are not yet in it too.
class PortTypes {
 public:
  PortTypes(const WorkTable& works, const Dataflow& flow) : works_(works), flow_(flow) {}
  ir::TypeId Of(Port port, std::span<const Node> added) const;

 private:
  const WorkTable& works_;
  const Dataflow& flow_;
};

/// The ops of `side` on `inputs`, values of `flow`. Nothing where an op does not take its operands,
/// makes another number of results, or a variable is not known.
std::optional<Instance> Instantiate(const Rule& rule, const RuleSide& side,
                                    std::span<const Port> inputs, const Variables& variables,
                                    const Dataflow& flow, WorkTable& works);

/// The flow with the other side in place of a match; nothing where that is not possible there.
std::optional<Dataflow> Apply(const Direction& direction, const Match& match, const Dataflow& flow,
                              WorkTable& works);

}  // namespace orrery::transforms::substitutions

#endif  // ORRERY_TRANSFORMS_SUBSTITUTIONS_MATCH_RULE_H_
