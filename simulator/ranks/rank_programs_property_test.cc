// Random programs of ranks against a plain reading of the same events, and the same programs with a
// fault put in: always an error with both ends, never a hang.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "simulator/engine/event_queue.h"
#include "simulator/ranks/rank_programs.h"
#include "simulator/ranks/rank_programs_test_util.h"
#include "simulator/testing/independent_flows.h"

namespace orrery::simulator {
namespace rank_programs_property_test_cc {
namespace {

constexpr absl::string_view kStreams[] = {"compute", "data", "side"};

// Draws events of all ranks one after the other, and writes each into the ranks that take part: so
// the ranks agree on an order. Plays them at once, as it knows who takes part.
class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  RankPrograms Make() {
    const int32_t ranks = 2 + static_cast<int32_t>(Below(5));
    programs_.ranks.resize(static_cast<size_t>(ranks));
    finish_of_.resize(static_cast<size_t>(ranks));
    for (size_t i = 0; i < 1 + Below(3); ++i) AddCommunicator(ranks);
    for (size_t events = 5 + Below(40); events > 0; --events) AddEvent(ranks);
    return programs_;
  }
  Time makespan() const { return makespan_; }
  int32_t events() const { return events_; }

 private:
  struct Part {
    int32_t rank;
    RankStep step;
  };

  size_t Below(size_t count) { return random_() % count; }
  int32_t RankBelow(int32_t ranks) {
    return static_cast<int32_t>(Below(static_cast<size_t>(ranks)));
  }

  void AddCommunicator(int32_t ranks) {
    std::vector<int32_t> all;
    for (int32_t rank = 0; rank < ranks; ++rank) all.push_back(rank);
    std::shuffle(all.begin(), all.end(), random_);
    all.resize(2 + Below(all.size() - 1));
    programs_.communicators.push_back(
        {.name = absl::StrCat("c", programs_.communicators.size()), .ranks = all});
  }

  void AddEvent(int32_t ranks) {
    std::vector<Part> parts;
    Duration duration;
    const auto size = static_cast<int64_t>(Below(20));
    const size_t kind = Below(4);
    if (kind < 2) {
      duration = Duration(size);
      parts.push_back({RankBelow(ranks), {.duration = duration}});
    } else if (kind == 2) {
      const int32_t from = RankBelow(ranks);
      const int32_t to = (from + 1 + RankBelow(ranks - 1)) % ranks;
      const auto tag = static_cast<int32_t>(Below(3));
      duration = Duration(2 * size);
      parts.push_back(
          {from, {.kind = StepKind::kSend, .size = Bytes(size), .peer = to, .tag = tag}});
      parts.push_back(
          {to, {.kind = StepKind::kReceive, .size = Bytes(size), .peer = from, .tag = tag}});
    } else {
      const size_t row = Below(programs_.communicators.size());
      const std::vector<int32_t>& members = programs_.communicators[row].ranks;
      const std::string collective(kTestCollectives[Below(kTestCollectives.size())]);
      duration = Duration(size * static_cast<int64_t>(members.size()));
      for (const int32_t rank : members) {
        parts.push_back({rank,
                         {.kind = StepKind::kCollective,
                          .collective = collective,
                          .communicator = static_cast<int32_t>(row),
                          .size = Bytes(size)}});
      }
    }
    Place(parts, duration);
  }

  // The k-th call of a communicator must be the same event on all ranks, so a lane and a
  // communicator keep to one order; as events are drawn in that order, any streams will do.
  void Place(std::vector<Part>& parts, Duration duration) {
    ++events_;
    Time start;
    for (Part& part : parts) {
      const size_t rank = static_cast<size_t>(part.rank);
      part.step.stream = std::string(kStreams[Below(std::size(kStreams))]);
      Time& clock = clocks_[{part.rank, part.step.stream}];
      std::vector<Time>& finishes = finish_of_[rank];
      if (!finishes.empty() && Below(3) == 0) {
        const size_t earlier = Below(finishes.size());
        // Never of a wait, whose finish is none.
        if (programs_.ranks[rank][earlier].kind != StepKind::kWait) {
          clock = std::max(clock, finishes[earlier]);
          programs_.ranks[rank].push_back({.kind = StepKind::kWait,
                                           .stream = part.step.stream,
                                           .earlier = static_cast<int32_t>(earlier)});
          finishes.emplace_back();
        }
      }
      start = std::max(start, clock);
    }
    for (Part& part : parts) {
      const size_t rank = static_cast<size_t>(part.rank);
      part.step.name = absl::StrCat("s", programs_.ranks[rank].size());
      clocks_[{part.rank, part.step.stream}] = start + duration;
      programs_.ranks[rank].push_back(part.step);
      finish_of_[rank].push_back(start + duration);
    }
    makespan_ = std::max(makespan_, start + duration);
  }

  std::mt19937 random_;
  RankPrograms programs_;
  std::map<std::pair<int32_t, std::string>, Time> clocks_;
  std::vector<std::vector<Time>> finish_of_;  // by rank and step
  Time makespan_;
  int32_t events_ = 0;
};

TEST(RandomRankPrograms, PlayAsTheirEventsDo) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    Generator generator(seed);
    const RankPrograms programs = generator.Make();
    Program program;
    TestMachine machine;
    const absl::Status joined = Join(programs, machine, program);
    ASSERT_TRUE(joined.ok()) << joined << Print(programs);
    ASSERT_TRUE(program.Verify().ok()) << program.Verify();
    EXPECT_EQ(program.task_count(), generator.events());
    IndependentFlows network;
    EXPECT_EQ(RunEvents(program, network)->makespan, generator.makespan()) << Print(programs);
    EXPECT_EQ(Print(ParseRanks(Print(programs))), Print(programs));
  }
}

enum class FaultKind { kDrop, kKind, kSize, kTag, kPeer, kCommunicator, kSelf, kNobody, kDouble };
constexpr int kFaultKinds = 9;

// Puts a fault into a step that meets others; nothing when that step cannot have it.
std::optional<RankPrograms> WithFault(RankPrograms programs, FaultKind kind, std::mt19937& random) {
  const size_t rank = random() % programs.ranks.size();
  std::vector<RankStep>& steps = programs.ranks[rank];
  if (steps.empty()) return std::nullopt;
  const size_t at = random() % steps.size();
  RankStep& step = steps[at];
  const bool calls = step.kind == StepKind::kCollective;
  const bool sends = step.kind == StepKind::kSend || step.kind == StepKind::kReceive;
  if (!calls && !sends) return std::nullopt;
  if (kind == FaultKind::kDrop) {
    step.kind = StepKind::kCompute;  // not erased: waits name steps by number
  } else if (kind == FaultKind::kSize) {
    step.size += Bytes(1);
  } else if (kind == FaultKind::kDouble) {
    RankStep again = step;
    again.name.clear();
    steps.push_back(again);
  } else if (calls && kind == FaultKind::kKind) {
    step.collective = step.collective == "broadcast" ? "all-gather" : "broadcast";
  } else if (calls && kind == FaultKind::kCommunicator) {
    step.communicator += 1;
  } else if (sends && kind == FaultKind::kTag) {
    step.tag += 1;
  } else if (sends && kind == FaultKind::kPeer && programs.ranks.size() > 2) {
    do step.peer = (step.peer + 1) % static_cast<int32_t>(programs.ranks.size());
    while (step.peer == static_cast<int32_t>(rank));
  } else if (sends && kind == FaultKind::kSelf) {
    step.peer = static_cast<int32_t>(rank);
  } else if (sends && kind == FaultKind::kNobody) {
    step.peer = 1000;
  } else {
    return std::nullopt;
  }
  return programs;
}

// The different ranks that `message` names.
size_t RanksNamed(const std::string& message) {
  std::set<std::string> ranks;
  for (size_t at = message.find("rank "); at != std::string::npos;
       at = message.find("rank ", at + 1)) {
    const size_t end = message.find_first_not_of("0123456789", at + 5);
    if (end > at + 5) ranks.insert(message.substr(at + 5, end - at - 5));
  }
  return ranks.size();
}

TEST(RandomRankPrograms, FaultsAreFoundWithBothEnds) {
  std::mt19937 random(1);
  std::map<FaultKind, int> found;
  for (uint32_t seed = 0; seed < 6000; ++seed) {
    const auto kind = static_cast<FaultKind>(seed % kFaultKinds);
    const RankPrograms sound = Generator(seed / 4).Make();
    const std::optional<RankPrograms> programs = WithFault(sound, kind, random);
    if (!programs.has_value()) continue;
    ++found[kind];
    const std::string error = JoinError(*programs);
    ASSERT_NE(error, "") << static_cast<int>(kind) << Print(*programs);
    EXPECT_EQ(absl::StrContains(error, '\n'), false) << error;
    EXPECT_TRUE(absl::StrContains(error, "wanted")) << error;
    // Its own peer has one end; a communicator that is not there has none.
    const bool one = kind == FaultKind::kSelf || absl::StrContains(error, "that there are");
    EXPECT_GE(RanksNamed(error), one ? 1u : 2u) << error;
  }
  for (int kind = 0; kind < kFaultKinds; ++kind) {
    EXPECT_GT(found[static_cast<FaultKind>(kind)], 50) << kind;
  }
}

// Steps of one rank in another order: a circle, sizes that do not fit, or no fault at all.
TEST(RandomRankPrograms, OtherOrdersPlayOrAreErrors) {
  std::mt19937 random(2);
  int circles = 0;
  int sound = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    RankPrograms programs = Generator(seed).Make();
    for (std::vector<RankStep>& steps : programs.ranks) {
      std::erase_if(steps, [](const RankStep& step) { return step.kind == StepKind::kWait; });
    }
    std::vector<RankStep>& steps = programs.ranks[random() % programs.ranks.size()];
    if (steps.size() < 2) continue;
    const size_t at = random() % (steps.size() - 1);
    std::swap(steps[at], steps[at + 1 + random() % (steps.size() - at - 1)]);
    Program program;
    TestMachine machine;
    const absl::Status joined = Join(programs, machine, program);
    if (joined.ok()) {
      ++sound;
      IndependentFlows network;
      EXPECT_TRUE(RunEvents(program, network).ok());
      continue;
    }
    EXPECT_GE(RanksNamed(std::string(joined.message())), 2u) << joined;
    circles += absl::StrContains(joined.message(), "in a circle");
  }
  EXPECT_GT(circles, 100);
  EXPECT_GT(sound, 100);
}

}  // namespace
}  // namespace rank_programs_property_test_cc
}  // namespace orrery::simulator
