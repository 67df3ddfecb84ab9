#include "lowering/astra/astra_plan.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lowering/astra/astra_system.h"
#include "simulator/network/astra_networks.h"

// What each rank sends, as text; then which messages a collective of several dimensions sends.

namespace orrery::lowering {
namespace astra_plan_test_cc {
namespace {

using cost_models::CollectiveKind;
using enum cost_models::CollectiveKind;

constexpr CollectiveKind kKinds[] = {kAllReduce, kReduceScatter, kAllGather, kAllToAll};

cluster::Topology FullyConnected(int32_t devices, Duration latency) {
  for (const cluster::TopologyKind* kind : cluster::AllTopologies()) {
    if (kind->name != "fully_connected") continue;
    return *cluster::Topology::Create(
        *kind, {.devices = devices, .port = {Bandwidth(1'000'000'000), latency}});
  }
  ADD_FAILURE();
  return cluster::Topology();
}

// A plan, with the program that has its flows.
struct Planned {
  Planned(CollectiveKind kind, absl::string_view algorithm, int32_t ranks, int64_t size)
      : topology(FullyConnected(ranks, Duration(1'000'000))),
        links(topology, program),
        plan(PlanAstraStep(kind, algorithm, Bytes(size), links)) {}

  int64_t SizeOf(const AstraPhase::Message& message) const {
    return program.flow(message.flow).size.count();
  }

  cluster::Topology topology;
  simulator::Program program;
  LinkResources links;
  absl::StatusOr<std::vector<AstraStepPlan>> plan;
};

// "1:100 2:100 reduce 100": to whom and how much.
std::string PhaseText(const Planned& planned, const AstraPhase& phase) {
  std::vector<std::string> words;
  for (const auto& message : phase.sends) {
    words.push_back(absl::StrCat(message.to, ":", planned.SizeOf(message)));
  }
  if (phase.reduced > Bytes(0)) words.push_back(absl::StrCat("reduce ", phase.reduced.count()));
  return absl::StrJoin(words, " ");
}

// The phases of one rank in their order; of some that follow each other and are alike, a count.
std::string PlanText(CollectiveKind kind, absl::string_view algorithm, int32_t ranks, int64_t size,
                     int32_t rank = 0, size_t tree = 0) {
  const Planned planned(kind, algorithm, ranks, size);
  if (!planned.plan.ok()) return std::string(planned.plan.status().message());
  const AstraRankPlan& plan = planned.plan->at(tree).ranks[static_cast<size_t>(rank)];
  std::vector<std::string> lines;
  for (size_t i = 0, next = 0; i < plan.order.size(); i = next) {
    while (next < plan.order.size() && plan.order[next] == plan.order[i]) ++next;
    const AstraPhase& phase = plan.phases[static_cast<size_t>(plan.order[i])];
    lines.push_back(absl::StrCat(next - i, " x ", PhaseText(planned, phase)));
  }
  return absl::StrJoin(lines, ", ");
}

TEST(AstraPlan, OfARingSendsToTheNext) {
  EXPECT_EQ(PlanText(kAllReduce, "ring", 4, 400), "3 x 1:100 reduce 100, 3 x 1:100");
  EXPECT_EQ(PlanText(kReduceScatter, "ring", 4, 400, 3), "3 x 0:100 reduce 100");
  EXPECT_EQ(PlanText(kAllToAll, "ring", 4, 400, 2), "6 x 3:100");  // 1 + 2 + 3 hops
  EXPECT_EQ(PlanText(kAllReduce, "ring", 2, 400), "1 x 1:200 reduce 200, 1 x 1:200");
}

TEST(AstraPlan, OfDirectSendsToAllAtOnce) {
  EXPECT_EQ(PlanText(kAllReduce, "direct", 4, 400, 1),
            "1 x 2:100 3:100 0:100 reduce 100, 1 x 2:100 3:100 0:100");
  EXPECT_EQ(PlanText(kReduceScatter, "direct", 3, 300), "1 x 1:100 2:100 reduce 100");
  EXPECT_EQ(PlanText(kAllToAll, "direct", 3, 300, 2), "1 x 0:100 1:100");
}

// Halves up the distances, then doubles back down them.
TEST(AstraPlan, OfHalvingDoublingTakesLogarithmicallyManySteps) {
  EXPECT_EQ(PlanText(kAllReduce, "halvingDoubling", 8, 800),
            "1 x 1:400 reduce 200, 1 x 2:200 reduce 100, 1 x 4:100, 1 x 4:100, 1 x 2:200, "
            "1 x 1:400");
  EXPECT_EQ(PlanText(kReduceScatter, "halvingDoubling", 4, 400, 3),
            "1 x 2:200 reduce 100, 1 x 1:100");
}

// peers.md 2.2: the size of an all-gather is what a rank brings, so nothing is divided by n.
TEST(AstraPlan, OfAnAllGatherSendsItsWholeSize) {
  EXPECT_EQ(PlanText(kAllGather, "ring", 4, 400), "3 x 1:400");
  EXPECT_EQ(PlanText(kAllGather, "direct", 4, 400), "1 x 1:400 2:400 3:400");
  EXPECT_EQ(PlanText(kAllGather, "halvingDoubling", 4, 400), "1 x 2:400, 1 x 1:800");
}

// In the first tree the last rank is the root, above 3 of 1 and 5; in the second rank 0 above 4.
// The whole chunk goes through one of them.
TEST(AstraPlan, OfADoubleBinaryTreeSendsAllUpAndDown) {
  const auto text = [](int32_t rank, size_t tree) {
    return PlanText(kAllReduce, "doubleBinaryTree", 8, 800, rank, tree);
  };
  EXPECT_EQ(text(7, 0), "1 x reduce 800, 1 x 3:800");
  EXPECT_EQ(text(3, 0), "1 x reduce 800, 1 x 7:800 reduce 800, 1 x 1:800 5:800");
  EXPECT_EQ(text(5, 0), "1 x reduce 800, 1 x 3:800 reduce 800, 1 x 4:800 6:800");
  EXPECT_EQ(text(6, 0), "1 x 5:800");
  EXPECT_EQ(text(0, 1), "1 x reduce 800, 1 x 4:800");
  EXPECT_EQ(text(4, 1), "1 x reduce 800, 1 x 0:800 reduce 800, 1 x 2:800 6:800");
  EXPECT_EQ(text(7, 1), "1 x 6:800");
  EXPECT_EQ(PlanText(kAllReduce, "doubleBinaryTree", 2, 800, 0), "1 x 1:800");
  EXPECT_EQ(PlanText(kAllReduce, "doubleBinaryTree", 2, 800, 1), "1 x reduce 800, 1 x 0:800");
}

// Who adds up what comes from below goes on when all of it is added up.
TEST(AstraPlan, OfADoubleBinaryTreeAwaitsWhatItAddsUp) {
  const Planned planned(kAllReduce, "doubleBinaryTree", 4, 8);
  ASSERT_TRUE(planned.plan.ok()) << planned.plan.status();
  std::string awaits;  // by rank of the first tree and phase
  for (const AstraRankPlan& rank : planned.plan->front().ranks) {
    absl::StrAppend(&awaits, awaits.empty() ? "" : ", ");
    for (size_t position = 0; position < rank.order.size(); ++position) {
      const AstraPhase& phase = rank.PhaseAt(position);
      absl::StrAppend(&awaits, phase.receives, phase.awaits_processing ? "! " : " ");
    }
  }
  // Leaves await what comes down; rank 1 adds up two and passes on; the root, rank 3, adds up one.
  EXPECT_EQ(awaits, "1 , 2! 1 0 , 1 , 1! 0 ");
}

// Every message arrives in a phase that waits for it.
TEST(AstraPlan, OfADoubleBinaryTreeReceivesWhatIsSent) {
  for (int32_t n = 2; n <= 256; n *= 2) {
    const Planned planned(kAllReduce, "doubleBinaryTree", n, 8);
    ASSERT_TRUE(planned.plan.ok()) << planned.plan.status();
    ASSERT_EQ(planned.plan->size(), 2u);
    for (const AstraStepPlan& tree : *planned.plan) {
      EXPECT_EQ(MessageCount(tree), 2 * (n - 1));
      std::map<std::pair<int32_t, int32_t>, int32_t> open;  // by rank and position
      for (int32_t rank = 0; rank < n; ++rank) {
        const AstraRankPlan& plan = tree.ranks[static_cast<size_t>(rank)];
        for (size_t position = 0; position < plan.order.size(); ++position) {
          open[{rank, static_cast<int32_t>(position)}] += plan.PhaseAt(position).receives;
          for (const auto& sent : plan.PhaseAt(position).sends) --open[{sent.to, sent.position}];
        }
      }
      for (const auto& [where, missing] : open) EXPECT_EQ(missing, 0) << where.first;
    }
  }
}

TEST(AstraPlan, SaysWhatItCannotPlan) {
  EXPECT_EQ(PlanText(kAllReduce, "halvingDoubling", 6, 600),
            "algorithm 'halvingDoubling' for all-reduce of 6 ranks; wanted ring, direct or, for a "
            "power of two, halvingDoubling or doubleBinaryTree (which is for all-reduce only)");
  EXPECT_EQ(PlanText(kAllToAll, "ring", 300, 600),
            "algorithm 'ring' for all-to-all of 300 ranks; wanted at most 256");
  EXPECT_FALSE(Planned(kAllToAll, "halvingDoubling", 4, 400).plan.ok());
  EXPECT_EQ(PlanText(kAllReduce, "ring", 1025, 8), "got 1025 ranks; wanted at most 1024");
  EXPECT_TRUE(Planned(kAllReduce, "ring", 1024, 8).plan.ok());
  EXPECT_TRUE(Planned(kAllToAll, "ring", 256, 600).plan.ok());
  EXPECT_EQ(PlanText(kAllToAll, "ring", 257, 600),
            "algorithm 'ring' for all-to-all of 257 ranks; wanted at most 256");
}

// What one rank sends, in parts of 1/n of the size.
int64_t PartsSent(CollectiveKind kind, absl::string_view algorithm, int64_t n) {
  if (kind == kAllReduce) return 2 * (n - 1);
  if (kind == kAllGather) return n * (n - 1);
  if (kind == kAllToAll && algorithm == "ring") return n * (n - 1) / 2;
  return n - 1;
}

// In each phase a rank receives as many messages as others send it, and all send equally much.
void CheckPlan(const Planned& planned, int64_t bytes_a_rank) {
  const std::vector<AstraRankPlan>& ranks = planned.plan->front().ranks;
  std::vector<int64_t> sent(ranks.size());
  for (size_t i = 0; i < ranks[0].order.size(); ++i) {
    std::vector<int32_t> wanted, received(ranks.size());
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      ASSERT_EQ(ranks[rank].order.size(), ranks[0].order.size());
      const AstraPhase& phase = ranks[rank].phases[static_cast<size_t>(ranks[rank].order[i])];
      wanted.push_back(phase.receives);
      for (const auto& message : phase.sends) {
        ASSERT_NE(message.to, static_cast<int32_t>(rank));
        ++received[static_cast<size_t>(message.to)];
        sent[rank] += planned.SizeOf(message);
      }
    }
    EXPECT_EQ(received, wanted) << "phase " << i;
  }
  EXPECT_EQ(sent, std::vector<int64_t>(ranks.size(), bytes_a_rank));
}

TEST(AstraPlan, ReceivesWhatIsSentAndSendsItsShare) {
  for (const CollectiveKind kind : kKinds) {
    for (const absl::string_view algorithm : {"ring", "direct", "halvingDoubling"}) {
      for (int32_t n = 2; n <= 9; ++n) {
        if (algorithm == "halvingDoubling" &&
            (kind == kAllToAll || !std::has_single_bit(static_cast<uint32_t>(n)))) {
          continue;
        }
        SCOPED_TRACE(
            absl::StrCat(cost_models::GetCollectiveKind(kind).name, " ", algorithm, " ", n));
        const Planned planned(kind, algorithm, n, 1000 * n);
        ASSERT_TRUE(planned.plan.ok()) << planned.plan.status();
        CheckPlan(planned, 1000 * PartsSent(kind, algorithm, n));
      }
    }
  }
}

// ASTRA-sim's network, which notes what it is asked to send. Dimension d has a latency of d + 1 us.
class Notes : public simulator::AstraUnaware {
 public:
  Notes(const simulator::Program& program, std::vector<std::string>& lines)
      : AstraUnaware(program), lines_(lines) {}

  void Start(simulator::TaskId message, const simulator::Flow& flow) override {
    lines_.push_back(
        absl::StrCat("dim", flow.latency.picoseconds() / 1'000'000 - 1, ":", flow.size.count()));
    AstraUnaware::Start(message, flow);
  }

 private:
  std::vector<std::string>& lines_;
};

// "8 x dim0:100, ...": the messages of all ranks of one group of a dimension in order of sending.
std::string Messages(CollectiveKind kind, int64_t size, const std::vector<int32_t>& dimensions,
                     int64_t chunks = 1, bool local_bandwidth_aware = true) {
  AstraCollective collective{.kind = kind,
                             .size = Bytes(size),
                             .local_memory = Bandwidth(1'000'000'000'000),
                             .chunks = chunks,
                             .local_bandwidth_aware = local_bandwidth_aware};
  for (const int32_t n : dimensions) {
    const auto number = static_cast<int64_t>(collective.dimensions.size());
    collective.dimensions.push_back(
        {FullyConnected(n, Duration(1'000'000 * (number + 1))),
         std::vector<std::string>(cost_models::kCollectiveKindCount, "direct")});
  }
  std::vector<std::string> lines, counted;
  const auto played = PlayAstra(collective, [&](const simulator::Program& program) {
    return std::make_unique<Notes>(program, lines);
  });
  EXPECT_TRUE(played.ok()) << played.status();
  for (size_t i = 0, next = 0; i < lines.size(); i = next) {
    while (next < lines.size() && lines[next] == lines[i]) ++next;
    counted.push_back(absl::StrCat(next - i, " x ", lines[i]));
  }
  return absl::StrJoin(counted, ", ");
}

// Of 2 ranks a phase has 2 messages, of 4 ranks 12.
TEST(AstraDimensions, AllReduceGoesUpAndDown) {
  EXPECT_EQ(Messages(kAllReduce, 800, {2, 4}), "2 x dim0:400, 24 x dim1:100, 2 x dim0:400");
  EXPECT_EQ(Messages(kAllReduce, 800, {4, 2}), "12 x dim0:200, 4 x dim1:100, 12 x dim0:200");
  EXPECT_EQ(Messages(kAllReduce, 800, {2, 2, 2}),
            "2 x dim0:400, 2 x dim1:200, 4 x dim2:100, 2 x dim1:200, 2 x dim0:400");
  EXPECT_EQ(Messages(kAllReduce, 800, {2, 4}, 1, false), "4 x dim0:400, 24 x dim1:200");
}

TEST(AstraDimensions, OthersGoOneWay) {
  EXPECT_EQ(Messages(kReduceScatter, 800, {2, 4}), "2 x dim0:400, 12 x dim1:100");
  EXPECT_EQ(Messages(kAllToAll, 800, {2, 4}), "2 x dim0:400, 12 x dim1:200");
  EXPECT_EQ(Messages(kAllGather, 800, {2, 4}), "12 x dim1:800, 2 x dim0:3200");
}

TEST(AstraDimensions, OfOneRankAreLeftOut) {
  EXPECT_EQ(Messages(kAllReduce, 800, {1, 2, 1}), "4 x dim1:400");
  EXPECT_EQ(Messages(kAllGather, 800, {2, 1, 4}), "12 x dim2:800, 2 x dim0:3200");
}

// A chunk has a byte for each rank at least; not so of an all-gather, where the last is one more.
TEST(AstraChunks, AreOfTheSizeOverTheirNumberAndAtLeastOneByteARank) {
  EXPECT_EQ(Messages(kReduceScatter, 800, {2}, 4), "8 x dim0:100");
  EXPECT_EQ(Messages(kReduceScatter, 10, {4}, 4), "48 x dim0:1");
  EXPECT_EQ(Messages(kAllGather, 10, {4}, 4), "60 x dim0:2");
}

// As many chunks as it takes for all bytes: 9 in chunks of 4 are 3, and 19 of 4 are 5.
TEST(AstraChunks, AreOneMoreWhereSomethingIsLeft) {
  EXPECT_EQ(Messages(kAllGather, 9, {2}, 2), "6 x dim0:4");
  EXPECT_EQ(Messages(kAllGather, 8, {2}, 2), "4 x dim0:4");
  EXPECT_EQ(Messages(kReduceScatter, 19, {4}, 4), "60 x dim0:1");
}

TEST(AstraChunks, OfAnAllGatherHaveAByteAtLeast) {
  EXPECT_EQ(Messages(kAllGather, 3, {2}, 3), "6 x dim0:1");
  AstraCollective collective{
      .kind = kAllGather, .size = Bytes(2), .local_memory = Bandwidth(1), .chunks = 3};
  collective.dimensions.push_back({FullyConnected(2, Duration(0)), {}});
  EXPECT_EQ(PlayAstra(collective, {}).status().message(),
            "got 3 chunks of 2 bytes; wanted a byte for each at least");
}

}  // namespace
}  // namespace astra_plan_test_cc
}  // namespace orrery::lowering
