#ifndef ORRERY_COST_MODELS_COLLECTIVES_EXECUTION_TEST_UTIL_H_
#define ORRERY_COST_MODELS_COLLECTIVES_EXECUTION_TEST_UTIL_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cost_models/collectives/rounds.h"

// For tests: carries out rounds on symbols instead of numbers. What a rank holds of a part is the
// set of ranks whose contributions are summed in it. The oracle of every algorithm.

namespace orrery::cost_models {

/// All grids of two dimensions or more that hold so many ranks, each side longer than 1.
inline std::vector<std::vector<int32_t>> GridsOf(int32_t ranks) {
  std::vector<std::vector<int32_t>> grids;
  for (int32_t side = 2; side <= ranks / 2; ++side) {
    if (ranks % side != 0) continue;
    grids.push_back({side, ranks / side});
    for (std::vector<int32_t> rest : GridsOf(ranks / side)) {
      rest.insert(rest.begin(), side);
      grids.push_back(std::move(rest));
    }
  }
  return grids;
}

/// At most 64 ranks.
class Execution {
 public:
  /// Runs all rounds; `error()` says what went wrong.
  explicit Execution(const Rounds& rounds) : rounds_(rounds) {
    const auto ranks = static_cast<size_t>(rounds.ranks);
    const auto parts = static_cast<size_t>(rounds.parts);
    held_.assign(ranks, std::vector<uint64_t>(parts, 0));
    sent_.assign(ranks, 0);
    received_.assign(ranks, 0);
    for (int32_t rank = 0; rank < rounds.ranks; ++rank) {
      for (int64_t part = 0; part < rounds.parts; ++part) {
        if (Brings(rank, part)) At(rank, part) = Bit(rank);
      }
    }
    for (const Round& round : rounds.rounds) {
      for (int64_t repetition = 0; repetition < round.repeat; ++repetition) Run(round, repetition);
    }
    for (int32_t rank = 0; rank < rounds.ranks; ++rank) {
      for (int64_t part = 0; part < rounds.parts; ++part) Compare(rank, part);
    }
  }

  /// What is wrong first, or nothing.
  const std::string& error() const { return error_; }
  /// Parts that each rank sent and received.
  const std::vector<int64_t>& sent() const { return sent_; }
  const std::vector<int64_t>& received() const { return received_; }

 private:
  struct Arrival {
    int32_t to;
    int64_t part;
    uint64_t contributions;
    bool reduce;
  };

  static uint64_t Bit(int32_t rank) { return uint64_t{1} << rank; }
  uint64_t All() const { return ~uint64_t{0} >> (64 - rounds_.ranks); }

  // A hub's data are made when it first gets any.
  uint64_t& At(int32_t rank, int64_t part) {
    std::vector<uint64_t>& held = IsHub(rank) ? hubs_[rank] : held_[static_cast<size_t>(rank)];
    held.resize(static_cast<size_t>(rounds_.parts));
    return held[static_cast<size_t>(part)];
  }

  bool Brings(int32_t rank, int64_t part) const {
    using enum CollectiveKind;
    switch (rounds_.kind) {
      case kAllGather:
      case kGather:
        return rounds_.OwnerOf(part) == rank;
      case kAllToAll:
        return part / rounds_.ranks == rank;
      case kBroadcast:
      case kScatter:
        return rank == 0;
      case kSendReceive:
        return part == rank;
      case kAllReduce:
      case kReduceScatter:
      case kReduce:
      case kBarrier:
        return true;
    }
    return false;
  }

  // What the rank must end up with; 0 when it does not matter.
  uint64_t Wanted(int32_t rank, int64_t part) const {
    using enum CollectiveKind;
    const int32_t n = rounds_.ranks;
    switch (rounds_.kind) {
      case kAllReduce:
      case kBarrier:
        return All();
      case kReduceScatter:
        return rounds_.OwnerOf(part) == rank ? All() : 0;
      case kAllGather:
        return Bit(rounds_.OwnerOf(part));
      case kGather:
        return rank == 0 ? Bit(rounds_.OwnerOf(part)) : 0;
      case kAllToAll:
        return part % n == rank ? Bit(static_cast<int32_t>(part / n)) : 0;
      case kBroadcast:
        return Bit(0);
      case kScatter:
        return rounds_.OwnerOf(part) == rank ? Bit(0) : 0;
      case kReduce:
        return rank == 0 ? All() : 0;
      case kSendReceive:
        return (part + 1) % n == rank ? Bit(static_cast<int32_t>(part)) : 0;
    }
    return 0;
  }

  void Run(const Round& round, int64_t repetition) {
    std::vector<Arrival> arrivals;
    for (const Transfer& transfer : round.transfers) {
      const int64_t first = FirstPart(transfer, round, repetition, rounds_.parts);
      if (first < 0) continue;
      for (int64_t i = 0; i < transfer.parts; ++i) {
        const int64_t part = Wrap(first + i * transfer.stride, rounds_.parts);
        const uint64_t held = At(transfer.from, part);
        if (held == 0) Fail(absl::StrCat(transfer.from, " sends part ", part, " it has not"));
        arrivals.push_back({transfer.to, part, held, transfer.reduce});
        if (!IsHub(transfer.from)) ++sent_[static_cast<size_t>(transfer.from)];
        if (!IsHub(transfer.to)) ++received_[static_cast<size_t>(transfer.to)];
      }
    }
    for (const Arrival& arrival : arrivals) {
      uint64_t& held = At(arrival.to, arrival.part);
      if (arrival.reduce && (held & arrival.contributions) != 0) {
        Fail(absl::StrCat(arrival.to, " adds to part ", arrival.part, " what it has already"));
      }
      held = arrival.reduce ? held | arrival.contributions : arrival.contributions;
    }
  }

  void Compare(int32_t rank, int64_t part) {
    const uint64_t wanted = Wanted(rank, part);
    if (wanted == 0 || At(rank, part) == wanted) return;
    Fail(absl::StrCat("rank ", rank, " ends up with ", absl::Hex(At(rank, part)), " of part ", part,
                      "; wanted ", absl::Hex(wanted)));
  }

  void Fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
  }

  const Rounds& rounds_;
  std::vector<std::vector<uint64_t>> held_;
  std::map<int32_t, std::vector<uint64_t>> hubs_;
  std::vector<int64_t> sent_, received_;
  std::string error_;
};

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COLLECTIVES_EXECUTION_TEST_UTIL_H_
