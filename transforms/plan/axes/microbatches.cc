#include <algorithm>

#include "transforms/plan/axis_fields.h"
#include "transforms/plan/divisors.h"

namespace orrery::transforms {
namespace microbatches_cc {
namespace {

// 0 stands for DistIR's own choice: one without a pipeline, else the powers of two from 2 to
// 2^(floor(log2(batch/dp)/2) - 1).
constexpr int64_t kAsDistir = 0;

absl::Status Parse(absl::string_view text, ParallelPlan& plan) {
  if (text != "distir") return ParseNumber<&ParallelPlan::microbatches>(text, plan);
  plan.microbatches = kAsDistir;
  return absl::OkStatus();
}

std::string Print(const ParallelPlan& plan) {
  return plan.microbatches == kAsDistir ? "distir" : absl::StrCat(plan.microbatches);
}

std::vector<int64_t> DistirCounts(int64_t share, int64_t pp) {
  if (pp == 1) return {1};
  int64_t log2 = 0;
  while ((share >> (log2 + 1)) > 0) ++log2;
  std::vector<int64_t> counts;
  for (int64_t power = 1; power <= log2 / 2 - 1; ++power) counts.push_back(int64_t{1} << power);
  return counts;
}

// Beyond 8 a stage the pipeline is full for nine tenths of the time, and kernels only get smaller.
std::vector<int64_t> SliceCounts(const SpaceQuestion& question, const ParallelPlan& plan) {
  if (!plan.slices.rows.empty()) return {static_cast<int64_t>(plan.slices.rows.size())};
  std::vector<int64_t> counts = Divisors(std::max<int64_t>(question.sequence, 1));
  std::erase_if(counts, [&](int64_t count) { return count > 8 * plan.pp; });
  return counts;
}

// Beyond 64 a stage less than a sixtieth of the time is a bubble; all that grows is what is
// simulated. So many are sought in any case, for what less memory a small one needs.
std::vector<int64_t> BatchCounts(int64_t share, int64_t pp) {
  constexpr int64_t kMany = 1 << 14;
  std::vector<int64_t> counts = Divisors(share);
  std::erase_if(counts, [&](int64_t count) { return count > std::max(kMany, 64 * pp); });
  return counts;
}

std::vector<ParallelPlan> Choices(const SpaceQuestion& question, const ParallelPlan& plan,
                                  std::span<const ParallelPlan> given) {
  constexpr auto kField = &ParallelPlan::microbatches;
  const int64_t share = std::max<int64_t>(1, question.batch_size / plan.dp / plan.ep);
  if (given.empty()) {
    std::vector<int64_t> counts =
        question.cuts_sequences ? SliceCounts(question, plan) : BatchCounts(share, plan.pp);
    // With fewer than ranks some of these wait all the time: in a full space, which has so many
    // plans, there is no room for them.
    if (question.full) std::erase_if(counts, [&](int64_t count) { return count < plan.pp; });
    return WithEach<kField>(plan, counts);
  }
  std::vector<ParallelPlan> plans;
  for (const ParallelPlan& one : given) {
    const std::vector<int64_t> counts = one.microbatches == kAsDistir
                                            ? DistirCounts(share, plan.pp)
                                            : std::vector<int64_t>{one.microbatches};
    for (ParallelPlan& each : WithEach<kField>(plan, counts)) plans.push_back(std::move(each));
  }
  return plans;
}

constexpr int64_t kMostTimes = 64;

// All slices leave as much together, but what one holds while it works, logits say, is less.
void Suggestions(const AxisInfo& axis, const SuggestionQuestion& question, const ParallelPlan& plan,
                 std::vector<Suggestion>& suggestions) {
  const bool slices = plan.schedule->slices_sequence;
  if (slices && !plan.slices.rows.empty()) return;
  if (!plan.shares.counts.empty()) return;  // they say how many there are
  const int64_t most = slices ? question.sequence : question.batch_size / (plan.dp * plan.ep);
  for (int64_t factor = 2; factor <= (slices ? 8 : kMostTimes); factor *= 2) {
    ParallelPlan next = plan;
    next.microbatches *= factor;
    if (next.microbatches > most || most % next.microbatches != 0) return;
    Suggestion& more = suggestions.emplace_back(Suggest(axis, plan, next));
    more.shares = {.activations = 1.0 / static_cast<double>(factor)};
    more.rank = 0;
    more.pairing = Pairing::kAny;
  }
}

// A list of slices says how many there are.
void Follow(ParallelPlan& plan) {
  const std::vector<int64_t>& rows = plan.slices.rows;
  if (!rows.empty()) plan.microbatches = std::ssize(rows);
}

}  // namespace
}  // namespace microbatches_cc

extern const AxisInfo kMicrobatchesAxis = {
    .flag = "micro-batches",
    .summary = "microbatches of a data-parallel replica, or slices of the sequence",
    .values = "a number",
    .page =
        "microbatches of a data-parallel replica; with `--schedule terapipe` [slices of the "
        "sequence](slices.md), in a search up to 8 a stage; a search seeks up to 16,384 "
        "microbatches, or 64 a stage",
    .page_default = "1, or as many as `--slices` lists",
    .examples = {"2", "24", "1024", "1"},
    .mistake = {"all", "'all': wanted a number"},
    .scope = AxisScope::kStep,
    .is_number = true,
    .least = 1,
    .parse = microbatches_cc::Parse,
    .print = microbatches_cc::Print,
    .follow = microbatches_cc::Follow,
    .copy = CopyField<&ParallelPlan::microbatches>,
    .always_printed = true,
    .choices = microbatches_cc::Choices,
    .left_open = LeftOpen::kDividesBatch,
    .shown = {"micro", 6},
    .column = "num_microbatches",
    .column_position = 4,
    .cell = NumberCell<&ParallelPlan::microbatches>,
    .suggest = microbatches_cc::Suggestions,
};

}  // namespace orrery::transforms
