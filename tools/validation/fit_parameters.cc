#include "tools/validation/fit_parameters.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cluster/rate_figures.h"
#include "support/status.h"
#include "tools/validation/rows/step_setup.h"

namespace orrery::tools {
namespace fit_parameters_cc {
namespace {

// Figures of a device that steps tell about: products and their clock are one there, and a start
// is the host's.
constexpr absl::string_view kRates[] = {"sustained",
                                        "sustained_quarter",
                                        "sustained_eighth",
                                        "straggling",
                                        "half.memory",
                                        "attention.cudnn.efficiency",
                                        "attention.flash3.efficiency",
                                        "attention.flash2.efficiency",
                                        "attention.flash1.efficiency",
                                        "attention.triton.efficiency",
                                        "attention.cudnn8.efficiency"};

// The classes of cost_models::AttentionClass, as cluster files call them.
constexpr absl::string_view kClasses[] = {"cudnn",  "flash3", "flash2",
                                          "flash1", "triton", "cudnn8"};

constexpr absl::string_view kRateBetweenNodes = "rate_between_nodes";
constexpr absl::string_view kStepBetweenNodes = "step_between_nodes";

// Of a stack; scales are about what stacks differ by.
struct StackFigure {
  absl::string_view name, unit;
  double SoftwareStack::*field;
  double most, scale;
};
constexpr StackFigure kStackFigures[] = {
    {"launch_us", "us", &SoftwareStack::launch_us, 1000, 15},
    {"prepare_us", "us", &SoftwareStack::prepare_us, 1e5, 1000},
    {"collective_us", "us", &SoftwareStack::collective_us, 1000, 20},
    {"slowdown", "share", &SoftwareStack::slowdown, 0.9, 0.2}};

template <typename Items>
auto* FindNamed(Items& items, const std::string& name) {
  const auto found =
      std::ranges::find_if(items, [&](const auto& each) { return each.name == name; });
  return found == items.end() ? nullptr : &*found;
}

// With the owners of a row in it, as they are built in where nobody has changed them.
absl::Status AddOwners(const RowUse& row, FittedFigures& figures) {
  if (FindNamed(figures.devices, row.device) == nullptr) {
    ORRERY_ASSIGN_OR_RETURN(figures.devices.emplace_back(), cluster::FindDevice(row.device));
  }
  if (!row.collectives.empty() && FindNamed(figures.collectives, row.collectives) == nullptr) {
    ORRERY_ASSIGN_OR_RETURN(figures.collectives.emplace_back(),
                            cluster::FindCollectiveProfile(row.collectives));
  }
  const auto has = [&](const auto& each) { return each.first == row.stack; };
  if (std::ranges::none_of(figures.stacks, has)) {
    ORRERY_ASSIGN_OR_RETURN(const SoftwareStack stack, FindStack(row.stack, figures));
    figures.stacks.emplace_back(row.stack, stack);
  }
  return absl::OkStatus();
}

std::vector<FitParameter> ParametersOf(const cluster::Device& device) {
  cluster::KernelRates rates = device.rates;
  std::vector<FitParameter> parameters;
  for (const cluster::RateFigure& figure : cluster::FiguresOf(rates)) {
    if (std::ranges::find(kRates, figure.path) == std::end(kRates)) continue;
    const bool straggles = figure.path == "straggling";
    parameters.push_back({.owner = FitOwner::kDevice,
                          .name = device.name,
                          .figure = figure.path,
                          .unit = "share",
                          .start = cluster::NumberOf(figure),
                          .least = figure.least,
                          .most = straggles ? 0.1 : figure.most,
                          .scale = straggles ? 0.005 : 0.25,
                          .adds = straggles});
  }
  return parameters;
}

std::vector<FitParameter> ParametersOf(const cluster::CollectiveProfile& profile) {
  const FitParameter factor = {.owner = FitOwner::kCollectives,
                               .name = profile.name,
                               .unit = "times",
                               .start = 1,
                               .least = 0.2,
                               .most = 5};
  std::vector<FitParameter> parameters(2, factor);
  parameters[0].figure = std::string(kRateBetweenNodes);
  parameters[1].figure = std::string(kStepBetweenNodes);
  return parameters;
}

std::vector<FitParameter> ParametersOf(const std::string& name, const SoftwareStack& stack) {
  std::vector<FitParameter> parameters;
  for (const StackFigure& figure : kStackFigures) {
    parameters.push_back({.owner = FitOwner::kStack,
                          .name = name,
                          .figure = std::string(figure.name),
                          .unit = figure.unit,
                          .start = stack.*figure.field,
                          .most = figure.most,
                          .scale = figure.scale,
                          .adds = true});
  }
  return parameters;
}

void Set(const FitParameter& parameter, double value, cluster::Device& device) {
  for (const cluster::RateFigure& figure : cluster::FiguresOf(device.rates)) {
    if (figure.path == parameter.figure) cluster::SetNumber(figure, value);
  }
  device.rates.measured = true;
}

void Set(const FitParameter& parameter, double value, cluster::CollectiveProfile& profile) {
  constexpr double kLeastRate = 0.001;
  for (cluster::CollectiveProtocol& protocol : profile.protocols) {
    if (parameter.figure == kRateBetweenNodes) {
      protocol.rate_between_nodes =
          std::clamp(protocol.rate_between_nodes * value, kLeastRate, 1.0);
    } else {
      protocol.step_between_nodes =
          Duration::FromSeconds(protocol.step_between_nodes.seconds() * value);
    }
  }
}

void Set(const FitParameter& parameter, double value, FittedFigures& figures) {
  if (parameter.owner == FitOwner::kDevice) {
    Set(parameter, value, *FindNamed(figures.devices, parameter.name));
  } else if (parameter.owner == FitOwner::kCollectives) {
    Set(parameter, value, *FindNamed(figures.collectives, parameter.name));
  } else {
    const StackFigure& figure =
        *std::ranges::find(kStackFigures, parameter.figure, &StackFigure::name);
    for (auto& [name, stack] : figures.stacks) {
      if (name == parameter.name) stack.*figure.field = value;
    }
  }
}

}  // namespace
}  // namespace fit_parameters_cc

double FitParameter::After(double move) const {
  const double value = adds ? start + scale * move : start * std::pow(1 + scale, move);
  return std::clamp(value, least, most);
}

double FitParameter::MoveTo(double value) const {
  return adds ? (value - start) / scale : std::log(value / start) / std::log(1 + scale);
}

UnknownRange FitParameter::range() const {
  constexpr double kFarthest = 4;
  return {.least = std::max(-kFarthest, MoveTo(least)), .most = std::min(kFarthest, MoveTo(most))};
}

absl::StatusOr<RowUse> RowUseOf(const MeasuredStep& step, const FittedFigures& figures) {
  ORRERY_ASSIGN_OR_RETURN(const StepSetup setup, SetupOf(step));
  ORRERY_ASSIGN_OR_RETURN(const cluster::Cluster cluster,
                          cluster::ParseCluster(setup.flags.cluster));
  ORRERY_ASSIGN_OR_RETURN(const SoftwareStack stack, FindStack(setup.stack, figures));
  const int32_t in_node = cluster.topology.shape().devices_per_node;
  RowUse use = {.device = cluster.device.name,
                .collectives = cluster.topology.collective_profile().name,
                .stack = setup.stack,
                .eight_bits = setup.plan.dtype == transforms::StepDType::kF8Mixed ||
                              setup.plan.dtype == transforms::StepDType::kF8Blocks,
                .four_bits = setup.plan.dtype == transforms::StepDType::kF4Mixed,
                .between_nodes = in_node > 0 && cluster.size() > in_node};
  if (absl::StrContains(setup.flags.model, "flash=1")) {
    const cost_models::AttentionClass of_row =
        setup.attention_in_8_bits ? cost_models::AttentionClass::kCudnn8 : stack.attention;
    use.attention = std::string(fit_parameters_cc::kClasses[static_cast<size_t>(of_row)]);
  }
  if (cluster.topology.collective_profile().ideal()) use.collectives.clear();
  return use;
}

absl::StatusOr<FittedFigures> WithOwners(std::span<const RowUse> rows,
                                         const FittedFigures& figures) {
  FittedFigures all = figures;
  for (const RowUse& row : rows) {
    ORRERY_RETURN_IF_ERROR(fit_parameters_cc::AddOwners(row, all));
  }
  return all;
}

std::vector<FitParameter> ParametersOf(std::span<const RowUse> rows, const FittedFigures& all) {
  std::vector<FitParameter> candidates;
  const auto add = [&](std::vector<FitParameter> some) {
    candidates.insert(candidates.end(), some.begin(), some.end());
  };
  for (const cluster::Device& device : all.devices) add(fit_parameters_cc::ParametersOf(device));
  for (const auto& profile : all.collectives) add(fit_parameters_cc::ParametersOf(profile));
  for (const auto& [name, stack] : all.stacks) add(fit_parameters_cc::ParametersOf(name, stack));
  std::erase_if(candidates, [&](const FitParameter& parameter) {
    return std::ranges::none_of(rows, [&](const RowUse& row) { return Tells(row, parameter); });
  });
  std::ranges::stable_sort(candidates, [](const FitParameter& a, const FitParameter& b) {
    return std::pair(a.owner, a.name) < std::pair(b.owner, b.name);
  });
  return candidates;
}

bool Tells(const RowUse& row, const FitParameter& parameter) {
  if (parameter.owner == FitOwner::kStack) return row.stack == parameter.name;
  if (parameter.owner == FitOwner::kCollectives) {
    return row.collectives == parameter.name && row.between_nodes;
  }
  if (row.device != parameter.name) return false;
  if (parameter.figure == "sustained_quarter") return row.eight_bits;
  if (parameter.figure == "sustained_eighth") return row.four_bits;
  if (!absl::StartsWith(parameter.figure, "attention.")) return true;
  return !row.attention.empty() &&
         absl::StartsWith(parameter.figure, absl::StrCat("attention.", row.attention, "."));
}

FittedFigures After(const FittedFigures& figures, std::span<const FitParameter> parameters,
                    std::span<const double> moves) {
  FittedFigures after = figures;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (moves[i] == 0) continue;
    fit_parameters_cc::Set(parameters[i], parameters[i].After(moves[i]), after);
  }
  return after;
}

std::string ToString(const FitParameter& parameter) {
  constexpr absl::string_view kOwners[] = {"device", "collectives", "stack"};
  return absl::StrCat(kOwners[static_cast<size_t>(parameter.owner)], " ", parameter.name, " ",
                      parameter.figure);
}

}  // namespace orrery::tools
