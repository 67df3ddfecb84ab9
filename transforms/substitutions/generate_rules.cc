#include "transforms/substitutions/generate_rules.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "support/check.h"
#include "support/status.h"
#include "transforms/substitutions/check_rule.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/match_rule.h"
#include "transforms/substitutions/prove_rule.h"
#include "transforms/substitutions/terms.h"

namespace orrery::transforms::substitutions {
namespace generate_rules_cc {
namespace {

constexpr size_t kMostReturns = 3;
constexpr size_t kMatches = 64;
constexpr size_t kMostRules = 10'000;  // of one alphabet
constexpr int32_t kFewGraphs = 200;

// A graph with what it returns: the results that none of its ops reads, by their values.
struct Candidate {
  TermGraph graph;
  std::vector<Port> returns;
};

class Generator {
 public:
  Generator(const Alphabet& alphabet, const KnownRules& known, const Generation& options,
            const Variables& variables)
      : alphabet_(alphabet), axioms_(known.axioms), options_(options), terms_(alphabet, variables) {
    rules_.reserve(known.rules.size() + kMostRules);
    for (const Rule& rule : known.rules) Learn(rule);
  }

  absl::StatusOr<Generated> Run() {
    TakeInputs();
    std::vector<TermGraph> graphs = {{}};
    for (int32_t size = 1; size <= alphabet_.most_ops; ++size) {
      absl::flat_hash_set<TermGraph> larger;
      std::vector<TermGraph> next;
      for (const TermGraph& graph : graphs) {
        for (const int32_t node : Extensions(graph)) {
          TermGraph with = graph;
          with.insert(std::ranges::upper_bound(with, node), node);
          if (!larger.insert(with).second) continue;
          next.push_back(std::move(with));
          if (++generated_.graphs <= options_.most_graphs) continue;
          return absl::InvalidArgumentError(absl::StrCat(
              "alphabet @", alphabet_.frame.name, ": more than ", options_.most_graphs,
              " graphs; wanted fewer ops or inputs, or a smaller number behind 'up to'"));
        }
      }
      graphs = std::move(next);
      for (const TermGraph& graph : graphs) Take({graph, ReturnsOf(graph)});
      Settle();
    }
    DropSpecialCases();
    return std::move(generated_);
  }

 private:
  std::span<const Rule> Known() const { return rules_; }

  void Learn(const Rule& rule) {
    ORRERY_CHECK(rules_.size() < rules_.capacity()) << "more than " << kMostRules << " rules";
    rules_.push_back(rule);
    for (const Direction& direction : DirectionsOf(std::span(&rules_.back(), 1))) {
      directions_.push_back(direction);
      leads_back_.insert({direction.rule, direction.backward});
    }
  }

  // Inputs returned as they are: what a graph that does nothing is equal to.
  void TakeInputs() {
    const int32_t inputs = terms_.flow().inputs;
    for (int32_t i = 0; i < inputs; ++i) {
      Take({{}, {{.node = i}}});
      for (int32_t j = 0; j < i; ++j) Take({{}, Sorted({{.node = j}, {.node = i}})});
    }
  }

  // Ops that can be added to a graph, which it does not have.
  std::vector<int32_t> Extensions(const TermGraph& graph) {
    std::vector<Port> values;
    for (int32_t i = 0; i < terms_.flow().inputs; ++i) values.push_back({.node = i});
    for (const int32_t node : graph) {
      for (int32_t r = 0; r < terms_.results(node); ++r) values.push_back({node, r});
    }
    std::vector<int32_t> nodes;
    const auto& ops = alphabet_.frame.left.ops;
    for (int32_t op = 0; op < static_cast<int32_t>(ops.size()); ++op) {
      const size_t arity = ops[static_cast<size_t>(op)].operands.size();
      const bool commutes = IsCommutative(ops[static_cast<size_t>(op)].kind);
      std::vector<size_t> at(arity, 0);
      for (;;) {
        std::vector<Port> operands;
        for (const size_t i : at) operands.push_back(values[i]);
        if (!commutes || at[0] <= at[1]) {
          const int32_t node = terms_.Find(op, operands);
          if (node >= 0 && !std::ranges::binary_search(graph, node)) nodes.push_back(node);
        }
        size_t i = arity;
        while (i > 0 && ++at[i - 1] == values.size()) at[--i] = 0;
        if (i == 0) break;
      }
    }
    std::ranges::sort(nodes);
    return nodes;
  }

  std::vector<Port> Sorted(std::vector<Port> ports) const {
    std::ranges::sort(ports, {}, [&](Port port) { return terms_.hash(port); });
    return ports;
  }

  std::vector<Port> ReturnsOf(const TermGraph& graph) const {
    absl::flat_hash_set<Port> read;
    for (const int32_t node : graph) {
      for (const Port port : terms_.term(node).operands) read.insert(port);
    }
    std::vector<Port> returns;
    for (const int32_t node : graph) {
      for (int32_t r = 0; r < terms_.results(node); ++r) {
        if (!read.contains({node, r})) returns.push_back({node, r});
      }
    }
    return Sorted(std::move(returns));
  }

  // Graphs that return the same values: the first one, and what rules lead to from there.
  struct Class {
    Candidate first;
    absl::flat_hash_set<uint64_t> flows;
  };

  // A graph that is equal to the first one of its class, and that no rule leads to so far.
  struct Pending {
    Candidate candidate;
    Dataflow flow;
    Class* equal = nullptr;
    bool is_goal = false;  // it may be cheaper than the first: a rule has to lead to it
    bool settled = false;
  };

  void Take(const Candidate& candidate) {
    std::vector<uint64_t> values;
    for (const Port port : candidate.returns) values.push_back(terms_.hash(port));
    // Two returns of one value could be told apart in two ways.
    if (values.size() > kMostReturns || std::ranges::adjacent_find(values) != values.end()) return;
    Dataflow flow = *Replace(terms_.works(), FlowOf(candidate), {});
    const auto [found, is_new] = classes_.try_emplace(std::move(values));
    Class& equal = found->second;
    if (is_new) {
      equal.first = candidate;
      equal.flows.insert(flow.fingerprint);
    } else if (!equal.flows.contains(flow.fingerprint)) {
      const bool is_goal = ProductsOf(candidate) < ProductsOf(equal.first);
      pending_.push_back({candidate, std::move(flow), &equal, is_goal});
    }
  }

  int64_t ProductsOf(const Candidate& candidate) const {
    return std::ranges::count_if(candidate.graph, [&](int32_t node) {
      const auto op = static_cast<size_t>(terms_.term(node).op);
      return ir::GetOpInfo(alphabet_.frame.left.ops[op].kind).matrix_product;
    });
  }

  // Finds rules until all graphs of one size are settled: rules lead to them from the first of
  // their class. Those of more inputs come first: of them follow those where two are one.
  void Settle() {
    const auto inputs = [&](const Pending& pending) {
      absl::flat_hash_set<int32_t> read;
      for (const Node& node : pending.flow.nodes) {
        for (const Port port : node.operands) {
          if (port.node < pending.flow.inputs) read.insert(port.node);
        }
      }
      return -static_cast<int32_t>(read.size());
    };
    std::ranges::stable_sort(pending_, {}, inputs);
    generated_.equal += static_cast<int64_t>(pending_.size());
    Spread(directions_);
    for (Pending& pending : pending_) {
      if (pending.settled || pending.equal->flows.contains(pending.flow.fingerprint)) continue;
      const size_t known = directions_.size();
      pending.settled = true;
      Rule rule = RuleOf(pending.candidate, pending.equal->first);
      // Few graphs, so that what takes long to find stays a rule of its own.
      const ProofLimits few = {.graphs = kFewGraphs, .more_ops = 1, .from_right = pending.is_goal};
      if (!Prove(rule, Known(), few).has_value() && !AddIfItHolds(std::move(rule))) continue;
      Reach(*pending.equal, pending.flow.fingerprint);
      Spread(std::span(directions_).subspan(known));
    }
    pending_.clear();
    leads_to_.clear();
  }

  // Applies rules to all graphs that are not settled.
  void Spread(std::span<const Direction> directions) {
    for (size_t p = 0; p < pending_.size(); ++p) {
      Pending& pending = pending_[p];
      if (pending.settled) continue;
      const Matcher matcher(terms_.works(), pending.flow);
      for (const Direction& direction : directions) {
        if (pending.is_goal && !leads_back_.contains({direction.rule, !direction.backward}))
          continue;
        for (const Match& match : matcher.Find(direction, kMatches)) {
          const std::optional<Dataflow> after =
              Apply(direction, match, pending.flow, terms_.works());
          if (!after.has_value()) continue;
          leads_to_[{pending.equal, after->fingerprint}].push_back(p);
          if (!pending.equal->flows.contains(after->fingerprint)) continue;
          pending.settled = true;
          Reach(*pending.equal, pending.flow.fingerprint);
        }
      }
    }
  }

  // Settles what one step leads from to a graph, and so on.
  void Reach(Class& equal, uint64_t fingerprint) {
    std::vector<uint64_t> reached = {fingerprint};
    while (!reached.empty()) {
      const uint64_t next = reached.back();
      reached.pop_back();
      if (!equal.flows.insert(next).second) continue;
      const auto found = leads_to_.find({&equal, next});
      if (found == leads_to_.end()) continue;
      for (const size_t p : found->second) {
        pending_[p].settled = true;
        reached.push_back(pending_[p].flow.fingerprint);
      }
    }
  }

  // A candidate by itself: inputs and its own ops.
  Dataflow FlowOf(const Candidate& candidate) const {
    const Dataflow& all = terms_.flow();
    Dataflow flow;
    flow.inputs = all.inputs;
    flow.nodes.assign(all.nodes.begin(), all.nodes.begin() + all.inputs);
    const auto own = [&](Port& port) {
      if (port.node < all.inputs) return;
      const auto found = std::ranges::lower_bound(candidate.graph, port.node);
      port.node = all.inputs + static_cast<int32_t>(found - candidate.graph.begin());
    };
    for (const int32_t node : candidate.graph) {
      flow.nodes.push_back(all.nodes[static_cast<size_t>(node)]);
      for (Port& operand : flow.nodes.back().operands) own(operand);
    }
    flow.outputs = candidate.returns;
    for (Port& output : flow.outputs) own(output);
    return flow;
  }

  // Rules of which a later one, of more inputs, says more.
  void DropSpecialCases() {
    std::vector<Rule>& rules = generated_.rules;
    for (size_t i = 0; i < rules.size();) {
      const Rule rule = rules[i];
      rules.erase(rules.begin() + static_cast<std::ptrdiff_t>(i));
      if (FollowsInOneStep(rule, rules)) continue;
      rules.insert(rules.begin() + static_cast<std::ptrdiff_t>(i), rule);
      ++i;
    }
    for (size_t i = 0; i < rules.size(); ++i) {
      rules[i].name = absl::StrCat(alphabet_.frame.name, "_", i + 1);
    }
  }

  bool AddIfItHolds(Rule rule) {
    const RuleCheck check = {.shapes = options_.shapes, .seed = options_.seed};
    if (!CheckRule(rule, check).ok()) {
      ++generated_.special;
      return false;
    }
    rule.name = absl::StrCat(alphabet_.frame.name, "_", generated_.rules.size() + 1);
    rule.proof.shapes = options_.shapes;
    std::optional<std::vector<std::string>> axioms = Prove(rule, axioms_);
    if (!axioms.has_value()) {
      ++generated_.unproven;
      return false;
    }
    rule.proof.axioms = *std::move(axioms);
    generated_.rules.push_back(rule);
    Learn(rule);
    return true;
  }

  // Both graphs as a rule, with the inputs and variables that they use.
  Rule RuleOf(const Candidate& left, const Candidate& right) const {
    Rule rule;
    std::vector<int32_t> inputs(static_cast<size_t>(terms_.flow().inputs), -1);
    const auto use = [&](const Candidate& candidate) {
      const auto take = [&](Port port) {
        if (port.node >= terms_.flow().inputs) return;
        int32_t& input = inputs[static_cast<size_t>(port.node)];
        if (input >= 0) return;
        input = static_cast<int32_t>(rule.inputs.size());
        rule.inputs.push_back(alphabet_.frame.inputs[static_cast<size_t>(port.node)]);
      };
      for (const int32_t node : candidate.graph) {
        for (const Port port : terms_.term(node).operands) take(port);
      }
      for (const Port port : candidate.returns) take(port);
    };
    use(left);
    use(right);
    rule.sizes = alphabet_.frame.sizes;
    rule.attributes = alphabet_.frame.attributes;
    rule.left = SideOf(left, inputs, rule);
    rule.right = SideOf(right, inputs, rule);
    DropUnused(rule);
    return rule;
  }

  RuleSide SideOf(const Candidate& candidate, const std::vector<int32_t>& inputs,
                  const Rule& rule) const {
    RuleSide side;
    std::map<Port, int32_t> numbers;
    auto next = static_cast<int32_t>(rule.inputs.size());
    const auto number = [&](Port port) {
      return port.node < terms_.flow().inputs ? inputs[static_cast<size_t>(port.node)]
                                              : numbers.at(port);
    };
    for (const int32_t node : candidate.graph) {
      const Term& term = terms_.term(node);
      RuleOp op = alphabet_.frame.left.ops[static_cast<size_t>(term.op)];
      for (size_t i = 0; i < op.operands.size(); ++i) op.operands[i] = number(term.operands[i]);
      op.results = terms_.results(node);
      for (int32_t r = 0; r < op.results; ++r) numbers[{node, r}] = next++;
      side.ops.push_back(std::move(op));
    }
    for (const Port port : candidate.returns) side.returns.push_back(number(port));
    return side;
  }

  // Variables that nothing uses would be drawn, and shown, for nothing.
  static void DropUnused(Rule& rule) {
    rule.name = "rule";
    absl::StatusOr<std::vector<Rule>> again = ParseRules(Print(rule));
    ORRERY_CHECK(again.ok()) << again.status().message();
    rule = std::move(again->front());
    rule.line = 0;
  }

  const Alphabet& alphabet_;
  std::span<const Rule> axioms_;
  Generation options_;
  Terms terms_;
  std::vector<Rule> rules_;  // that are known; never moved
  std::vector<Direction> directions_;
  absl::flat_hash_set<std::pair<const Rule*, bool>> leads_back_;  // directions that there are
  std::map<std::vector<uint64_t>, Class> classes_;
  std::vector<Pending> pending_;  // of one size
  // Those of `pending_` from which one step leads to a graph.
  absl::flat_hash_map<std::pair<const Class*, uint64_t>, std::vector<size_t>> leads_to_;
  Generated generated_;
};

}  // namespace
}  // namespace generate_rules_cc

absl::StatusOr<Generated> GenerateRulesAt(const Variables& variables, const Alphabet& alphabet,
                                          const KnownRules& known, const Generation& options) {
  return generate_rules_cc::Generator(alphabet, known, options, variables).Run();
}

}  // namespace orrery::transforms::substitutions
