#include "tools/report_text.h"

#include <gtest/gtest.h>

#include <string>

#include "simulator/program/program_text.h"

namespace orrery::tools {
namespace report_text_test_cc {
namespace {

using simulator::ModelFigures;
using simulator::Program;
using simulator::RankClassId;
using simulator::Report;
using simulator::ReportDetails;

// Two classes of ranks; the second has two members and needs most.
Program TwoClasses() {
  return simulator::ParseProgram(R"(program
rank0 "a" members 0 stage 0
rank1 "b" members 3,5 stage 1
stream0 rank0 compute
stream1 rank1 compute
label0 "MatMul y" compute backward stage 1
task0 stream1 label0 microbatch 2 takes 1500 ps
)")
      .value();
}

// A step of 2 s whose figures are all different.
Report TwoReports() {
  Report report;
  report.step_time = Duration(2'000'000'000'000);
  report.communication_overhead = 0.125;
  report.exposed_communication_s = 0.5;
  report.bubble_fraction = 0.3;
  report.peak_memory = Bytes(3 << 10);
  report.bytes_sent = Bytes(5 << 10);
  report.bytes_reduced = Bytes(7 << 10);
  report.simulated_tasks = 9;
  report.ranks.push_back({});
  report.ranks.push_back({});
  report.ranks[RankClassId(0)].memory.total = Bytes(1 << 10);
  simulator::MemoryUse& most = report.ranks[RankClassId(1)].memory;
  most.total = Bytes(3 << 10);
  most.by_kind[static_cast<size_t>(simulator::MemoryKind::kParameters)] = Bytes(1 << 10);
  most.by_kind[static_cast<size_t>(simulator::MemoryKind::kActivations)] = Bytes(2 << 10);
  return report;
}

ReportDetails Bubbles() {
  ReportDetails details;
  details.bubbles.push_back({});
  details.bubbles.push_back({});
  return details;
}

// A mean over three ranks, of which two are of the second class.
ReportDetails AllParts() {
  ReportDetails details = Bubbles();
  constexpr int64_t kSecond = 1'000'000'000'000;
  details.bubbles[RankClassId(1)] = {.warm_up = Duration(kSecond * 3 / 10),
                                     .steady = Duration(kSecond * 6 / 10),
                                     .cool_down = Duration(kSecond * 9 / 10),
                                     .imbalance = Duration(kSecond * 12 / 10)};
  return details;
}

std::string Lines(const Report& report, const ReportDetails& details, bool of_model = false) {
  testing::internal::CaptureStdout();
  PrintReportLines(TwoClasses(), report, details,
                   {.throughput_samples_per_s = 12.345, .mfu = 0.4567, .wall_time_s = 0.25},
                   of_model);
  return "\n" + testing::internal::GetCapturedStdout();
}

TEST(ReportLines, HaveAFigureEach) {
  EXPECT_EQ(Lines(TwoReports(), Bubbles()), R"(
  step time                2.00 s (2.000000000000 s)
  communication overhead   12.50 %
  exposed communication    500 ms a rank, of the step 25.00 %
  bubble                   30.00 %
  peak memory              3.00 KiB on rank 3, fits: activations 2.00 KiB, parameters 1.00 KiB
  bytes sent, reduced      5.00 KiB, 7.00 KiB
  simulated                9 tasks of 2 rank classes in 250 ms
)");
}

TEST(ReportLines, SayWhatPricesAssume) {
  ReportDetails details = Bubbles();
  details.kernels[0] = 0.5;
  details.assumed = "rates of kernels";
  const std::string lines = Lines(TwoReports(), details);
  EXPECT_NE(lines.find("\n  kernels                  products 25.00 %"
                       "\n  assumed                  rates of kernels\n"),
            std::string::npos)
      << lines;
}

TEST(ReportLines, SayHowFarOffTheStepMayBe) {
  ReportDetails details = Bubbles();
  details.error_bar = simulator::ErrorBar{.share = 0.68,
                                          .spread = 0.05,
                                          .low_s = 1.9,
                                          .high_s = 2.1,
                                          .nearest = {{"row-a", 0.5, 0.04}, {"row-b", 1, 0.05}},
                                          .other_software = true};
  const auto second = [&] {
    const std::string lines = Lines(TwoReports(), details, true);
    const size_t begin = lines.find("\n  error bar");
    return lines.substr(begin, lines.find('\n', begin + 1) - begin);
  };
  EXPECT_EQ(
      second(),
      "\n  error bar                1.90 s to 2.10 s (5.0 %), which 68 % of the 2 nearest measured "
      "steps keep to, all by other software; nearest row-a");
  details.error_bar->none = "no dense model on Volta was";
  EXPECT_EQ(second(),
            "\n  error bar                no measured step is near: no dense model on Volta was");
}

TEST(ReportLines, SayWhereACostModelIsFasterThanTheDevice) {
  const auto line = [](double mfu, double hfu = 0) {
    testing::internal::CaptureStdout();
    PrintReportLines(TwoClasses(), TwoReports(), Bubbles(), {.mfu = mfu, .hfu = hfu}, true);
    const std::string lines = testing::internal::GetCapturedStdout();
    const size_t begin = lines.find("model flops utilization");
    return lines.substr(begin, lines.find('\n', begin) - begin);
  };
  EXPECT_EQ(line(1), "model flops utilization  100.00 %");
  const std::string told =
      ": more than the device can do; the cost model does not keep to its peak, or keys that a "
      "causal mask hides count";
  EXPECT_EQ(line(3.5), "model flops utilization  350.00 %" + told);
  EXPECT_EQ(line(0.9, 1.1), "model flops utilization  90.00 %; of hardware flops 110.00 %" + told);
}

TEST(ReportLines, OfAModelTellHowWellItIsUsed) {
  const std::string lines = Lines(TwoReports(), Bubbles(), true);
  EXPECT_EQ(lines.substr(0, lines.find("  communication")), R"(
  step time                2.00 s (2.000000000000 s)
  throughput               12.35 samples/s
  model flops utilization  45.67 %
)");
}

TEST(ReportLines, TellWhatThereIsOnlySometimes) {
  Report report = TwoReports();
  report.fits = false;
  simulator::MemoryUse& most = report.ranks[RankClassId(1)].memory;
  most.time = Time(1'000'000);
  most.task = simulator::TaskId(0);
  report.ranks[RankClassId(0)].host_memory = Bytes(11 << 10);
  report.ranks[RankClassId(1)].host_memory = Bytes(10 << 10);
  report.communication = {
      {.kind = "all-reduce dp", .level = "nic", .bytes = 2048, .exposed_s = 0.25, .hidden_s = 1.5},
      {.kind = "send", .level = "", .bytes = 1024, .exposed_s = 0, .hidden_s = 0.125}};
  ReportDetails details = AllParts();
  details.versions = {{.stage = 0, .rank = 0, .staleness = 2, .weight_versions = 3},
                      {.stage = 1, .rank = 1, .staleness = 0, .weight_versions = 1}};
  details.stages = {{.stage = 0, .rank = 0, .layers = 3, .parameters = 1'234'567},
                    {.stage = 1, .rank = 1, .layers = 2, .parameters = 98'765'432}};
  EXPECT_EQ(Lines(report, details), R"(
  step time                2.00 s (2.000000000000 s)
  communication overhead   12.50 %
  exposed communication    500 ms a rank, of the step 25.00 %
    all-reduce dp, nic     250 ms exposed, 1.50 s hidden, 2.00 KiB
    send                   0 s exposed, 125 ms hidden, 1.00 KiB
  bubble                   30.00 %: warm-up 10.00 %, steady 20.00 %, cool-down 30.00 %, imbalance 40.00 %
  peak memory              3.00 KiB on rank 3, DOES NOT FIT: activations 2.00 KiB, parameters 1.00 KiB
    reached                at 1.00 us by MatMul y, backward of microbatch 2 on stage 1
  host memory, a rank      11.0 KiB
  layers                   3 2, by stage
  parameters               1.235 M, 98.77 M, by stage
  gradients                2 0 updates late, by stage
  versions of the weights  3 1, by stage
  bytes sent, reduced      5.00 KiB, 7.00 KiB
  simulated                9 tasks of 2 rank classes in 250 ms
)");
}

TEST(ReportLines, OfPartsOfTheBubbleNameThoseThatThereAre) {
  ReportDetails details = Bubbles();
  details.bubbles[RankClassId(0)].cool_down = Duration(600'000'000'000);
  EXPECT_NE(Lines(TwoReports(), details).find("30.00 %: cool-down 10.00 %\n"), std::string::npos);
}

// Of ranks that need alike the first is named.
TEST(ReportLines, NameTheFirstOfTheFullestRanks) {
  Report report = TwoReports();
  report.ranks[RankClassId(0)].memory.total = Bytes(3 << 10);
  EXPECT_NE(Lines(report, Bubbles()).find("3.00 KiB on rank 0, fits\n"), std::string::npos);
}

TEST(ReportLines, OfNothingDivideByNothing) {
  testing::internal::CaptureStdout();
  PrintReportLines(Program(), Report(), ReportDetails(), ModelFigures(), false);
  EXPECT_EQ("\n" + testing::internal::GetCapturedStdout(), R"(
  step time                0.00 ns (0.000000000000 s)
  communication overhead   0.00 %
  exposed communication    0 s a rank, of the step 0.00 %
  bubble                   0.00 %
  peak memory              0 B, fits
  bytes sent, reduced      0 B, 0 B
  simulated                0 tasks of 0 rank classes in 0 s
)");
}

}  // namespace
}  // namespace report_text_test_cc
}  // namespace orrery::tools
