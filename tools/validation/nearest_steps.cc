#include "tools/validation/nearest_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace orrery::tools {
namespace nearest_steps_cc {
namespace {

constexpr MeasuredResidual kMeasured[] = {
#include "tools/validation/measured_residuals.inc"
};

double Doublings(int64_t a, int64_t b) {
  return std::abs(std::log2(static_cast<double>(std::max<int64_t>(a, 1)) /
                            static_cast<double>(std::max<int64_t>(b, 1))));
}

struct Near {
  double distance;
  const MeasuredResidual* row;
};

// The nearest first; of equal ones in the order of the rows.
std::vector<Near> ByDistance(const StepFeatures& features, std::span<const MeasuredResidual> rows) {
  std::vector<Near> all;
  for (const MeasuredResidual& row : rows) {
    const double distance = DistanceBetween(features, row);
    if (std::isfinite(distance)) all.push_back({distance, &row});
  }
  std::ranges::stable_sort(all, {}, &Near::distance);
  return all;
}

std::string NoneText(const StepFeatures& features, const std::vector<Near>& all, size_t near) {
  const std::string kind = absl::StrCat(features.mixture ? "mixture of experts" : "dense model",
                                        " on ", ArchitectureOf(features.device));
  if (features.forward) return "all of them train, and this is a forward alone";
  if (all.empty()) return absl::StrCat("no ", kind, " was");
  return absl::StrCat(near == 0 ? "of a " : absl::StrCat("but ", near, " of a "), kind,
                      ", the nearest, ", all.front().row->id, ", is ",
                      absl::StrFormat("%.1f", all.front().distance), " doublings away");
}

// Of absolute errors the least that so large a share of them does not exceed.
double SpreadOf(std::span<const Near> near, double share) {
  std::vector<double> errors;
  for (const Near& one : near) errors.push_back(std::abs(one.row->error));
  std::ranges::sort(errors);
  const auto count = static_cast<double>(errors.size());
  const auto at = static_cast<size_t>(std::ceil(share * count)) - 1;
  return errors[std::min(at, errors.size() - 1)];
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

}  // namespace
}  // namespace nearest_steps_cc

std::span<const MeasuredResidual> AllMeasuredResiduals() { return nearest_steps_cc::kMeasured; }

std::string ResidualsText(std::span<const PredictedStep> steps) {
  std::string out =
      "// Made by scripts/validation_page, not by hand: id, device, type, software, mixture,\n"
      "// parameters, devices, tp, pp, dp, cp, ep, tokens a sample, error of the predicted step "
      "time.\n";
  for (const PredictedStep& row : steps) {
    if (row.seconds <= 0 || row.step.seconds <= 0) continue;
    const StepFeatures& f = row.features;
    absl::StrAppend(&out, "{", nearest_steps_cc::Quoted(row.step.id), ", ",
                    nearest_steps_cc::Quoted(f.device), ", ", nearest_steps_cc::Quoted(f.dtype),
                    ", ", nearest_steps_cc::Quoted(f.stack), f.mixture ? ", true, " : ", false, ",
                    f.parameters, ", ", f.devices, ", ", f.tp, ", ", f.pp, ", ", f.dp, ", ", f.cp,
                    ", ", f.ep, ", ", f.tokens, ", ",
                    absl::StrFormat("%.4f", row.seconds / row.step.seconds - 1), "},\n");
  }
  return out;
}

double DistanceBetween(const StepFeatures& features, const MeasuredResidual& row) {
  using nearest_steps_cc::Doublings;
  if (features.mixture != row.mixture ||
      ArchitectureOf(features.device) != ArchitectureOf(row.device)) {
    return std::numeric_limits<double>::infinity();
  }
  return Doublings(features.parameters, row.parameters) +
         (Doublings(features.devices, row.devices) + Doublings(features.tokens, row.tokens) +
          Doublings(features.tp, row.tp) + Doublings(features.pp, row.pp) +
          Doublings(features.cp, row.cp) + Doublings(features.ep, row.ep)) /
             2 +
         (features.dtype == row.dtype ? 0 : 1) + (features.stack == row.stack ? 0 : 1);
}

simulator::ErrorBar ErrorBarOf(const StepFeatures& features, double seconds,
                               std::span<const MeasuredResidual> rows, const NearLimits& limits) {
  using nearest_steps_cc::Near;
  const std::vector<Near> all = nearest_steps_cc::ByDistance(features, rows);
  size_t near = 0;
  while (!features.forward && near < all.size() && near < limits.most &&
         all[near].distance <= limits.reach)
    ++near;
  simulator::ErrorBar bar;
  for (size_t i = 0; i < near; ++i) {
    bar.nearest.push_back({std::string(all[i].row->id), all[i].distance, all[i].row->error});
  }
  if (near < std::max<size_t>(limits.least, 1)) {
    bar.none = nearest_steps_cc::NoneText(features, all, near);
    return bar;
  }
  const std::span<const Near> nearest(all.data(), near);
  bar.spread = nearest_steps_cc::SpreadOf(nearest, limits.share);
  bar.share = limits.share;
  bar.low_s = seconds * std::max(0.0, 1 - bar.spread);
  bar.high_s = seconds * (1 + bar.spread);
  bar.other_software = std::ranges::none_of(
      nearest, [&](const Near& one) { return one.row->stack == features.stack; });
  return bar;
}

}  // namespace orrery::tools
