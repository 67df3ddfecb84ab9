#include "transforms/schedules/list_scheduler.h"

#include <algorithm>
#include <span>
#include <utility>

#include "support/check.h"

namespace orrery::transforms {
namespace list_scheduler_cc {
namespace {

int64_t CeilDivide(int64_t numerator, int64_t denominator) {
  return (numerator + denominator - 1) / denominator;
}

}  // namespace
}  // namespace list_scheduler_cc

EarliestRank::EarliestRank(size_t ranks) {
  while (leaves_ < ranks) leaves_ *= 2;
  times_.assign(leaves_, kNever);
  winners_.resize(2 * leaves_);
  for (size_t rank = 0; rank < leaves_; ++rank) {
    winners_[leaves_ + rank] = static_cast<uint32_t>(rank);
  }
  for (size_t node = leaves_ - 1; node > 0; --node) winners_[node] = winners_[2 * node];
}

void EarliestRank::Set(size_t rank, int64_t time) {
  times_[rank] = time;
  for (size_t node = (leaves_ + rank) / 2; node > 0; node /= 2) {
    const uint32_t left = winners_[2 * node];
    const uint32_t right = winners_[2 * node + 1];
    winners_[node] = times_[right] < times_[left] ? right : left;
  }
}

ListScheduler::ListScheduler(BlockPipeline pipeline)
    : pipeline_(std::move(pipeline)),
      forwards_(pipeline_.stages()),
      backwards_(pipeline_.stages()),
      ranks_(pipeline_.ranks),
      next_(pipeline_.ranks) {
  const size_t positions = 2 * pipeline_.chunks * pipeline_.microbatches;
  for (auto* streams : {&forwards_, &backwards_}) {
    for (Stream& stream : *streams) {
      stream.positions.resize(pipeline_.microbatches);
      stream.arrivals.reserve(pipeline_.microbatches);
    }
  }
  for (Rank& rank : ranks_) {
    rank.changes.resize(positions);
    rank.ran.resize(positions);
    rank.weight_gradients.reserve(positions / 2);
  }
  steps_.reserve(pipeline_.ranks * pipeline_.StepsOfRank());
}

// Merges the rank's streams, each at the block's interval, by slot; of equal slots backwards first.
bool ListScheduler::ArrangeRank(size_t rank, const BuildingBlock& block) {
  struct Source {
    Stream* stream = nullptr;
    int64_t slot = 0;
    int8_t change = 0;
    size_t next = 0;
  };
  std::array<Source, 4> sources;
  size_t count = 0;
  for (size_t chunk = 0; chunk < pipeline_.chunks; ++chunk) {
    const size_t stage = pipeline_.StageOf(rank, chunk);
    sources[count++] = {&backwards_[stage], 2 * int64_t{block.backward[stage]}, -1};
    sources[count++] = {&forwards_[stage], 2 * int64_t{block.forward[stage]} + 1, 1};
  }
  int64_t held = 0;
  for (uint32_t position = 0; position < ranks_[rank].changes.size(); ++position) {
    Source* first = nullptr;
    for (Source& source : std::span(sources).first(count)) {
      if (source.next == pipeline_.microbatches) continue;
      if (first == nullptr || source.slot < first->slot) first = &source;
    }
    first->stream->positions[first->next++] = position;
    first->slot += 2 * int64_t{block.interval};
    ranks_[rank].changes[position] = first->change;
    held += first->change;
    if (held > pipeline_.live_limits[rank]) return false;
  }
  return true;
}

void ListScheduler::Restart() {
  for (auto* streams : {&forwards_, &backwards_}) {
    for (Stream& stream : *streams) {
      stream.arrivals.clear();
      stream.run = 0;
    }
  }
  forwards_[0].arrivals.assign(pipeline_.microbatches, 0);
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    std::fill(rank.ran.begin(), rank.ran.end(), 0);
    rank.head = 0;
    rank.held = 0;
    rank.weight_gradients.clear();
    rank.weight_gradients_run = 0;
    rank.first_forwards = FirstForwards(i);
    rank.left = pipeline_.StepsOfRank();
    rank.free = 0;
    next_.Set(i, 0);
  }
  steps_.clear();
}

// The last rank alternates forwards of both its chunks, so that those of chunk 1 come to every rank
// two forwards apart, from 2p-1-r forwards after the start; the first backward comes after 2p
// forwards and r backwards. Room is left for what comes in between.
int64_t ListScheduler::FirstForwards(size_t rank) const {
  if (!rules_.spares_room || pipeline_.chunks == 1) return kNever;
  const int64_t forward = std::max<int64_t>(rules_.durations.forward, 1);
  const auto behind = static_cast<int64_t>(rank);
  const int64_t coming =
      list_scheduler_cc::CeilDivide((behind + 1) * forward + behind * backward_, 2 * forward);
  const int64_t limit = pipeline_.live_limits[rank];
  return std::max(list_scheduler_cc::CeilDivide(limit, 2), limit - coming);
}

bool ListScheduler::Play(const BuildingBlock& block, const ListRules& rules) {
  rules_ = rules;
  const StepDurations& durations = rules_.durations;
  backward_ =
      durations.Of(pipeline_.splits_backward ? StepKind::kInputGradient : StepKind::kBackward);
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!ArrangeRank(rank, block)) return false;
  }
  Restart();
  const size_t steps = ranks_.size() * pipeline_.StepsOfRank();
  while (steps_.size() < steps) {
    const size_t soonest = next_.Earliest();
    ORRERY_CHECK(next_[soonest] != kNever) << "all ranks of a building block wait";
    Decide(soonest);
  }
  return true;
}

// Whether the forward may run now although steps before its position have not.
bool ListScheduler::Admits(const Rank& rank, size_t stage, uint32_t position) const {
  if (stage < pipeline_.ranks && pipeline_.chunks == 2) {
    const bool no_backward = backwards_[2 * pipeline_.ranks - 1 - stage].run == 0;
    if (no_backward && static_cast<int64_t>(forwards_[stage].run) >= rank.first_forwards) {
      return false;
    }
  }
  const int64_t limit = pipeline_.live_limits[pipeline_.RankOf(stage)];
  int64_t held = rank.held + 1;
  for (size_t i = rank.head; held <= limit && i < position; ++i) {
    if (rank.ran[i] == 0) held += rank.changes[i];
  }
  return held <= limit;
}

// What the rank may run next, by position: the next forward and backward of each stage of which it
// is known when they can start.
ListScheduler::Choices ListScheduler::ChoicesOf(size_t index) const {
  const Rank& rank = ranks_[index];
  Choices choices;
  const auto add = [&](const Stream& stream, size_t stage, bool is_forward) {
    if (!stream.HasNext()) return;
    const uint32_t position = stream.positions[stream.run];
    if (position != rank.head) {
      if (is_forward ? rules_.keeps_forwards : rules_.keeps_backwards) return;
      if (is_forward && !Admits(rank, stage, position)) return;
    }
    size_t at = choices.count++;
    for (; at > 0 && choices.steps[at - 1].position > position; --at) {
      choices.steps[at] = choices.steps[at - 1];
    }
    choices.steps[at] = {.position = position,
                         .stage = static_cast<uint32_t>(stage),
                         .is_forward = is_forward,
                         .arrival = stream.arrivals[stream.run]};
  };
  for (size_t chunk = 0; chunk < pipeline_.chunks; ++chunk) {
    const size_t stage = pipeline_.StageOf(index, chunk);
    add(backwards_[stage], stage, false);
    add(forwards_[stage], stage, true);
  }
  return choices;
}

void ListScheduler::Decide(size_t index) {
  Rank& rank = ranks_[index];
  const int64_t now = next_[index];
  const Choices choices = ChoicesOf(index);
  const Ready* chosen = nullptr;
  int64_t arrival = kNever;  // of the next step that is not there yet
  for (const Ready& ready : std::span(choices.steps).first(choices.count)) {
    if (ready.arrival > now) {
      arrival = std::min(arrival, ready.arrival);
    } else if (chosen == nullptr) {
      const int64_t length = ready.is_forward ? rules_.durations.forward : backward_;
      if (!rules_.waits || arrival == kNever || now + length <= arrival) chosen = &ready;
    }
  }
  const auto pending =
      static_cast<int64_t>(rank.weight_gradients.size() - rank.weight_gradients_run);
  const bool is_full = rank.held + pending >= pipeline_.live_limits[index];
  if (chosen != nullptr && !(chosen->is_forward && is_full && pending > 0)) {
    return RunStep(index, *chosen, now);
  }
  // A weight gradient may end a little after the next step could start: a quarter of its length did
  // best on shapes up to 16 ranks and 64 microbatches.
  const int64_t length = rules_.durations.weight_gradient;
  if (pending > 0 &&
      (chosen != nullptr || arrival == kNever || now + length <= arrival + length / 4)) {
    return RunWeightGradient(index, now);
  }
  next_.Set(index, arrival);
}

void ListScheduler::RunStep(size_t index, const Ready& ready, int64_t now) {
  Rank& rank = ranks_[index];
  const size_t stage = ready.stage;
  Stream& stream = ready.is_forward ? forwards_[stage] : backwards_[stage];
  rank.ran[ready.position] = 1;
  while (rank.head < rank.ran.size() && rank.ran[rank.head] != 0) ++rank.head;
  PlayedStep step = {.rank = static_cast<uint32_t>(index),
                     .stage = ready.stage,
                     .microbatch = static_cast<uint32_t>(stream.run++)};
  if (ready.is_forward) {
    ++rank.held;
    Finish(index, now, rules_.durations.forward);
    const bool is_last = stage + 1 == forwards_.size();
    Arrive(is_last ? backwards_[stage] : forwards_[stage + 1], index,
           is_last ? index : pipeline_.RankOf(stage + 1), rank.free);
  } else {
    --rank.held;
    step.kind = pipeline_.splits_backward ? StepKind::kInputGradient : StepKind::kBackward;
    if (pipeline_.splits_backward) rank.weight_gradients.push_back(step);
    Finish(index, now, backward_);
    if (stage > 0) Arrive(backwards_[stage - 1], index, pipeline_.RankOf(stage - 1), rank.free);
  }
  steps_.push_back(step);
}

void ListScheduler::RunWeightGradient(size_t index, int64_t now) {
  Rank& rank = ranks_[index];
  steps_.push_back(rank.weight_gradients[rank.weight_gradients_run++]);
  steps_.back().kind = StepKind::kWeightGradient;
  Finish(index, now, rules_.durations.weight_gradient);
}

void ListScheduler::Finish(size_t index, int64_t now, int64_t length) {
  Rank& rank = ranks_[index];
  rank.free = now + length;
  next_.Set(index, --rank.left == 0 ? kNever : rank.free);
}

void ListScheduler::Arrive(Stream& stream, size_t from, size_t to, int64_t time) {
  const int64_t arrival = time + (from == to ? 0 : rules_.durations.send);
  stream.arrivals.push_back(arrival);
  Rank& rank = ranks_[to];
  const bool is_next = stream.run + 1 == stream.arrivals.size();
  if (is_next && to != from && rank.left > 0) {
    next_.Set(to, std::max(rank.free, std::min(next_[to], arrival)));
  }
}

}  // namespace orrery::transforms
