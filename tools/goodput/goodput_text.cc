#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/text_table.h"
#include "support/units.h"
#include "tools/goodput/goodput_files.h"

namespace orrery::tools {

using simulator::goodput::Cause;
using simulator::goodput::CheckpointTier;
using simulator::goodput::Episode;
using simulator::goodput::kCauseCount;
using simulator::goodput::RunSpec;
using simulator::goodput::Spreading;

namespace goodput_text_cc {
namespace {

std::string Percent(double share) { return absl::StrFormat("%.2f %%", 100 * share); }

std::string ShareText(const Spreading& share, size_t runs) {
  if (runs == 1) return absl::StrCat(Percent(share.mean), "  (one run)");
  return absl::StrFormat(
      "%.2f %% +- %.2f  (of 100 runs, 5 have less than %.2f %%, 5 more than "
      "%.2f %%)",
      100 * share.mean, 100 * share.ci95, 100 * share.p5, 100 * share.p95);
}

std::string FailuresText(const GoodputAnswer& answer) {
  const RunSpec& spec = answer.question.spec;
  if (spec.failures.empty()) return "none";
  std::vector<std::pair<double, std::string>> counts;
  for (size_t i = 0; i < spec.failures.size(); ++i) {
    counts.emplace_back(answer.summary.failures[i], spec.failures[i].component->name);
  }
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> parts;
  for (const auto& [count, name] : counts) parts.push_back(absl::StrFormat("%s %.3g", name, count));
  return absl::StrFormat("%.4g a run, one every %s: %s", answer.summary.interruptions.mean,
                         SpanText(1 / simulator::goodput::FailuresPerSecond(spec)),
                         absl::StrJoin(parts, ", "));
}

std::string SparesText(const GoodputAnswer& answer) {
  const auto& recovery = answer.question.spec.recovery;
  return absl::StrCat(recovery.spares, " spare",
                      answer.question.enough_spares
                          ? absl::StrCat(", enough for repairs of ", SpanText(recovery.repair_s))
                          : "");
}

std::string TierLine(const RunSpec& spec, const CheckpointTier& tier) {
  std::string text = absl::StrFormat("%s every %s (%d steps)", tier.name,
                                     SpanText(static_cast<double>(tier.every_steps) * spec.step_s),
                                     tier.every_steps);
  absl::StrAppend(&text, ", stands still ", SpanText(tier.stall_s));
  if (tier.write_s > 0) absl::StrAppend(&text, ", written in ", SpanText(tier.write_s));
  if (tier.drag_s > 0) absl::StrAppend(&text, " beside steps ", SpanText(tier.drag_s), " slower");
  return absl::StrCat(text, ", read in ", SpanText(tier.load_s));
}

// The interval with the highest goodput, and those of the formulas where they hold.
std::string BestText(const GoodputAnswer& answer) {
  const RunSpec& spec = answer.question.spec;
  const CheckpointTier& tier =
      *std::ranges::find(spec.tiers, answer.question.safest_tier, &CheckpointTier::name);
  std::string text = absl::StrCat(SpanText(answer.question.best.seconds), " to ", tier.name);
  const double per_second = simulator::goodput::FailuresPerSecond(spec);
  const double cost_s = tier.stall_s + tier.drag_s;
  const bool formulas = spec.tiers.size() == 1 && spec.stops.empty() && cost_s > 0;
  if (formulas && per_second > 0) {
    absl::StrAppend(
        &text, "; by Young ", SpanText(simulator::goodput::YoungInterval(cost_s, 1 / per_second)),
        ", by Daly ", SpanText(simulator::goodput::DalyInterval(cost_s, 1 / per_second)));
  }
  return text;
}

std::string LostTable(const GoodputAnswer& answer) {
  std::vector<size_t> causes;
  for (size_t i = 0; i < kCauseCount; ++i) {
    if (answer.summary.lost[i] > 0) causes.push_back(i);
  }
  std::stable_sort(causes.begin(), causes.end(), [&](size_t a, size_t b) {
    return answer.summary.lost[a] > answer.summary.lost[b];
  });
  std::vector<TextRow> rows = {{"  lost to", "of the time", "a run"}};
  for (const size_t i : causes) {
    rows.push_back({absl::StrCat("  ", simulator::goodput::TextOf(static_cast<Cause>(i))),
                    Percent(answer.summary.lost[i]),
                    SpanText(answer.summary.lost[i] * answer.question.spec.length_s)});
  }
  return causes.empty() ? "" : absl::StrCat("\n", TextTable(rows, 1));
}

}  // namespace
}  // namespace goodput_text_cc

std::vector<std::pair<std::string, std::string>> GoodputLines(const GoodputAnswer& answer) {
  using goodput_text_cc::ShareText;
  const RunSpec& spec = answer.question.spec;
  const size_t runs = answer.results.size();
  std::vector<std::pair<std::string, std::string>> lines = {
      {"effective time", ShareText(answer.summary.effective, runs)},
      {"goodput", ShareText(answer.summary.goodput, runs)},
      {"step", SpanText(spec.step_s)},
      {"failures", goodput_text_cc::FailuresText(answer)}};
  if (!spec.stops.empty()) {
    lines.emplace_back("planned stops",
                       absl::StrFormat("%.4g a run", answer.summary.planned_stops));
  }
  lines.emplace_back("hosts", goodput_text_cc::SparesText(answer));
  const auto bytes = static_cast<int64_t>(answer.facts.checkpoint_bytes);
  lines.emplace_back("a checkpoint", ToString(Bytes(bytes)));
  for (const CheckpointTier& tier : spec.tiers) {
    const bool first = &tier == &spec.tiers.front();
    lines.emplace_back(first ? "checkpoints" : "", goodput_text_cc::TierLine(spec, tier));
  }
  if (!spec.tiers.empty()) {
    lines.emplace_back("best interval", goodput_text_cc::BestText(answer));
  }
  return lines;
}

std::string GoodputText(const GoodputAnswer& answer) {
  const RunSpec& spec = answer.question.spec;
  std::string text =
      absl::StrCat(answer.facts.name, "\n", SpanText(spec.length_s), " on ", answer.facts.devices,
                   " devices in ", spec.job.hosts, spec.job.hosts == 1 ? " host, " : " hosts, ",
                   answer.results.size(), " runs, seed ", answer.flags.seed, "\n\n");
  for (const auto& [name, value] : GoodputLines(answer)) {
    absl::StrAppendFormat(&text, "  %-24s %s\n", name, value);
  }
  text += goodput_text_cc::LostTable(answer);
  if (!answer.question.notes.empty()) text += "\n";
  for (const std::string& note : answer.question.notes) {
    absl::StrAppend(&text, "note: ", note, "\n");
  }
  return text;
}

std::string TimelineText(const std::vector<Episode>& episodes) {
  std::vector<TextRow> rows = {{"day", "what", "for", ""}};
  constexpr double kDay = 86'400;
  for (const Episode& episode : episodes) {
    rows.push_back({absl::StrFormat("%.3f", episode.start_s / kDay), episode.what,
                    SpanText(episode.end_s - episode.start_s), episode.detail});
  }
  return TextTable(rows);
}

}  // namespace orrery::tools
