#include "tools/validation/step_pairs.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/text_table.h"

namespace orrery::tools {
namespace step_pairs_cc {
namespace {

// Of two changes, neither of which is none.
bool AreAlike(double a, double b) { return (a > 0 && b > 0) || (a < 0 && b < 0); }

StepPair PairOf(const PredictedStep& base, const PredictedStep& row) {
  const MeasuredStep::Change& change = *row.step.change;
  StepPair pair = {.source = row.step.source,
                   .split = row.step.split,
                   .id = row.step.id,
                   .base = base.step.id,
                   .what = change.what,
                   .measured_ratio = change.time_ratio,
                   .predicted_ratio = row.seconds / base.seconds,
                   .measured_bytes = change.memory_bytes,
                   .predicted_bytes = row.bytes - base.bytes};
  if (pair.measured_ratio <= 0 && row.step.seconds > 0 && base.step.seconds > 0) {
    pair.measured_ratio = row.step.seconds / base.step.seconds;
  }
  if (!pair.measured_bytes.has_value() && row.step.bytes > 0 && base.step.bytes > 0) {
    pair.measured_bytes = row.step.bytes - base.step.bytes;
  }
  return pair;
}

PairFigures TimesOf(std::span<const StepPair> pairs, const PairFigures& group) {
  PairFigures figures = group;
  figures.of = "time";
  for (const StepPair& pair : pairs) {
    if (pair.source != group.source || pair.split != group.split || pair.measured_ratio <= 0) {
      continue;
    }
    ++figures.count;
    figures.right_signs += pair.right_sign() ? 1 : 0;
    figures.mean += std::abs(pair.predicted_ratio / pair.measured_ratio - 1);
  }
  if (figures.count > 0) figures.mean /= static_cast<double>(figures.count);
  return figures;
}

PairFigures MemoryOf(std::span<const StepPair> pairs, const PairFigures& group) {
  PairFigures figures = group;
  figures.of = "memory";
  for (const StepPair& pair : pairs) {
    const bool counts = pair.source == group.source && pair.split == group.split;
    if (!counts || !pair.measured_bytes.has_value()) continue;
    ++figures.count;
    figures.right_signs += pair.right_memory_sign() ? 1 : 0;
  }
  return figures;
}

std::string Ratio(double ratio) { return ratio > 0 ? absl::StrFormat("%.4f", ratio) : "-"; }
std::string Gigabytes(double bytes) { return absl::StrFormat("%+.3f", bytes / 1e9); }
std::string Sign(bool right) { return right ? "right" : "wrong"; }

}  // namespace
}  // namespace step_pairs_cc

bool StepPair::right_sign() const {
  return step_pairs_cc::AreAlike(measured_ratio - 1, predicted_ratio - 1);
}

bool StepPair::right_memory_sign() const {
  return step_pairs_cc::AreAlike(measured_bytes.value_or(0), predicted_bytes);
}

std::vector<StepPair> PairsOf(std::span<const PredictedStep> steps) {
  std::map<std::pair<std::string, std::string>, const PredictedStep*> rows;
  for (const PredictedStep& row : steps) rows.try_emplace({row.step.source, row.step.id}, &row);
  std::vector<StepPair> pairs;
  for (const PredictedStep& row : steps) {
    if (!row.step.change.has_value() || row.seconds <= 0) continue;
    const auto base = rows.find({row.step.source, row.step.change->base});
    if (base == rows.end() || base->second->seconds <= 0) continue;
    pairs.push_back(step_pairs_cc::PairOf(*base->second, row));
  }
  return pairs;
}

std::vector<PairFigures> FiguresOf(std::span<const StepPair> pairs) {
  std::vector<PairFigures> groups, figures;
  for (const StepPair& pair : pairs) {
    bool known = false;
    for (const PairFigures& group : groups) {
      known = known || (group.source == pair.source && group.split == pair.split);
    }
    if (!known) groups.push_back({.source = pair.source, .split = pair.split, .of = ""});
  }
  for (const PairFigures& group : groups) {
    for (const PairFigures& of :
         {step_pairs_cc::TimesOf(pairs, group), step_pairs_cc::MemoryOf(pairs, group)}) {
      if (of.count > 0) figures.push_back(of);
    }
  }
  return figures;
}

std::string PairTable(std::span<const StepPair> pairs) {
  if (pairs.empty()) return "";
  std::vector<TextRow> rows = {{"what changed", "split", "of", "measured", "predicted", "sign"}};
  for (const StepPair& pair : pairs) {
    if (pair.measured_ratio > 0) {
      rows.push_back(
          {pair.what, pair.split, "time, ratio", step_pairs_cc::Ratio(pair.measured_ratio),
           step_pairs_cc::Ratio(pair.predicted_ratio), step_pairs_cc::Sign(pair.right_sign())});
    }
    if (pair.measured_bytes.has_value()) {
      rows.push_back({pair.what, pair.split, "memory, GB",
                      step_pairs_cc::Gigabytes(*pair.measured_bytes),
                      step_pairs_cc::Gigabytes(pair.predicted_bytes),
                      step_pairs_cc::Sign(pair.right_memory_sign())});
    }
  }
  std::string out = absl::StrCat("\n", TextTable(rows, 3));
  for (const PairFigures& figures : FiguresOf(pairs)) {
    absl::StrAppend(&out, "pairs of ", figures.source, ", ", figures.split, ", ", figures.of, ": ",
                    figures.count, ", of which ", figures.right_signs, " have the right sign");
    if (figures.of == "time") {
      absl::StrAppendFormat(&out, "; mean error of the ratio %.2f%%", 100 * figures.mean);
    }
    out += '\n';
  }
  return out;
}

}  // namespace orrery::tools
