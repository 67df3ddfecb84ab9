#include "transforms/substitutions/prove_rule.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/names/near_names.h"
#include "transforms/substitutions/check_rule.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/match_rule.h"

namespace orrery::transforms::substitutions {
namespace prove_rule_cc {
namespace {

constexpr SizeDraw kGeneric = {.least = 3,
                               .most = 997,
                               .generic = true,
                               .leading_dims = 1,
                               .least_leading_dims = 1,
                               .attributes = AttributeDraw::kOpaque,
                               .executed = false};
constexpr size_t kMatches = 64;  // of one axiom in one graph

// A graph that is equal to a side, and how it was come to.
struct Step {
  Dataflow flow;
  int32_t from = -1;
  const Rule* axiom = nullptr;
};

// Graphs that are equal to one side.
struct Side {
  std::vector<Step> steps;
  size_t next = 0;  // to be looked at
  absl::flat_hash_map<uint64_t, int32_t> by_fingerprint;
};

class Prover {
 public:
  Prover(std::span<const Rule> axioms, const ProofLimits& limits)
      : directions_(DirectionsOf(axioms)), limits_(limits) {}

  std::optional<std::vector<std::string>> Run(const Rule& rule) {
    RandomBits random(1);
    const std::optional<Variables> variables = DrawVariables(rule, kGeneric, random, works_);
    if (!variables.has_value()) return std::nullopt;
    std::optional<RuleSides> sides = SidesOf(rule, *variables, works_);
    most_ops_ = std::max(sides->left.op_count(), sides->right.op_count()) + limits_.more_ops;
    if (sides->left.fingerprint == sides->right.fingerprint) return std::vector<std::string>();
    Start(std::move(sides->left), sides_[0]);
    Start(std::move(sides->right), sides_[1]);
    while (graphs_ < limits_.graphs) {
      const bool left_ends = limits_.from_right || sides_[0].next == sides_[0].steps.size();
      const bool right_ends = sides_[1].next == sides_[1].steps.size();
      if (left_ends && right_ends) return std::nullopt;
      const bool left = !left_ends && (right_ends || sides_[0].next <= sides_[1].next);
      if (Expand(left ? 0 : 1)) return Chain();
    }
    return std::nullopt;
  }

 private:
  static void Start(Dataflow flow, Side& side) {
    side.by_fingerprint[flow.fingerprint] = 0;
    side.steps.push_back({.flow = std::move(flow)});
  }

  // Adds what one axiom makes of the next graph of a side; true when the sides have met.
  bool Expand(size_t which) {
    Side& side = sides_[which];
    const Side& other = sides_[1 - which];
    const auto from = static_cast<int32_t>(side.next);
    const Dataflow flow = side.steps[side.next++].flow;
    const Matcher matcher(works_, flow);
    for (const Direction& direction : directions_) {
      for (const Match& match : matcher.Find(direction, kMatches)) {
        std::optional<Dataflow> after = Apply(direction, match, flow, works_);
        if (!after.has_value() || after->op_count() > most_ops_) continue;
        const uint64_t fingerprint = after->fingerprint;
        const auto here = static_cast<int32_t>(side.steps.size());
        if (!side.by_fingerprint.try_emplace(fingerprint, here).second) continue;
        ++graphs_;
        side.steps.push_back({.flow = *std::move(after), .from = from, .axiom = direction.rule});
        const auto met = other.by_fingerprint.find(fingerprint);
        if (met == other.by_fingerprint.end()) continue;
        met_[which] = here;
        met_[1 - which] = met->second;
        return true;
      }
    }
    return false;
  }

  std::vector<std::string> Chain() const {
    std::vector<std::string> chain;
    for (int32_t at = met_[0]; at >= 0; at = sides_[0].steps[static_cast<size_t>(at)].from) {
      const Rule* const axiom = sides_[0].steps[static_cast<size_t>(at)].axiom;
      if (axiom != nullptr) chain.insert(chain.begin(), axiom->name);
    }
    for (int32_t at = met_[1]; at >= 0; at = sides_[1].steps[static_cast<size_t>(at)].from) {
      const Rule* const axiom = sides_[1].steps[static_cast<size_t>(at)].axiom;
      if (axiom != nullptr) chain.push_back(axiom->name);
    }
    return chain;
  }

  std::vector<Direction> directions_;
  ProofLimits limits_;
  WorkTable works_;
  int32_t most_ops_ = 0;
  int32_t graphs_ = 0;
  Side sides_[2];
  int32_t met_[2] = {-1, -1};
};

}  // namespace
}  // namespace prove_rule_cc

std::optional<std::vector<std::string>> Prove(const Rule& rule, std::span<const Rule> axioms,
                                              const ProofLimits& limits) {
  return prove_rule_cc::Prover(axioms, limits).Run(rule);
}

absl::Status CheckProof(const Rule& rule, std::span<const Rule> axioms) {
  const std::vector<std::string>& names = rule.proof.axioms;
  if (names.empty()) return absl::OkStatus();
  std::vector<absl::string_view> known;
  std::vector<Rule> named;
  for (const Rule& axiom : axioms) {
    known.push_back(axiom.name);
    if (std::ranges::count(names, axiom.name) > 0) named.push_back(axiom);
  }
  for (const std::string& name : names) {
    if (std::ranges::count(known, name) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        Where(rule), ": there is no axiom '", name, "'; ",
        WantedNames(name, known, "", "wanted one of data/substitutions/axioms.rules")));
  }
  const std::optional<std::vector<std::string>> chain = Prove(rule, named);
  if (!chain.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Where(rule), ": does not follow from ", absl::StrJoin(names, ", "),
        " as far as was looked; wanted axioms that lead from one side to the other, or none"));
  }
  const std::set<std::string> used(chain->begin(), chain->end());
  for (const std::string& name : names) {
    if (used.contains(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        Where(rule), ": follows from ", chain->empty() ? "nothing" : absl::StrJoin(*chain, ", "),
        "; wanted it without '", name, "'"));
  }
  return absl::OkStatus();
}

bool FollowsInOneStep(const Rule& rule, std::span<const Rule> rules) {
  RandomBits random(1);
  WorkTable works;
  const std::optional<Variables> variables =
      DrawVariables(rule, prove_rule_cc::kGeneric, random, works);
  if (!variables.has_value()) return false;
  const RuleSides sides = *SidesOf(rule, *variables, works);
  const Matcher left(works, sides.left), right(works, sides.right);
  for (const Direction& direction : DirectionsOf(rules)) {
    for (const Match& match : left.Find(direction, prove_rule_cc::kMatches)) {
      const auto after = Apply(direction, match, sides.left, works);
      if (after.has_value() && after->fingerprint == sides.right.fingerprint) return true;
    }
    for (const Match& match : right.Find(direction, prove_rule_cc::kMatches)) {
      const auto after = Apply(direction, match, sides.right, works);
      if (after.has_value() && after->fingerprint == sides.left.fingerprint) return true;
    }
  }
  return false;
}

}  // namespace orrery::transforms::substitutions
