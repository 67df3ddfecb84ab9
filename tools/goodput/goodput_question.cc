#include "tools/goodput/goodput_question.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "tools/goodput/checkpoint_tiers.h"
#include "tools/goodput/run_texts.h"

namespace orrery::tools {

using simulator::goodput::CheckpointTier;
using simulator::goodput::Loss;
using simulator::goodput::PlayManner;
using simulator::goodput::RunSpec;
using simulator::goodput::WhenShort;

namespace goodput_question_cc {
namespace {

constexpr double kDay = 86'400;

int64_t StepsOf(const TierText& text, double step_s, double usual_s) {
  if (text.every_steps.has_value()) return *text.every_steps;
  const double steps = text.every_s.value_or(usual_s) / step_s;
  return std::max<int64_t>(std::llround(std::min(steps, 1e15)), 1);
}

// As many as are being repaired at once, on average, and four times their standard deviation more.
int64_t EnoughSpares(const RunSpec& spec) {
  double hosts_away = 0, largest = 0;
  for (const auto& rate : spec.failures) {
    const double hosts =
        rate.component->loss == Loss::kProcesses ? 0
        : rate.component->loss == Loss::kHost
            ? 1
            : static_cast<double>(std::min(spec.job.hosts_per_rack, spec.job.hosts));
    const auto count = static_cast<double>(rate.component->count(spec.job));
    hosts_away += hosts * count / rate.mtbf_s * spec.recovery.repair_s;
    largest = std::max(largest, hosts);
  }
  constexpr double kMost = 1 << 20;
  return static_cast<int64_t>(std::ceil(std::min(
      hosts_away + 4 * std::sqrt(hosts_away * largest) + (hosts_away > 0 ? largest : 0), kMost)));
}

absl::Status ReadRecovery(const GoodputFlags& flags, const JobFacts& facts, RunSpec& spec,
                          bool& enough) {
  auto& recovery = spec.recovery;
  ORRERY_ASSIGN_OR_RETURN(recovery.detect, Annotated(ParseSpread(flags.detect), "--detect"));
  ORRERY_ASSIGN_OR_RETURN(recovery.restart, Annotated(ParseSpread(flags.restart), "--restart"));
  ORRERY_ASSIGN_OR_RETURN(recovery.swap, Annotated(ParseSpread(flags.swap), "--swap"));
  ORRERY_ASSIGN_OR_RETURN(recovery.repair_s, Annotated(ParseSpan(flags.repair), "--repair"));
  ORRERY_ASSIGN_OR_RETURN(recovery.when_short,
                          Annotated(ParseWhenShort(flags.when_short), "--when-short"));
  if (flags.spares < -1 || flags.spares > (int64_t{1} << 20)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--spares ", flags.spares, ": wanted 0 to 1048576 hosts"));
  }
  recovery.spares = flags.spares;
  if (flags.spares >= 0) return absl::OkStatus();
  if (recovery.when_short != WhenShort::kWait) {
    // Who wants to see it shrink has no more hosts than there are.
    recovery.spares = facts.spare_hosts;
    return absl::OkStatus();
  }
  enough = facts.spare_hosts == 0;
  recovery.spares = enough ? EnoughSpares(spec) : facts.spare_hosts;
  return absl::OkStatus();
}

absl::Status ReadStops(const GoodputFlags& flags, RunSpec& spec) {
  if (!flags.maintenance.empty()) {
    ORRERY_ASSIGN_OR_RETURN(
        spec.stops.emplace_back(),
        Annotated(ParseStop(flags.maintenance, {.name = "maintenance", .notice_s = HUGE_VAL}),
                  "--maintenance"));
  }
  if (!flags.preemption.empty()) {
    ORRERY_ASSIGN_OR_RETURN(
        spec.stops.emplace_back(),
        Annotated(ParseStop(flags.preemption, {.name = "preemption", .random = true}),
                  "--preempt"));
  }
  return absl::OkStatus();
}

// Intervals that nobody names, one tier after the other, twice, as each is the best beside others.
void ChooseIntervals(const std::vector<TierText>& texts, size_t safest, const PlayManner& manner,
                     GoodputQuestion& question) {
  std::vector<CheckpointTier>& tiers = question.spec.tiers;
  const auto open = std::ranges::count_if(texts, &TierText::open);
  for (int round = 0; round < (open > 1 ? 2 : 1); ++round) {
    for (size_t i = 0; i < tiers.size(); ++i) {
      if (!texts[i].open()) continue;
      const auto best = FindBestInterval(question.spec, i, manner);
      tiers[i].every_steps = best.steps;
      if (i == safest) question.best = best;
    }
  }
  if (!tiers.empty() && question.best.seconds == 0) {
    question.best = FindBestInterval(question.spec, safest, manner);
  }
}

// What nobody would want, and might not see.
void NoteGaps(GoodputQuestion& question) {
  // Of a stop, hosts go.
  Loss largest = question.spec.stops.empty() ? Loss::kProcesses : Loss::kRack;
  for (const auto& rate : question.spec.failures) {
    largest = std::max(largest, rate.component->loss);
  }
  const bool survives = std::ranges::any_of(
      question.spec.tiers, [&](const CheckpointTier& tier) { return tier.survives >= largest; });
  if (!survives && !(question.spec.failures.empty() && question.spec.stops.empty())) {
    question.notes.push_back(
        "no checkpoint survives all failures and stops: after one that takes it, the run begins "
        "anew");
  }
}

// A named interval that is far from one of the tier that is due more often.
void NoteRounding(const TierText& text, const CheckpointTier& wanted, const RunSpec& spec,
                  std::vector<std::string>& notes) {
  constexpr double kMuch = 0.1;
  const auto played = std::ranges::find(spec.tiers, text.name, &CheckpointTier::name);
  const double ratio =
      static_cast<double>(played->every_steps) / static_cast<double>(wanted.every_steps);
  if (text.open() || std::abs(ratio - 1) <= kMuch) return;
  notes.push_back(absl::StrCat("checkpoints to ", text.name, " come every ", played->every_steps,
                               " steps in place of ", wanted.every_steps,
                               ": intervals are multiples of each other"));
}

}  // namespace
}  // namespace goodput_question_cc

absl::StatusOr<GoodputQuestion> QuestionOf(const GoodputFlags& flags, const JobFacts& facts,
                                           const PlayManner& manner) {
  using namespace goodput_question_cc;  // NOLINT(google-build-using-namespace)
  GoodputQuestion question{.spec = {.job = facts.shape}, .notes = facts.notes};
  RunSpec& spec = question.spec;
  if (!(flags.days > 0) || flags.days > 36'500) {
    return absl::InvalidArgumentError(
        absl::StrCat("--days ", flags.days, ": wanted more than 0 and at most 36500"));
  }
  if (flags.hosts_per_rack < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rack ", flags.hosts_per_rack, ": wanted at least 1 host"));
  }
  spec.job.hosts_per_rack = flags.hosts_per_rack;
  spec.length_s = flags.days * kDay;
  spec.step_s = facts.step_s;
  ORRERY_ASSIGN_OR_RETURN(spec.failures, Annotated(ParseMtbf(flags.mtbf), "--mtbf"));
  ORRERY_RETURN_IF_ERROR(ReadRecovery(flags, facts, spec, question.enough_spares));
  ORRERY_RETURN_IF_ERROR(ReadStops(flags, spec));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<TierText> texts,
                          Annotated(ParseTiers(flags.checkpoint), "--checkpoint"));
  size_t safest = 0;
  for (const TierText& text : texts) {
    CheckpointTier& tier = spec.tiers.emplace_back(MakeTier(text, facts));
    const double usual_s = std::max(LikelyInterval(spec, tier), tier.write_s + spec.step_s);
    tier.every_steps = StepsOf(text, spec.step_s, usual_s);
    if (tier.survives >= spec.tiers[safest].survives) safest = spec.tiers.size() - 1;
  }
  ORRERY_RETURN_IF_ERROR(simulator::goodput::CheckRun(spec));
  ChooseIntervals(texts, safest, manner, question);
  if (!spec.tiers.empty()) question.safest_tier = spec.tiers[safest].name;
  const std::vector<CheckpointTier> wanted = spec.tiers;
  simulator::goodput::OrderTiers(spec.tiers, spec.step_s);
  for (size_t i = 0; i < texts.size(); ++i) {
    NoteRounding(texts[i], wanted[i], spec, question.notes);
  }
  ORRERY_RETURN_IF_ERROR(simulator::goodput::CheckRun(spec));
  NoteGaps(question);
  return question;
}

}  // namespace orrery::tools
