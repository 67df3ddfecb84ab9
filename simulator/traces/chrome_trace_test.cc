#include "simulator/traces/chrome_trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "simulator/engine/event_queue.h"
#include "simulator/engine/longest_path.h"
#include "simulator/network/fluid_network.h"
#include "simulator/network/link_use.h"
#include "simulator/program/program_test_util.h"
#include "simulator/report/report.h"
#include "simulator/testing/random_program.h"
#include "simulator/traces/trace_options.h"

// What readers of real traces need, tests/traces/reader_test.py has.

namespace orrery::simulator {
namespace chrome_trace_test_cc {
namespace {

using nlohmann::json;

std::string TraceOf(const Program& program) {
  std::ostringstream out;
  WriteChromeTrace(program, RunLongestPath(program), out);
  return out.str();
}

std::vector<json> EventsOf(const Program& program, const std::string& phase) {
  std::vector<json> events;
  const json trace = json::parse(TraceOf(program));
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) events.push_back(event);
  }
  return events;
}

// The slices of tasks.
std::vector<json> TasksOf(const Program& program) {
  std::vector<json> slices = EventsOf(program, "X");
  std::erase_if(slices, [](const json& slice) {
    return !slice.contains("args") || !slice["args"].contains("task");
  });
  return slices;
}

constexpr char kTrace[] = R"json({"schemaVersion":1,"displayTimeUnit":"ms","traceEvents":[
{"name":"process_name","ph":"M","pid":0,"args":{"name":"rank 0 · dp0 pp0 (x2)"}},
{"name":"process_sort_index","ph":"M","pid":0,"args":{"sort_index":0}},
{"name":"thread_name","ph":"M","pid":0,"tid":1,"args":{"name":"step"}},
{"name":"thread_sort_index","ph":"M","pid":0,"tid":1,"args":{"sort_index":0}},
{"name":"thread_name","ph":"M","pid":0,"tid":2,"args":{"name":"bubble"}},
{"name":"thread_sort_index","ph":"M","pid":0,"tid":2,"args":{"sort_index":2}},
{"name":"thread_name","ph":"M","pid":0,"tid":7,"args":{"name":"stream 7 · compute"}},
{"name":"thread_sort_index","ph":"M","pid":0,"tid":7,"args":{"sort_index":1}},
{"name":"thread_name","ph":"M","pid":0,"tid":24,"args":{"name":"stream 24 · data"}},
{"name":"thread_sort_index","ph":"M","pid":0,"tid":24,"args":{"sort_index":24}},
{"name":"MatMul \"y0\"","cat":"kernel","ph":"X","pid":0,"tid":7,"ts":0.000000,"dur":1.000000999,"args":{"task":0,"stream":7,"device":0,"microbatch":0,"stage":0,"phase":"forward","flops":2000000000,"bytes":64}},
{"name":"ncclKernel_SendRecv(Send)","cat":"kernel","ph":"X","pid":0,"tid":7,"ts":1.000001,"dur":0.001999999,"args":{"task":1,"stream":7,"device":0,"microbatch":0,"stage":0,"phase":"forward","flops":0,"bytes":32,"Collective name":"send","In msg nelems":32,"Out msg nelems":32,"dtype":"Byte"}},
{"name":"MatMul \"y0\"","cat":"kernel","ph":"X","pid":0,"tid":7,"ts":1.002001,"dur":0.000006999,"args":{"task":3,"stream":7,"device":0,"stage":0,"phase":"forward","flops":2000000000,"bytes":64}},
{"name":"ncclKernel_SendRecv(AllReduce)","cat":"kernel","ph":"X","pid":0,"tid":24,"ts":1.002008,"dur":0.000029999,"args":{"task":4,"stream":24,"device":0,"stage":0,"phase":"update","flops":0,"bytes":16,"Collective name":"collective","In msg nelems":16,"Out msg nelems":16,"dtype":"Byte"}},
{"name":"ncclKernel_SendRecv(Send)","cat":"kernel","ph":"X","pid":0,"tid":7,"ts":1.502001,"dur":0.000998999,"args":{"task":5,"stream":7,"device":0,"stage":0,"phase":"forward","flops":0,"bytes":32,"Collective name":"send","In msg nelems":32,"Out msg nelems":32,"dtype":"Byte"}},
{"name":"bubble: cool-down","cat":"bubble","ph":"X","pid":0,"tid":2,"ts":1.002038,"dur":0.499962999,"args":{"part":"cool-down","next":"Send of rank 0","waits for":"MatMul \"y0\" mb0 of rank 2"}},
{"name":"ProfilerStep#0","cat":"user_annotation","ph":"X","pid":0,"tid":1,"ts":0.000000,"dur":1.502999999},
{"name":"microbatches in flight","ph":"C","pid":0,"ts":0.000000,"args":{"microbatches":1}},
{"name":"microbatches in flight","ph":"C","pid":0,"ts":1.000001,"args":{"microbatches":0}},
{"name":"process_name","ph":"M","pid":2,"args":{"name":"rank 2 · dp0 pp1"}},
{"name":"process_sort_index","ph":"M","pid":2,"args":{"sort_index":2}},
{"name":"thread_name","ph":"M","pid":2,"tid":1,"args":{"name":"step"}},
{"name":"thread_sort_index","ph":"M","pid":2,"tid":1,"args":{"sort_index":0}},
{"name":"thread_name","ph":"M","pid":2,"tid":2,"args":{"name":"bubble"}},
{"name":"thread_sort_index","ph":"M","pid":2,"tid":2,"args":{"sort_index":2}},
{"name":"thread_name","ph":"M","pid":2,"tid":7,"args":{"name":"stream 7 · compute"}},
{"name":"thread_sort_index","ph":"M","pid":2,"tid":7,"args":{"sort_index":1}},
{"name":"ncclKernel_SendRecv(Send)","cat":"kernel","ph":"X","pid":2,"tid":7,"ts":1.000001,"dur":0.001999999,"args":{"task":1,"stream":7,"device":0,"microbatch":0,"stage":0,"phase":"forward","flops":0,"bytes":32,"Collective name":"recv","In msg nelems":32,"Out msg nelems":32,"dtype":"Byte"}},
{"name":"MatMul \"y0\"","cat":"kernel","ph":"X","pid":2,"tid":7,"ts":1.002001,"dur":0.499999999,"args":{"task":2,"stream":7,"device":0,"microbatch":0,"stage":0,"phase":"forward","flops":2000000000,"bytes":64}},
{"name":"ncclKernel_SendRecv(Send)","cat":"kernel","ph":"X","pid":2,"tid":7,"ts":1.502001,"dur":0.000998999,"args":{"task":5,"stream":7,"device":0,"stage":0,"phase":"forward","flops":0,"bytes":32,"Collective name":"recv","In msg nelems":32,"Out msg nelems":32,"dtype":"Byte"}},
{"name":"bubble: warm-up","cat":"bubble","ph":"X","pid":2,"tid":2,"ts":0.000000,"dur":1.000000999,"args":{"part":"warm-up","next":"Send mb0 of rank 0","waits for":"MatMul \"y0\" mb0 of rank 0"}},
{"name":"ProfilerStep#0","cat":"user_annotation","ph":"X","pid":2,"tid":1,"ts":0.000000,"dur":1.502999999},
{"name":"microbatches in flight","ph":"C","pid":2,"ts":0.000000,"args":{"microbatches":0}},
{"name":"microbatches in flight","ph":"C","pid":2,"ts":1.002001,"args":{"microbatches":1}},
{"name":"microbatches in flight","ph":"C","pid":2,"ts":1.502001,"args":{"microbatches":0}},
{"name":"memory (bytes)","ph":"C","pid":0,"ts":0.000000,"args":{"parameters":100,"gradients":0,"optimizer":0,"activations":8,"buffers":0,"other":0}},
{"name":"memory (bytes)","ph":"C","pid":0,"ts":1.002008,"args":{"parameters":100,"gradients":0,"optimizer":0,"activations":0,"buffers":4,"other":0}},
{"name":"memory (bytes)","ph":"C","pid":2,"ts":0.000000,"args":{"parameters":0,"gradients":0,"optimizer":0,"activations":0,"buffers":0,"other":0}},
{"name":"send","cat":"send","id":1,"ph":"s","pid":0,"tid":7,"ts":1.000001},
{"name":"send","cat":"send","id":1,"ph":"f","bp":"e","pid":2,"tid":7,"ts":1.000001},
{"name":"critical_path","cat":"critical_path","id":2,"ph":"s","pid":0,"tid":7,"ts":0.000000},
{"name":"critical_path","cat":"critical_path","id":2,"ph":"f","bp":"e","pid":0,"tid":7,"ts":1.000001},
{"name":"critical_path","cat":"critical_path","id":3,"ph":"s","pid":0,"tid":7,"ts":1.000001},
{"name":"critical_path","cat":"critical_path","id":3,"ph":"f","bp":"e","pid":2,"tid":7,"ts":1.002001}
]}
)json";

TEST(ChromeTrace, IsThisText) {
  const Program program = Parse(R"(program
rank0 "dp0 pp0" members 0-1 stage 0
rank1 "dp0 pp1" members 2 stage 1
resident rank0 parameters 100 bytes
stream0 rank0 compute
stream1 rank0 data
stream2 rank1 compute
label0 "MatMul \"y0\"" compute forward stage 0 flops 2e+09 bytes 64
label1 "Send" send forward stage 0 bytes 32
label2 "AllReduce" collective update stage 0 bytes 16
task0 stream0 label0 microbatch 0 takes 1000001 ps
task1 stream0 stream2 label1 microbatch 0 takes 2000 ps
task2 stream2 label0 microbatch 0 takes 500000 ps
task3 stream0 label0 takes 7 ps
task4 stream1 label2 takes 30 ps after task3
task5 stream0 stream2 label1 takes 999 ps
memory task0 rank0 activations +8 bytes
memory task3 rank0 activations -8 bytes
memory task4 rank0 buffers +4 bytes
)");
  EXPECT_EQ(TraceOf(program), kTrace);
}

TEST(ChromeTrace, EmptyProgramParses) {
  EXPECT_EQ(json::parse(TraceOf(Program()))["traceEvents"].size(), 0u);
}

// Longer tasks than the generator's: arrows need a nanosecond.
Program RandomSlowProgram(uint32_t seed) {
  std::string text = Print(RandomProgram({.seed = seed}));
  for (size_t position = text.find(" ps"); position != std::string::npos;
       position = text.find(" ps", position + 10)) {
    text.insert(position, "000");
  }
  return Parse(text);
}

int64_t Picoseconds(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1e6);
}

TEST(ChromeTrace, HasASliceForEachStreamOfEachTask) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Program program = RandomSlowProgram(seed);
    const Trace trace = RunLongestPath(program);
    std::vector<size_t> slices(static_cast<size_t>(program.task_count()));
    for (const json& event : TasksOf(program)) {
      const TaskId task(event["args"]["task"].get<int32_t>());
      ++slices[static_cast<size_t>(task.index())];
      const TaskLabel& label = program.label(program.label_of(task));
      const std::string name(label.name);
      const bool plain = label.kind == TaskKind::kCompute && event["cat"] != "gpu_memcpy";
      EXPECT_TRUE(plain ? event["name"] == name
                        : event["name"].get<std::string>().ends_with("(" + name + ")"))
          << event;
      EXPECT_EQ(Picoseconds(event["ts"]), trace.start_of(task).picoseconds());
      EXPECT_EQ(Picoseconds(event["dur"]), program.duration(task).picoseconds());
    }
    for (int32_t i = 0; i < program.task_count(); ++i) {
      const bool takes_time = program.duration(TaskId(i)) > Duration(0);
      EXPECT_EQ(slices[static_cast<size_t>(i)],
                takes_time ? program.streams_of(TaskId(i)).size() : 0);
    }
  }
}

using Place = std::pair<int, int>;  // process, thread

Place PositionOf(const json& event) { return {event["pid"].get<int>(), event["tid"].get<int>()}; }

TEST(ChromeTrace, SlicesOfAThreadFollowEachOther) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::map<Place, int64_t> finish;
    for (const json& event : EventsOf(RandomSlowProgram(seed), "X")) {
      int64_t& last = finish[PositionOf(event)];
      EXPECT_GE(Picoseconds(event["ts"]), last);
      last = Picoseconds(event["ts"]) + Picoseconds(event["dur"]);
    }
  }
}

// Whether a slice covers `time` on that thread to a viewer that cuts times off to nanoseconds.
bool IsInsideASlice(const std::vector<json>& slices, const Place& position, int64_t time) {
  for (const json& slice : slices) {
    const int64_t start = Picoseconds(slice["ts"]) / 1000;
    const int64_t finish = start + Picoseconds(slice["dur"]) / 1000;
    if (PositionOf(slice) == position && start <= time / 1000 && time / 1000 < finish) return true;
  }
  return false;
}

TEST(ChromeTrace, ArrowsPairUpAndBindToSlices) {
  std::map<std::string, int> kinds;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Program program = RandomSlowProgram(seed);
    const std::vector<json> slices = EventsOf(program, "X");
    const std::vector<json> begins = EventsOf(program, "s");
    const std::vector<json> ends = EventsOf(program, "f");
    ASSERT_EQ(begins.size(), ends.size());
    std::set<int64_t> ids;
    for (size_t i = 0; i < begins.size(); ++i) {
      EXPECT_TRUE(ids.insert(begins[i]["id"].get<int64_t>()).second);
      EXPECT_EQ(begins[i]["id"], ends[i]["id"]);
      EXPECT_EQ(ends[i]["bp"], "e");
      const std::string kind = begins[i]["cat"];
      EXPECT_EQ(begins[i]["cat"], ends[i]["cat"]);
      if (kind == "send" || kind == "collective") {
        EXPECT_NE(PositionOf(begins[i]), PositionOf(ends[i]));
      }
      ++kinds[kind];
      EXPECT_TRUE(IsInsideASlice(slices, PositionOf(begins[i]), Picoseconds(begins[i]["ts"])));
      EXPECT_TRUE(IsInsideASlice(slices, PositionOf(ends[i]), Picoseconds(ends[i]["ts"])));
    }
  }
  for (const char* kind : {"send", "collective", "critical_path"}) {
    EXPECT_GT(kinds[kind], 5) << kind;
  }
}

TEST(ChromeTrace, CountersComeOnceAMomentInTimeOrder) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::map<int, int64_t> last;
    const Program program = RandomSlowProgram(seed);
    for (const json& event : EventsOf(program, "C")) {
      if (event["name"] != "memory (bytes)") continue;
      const auto [position, is_first] = last.try_emplace(event["pid"].get<int>(), -1);
      EXPECT_GT(Picoseconds(event["ts"]), position->second);
      position->second = Picoseconds(event["ts"]);
      EXPECT_EQ(event["args"].size(), static_cast<size_t>(kMemoryKindCount));
    }
    EXPECT_EQ(last.size(), static_cast<size_t>(program.rank_count()));
  }
}

TEST(ChromeTrace, NamesNeedNotBeUtf8) {
  Program program;
  const RankClassId rank = program.AddRank({.name = "\xff\n", .members = {0}});
  program.AddTask(program.AddStream(rank, StreamKind::kCompute),
                  {.duration = Duration(1000), .label = program.AddLabel({.name = "\xc3(\t\"\\"})});
  const std::vector<json> slices = TasksOf(program);
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0]["name"], "\xef\xbf\xbd(\t\"\\");
}

TEST(ChromeTrace, DaysKeepTheirPicoseconds) {
  const Program program = Parse(R"(program
rank0 "" members 0 stage 0
stream0 rank0 compute
label0 "op" compute forward stage 0
task0 stream0 label0 takes 4320000000000000001 ps
task1 stream0 label0 takes 2000 ps
)");
  EXPECT_NE(TraceOf(program).find("\"ts\":4320000000000.000001,"), std::string::npos);
}

TEST(ChromeTrace, BubblesAddUpToWhatTheReportHas) {
  int slices = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Program program = RandomSlowProgram(seed);
    const Report report = Summarize(program, RunLongestPath(program));
    std::map<int, int64_t> bubbles;
    for (const json& event : EventsOf(program, "X")) {
      if (event["cat"] == "bubble") bubbles[event["pid"].get<int>()] += Picoseconds(event["dur"]);
      slices += event["cat"] == "bubble";
    }
    for (int32_t i = 0; i < program.rank_count(); ++i) {
      EXPECT_EQ(bubbles[program.rank(RankClassId(i)).members.front()],
                report.ranks[RankClassId(i)].idle.picoseconds())
          << seed;
    }
  }
  EXPECT_GT(slices, 50);
}

TEST(ChromeTrace, RunsOfStagesAreAsBusyAsTheirTasks) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Program program = RandomSlowProgram(seed);
    std::ostringstream out;
    WriteChromeTrace(program, RunLongestPath(program), out, {.level = TraceLevel::kStage});
    std::map<Place, int64_t> runs, tasks;
    const json trace = json::parse(out.str());
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] != "X" || !event.contains("args") || !event["args"].contains("tasks"))
        continue;
      runs[PositionOf(event)] += Picoseconds(event["args"]["busy_us"]);
      EXPECT_LE(Picoseconds(event["args"]["busy_us"]), Picoseconds(event["dur"]));
    }
    for (const json& event : TasksOf(program)) {
      tasks[PositionOf(event)] += Picoseconds(event["dur"]);
    }
    EXPECT_EQ(runs, tasks) << seed;
  }
}

TEST(ChromeTrace, TellsWhenMemoryRunsOut) {
  const Program program = Parse(R"(program
rank0 "" members 0 stage 0 capacity 10 bytes
stream0 rank0 compute
label0 "op" compute forward stage 0
task0 stream0 label0 takes 2000000 ps
task1 stream0 label0 takes 2000000 ps
task2 stream0 label0 takes 2000000 ps
memory task0 rank0 activations +8 bytes
memory task1 rank0 activations +8 bytes
memory task2 rank0 activations +8 bytes
)");
  const std::vector<json> moments = EventsOf(program, "i");
  ASSERT_EQ(moments.size(), 1u);
  EXPECT_EQ(moments[0]["name"], "out of memory");
  EXPECT_EQ(moments[0]["ts"], 2.0);
  EXPECT_EQ(moments[0]["args"]["bytes"], 16);
}

TEST(ChromeTrace, NamesDoNotPassForOthers) {
  for (const char* name : {"Memcpy x", "ncclKernel_AllReduce", "nccl", "dma", "a Memset"}) {
    Program program;
    const RankClassId rank = program.AddRank({.members = {0}});
    program.AddTask(program.AddStream(rank, StreamKind::kCompute),
                    {.duration = Duration(1000), .label = program.AddLabel({.name = name})});
    const std::string shown = TasksOf(program).at(0)["name"];
    EXPECT_EQ(shown.find("Memcpy"), std::string::npos);
    EXPECT_EQ(shown.find("Memset"), std::string::npos);
    EXPECT_EQ(shown.find("nccl"), std::string::npos);
    EXPECT_FALSE(shown.starts_with("dma"));
  }
}

TEST(ChromeTrace, ShowsLinksAsCounters) {
  const Program program = Parse(R"(program
rank0 "pp0" members 0-6 stage 0
stream0 rank0 compute
stream1 rank0 data
label0 "Send" send forward stage 0
resource0 "device0 -> switch0" "port" capacity 3000000000 bytes/s latency 0 ps
resource1 "idle" "port" capacity 1000000000 bytes/s latency 0 ps
resource2 "" "" capacity 2000000000 bytes/s latency 0 ps
flow0 size 6000 bytes rate 3000000000 bytes/s latency 500000 ps loads resource0 1
flow1 size 4000 bytes rate 3000000000 bytes/s latency 0 ps loads resource0 1 resource2 0.5
task0 stream0 label0 takes flow0
task1 stream1 label0 takes 1000000 ps
task2 stream1 label0 takes flow1
)");
  LinkUse use(program);
  FluidNetwork network(program, &use);
  const absl::StatusOr<Trace> trace = RunEvents(program, network);
  ASSERT_TRUE(trace.ok()) << trace.status();
  std::ostringstream out;
  WriteChromeTrace(program, *trace, out, {.use = &use});
  EXPECT_TRUE(json::accept(out.str()));
  // The first alone for 1 us; then both at 1.5 GB/s for 2 us, and the second alone for a third.
  const std::string counters =
      out.str().substr(out.str().find("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":7"));
  EXPECT_EQ(counters, R"json({"name":"process_name","ph":"M","pid":7,"args":{"name":"network"}},
{"name":"process_sort_index","ph":"M","pid":7,"args":{"sort_index":7}},
{"name":"device0 -> switch0 (port)","ph":"C","pid":7,"id":0,"ts":0.000000,"args":{"GB/s":3}},
{"name":"device0 -> switch0 (port)","ph":"C","pid":7,"id":0,"ts":3.333334,"args":{"GB/s":0}},
{"name":"resource2","ph":"C","pid":7,"id":2,"ts":0.000000,"args":{"GB/s":0}},
{"name":"resource2","ph":"C","pid":7,"id":2,"ts":1.000000,"args":{"GB/s":0.75}},
{"name":"resource2","ph":"C","pid":7,"id":2,"ts":3.000000,"args":{"GB/s":1.5}},
{"name":"resource2","ph":"C","pid":7,"id":2,"ts":3.333334,"args":{"GB/s":0}}
]}
)json");
}

}  // namespace
}  // namespace chrome_trace_test_cc
}  // namespace orrery::simulator
