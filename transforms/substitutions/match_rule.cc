#include "transforms/substitutions/match_rule.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "ir/op_info.h"

namespace orrery::transforms::substitutions {

// One search for the places of one side: op by op, the next one always connected with those that
// have their place, where any is.
class MatchWalk {
 public:
  MatchWalk(const Matcher& matcher, const Direction& direction, size_t limit)
      : matcher_(matcher),
        rule_(*direction.rule),
        side_(direction.from()),
        limit_(limit),
        nodes_(side_.ops.size(), -1) {
    auto first = static_cast<int32_t>(rule_.inputs.size());
    for (const RuleOp& op : side_.ops) {
      first_result_.push_back(first);
      first += op.results;
    }
    match_.values.resize(static_cast<size_t>(first));
    match_.variables = NoVariables(rule_);
  }

  std::vector<Match> Run() {
    Next(0);
    return std::move(found_);
  }

 private:
  const Dataflow& flow() const { return matcher_.flow_; }
  Port value(int32_t i) const { return match_.values[static_cast<size_t>(i)]; }

  bool IsBound(int32_t i) const { return value(i).node >= 0; }

  // The op to place next, and the nodes that it may be.
  std::pair<size_t, std::vector<int32_t>> Candidates() const {
    size_t any = side_.ops.size();
    for (size_t o = side_.ops.size(); o-- > 0;) {
      if (nodes_[o] >= 0) continue;
      any = o;
      for (int32_t r = 0; r < side_.ops[o].results; ++r) {
        if (IsBound(first_result_[o] + r)) return {o, {value(first_result_[o] + r).node}};
      }
    }
    for (size_t o = side_.ops.size(); o-- > 0;) {
      if (nodes_[o] >= 0) continue;
      for (const int32_t operand : side_.ops[o].operands) {
        if (IsBound(operand)) {
          return {o, matcher_.users_[static_cast<size_t>(value(operand).node)]};
        }
      }
    }
    const auto found = matcher_.by_kind_.find(side_.ops[any].kind);
    return {any, found == matcher_.by_kind_.end() ? std::vector<int32_t>() : found->second};
  }

  void Next(size_t placed) {
    if (found_.size() >= limit_) return;
    if (placed == side_.ops.size()) {
      if (Finished()) Choose(0);
      return;
    }
    const auto [op, candidates] = Candidates();
    for (const int32_t node : candidates) Place(placed, op, node);
  }

  // A match for each choice of free sizes from that one on that nothing says yet.
  void Choose(size_t i) {
    if (i == rule_.free_sizes.size()) {
      if (found_.size() < limit_ && AreAllowed(rule_, match_.variables)) found_.push_back(match_);
      return;
    }
    const FreeSize& each = rule_.free_sizes[i];
    auto& size = match_.variables.sizes[static_cast<size_t>(each.size)];
    if (size.has_value()) return Choose(i + 1);
    for (const int64_t choice : ChoicesFor(each, match_.variables)) {
      size = choice;
      Choose(i + 1);
    }
    size.reset();
  }

  // Tries a node as an op, with its operands in both orders where that is the same.
  void Place(size_t placed, size_t o, int32_t node) {
    const RuleOp& op = side_.ops[o];
    const Node& there = flow().nodes[static_cast<size_t>(node)];
    const Work& work = matcher_.works_[there.work];
    if (work.is_input || work.kind != op.kind || there.operands.size() != op.operands.size() ||
        work.results.size() != static_cast<size_t>(op.results)) {
      return;
    }
    // What is computed once may stand for two ops, but what is replaced is not one value twice.
    const bool taken = std::ranges::find(nodes_, node) != nodes_.end();
    if (taken && side_.returns.size() > 1) return;
    const Match before = match_;
    const bool swaps = IsCommutative(op.kind) && there.operands[0] != there.operands[1];
    for (size_t turn = 0; turn < (swaps ? 2U : 1U); ++turn) {
      bool fits = true;
      for (int32_t r = 0; fits && r < op.results; ++r) {
        fits = Bind(first_result_[o] + r, {.node = node, .result = r});
      }
      fits = fits && AttributesFit(op, work);  // they say what factors of sizes are
      for (size_t i = 0; fits && i < op.operands.size(); ++i) {
        fits = Bind(op.operands[i], there.operands[turn == 0 ? i : 1 - i]);
      }
      if (fits) {
        nodes_[o] = node;
        Next(placed + 1);
        nodes_[o] = -1;
      }
      match_ = before;
    }
  }

  bool Bind(int32_t i, Port port) {
    Port& bound = match_.values[static_cast<size_t>(i)];
    if (bound.node >= 0) return bound == port;
    bound = port;
    if (static_cast<size_t>(i) >= rule_.inputs.size()) return true;
    const ir::TensorType& type = matcher_.works_.type(TypeOf(matcher_.works_, flow(), port));
    return UnifyDims(rule_.inputs[static_cast<size_t>(i)], {type.dims.begin(), type.dims.end()},
                     match_.variables);
  }

  bool AttributesFit(const RuleOp& op, const Work& work) {
    const ir::AttributeSet& set = matcher_.works_.attributes(work.attributes);
    const size_t rank =
        work.operands.empty() ? 0 : matcher_.works_.type(work.operands[0]).dims.size();
    for (const auto& [name, pattern] : op.attributes) {
      const ir::Attribute* const given = set.Find(name);
      const std::optional<ir::Attribute> value =
          given != nullptr ? *given : DefaultAttribute(op.kind, name, rank);
      if (!value.has_value() || !Unify(pattern, name, rank, *value, match_.variables)) return false;
    }
    return std::ranges::all_of(set.attributes(), [&](const auto& entry) {
      const bool named = std::ranges::any_of(
          op.attributes, [&](const auto& each) { return each.first == entry.first; });
      return named || DefaultAttribute(op.kind, entry.first, rank) == entry.second;
    });
  }

  // All numbers are of one floating-point type: where whole numbers wrap around or are cut off,
  // another order is another result.
  bool Finished() const {
    std::optional<ir::DType> dtype;
    for (size_t i = 0; i < rule_.inputs.size(); ++i) {
      if (match_.values[i].node < 0) continue;
      const ir::TensorType& type =
          matcher_.works_.type(TypeOf(matcher_.works_, flow(), match_.values[i]));
      if (!ir::IsFloat(type.dtype) || ir::IsNarrow(type.dtype)) return false;
      if (dtype.has_value() && *dtype != type.dtype) return false;
      dtype = type.dtype;
    }
    return true;
  }

  const Matcher& matcher_;
  const Rule& rule_;
  const RuleSide& side_;
  size_t limit_;
  std::vector<int32_t> first_result_;  // by op
  std::vector<int32_t> nodes_;         // by op: where it is; -1: nowhere yet
  Match match_;
  std::vector<Match> found_;
};

namespace match_rule_cc {
namespace {

// Whether what the ops of `from` read and are told says all that those of `to` are.
bool SaysAll(const Rule& rule, const RuleSide& from, const RuleSide& to) {
  absl::flat_hash_set<int32_t> inputs, attributes, sizes;
  bool leading = false;
  const auto learn = [&](const Expression& each) {
    for (const Expression::Term& term : each.terms) {
      sizes.insert(term.variables.begin(), term.variables.end());
    }
  };
  const auto is_input = [&](int32_t value) {
    return value < static_cast<int32_t>(rule.inputs.size());
  };
  for (const RuleOp& op : from.ops) {
    for (const int32_t operand : op.operands) {
      if (!is_input(operand) || !inputs.insert(operand).second) continue;
      const RuleInput& input = rule.inputs[static_cast<size_t>(operand)];
      leading = leading || input.leading;
      for (const Expression& dim : input.dims) learn(dim);
    }
    for (const auto& [name, pattern] : op.attributes) {
      attributes.insert(pattern.variables.begin(), pattern.variables.end());
      for (const Expression& each : pattern.integers) learn(each);
    }
  }
  for (const FreeSize& each : rule.free_sizes) sizes.insert(each.size);
  const auto known = [&](const Expression& each) {
    return std::ranges::all_of(each.terms, [&](const Expression::Term& term) {
      return std::ranges::all_of(term.variables, [&](int32_t v) { return sizes.contains(v); });
    });
  };
  const auto reads_known = [&](int32_t value) {
    return !is_input(value) || inputs.contains(value);
  };
  for (const RuleOp& op : to.ops) {
    if (!std::ranges::all_of(op.operands, reads_known)) return false;
    for (const auto& [name, pattern] : op.attributes) {
      if (pattern.leading && !leading) return false;
      if (!std::ranges::all_of(pattern.integers, known)) return false;
      if (!std::ranges::all_of(pattern.variables,
                               [&](int32_t v) { return attributes.contains(v); })) {
        return false;
      }
    }
  }
  const auto can_tell = [&](const AtMost& guard) { return known(guard.less) && known(guard.more); };
  if (!std::ranges::all_of(rule.guards, can_tell) ||
      !std::ranges::all_of(rule.free_sizes, known, &FreeSize::below)) {
    return false;
  }
  return std::ranges::all_of(to.returns, reads_known) && !from.ops.empty() &&
         std::ranges::none_of(from.returns, is_input);
}

}  // namespace
}  // namespace match_rule_cc

std::vector<Direction> DirectionsOf(std::span<const Rule> rules) {
  std::vector<Direction> directions;
  for (const Rule& rule : rules) {
    for (const bool backward : {false, true}) {
      const Direction direction = {.rule = &rule, .backward = backward};
      if (backward && !rule.both_ways) continue;
      if (match_rule_cc::SaysAll(rule, direction.from(), direction.to())) {
        directions.push_back(direction);
      }
    }
  }
  return directions;
}

Matcher::Matcher(const WorkTable& works, const Dataflow& flow)
    : works_(works), flow_(flow), users_(flow.nodes.size()) {
  for (size_t i = static_cast<size_t>(flow.inputs); i < flow.nodes.size(); ++i) {
    const auto node = static_cast<int32_t>(i);
    by_kind_[works[flow.nodes[i].work].kind].push_back(node);
    for (const Port operand : flow.nodes[i].operands) {
      std::vector<int32_t>& users = users_[static_cast<size_t>(operand.node)];
      if (users.empty() || users.back() != node) users.push_back(node);
    }
  }
}

std::vector<Match> Matcher::Find(const Direction& direction, size_t limit) const {
  return MatchWalk(*this, direction, limit).Run();
}

ir::TypeId PortTypes::Of(Port port, std::span<const Node> added) const {
  const size_t size = flow_.nodes.size(), i = static_cast<size_t>(port.node);
  const Node& node = i < size ? flow_.nodes[i] : added[i - size];
  return works_[node.work].results[static_cast<size_t>(port.result)];
}

std::optional<Instance> Instantiate(const Rule& rule, const RuleSide& side,
                                    std::span<const Port> inputs, const Variables& variables,
                                    const Dataflow& flow, WorkTable& works) {
  Instance instance;
  std::vector<Port> values(inputs.begin(), inputs.end());
  values.resize(rule.inputs.size());
  const PortTypes types(works, flow);
  for (const RuleOp& op : side.ops) {
    Node node;
    absl::InlinedVector<ir::TypeId, 4> operands;
    for (const int32_t operand : op.operands) {
      const Port port = values[static_cast<size_t>(operand)];
      if (port.node < 0) return std::nullopt;
      node.operands.push_back(port);
      operands.push_back(types.Of(port, instance.nodes));
    }
    const size_t rank = operands.empty() ? 0 : works.type(operands[0]).dims.size();
    ir::AttributeSet attributes;
    for (const auto& [name, pattern] : op.attributes) {
      std::optional<ir::Attribute> value = Evaluate(pattern, name, rank, variables);
      if (!value.has_value()) return std::nullopt;
      if (DefaultAttribute(op.kind, name, rank) != value) attributes.Set(name, *std::move(value));
    }
    node.work = works.Infer(op.kind, attributes, operands);
    if (!node.work.valid()) return std::nullopt;
    if (works[node.work].results.size() != static_cast<size_t>(op.results)) return std::nullopt;
    const auto at = static_cast<int32_t>(flow.nodes.size() + instance.nodes.size());
    for (int32_t r = 0; r < op.results; ++r) values.push_back({.node = at, .result = r});
    instance.nodes.push_back(std::move(node));
  }
  for (const int32_t value : side.returns) {
    const Port port = values[static_cast<size_t>(value)];
    if (port.node < 0) return std::nullopt;
    instance.returns.push_back(port);
  }
  return instance;
}

std::optional<Dataflow> Apply(const Direction& direction, const Match& match, const Dataflow& flow,
                              WorkTable& works) {
  const std::span inputs(match.values.data(), direction.rule->inputs.size());
  std::optional<Instance> instance =
      Instantiate(*direction.rule, direction.to(), inputs, match.variables, flow, works);
  if (!instance.has_value()) return std::nullopt;
  const PortTypes types(works, flow);
  Replacement replacement;
  for (size_t i = 0; i < instance->returns.size(); ++i) {
    const Port old = match.values[static_cast<size_t>(direction.from().returns[i])];
    const Port value = instance->returns[i];
    if (types.Of(old, instance->nodes) != types.Of(value, instance->nodes)) return std::nullopt;
    if (old != value) replacement.values.emplace_back(old, value);
  }
  replacement.nodes = std::move(instance->nodes);
  return Replace(works, flow, replacement);
}

}  // namespace orrery::transforms::substitutions
