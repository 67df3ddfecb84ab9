#include "simulator/program/program_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/testing/random_program.h"

namespace orrery::simulator {
namespace program_text_test_cc {
namespace {

using ::testing::ElementsAre;

// The example of the header, with a line of each kind.
constexpr absl::string_view kExample = R"text(program
rank0 "dp0 hp0 pp0" members 0-3,8 stage 0 capacity 17179869184 bytes
rank1 "a \"b\"\\\n" members 4 stage 1
resident rank0 parameters 4096 bytes
stream0 rank0 compute
stream1 rank1 send-previous
label0 "MatMul y0" compute forward stage 0 flops 2e+09 bytes 4096
label1 "AllReduce dwA (dp)" collective backward stage 0 bytes 4096 collectives 4
resource0 "device3 -> switch0" "port" capacity 25000000000 bytes/s latency 250 ps
resource1 "" "" capacity 1 bytes/s latency 0 ps
flow0 size 4096 bytes rate 25000000000 bytes/s latency 500 ps
flow1 size 1 bytes rate 7 bytes/s latency 0 ps loads resource1 1 resource0 0.333
task0 stream0 label0 microbatch 3 takes 1500 ps
task1 stream0 stream1 label1 takes flow0 after task0
task2 stream1 label0 takes 0 ps after task3 task0
task3 stream0 label0 takes 1 ps
memory task0 rank0 activations +4096 bytes
memory task1 rank0 activations -4096 bytes
memory task1 rank1 other +0 bytes
)text";

std::string Trouble(absl::string_view text) {
  return std::string(ParseProgram(text).status().message());
}

TEST(ProgramText, ReadsWhatItSays) {
  const absl::StatusOr<Program> parsed = ParseProgram(kExample);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Program& program = *parsed;
  EXPECT_THAT(program.rank(RankClassId(0)).members, ElementsAre(0, 1, 2, 3, 8));
  EXPECT_EQ(program.rank(RankClassId(0)).capacity, Bytes(17179869184));
  EXPECT_EQ(program.rank(RankClassId(1)).name, "a \"b\"\\\n");
  EXPECT_EQ(program.resident(RankClassId(0), MemoryKind::kParameters), Bytes(4096));
  EXPECT_EQ(program.stream(StreamId(1)).kind, StreamKind::kSendPrevious);
  EXPECT_EQ(program.label(LabelId(0)).flops, Flops(2e9));
  EXPECT_EQ(program.label(LabelId(1)).collectives, 4);
  EXPECT_EQ(program.flow(FlowId(0)).latency, Duration(500));
  EXPECT_EQ(program.resource(ResourceId(0)).name, "device3 -> switch0");
  EXPECT_EQ(program.resource(ResourceId(0)).kind, "port");
  EXPECT_EQ(program.resource(ResourceId(0)).capacity, Bandwidth(25'000'000'000));
  EXPECT_EQ(program.resource(ResourceId(0)).latency, Duration(250));
  EXPECT_TRUE(program.flow(FlowId(0)).loads.empty());
  ASSERT_EQ(program.flow(FlowId(1)).loads.size(), 2u);
  EXPECT_EQ(program.flow(FlowId(1)).loads[0].resource, ResourceId(1));
  EXPECT_EQ(program.flow(FlowId(1)).loads[1].load, 0.333);
  EXPECT_EQ(program.duration(TaskId(0)), Duration(1500));
  EXPECT_EQ(program.microbatch_of(TaskId(0)), 3);
  EXPECT_EQ(program.flow_of(TaskId(1)), FlowId(0));
  EXPECT_THAT(program.dependencies_of(TaskId(2)), ElementsAre(TaskId(3), TaskId(0)));
  EXPECT_EQ(program.memory_events()[1].bytes, -4096);
}

TEST(ProgramText, ExampleRoundTrips) {
  const absl::StatusOr<Program> program = ParseProgram(kExample);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(Print(*program), kExample);
}

TEST(ProgramText, RandomProgramsRoundTrip) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const std::string text =
        Print(RandomProgram({.seed = seed, .ordered = seed % 2 == 0, .flows = seed % 3 == 0}));
    const absl::StatusOr<Program> program = ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(Print(*program), text);
  }
}

TEST(ProgramText, NumbersKeepEveryBit) {
  for (const double flops : {1.0 / 3, 1e300, 5e-324, 123456789.123456789}) {
    Program program;
    program.AddLabel({.name = "op", .flops = Flops(flops)});
    const absl::StatusOr<Program> read = ParseProgram(Print(program));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->label(LabelId(0)).flops, Flops(flops));
  }
}

TEST(ProgramText, SkipsCommentsBlanksAndCarriageReturns) {
  const absl::StatusOr<Program> program =
      ParseProgram("# a program\n\n  program \r\n\trank0\t\"x y\"  members 0 stage 0\r\n#end");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(Print(*program), "program\nrank0 \"x y\" members 0 stage 0\n");
}

TEST(ProgramText, EmptyProgramRoundTrips) {
  EXPECT_EQ(Print(Program()), "program\n");
  EXPECT_EQ(Print(*ParseProgram("program\n")), "program\n");
  EXPECT_EQ(Trouble(""), "line 1: found nothing, wanted 'program'");
}

TEST(ProgramText, ErrorsNameTheLineAndWhatWasWanted) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"hello",
       "line 6: found 'hello', wanted a line that begins with rank, resident, stream, "
       "label, resource, flow, task or memory"},
      {"rank1 \"x\" members 2-1 stage 0",
       "line 6: found '2-1', wanted ascending global ranks such as 0-3,8"},
      {"rank1 \"x\" members 1,1 stage 0",
       "line 6: found '1,1', wanted ascending global ranks such as 0-3,8"},
      {"rank1 \"x\" members 0-2000000000 stage 0",
       "line 6: found '0-2000000000', wanted ascending global ranks such as 0-3,8"},
      {"rank1 x members 1 stage 0", "line 6: found 'x', wanted a name in double quotes"},
      {"rank1 \"x members 1 stage 0",
       "line 6: found '\"x members 1 stage 0', wanted a name in double quotes"},
      {"rank2 \"x\" members 1 stage 0",
       "line 6: found 'rank2', wanted 'rank1', as ids count up from 0"},
      {"stream1 rank7 compute",
       "line 6: found 'rank7', wanted one of the 1 ids of a rank that there are so far; try "
       "adding it above"},
      {"stream1 rank0 gpu",
       "line 6: found 'gpu', wanted one of compute, horizontal, data, send-next, "
       "receive-previous, send-previous, receive-next, host, context, experts, from-host, "
       "host-compute"},
      {"flow0 size 1 bytes rate 0 bytes/s latency 0 ps",
       "line 6: found '0', wanted a whole number, 1 or more"},
      {"task1 stream0 label0 takes -1 ps", "line 6: found '-1', wanted a whole number, 0 or more"},
      {"task1 stream0 label0 takes 1", "line 6: found the end of the line, wanted 'ps'"},
      {"task1 label0 takes 1 ps",
       "line 6: found 'label0', wanted the id of a stream such as 'stream0'"},
      {"task1 stream0 stream0 label0 takes 1 ps",
       "line 6: found 'stream0', wanted a stream that the task is not on already"},
      {"task1 stream0 label0 takes 1 ps after",
       "line 6: found the end of the line, wanted the id of a task such as 'task0'"},
      {"task1 stream0 label0 takes 1 ps after task9",
       "line 6: found task9, wanted one of the 2 tasks that there are; try adding it"},
      {"task1 stream0 label0 takes 1 ps soon", "line 6: found 'soon', wanted the end of the line"},
      {"label1 \"x\" compute forward stage 0 flops inf", "line 6: found 'inf', wanted a number"},
      {"memory task0 rank0 activations many bytes", "line 6: found 'many', wanted a whole number"}};
  for (const auto& [line, trouble] : cases) {
    EXPECT_EQ(Trouble(absl::StrCat("program\nrank0 \"\" members 0 stage 0\nstream0 rank0 compute\n"
                                   "label0 \"op\" compute forward stage 0\n"
                                   "task0 stream0 label0 takes 1 ps\n",
                                   line, "\n")),
              trouble);
  }
}

TEST(ProgramText, ErrorsOfResourcesAndLoadsNameTheLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"resource1 \"x\" \"port\" capacity 0 bytes/s latency 0 ps",
       "line 2: found 'resource1', wanted 'resource0', as ids count up from 0"},
      {"resource0 \"x\" \"port\" capacity 0 bytes/s latency 0 ps",
       "line 2: found '0', wanted a whole number, 1 or more"},
      {"resource0 \"x\" capacity 1 bytes/s latency 0 ps",
       "line 2: found 'capacity', wanted a name in double quotes"},
      {"resource0 \"x\" \"port\" capacity 1 bytes/s latency -1 ps",
       "line 2: found '-1', wanted a whole number, 0 or more"},
      {"flow0 size 1 bytes rate 1 bytes/s latency 0 ps loads",
       "line 2: found the end of the line, wanted the id of a resource such as 'resource0'"},
      {"flow0 size 1 bytes rate 1 bytes/s latency 0 ps loads resource0 1",
       "line 2: found 'resource0', wanted one of the 0 ids of a resource that there are so far; "
       "try adding it above"},
      {"resource0 \"x\" \"\" capacity 1 bytes/s latency 0 ps\n"
       "flow0 size 1 bytes rate 1 bytes/s latency 0 ps loads resource0 0",
       "line 3: found '0', wanted a load of 1e-09 to 1e+12"},
      {"resource0 \"x\" \"\" capacity 1 bytes/s latency 0 ps\n"
       "flow0 size 1 bytes rate 1 bytes/s latency 0 ps loads resource0 nan",
       "line 3: found 'nan', wanted a number"}};
  for (const auto& [line, trouble] : cases) {
    EXPECT_EQ(Trouble(absl::StrCat("program\n", line, "\n")), trouble);
  }
}

// Whatever the bytes, an answer: no crash, no hang.
TEST(ProgramText, SurvivesDamage) {
  const std::string text(kExample);
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char damage : {'\0', '"', '9', '-', '\n'}) {
      std::string damaged = text;
      damaged[i] = damage;
      const absl::StatusOr<Program> program = ParseProgram(damaged);
      EXPECT_TRUE(!program.ok() || ParseProgram(Print(*program)).ok());
    }
    ParseProgram(text.substr(0, i)).IgnoreError();
  }
}

}  // namespace
}  // namespace program_text_test_cc
}  // namespace orrery::simulator
