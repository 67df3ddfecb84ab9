#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/paths_test_util.h"
#include "tests/cli/json_of.h"
#include "tests/cli/run.h"

// simulate --update ps, as a user runs it.

namespace orrery::cli {
namespace parameter_server_test_cc {
namespace {

using testing::HasSubstr;

const std::string kSmall =
    "simulate --model mlp:layers=4,dim=512 --batch-size 64 --cluster switch:6@25gbe "
    "--cost-model roofline --update ps --dp 4 ";

nlohmann::json Played(const std::string& flags) { return JsonOf(kSmall + flags); }

// One clear line, and no file is left.
void ExpectOneLine(const std::string& flags, const std::string& error) {
  Clear();
  const std::string base = flags == "--batch-size 66"
                               ? "simulate --model mlp --cluster switch:6@25gbe --update ps --dp 4 "
                               : kSmall;
  const Finished run = Execute(absl::StrCat(base, flags, " --json never.json"));
  EXPECT_EQ(run.code, 1) << flags << run.out;
  EXPECT_THAT(run.err, HasSubstr(error)) << flags;
  EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
}

TEST(ParameterServers, BadInputIsOneLine) {
  const std::vector<std::pair<std::string, std::string>> kErrors = {
      {"--servers 0", "--servers 0: wanted 1 to 65536, such as 8"},
      {"--servers 3",
       "--servers 3: of 6 hosts workers have 4, which leaves 2; wanted at most 2, a larger "
       "--cluster, or --server-place workers"},
      {"--servers 5 --server-place workers",
       "--servers 5: workers are on 4 hosts; wanted at most 4, one on each, or --server-place "
       "hosts"},
      {"--server-place devices --servers 3",
       "--servers 3: of 6 devices workers have 4; wanted at most 2, a larger --cluster, or "
       "--server-place workers"},
      {"--server-place rack", "--server-place rack: wanted hosts, devices, workers or mixed"},
      {"--server-rate 0GB/s", "--server-rate"},
      {"--sync ssp:-1", "--sync ssp:-1: wanted a bound of 0 to 1000000000 steps"},
      {"--sync ssp", "--sync ssp: wanted bsp, asp, or ssp and its bound, as in ssp:3"},
      {"--sync often", "--sync often: wanted bsp, asp, or ssp and its bound, as in ssp:3"},
      {"--backup 4", "--backup 4: wanted fewer than the 4 workers of --dp"},
      {"--backup -1", "--backup -1: wanted 0 or more workers that are not waited for, such as 2"},
      {"--backup 1 --sync asp",
       "--backup 1: wanted it with --sync bsp, as nobody else waits for all workers"},
      {"--ps-order lifo", "--ps-order lifo: wanted need or fifo"},
      {"--ps-part 7B", "--ps-part"},
      {"--ps-overlap some", "--ps-overlap some: wanted layers or none"},
      {"--hp 2", "--hp 2: with --update ps a worker is one device; wanted 1, and --dp workers"},
      {"--pp 2", "--pp 2: with --update ps a worker is one device; wanted 1, and --dp workers"},
      {"--zero 1", "--zero: says nothing with --update ps"},
      {"--offload optimizer", "--offload: says nothing with --update ps"},
      {"--bucket-size none", "--bucket-size: says nothing with --update ps"},
      {"--blocking", "--blocking: says nothing with --update ps"},
      {"--optimizer none", "--update ps: nothing of the model is updated in a step"},
      {"--no-fold", "--no-fold: with --update ps each worker is simulated anyway"},
      {"--batch-size 66", "--batch-size"},
      {"--plan-text a.plan", "--update ps: has --json and --trace; wanted it without"},
      {"--no-skip", "--update ps: has --json and --trace; wanted it without"},
      {"--timeline", "--update ps: has --json and --trace; wanted it without"},
      {"--explain", "--update ps: has --json and --trace; wanted it without"},
      {"--trace t.json --trace-level run",
       "--update ps: has --json and --trace; wanted it without"},
      {"--slow rank=4:2", "no rank 4"},
      {"--steps 0", "--steps 0"},
      {"--steps 1", "--steps 1: with --update ps a step goes from the end of the one before"},
      {"--ps-part none --server-rate 0.00000001GB/s", "takes longer than 53 days"}};
  for (const auto& [flags, error] : kErrors) ExpectOneLine(flags, error);
}

TEST(ParameterServers, BadInputOfMixedOnesAndOfSumsIsOneLine) {
  const std::vector<std::pair<std::string, std::string>> kErrors = {
      {"--server-place mixed --servers 3",
       "--servers 3: of 6 hosts workers have 4, which leaves 2; wanted at most 2, a larger "
       "--cluster, or --server-place workers"},
      {"--server-place mixed --servers 0",
       "--servers 0: wanted 1 to 65536 on hosts of their own, such as 8; with the workers alone "
       "they are --server-place workers"},
      {"--ps-local sum", "--ps-local sum: wanted add or none"},
      {"--ps-local add --sync asp",
       "--ps-local add: wanted it with --sync bsp, as else each gradient is an update by itself"},
      {"--ps-local add --sync ssp:2", "--ps-local add: wanted it with --sync bsp"},
      {"--ps-local add --backup 1",
       "--ps-local add: wanted it without --backup, as nobody is left out of the sum of a host"}};
  for (const auto& [flags, error] : kErrors) ExpectOneLine(flags, error);
}

// A worker beside the only server puts nothing on the network, which others wait for.
TEST(ParameterServers, BoundsAreOfWhatEachWorkerPutsOnLinks) {
  const nlohmann::json json = JsonOf(
      "simulate --update ps --model gpt2-small --batch-size 40 --cluster "
      "switch:16@1Gbps,device=a100-80gb --dp 5 --servers 1 --sync asp --server-place workers");
  const double rate = json.at("steps_per_s");
  EXPECT_GT(rate, 1);
  EXPECT_LE(rate, 1.01 * json.at("arithmetic").at("most_steps_per_s").get<double>());
}

// Messages that are under way when measuring begins and ends count as far as they are sent.
TEST(ParameterServers, NoLinkIsUsedMoreThanAllTheTime) {
  const nlohmann::json json = JsonOf(
      "simulate --update ps --model resnet:depth=18,image=64 --batch-size 16 --cluster "
      "switch:16@1Gbps,device=a100-80gb --dp 2 --servers 1 --sync ssp:1 --steps 2 --server-place "
      "workers --ps-part 64MiB --micro-batches 2");
  double most = 0;
  for (const nlohmann::json& link : json.at("links")) most = std::max<double>(most, link["used"]);
  EXPECT_GT(most, 0.5);
  EXPECT_LE(most, 1 + 1e-9);
}

TEST(ParameterServers, WithoutWorkersOrWithoutANetworkAreErrors) {
  const std::string model = "simulate --model mlp:layers=1,dim=4000 --batch-size 4 --update ps ";
  for (const auto& [flags, error] :
       {std::pair("--cluster switch:6@25gbe --dp 0", "--dp"),
        std::pair("--cluster switch:6@25gbe --dp -1", "--dp"),
        std::pair("--cluster switch:4@0.0001Mbps --dp 1 --ps-part none", "longer than 53 days")}) {
    const Finished run = Execute(model + flags);
    EXPECT_EQ(run.code, 1) << flags;
    EXPECT_THAT(run.err, HasSubstr(error)) << flags;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  }
}

TEST(ParameterServers, ABoundThatHoldsNobodyUpIsTold) {
  const nlohmann::json run = Played("--sync ssp:100 --slow rank=1:100 --server-rate 1000GB/s");
  EXPECT_GT(run.at("steps_per_s"), 1.5 * run.at("arithmetic").at("most_steps_per_s").get<double>());
  ASSERT_EQ(run.at("notes").size(), 1u);
  EXPECT_THAT(run.at("notes")[0].get<std::string>(), HasSubstr("--steps plays more"));
}

// The issue's own: 354,823,168 parameters of 4 bytes, 32 workers, 8 servers of 3.125 GB/s.
TEST(ParameterServers, Gpt2MediumIsWithinTwoPerCentOfThePaper) {
  const nlohmann::json json = JsonOf(
      "simulate --model gpt2-medium --batch-size 64 --cluster switch:40@25gbe,device=a100-80gb "
      "--dp 32 --update ps --servers 8 --ps-overlap none --steps 4");
  const double bytes = json.at("gradient_bytes");
  EXPECT_NEAR(bytes, 4 * 354.8e6, 0.01 * bytes);
  const double step = 32 / json.at("steps_per_s").get<double>();
  const double compute = json.at("arithmetic").at("compute_s");
  EXPECT_NEAR(step / (compute + 2 * bytes * 32 / (8 * 3.125e9)), 1, 0.02);
}

TEST(ParameterServers, FlagsOfTheirsAloneAreErrors) {
  Clear();
  for (const std::string flag :
       {"--servers 2", "--sync bsp", "--backup 1", "--ps-order need", "--server-place hosts",
        "--ps-local add", "--update all-reduce --servers 2"}) {
    const Finished run =
        Execute("simulate --model mlp --batch-size 8 --cluster switch:6@25gbe --dp 4 " + flag);
    EXPECT_EQ(run.code, 1);
    EXPECT_THAT(run.err, HasSubstr("wanted it beside --update ps"));
  }
  const Finished unknown =
      Execute("simulate --model mlp --batch-size 8 --cluster switch:6@25gbe --update gossip");
  EXPECT_THAT(unknown.err, HasSubstr("--update gossip: wanted all-reduce or ps"));
}

TEST(ParameterServers, TheSameSeedIsTheSameBytes) {
  Clear();
  const std::string flags =
      "--sync asp --jitter kernel=2%,rank=5%,gc=1ms/9ms --slow rank=1:1.5 --steps 30 --trace "
      "t.json --json ";
  const Finished free = Execute(kSmall + flags + "a.json");
  ASSERT_EQ(free.code, 0) << free.err;
  const std::string trace = Contents("t.json");
  const Finished bound =
      Execute(absl::StrCat("simulate --version >/dev/null && taskset -cp 0 $$ >/dev/null && ",
                           BinDir(), "/", kSmall, flags, "b.json"));
  ASSERT_EQ(bound.code, 0) << bound.err;
  EXPECT_EQ(Contents("a.json"), Contents("b.json"));
  EXPECT_EQ(Contents("t.json"), trace);
  EXPECT_EQ(free.out, bound.out);
  ASSERT_EQ(Execute(kSmall + flags + "c.json --seed 2").code, 0);
  EXPECT_NE(Contents("a.json"), Contents("c.json"));
}

// 4 MB of weights a worker; M·W/S/B is 4 x 4 MiB over 2 servers of 3.125 GB/s.
TEST(ParameterServers, TheReportHoldsToTheArithmetic) {
  const double bytes = 4.0 * 512 * 512 * 4;
  const nlohmann::json bulk = Played("--servers 2 --ps-overlap none --ps-part 64KiB");
  EXPECT_EQ(bulk.at("gradient_bytes"), bytes);
  const double pushed = bytes * 4 / (2 * 3.125e9);
  EXPECT_NEAR(bulk.at("arithmetic").at("push_s").get<double>() / pushed, 1, 0.001);
  const double step = 4 / bulk.at("steps_per_s").get<double>();
  const double paper = bulk.at("arithmetic").at("compute_s").get<double>() + 2 * pushed;
  EXPECT_NEAR(step / paper, 1, 0.05);
  EXPECT_EQ(bulk.at("staleness").at("steps_by_lag").size(), 1u);
  const nlohmann::json async = Played("--servers 1 --sync asp --steps 60 --server-rate 1000GB/s");
  EXPECT_NEAR(async.at("steps_per_s").get<double>() / (3.125e9 / bytes), 1, 0.02);
  const nlohmann::json stale = Played("--servers 2 --sync ssp:2 --slow rank=0:300 --steps 60");
  EXPECT_EQ(stale.at("staleness").at("steps_by_lag").size(), 3u);
}

// 8 workers of 25 Gb/s, a server with each, and 4 or none by themselves: 2n(n - 1)/(n² + kn - 2k).
TEST(ParameterServers, MixedOnesAreBytePSsOptimum) {
  const std::string base =
      "simulate --model mlp:layers=6,dim=1024 --batch-size 8 --cluster switch:12@25gbe "
      "--cost-model roofline --update ps --dp 8 --server-rate 100000GB/s --ps-part 32KiB ";
  const double bytes = 6.0 * 1024 * 1024 * 4, card = 3.125e9;
  const auto step = [](const nlohmann::json& json) {
    return 8 / json.at("steps_per_s").get<double>();
  };
  const nlohmann::json mixed = JsonOf(base + "--servers 4 --server-place mixed");
  const double divisor = 64 + 32 - 8, paper = 2 * 8 * 7 / divisor * bytes / card;
  const nlohmann::json& arithmetic = mixed.at("arithmetic");
  EXPECT_NEAR(arithmetic.at("least_s").get<double>() / paper, 1, 0.02);
  const double compute = arithmetic.at("compute_s");
  EXPECT_GE(step(mixed), paper);
  EXPECT_LE(step(mixed), 1.03 * paper + compute);
  EXPECT_LT(step(mixed), step(JsonOf(base + "--servers 8 --server-place workers")));
  EXPECT_LT(step(mixed), step(JsonOf(base + "--servers 4 --server-place hosts")));
  ASSERT_EQ(mixed.at("servers").size(), 12u);
  for (size_t s = 0; s < 12; ++s) {
    const nlohmann::json& server = mixed.at("servers")[s];
    EXPECT_EQ(server.at("place"), s < 8 ? "workers" : "hosts");
    const double share = s < 8 ? (8 - 4) / divisor : 2 * 7 / divisor;
    EXPECT_NEAR(server.at("gradient_bytes").get<double>() / bytes, share, 0.003);
  }
}

// 2 hosts of 4 workers push to one of as many cards: M·H/(S·B), and without adding up M·W/(S·B).
TEST(ParameterServers, HostsThatAddUpPushOnce) {
  const std::string base =
      "simulate --model mlp:layers=6,dim=1024 --batch-size 8 --cluster "
      "nodes:3x4@300GB/s,nic=2GB/s,device=a100-80gb --cost-model roofline --update ps --dp 8 "
      "--ps-part 64KiB --ps-overlap none --server-rate 100000GB/s --ps-local ";
  const double bytes = 6.0 * 1024 * 1024 * 4, pushed = bytes * 2 / (4 * 2e9);
  for (const auto& [local, each] : {std::pair("add", pushed), std::pair("none", 4 * pushed)}) {
    const nlohmann::json json = JsonOf(base + local);
    EXPECT_NEAR(json.at("arithmetic").at("push_s").get<double>() / each, 1, 0.01) << local;
    const double step = 8 / json.at("steps_per_s").get<double>();
    const double compute = json.at("arithmetic").at("compute_s");
    EXPECT_NEAR(step / (compute + 2 * each), 1, 0.05) << local;
  }
  const Finished told = Execute(base + "add --trace t.json");
  EXPECT_THAT(told.out, HasSubstr("bsp; 4 workers of a host add up first; one after another"));
  EXPECT_THAT(told.out, HasSubstr("--ps-local add"));
  EXPECT_THAT(Contents("t.json"), HasSubstr("\"to worker 3\""));
  const Finished alone = Execute(kSmall + "--ps-local add");
  EXPECT_THAT(alone.out, HasSubstr("each worker is alone on its host, where nothing adds up"));
}

struct Slices {
  double begin = 1e300, end = 0;
};

// When kernels, pushes and pulls of a worker's step are under way.
std::map<std::string, Slices> SlicesOf(const nlohmann::json& trace, int step, bool backward) {
  std::map<std::string, Slices> slices;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("args").at("step") != step || event.at("pid") != 0) {
      continue;
    }
    if (event.at("cat") == "compute" &&
        event.at("name").get<std::string>().starts_with("backward") != backward) {
      continue;
    }
    Slices& of = slices[event.at("cat")];
    const double start = event.at("ts").get<double>();
    of.begin = std::min(of.begin, start);
    of.end = std::max(of.end, start + event.at("dur").get<double>());
  }
  return slices;
}

TEST(ParameterServers, TheTraceShowsPushesBesideBackwardAndPullsBesideForward) {
  Clear();
  const std::string model =
      "simulate --model gpt2-small:layers=4 --batch-size 16 --cluster switch:6@100gbe "
      "--cost-model roofline --update ps --dp 4 --servers 2 --trace t.json --ps-overlap ";
  ASSERT_EQ(Execute(model + "layers").code, 0);
  const nlohmann::json trace = nlohmann::json::parse(Contents("t.json"));
  const auto back = SlicesOf(trace, 1, true);
  EXPECT_LT(back.at("push").begin, back.at("compute").end);
  const auto forward = SlicesOf(trace, 1, false);
  EXPECT_LT(forward.at("compute").begin, forward.at("pull").end);
  ASSERT_EQ(Execute(model + "none").code, 0);
  const nlohmann::json apart = nlohmann::json::parse(Contents("t.json"));
  EXPECT_GE(SlicesOf(apart, 1, true).at("push").begin + 1e-3,
            SlicesOf(apart, 1, true).at("compute").end);
  EXPECT_GE(SlicesOf(apart, 1, false).at("compute").begin + 1e-3,
            SlicesOf(apart, 1, false).at("pull").end);
  // Servers are processes of their own.
  EXPECT_THAT(Contents("t.json"), HasSubstr("\"server 1\""));
}

}  // namespace
}  // namespace parameter_server_test_cc
}  // namespace orrery::cli
