#include "transforms/redistribution/ties.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace orrery::transforms::redistribution {
namespace ties_cc {
namespace {

constexpr std::pair<absl::string_view, double StepCost::*> kParts[] = {
    {"launches", &StepCost::launches},   {"latency", &StepCost::latency},
    {"transfer", &StepCost::transfer},   {"copy", &StepCost::copy},
    {"reduction", &StepCost::reduction}, {"synchronization", &StepCost::synchronization},
    {"memory", &StepCost::memory},       {"local", nullptr}};

// Multiples of 2^-20: sums of them are exact up to 2^33, whatever their order.
double Rounded(double cost) { return std::ldexp(std::round(std::ldexp(cost, 20)), -20); }

}  // namespace
}  // namespace ties_cc

double CostPart::Of(const StepCost& cost, const Step& step) const {
  if (field != nullptr) return cost.*field;
  return Communicates(step.kind) ? 0 : cost.total();
}

absl::StatusOr<CostPart> FindCostPart(absl::string_view name) {
  std::string known;
  for (const auto& [part, field] : ties_cc::kParts) {
    if (part == name) return CostPart{.field = field};
    absl::StrAppend(&known, known.empty() ? "" : ", ", part);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "': wanted one of ", known));
}

void TieBroken::Change(const PackedLayout& layout, std::vector<Move>& moves, size_t begin) const {
  for (size_t i = begin; i < moves.size(); ++i) {
    moves[i].cost = ties_cc::Rounded(CostOf(layout, moves[i].step).total());
    moves[i].tie = ties_cc::Rounded(part_.Of(inner().CostOf(layout, moves[i].step), moves[i].step));
  }
}

StepCost TieBroken::CostOf(const PackedLayout& before, const Step& step) const {
  StepCost cost = inner().CostOf(before, step);
  if (part_.field != nullptr) {
    cost.*part_.field = 0;
    return cost;
  }
  return Communicates(step.kind) ? cost : StepCost();
}

}  // namespace orrery::transforms::redistribution
