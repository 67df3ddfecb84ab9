#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"

// `collective` beside measurements: how far the presets are from them, and sweeps as a cost model.

namespace orrery::cli {
namespace collective_measured_test_cc {
namespace {

using testing::HasSubstr;

const std::string kFile = absl::StrCat(SourceDir(), "/tests/data/measured_collectives.json");

Finished Ask(const std::string& flags) { return Execute(absl::StrCat("collective ", flags)); }

// The columns of each row, by its id; what stands between quotes is one.
std::map<std::string, std::vector<std::string>> Rows(const std::string& csv) {
  std::map<std::string, std::vector<std::string>> rows;
  for (const absl::string_view line : absl::StrSplit(csv, '\n', absl::SkipEmpty())) {
    std::vector<std::string> columns = {""};
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        columns.emplace_back();
      } else {
        columns.back() += c;
      }
    }
    rows[columns[0]] = columns;
  }
  return rows;
}

// The project's goal: 10 % on average for sizes from 64 KiB to 1 GiB.
TEST(CollectiveMeasurements, PresetsMeetTheCalibrationSweeps) {
  const Finished finished = Ask("--measurements " + kFile);
  ASSERT_EQ(finished.err, "");
  const auto rows = Rows(finished.out);
  const std::string early = "dgx-a100:1,collectives=nccl-ampere-2023";
  const std::map<std::string, std::string> clusters = {
      {"vtrain-a100-ar-2", early},        {"vtrain-a100-ar-4", early},
      {"vtrain-a100-ar-8", early},        {"stas-a100-8-ar", early},
      {"dgxc-h100-8-ar", "dgx-h100:1"},   {"aws-p5-16-ar", "aws-p5:2"},
      {"cw-gb200-72-ar", "gb200-nvl72:1"}};
  for (const auto& [id, cluster] : clusters) {
    ASSERT_TRUE(rows.contains(id)) << id;
    EXPECT_EQ(rows.at(id)[2], cluster);
    EXPECT_LE(std::atof(rows.at(id)[5].c_str()), 10) << id;
  }
  // Rings of 16 GiB, by hand and by kind, and reductions in the switch.
  for (const char* id :
       {"stas-h200-8-16GiB-all_reduce-Ring", "stas-h200-8-16GiB-all_gather-Ring",
        "stas-h200-8-16GiB-reduce_scatter-Ring", "stas-h200-8-16GiB-all_reduce-NVLS"}) {
    EXPECT_LE(std::atof(rows.at(id)[8].c_str()), 5) << id;
  }
}

TEST(CollectiveMeasurements, ShowEveryPoint) {
  const Finished finished = Ask("--every-point --measurements " + kFile + ",only=dgxc-h100");
  EXPECT_THAT(
      finished.out,
      testing::StartsWith(
          "row,bytes,algorithm,protocol,measured_us,predicted_us,error\ndgxc-h100-8-ar,8,"));
  EXPECT_THAT(finished.out, HasSubstr("dgxc-h100-8-ar,1073741824,in-network,nvls,4029.40,"));
}

TEST(CollectiveMeasurements, SayWhatHasNoPreset) {
  Write("other.json",
        R"({"rows": [{"id": "z", "collective": "all_reduce", "hw": {"gpus": 4, "gpu": "Gaudi3"},
            "points": [{"bytes": 1024, "time_us": 5}]}]})");
  EXPECT_THAT(Ask("--measurements other.json").out, HasSubstr("z,,no preset,,,,,,,\n"));
}

// Every machine that a preset stands for, by what its sweep says of it.
TEST(CollectiveMeasurements, FindThePreset) {
  struct Machine {
    std::string hw, cluster;
  };
  const Machine machines[] = {
      {R"("gpu": "V100-SXM2-32GB", "gpus": 4, "nodes": 1)", "dgx-v100:1"},
      {R"("gpu": "A100-SXM4-40GB", "gpus": 8, "nodes": 1)", "dgx-a100-40gb:1"},
      {R"("gpu": "A100-SXM4-80GB", "gpus": 16, "nodes": 2, "inter": "EFA 4x100")", "aws-p4de:2"},
      {R"("gpu": "A100", "gpus": 16, "nodes": 2, "inter": "RoCE")", R"("dgx-a100:2,nic=200gbe")"},
      {R"("gpu": "A100", "gpus": 16, "nodes": 2, "inter": "HDR")", "dgx-a100:2"},
      {R"("gpu": "H100-SXM5-80GB", "gpus": 64)", "dgx-h100:8"},
      {R"("gpu": "H100", "gpus": 4, "nodes": 4, "inter": "EFA")", "aws-p5:4"},
      {R"("gpu": "H200", "gpus": 16, "nodes": 2, "inter": "EFA v3")", "aws-p5en:2"},
      {R"("gpu": "H200", "gpus": 16, "nodes": 2)", "dgx-h200:2"},
      {R"("gpu": "B200", "gpus": 32, "nodes": 4, "inter": "EFA")", "aws-p6-b200:4"},
      {R"("gpu": "B200", "gpus": 8, "nodes": 1)", "dgx-b200:1"},
      {R"("gpu": "GB200", "gpus": 144, "nodes": 36)", "gb200-nvl72:2"},
      {R"("gpu": "MI300X", "gpus": 16, "nodes": 2, "inter": "8x400 RoCE")", "mi300x:2"},
      {R"("gpu": "TPU", "gpus": 16, "nodes": 2)", "no preset"}};
  for (const Machine& machine : machines) {
    Write("one.json",
          absl::StrCat(R"({"rows": [{"id": "x", "collective": "all_reduce", "hw": {)", machine.hw,
                       R"(}, "points": [{"bytes": 1048576, "time_us": 99}]}]})"));
    const Finished finished = Ask("--measurements one.json");
    EXPECT_EQ(finished.err, "") << machine.hw;
    EXPECT_THAT(finished.out, HasSubstr("\nx,," + machine.cluster + ",")) << machine.hw;
  }
}

TEST(CollectiveMeasured, SaysHowWellItFits) {
  const Finished finished = Ask("--fit --cost-model measured:" + kFile);
  ASSERT_EQ(finished.err, "");
  const auto rows = Rows(finished.out);
  for (const char* id : {"vtrain-a100-ar-8", "dgxc-h100-8-ar", "aws-p5-16-ar", "stas-a100-8-ar"}) {
    EXPECT_LE(std::atof(rows.at(id)[5].c_str()), 8) << id;
  }
  EXPECT_EQ(rows.at("nccl1264-h100-p2p")[1], "no sweep");
}

TEST(CollectiveMeasured, PricesByTheSweeps) {
  const Finished finished =
      Ask("--bytes 256MiB --cluster aws-p5:2 --cost-model measured:" + kFile + ",only=aws-p5");
  EXPECT_EQ(finished.err, "");
  EXPECT_THAT(finished.out, HasSubstr("over 16 devices of aws-p5:2 by in-network, measured\n"
                                      "time             1.41 ms"));
}

TEST(CollectiveMeasured, SaysWhatIsWrong) {
  EXPECT_EQ(Ask("--cluster dgx-h100:1 --cost-model mesured:x").code, 1);
  EXPECT_THAT(Ask("--cluster dgx-h100:1 --cost-model mesured:x").err,
              HasSubstr("--cost-model 'mesured:x': wanted measured:FILE, or roofline"));
  EXPECT_THAT(Ask("--fit").err, HasSubstr("--fit with --cost-model '': wanted measured:FILE"));
  EXPECT_THAT(Ask("--fit --cost-model measured:nowhere").err, HasSubstr("nowhere"));
  EXPECT_THAT(Ask("--measurements nowhere").err, HasSubstr("nowhere"));
}

TEST(CollectiveProtocols, AreNamedAndCanBeLeftOut) {
  EXPECT_THAT(Ask("--bytes 64KiB --cluster dgx-h100:1").out,
              HasSubstr("of dgx-h100:1 by ring, ll\n"));
  EXPECT_THAT(Ask("--bytes 1GiB --cluster dgx-h100:1").out, HasSubstr("by in-network, nvls\n"));
  EXPECT_THAT(Ask("--bytes 1GiB --cluster dgx-h100:1,ideal-collectives").out,
              HasSubstr("by in-network\n"));
}

}  // namespace
}  // namespace collective_measured_test_cc
}  // namespace orrery::cli
