// How long a simulation takes, against the number of ops: the MLP of DistIR's notebook on one
// device, 32 to 4,096 layers of 64. Prints CSV, medians of five: `simulate_ms` plays a program that
// has been lowered; `total_ms` also builds, parallelizes, lowers and summarizes the step.

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "ir/models/mlp.h"
#include "search/evaluate.h"
#include "simulator/engine/longest_path.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "tools/reports/plot_files.h"

namespace orrery {
namespace {

namespace po = boost::program_options;

constexpr int64_t kDim = 64, kBatch = 64;
constexpr tools::PlotView kPlotViews[] = {{"scaling", "time over ops"}};

struct Flags {
  int64_t most_layers = 4096;
  std::string csv;
  std::vector<std::string> plot;
};

struct Measured {
  int64_t layers = 0;
  size_t ops = 0;
  double simulate_ms = 0, total_ms = 0;
};

template <typename Work>
double MedianMilliseconds(const Work& work) {
  std::array<double, 5> times;
  for (double& time : times) {
    const auto start = std::chrono::steady_clock::now();
    work();
    time =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

absl::StatusOr<Measured> Measure(int64_t layers) {
  const ir::MlpShape shape = {.layers = layers, .dim = kDim, .batch = kBatch};
  search::Setting setting;
  ORRERY_ASSIGN_OR_RETURN(setting.step, ir::Mlp(shape));
  ORRERY_ASSIGN_OR_RETURN(setting.cluster, cluster::ParseCluster("uniform:1@200Gbps"));
  ORRERY_ASSIGN_OR_RETURN(setting.cost_model, cost_models::MakeCostModel("distir"));
  const transforms::ParallelPlan sequential = {.schedule = "distir", .blocking = true};
  ORRERY_ASSIGN_OR_RETURN(const search::Run run, search::Play(setting, sequential));
  simulator::Trace trace;
  Measured measured{.layers = layers, .ops = setting.step.order().size()};
  measured.simulate_ms = MedianMilliseconds([&] { simulator::RunLongestPath(run.program, trace); });
  measured.total_ms = MedianMilliseconds([&] {
    setting.step = *ir::Mlp(shape);
    (void)search::Play(setting, sequential);
  });
  return measured;
}

tools::ChartView ChartOf(const std::vector<Measured>& rows) {
  tools::Series simulate{.name = "simulate"}, total{.name = "build, lower, simulate, report"};
  for (const Measured& row : rows) {
    simulate.points.emplace_back(row.ops, 1e-3 * row.simulate_ms);
    total.points.emplace_back(row.ops, 1e-3 * row.total_ms);
  }
  return {.title = absl::StrFormat("Time to simulate mlp, dim %d, batch %d, on one device", kDim,
                                   kBatch),
          .x = {"ops", "", true},
          .y = {"time, median of five", "s", true},
          .panels = {{.series = {std::move(total), std::move(simulate)}}},
          .name = "scaling"};
}

absl::Status Scale(const Flags& flags) {
  if (flags.most_layers < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--most-layers %d: wanted at least 1", flags.most_layers));
  }
  ORRERY_ASSIGN_OR_RETURN(const auto plots, tools::ReadPlots(flags.plot, kPlotViews));
  std::string csv = "layers,ops,simulate_ms,total_ms,dim,batch_size\n";
  std::cout << csv;
  std::vector<Measured> rows;
  for (int64_t layers = std::min<int64_t>(32, flags.most_layers); layers <= flags.most_layers;
       layers *= 2) {
    ORRERY_ASSIGN_OR_RETURN(const Measured row, Measure(layers));
    rows.push_back(row);
    const std::string line = absl::StrFormat("%d,%d,%.6f,%.6f,%d,%d\n", row.layers, row.ops,
                                             row.simulate_ms, row.total_ms, kDim, kBatch);
    std::cout << line << std::flush;
    csv += line;
  }
  if (!flags.csv.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags.csv, csv));
  return tools::WritePlots(plots, [&](size_t) {
    return tools::PictureOf({{.id = "scaling", .title = "", .views = {ChartOf(rows)}}}, "scaling");
  });
}

int Main(int argc, char** argv) {
  Flags flags;
  tools::ProgramSpec spec{
      .usage = "scaling [flags]",
      .about = "Measures how long a simulation takes, against the number of ops of an MLP.",
      .example = "build/bin/scaling --most-layers 512 --plot out/scaling.svg",
      .options = po::options_description("Flags")};
  spec.options.add_options()("most-layers", po::value(&flags.most_layers),
                             "layers of the largest; the smallest has 32 [4096]")(
      "csv", po::value(&flags.csv), "write what is printed to this file, too")(
      "plot", po::value(&flags.plot)->composing(), tools::PlotHelp(kPlotViews).c_str());
  return tools::RunProgram(argc, argv, spec, [&] { return Scale(flags); });
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) { return orrery::Main(argc, argv); }
