// Programs with faults of every kind that a Program can express: whatever they are, every network
// model comes to an end, and what is wrong is said by name.

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "simulator/engine/event_queue.h"
#include "simulator/network/astra_networks.h"
#include "simulator/network/fluid_network.h"
#include "simulator/program/program_text.h"
#include "simulator/testing/independent_flows.h"

namespace orrery::simulator {
namespace faulty_program_test_cc {
namespace {

// A generator of programs in which each thing that is added is wrong once in `one_in` times.
class Faulty {
 public:
  Faulty(uint32_t seed, size_t one_in) : random_(seed), one_in_(one_in) {}

  Program Make() {
    const int32_t ranks = 1 + static_cast<int32_t>(Below(3));
    for (int32_t i = 0; i < ranks; ++i) program_.AddRank({.name = "r", .members = {i}});
    for (int32_t i = 0; i < 2 * ranks; ++i) {
      program_.AddStream(IdOf<RankClassId>(ranks), static_cast<StreamKind>(i % kStreamKindCount));
    }
    program_.AddLabel({.name = "op"});
    for (int i = 0; i < 4; ++i) AddResource();
    for (int i = 0; i < 6; ++i) AddFlow();
    const int32_t tasks = 1 + static_cast<int32_t>(Below(25));
    for (int32_t i = 0; i < tasks; ++i) AddTask(i, tasks);
    return std::move(program_);
  }

 private:
  size_t Below(size_t count) { return random_() % count; }
  bool Wrong() { return Below(one_in_) == 0; }

  // Any number of an unlikely kind.
  int64_t Strange() {
    static constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    static constexpr int64_t kStrange[] = {0, -1, -1'000'000, -kMost, kMost, kMost / 2, 1};
    return kStrange[Below(std::size(kStrange))];
  }
  int64_t Number(int64_t most) {
    return Wrong() ? Strange() : 1 + static_cast<int64_t>(Below(static_cast<size_t>(most)));
  }
  template <typename IdType>
  IdType IdOf(int32_t count) {
    if (Wrong())
      return IdType(static_cast<int32_t>(Below(3)) - 2 +
                    static_cast<int32_t>(Below(2)) * (count + 2));
    return IdType(static_cast<int32_t>(Below(static_cast<size_t>(count))));
  }

  void AddResource() {
    program_.AddResource({.name = "link",
                          .kind = "port",
                          .capacity = Bandwidth(Number(1'000'000'000)),
                          .latency = Duration(Number(1000))});
  }

  void AddFlow() {
    static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    static constexpr double kStrange[] = {0, -1, kNan, 1e300, 1e-300, 1e12, 1e-9};
    std::vector<Load> loads;
    for (size_t i = 0; i < Below(4); ++i) {
      loads.push_back({.resource = ResourceId(static_cast<int32_t>(i))});
      if (Wrong()) loads.back().resource = IdOf<ResourceId>(4);
      if (Wrong()) loads.back().load = kStrange[Below(std::size(kStrange))];
    }
    program_.AddFlow({.size = Bytes(Number(1'000'000)),
                      .rate = Bandwidth(Number(1'000'000'000)),
                      .latency = Duration(Number(1000)),
                      .loads = loads});
  }

  void AddTask(int32_t index, int32_t tasks) {
    std::vector<StreamId> streams;
    const size_t participants = Below(3) == 0 ? 2 : 1;
    for (size_t i = 0; i < participants; ++i) {
      const StreamId stream = IdOf<StreamId>(program_.stream_count());
      if (streams.empty() || stream != streams[0] || Wrong()) streams.push_back(stream);
    }
    Task task = {.label = Wrong() ? IdOf<LabelId>(1) : LabelId(0)};
    if (Below(2) == 0) {
      task.flow = IdOf<FlowId>(program_.flow_count());
    } else {
      task.duration = Duration(Number(1000));
    }
    std::vector<TaskId> after;
    if (index > 0 && Below(2) == 0) after.push_back(IdOf<TaskId>(index));
    if (Wrong()) after.push_back(IdOf<TaskId>(tasks));  // of a later one: some close a cycle
    program_.AddRendezvous(streams, task, after);
  }

  std::mt19937 random_;
  size_t one_in_;
  Program program_;
};

std::unique_ptr<NetworkModel> Make(size_t which, const Program& program) {
  switch (which) {
    case 0:
      return std::make_unique<IndependentFlows>(program);
    case 1:
      return std::make_unique<FluidNetwork>(program);
    case 2:
      return std::make_unique<AstraUnaware>(program);
    default:
      return std::make_unique<AstraAware>(program);
  }
}

TEST(FaultyPrograms, EveryRunEndsAndSaysWhatIsWrong) {
  int sound = 0;
  int deadlocks = 0;
  int endless = 0;
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    const Program program = Faulty(seed, seed % 3 == 0 ? 15 : seed % 3 == 1 ? 100 : 1000).Make();
    const absl::Status verified = program.Verify();
    for (size_t which = 0; which < 4; ++which) {
      const std::unique_ptr<NetworkModel> network = Make(which, program);
      const absl::StatusOr<Trace> trace = RunEvents(program, *network);
      const std::string message(trace.status().message());
      if (!verified.ok()) {
        EXPECT_FALSE(trace.ok()) << verified;
        EXPECT_TRUE(absl::StrContains(message, ": ") && absl::StrContains(message, "wanted"))
            << message;
      } else if (!trace.ok()) {
        EXPECT_TRUE(absl::StrContains(message, "goes on beyond")) << message;
        ++endless;
      } else {
        EXPECT_LT(trace->makespan, kEndOfTime);
        ++sound;
      }
      if (!absl::StrContains(message, "deadlock")) continue;
      ++deadlocks;
      EXPECT_TRUE(absl::StrContains(message, " waits for task")) << message;
    }
  }
  EXPECT_GT(sound, 1000);
  EXPECT_GT(deadlocks, 100);
  EXPECT_GT(endless, 20);
}

// Two ranks that meet for two collectives in different orders, while the network is at work.
TEST(FaultyPrograms, CollectivesInDifferentOrdersNameBothEnds) {
  const absl::StatusOr<Program> program = ParseProgram(R"text(program
rank0 "left" members 0 stage 0
rank1 "right" members 1 stage 0
stream0 rank0 horizontal
stream1 rank0 data
stream2 rank1 horizontal
stream3 rank1 data
label0 "AllReduce hp" collective forward stage 0
label1 "AllReduce dp" collective forward stage 0
resource0 "link" "port" capacity 1000 bytes/s latency 0 ps
flow0 size 10 bytes rate 1000 bytes/s latency 0 ps loads resource0 1
task0 stream0 stream2 label0 takes flow0 after task2
task1 stream1 stream3 label1 takes flow0 after task0
task2 stream1 label1 takes flow0 after task1
task3 stream2 label0 takes flow0
)text");
  ASSERT_TRUE(program.ok()) << program.status();
  FluidNetwork network(*program);
  const std::string message(RunEvents(*program, network).status().message());
  const std::vector<absl::string_view> parts = {
      "deadlock", "task0 \"AllReduce hp\" (rank0 horizontal, rank1 horizontal) waits for task2",
      "task1 \"AllReduce dp\" (rank0 data, rank1 data) waits for task0"};
  for (const absl::string_view part : parts) {
    EXPECT_TRUE(absl::StrContains(message, part)) << message;
  }
}

}  // namespace
}  // namespace faulty_program_test_cc
}  // namespace orrery::simulator
