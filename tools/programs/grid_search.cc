#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cost_models/collectives/steps.h"
#include "ir/model_facts.h"
#include "search/memory_fit.h"
#include "search/search.h"
#include "search/settings.h"
#include "search/space.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "tools/presets.h"
#include "tools/validation/software_stack.h"
#include "transforms/plan/plan_text.h"

// Plays every configuration and ranks them.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

struct Flags {
  ModelFlags model;
  PlanFlags axes;
  std::string stack = "ideal";
  bool cuda_graphs = false;
  std::string csv, json, trace;
  int32_t threads = 0;
  int64_t top = 10;
  bool progress = false;
};

// A line on standard error that says how far the search is, at most ten times a second.
class Progress {
 public:
  Progress(size_t total, bool wanted) : total_(total), wanted_(wanted) {}

  void operator()(size_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (!wanted_ || (done < total_ && now - last_ < std::chrono::milliseconds(100))) return;
    last_ = now;
    std::cerr << "\r" << done << "/" << total_ << " candidates" << (done == total_ ? "\n" : "")
              << std::flush;
  }

 private:
  const size_t total_;
  const bool wanted_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

absl::Status WriteBestTrace(const search::Settings& settings,
                            const std::vector<search::Result>& results, const std::string& path) {
  const std::vector<const search::Result*> ranked = search::Ranked(results);
  const search::ParallelPlan& best = ranked.front()->plan;
  ORRERY_ASSIGN_OR_RETURN(const search::Run run, search::Play(settings.Of(best), best));
  return WriteTrace(run, path);
}

absl::StatusOr<search::Setting> SettingOf(const Flags& flags, const search::ParallelPlan& plan) {
  ORRERY_ASSIGN_OR_RETURN(search::Setting setting, MakeSetting(flags.model, plan));
  ORRERY_RETURN_IF_ERROR(
      Annotate(SetStack(flags.stack, StackUseOf(setting.step), setting.lowering), "--stack"));
  if (flags.cuda_graphs) CaptureGraphs(setting.lowering);
  return setting;
}

absl::Status Search(const Flags& flags) {
  if (flags.threads < 0 || flags.top < 0) {
    return absl::InvalidArgumentError("--threads and --top: wanted numbers of at least 0");
  }
  ORRERY_ASSIGN_OR_RETURN(const search::ParallelPlan preset, PresetPlan(flags.model.preset));
  ORRERY_ASSIGN_OR_RETURN(search::Space space, ReadSpace(flags.axes, preset));
  if (flags.model.preset.empty()) space.SaveMemory();
  ORRERY_ASSIGN_OR_RETURN(const search::Settings settings,
                          search::Settings::Make(space, [&](const search::ParallelPlan& plan) {
                            return SettingOf(flags, plan);
                          }));
  const search::Setting& setting = settings.front();
  PrintWarnings(setting.notes.warnings);
  const search::SpaceSize size = {
      .devices = setting.cluster.size(),
      .batch_size = setting.batch_size,
      .sequence = ir::SequenceLength(setting.step),
      .experts = ir::CommonExperts(setting.step),
      .devices_a_node = cost_models::DevicesANode(setting.cluster.topology)};
  ORRERY_ASSIGN_OR_RETURN(const std::vector<search::ParallelPlan> plans,
                          search::Enumerate(space, size));
  ORRERY_RETURN_IF_ERROR(AtBoundary(search::CheckListed(space, plans)));
  const int32_t cores = static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  Progress progress(plans.size(), flags.progress || isatty(STDERR_FILENO) != 0);
  ORRERY_ASSIGN_OR_RETURN(
      const std::vector<search::Result> results,
      search::RunSearch(
          settings.AsFunction(), plans, flags.threads > 0 ? flags.threads : cores,
          [&](size_t done) { progress(done); },
          [&](const auto& plan) { return search::Relief(space, plan); }));
  std::cout << search::ResultsTable(setting, results, flags.top);
  if (!flags.csv.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(flags.csv, search::ResultsCsv(setting, results)));
  }
  if (!flags.json.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(flags.json, search::ResultsJson(setting, results)));
  }
  const std::string assumed = cost_models::DoubtAbout(*setting.cost_model, setting.cluster);
  if (!assumed.empty()) std::cout << "\nassumed: " << assumed << "\n";
  const std::vector<const search::Result*> ranked = search::Ranked(results);
  if (ranked.empty()) {
    std::cout << "\n" << search::ClosestMisfit(settings.AsFunction(), results);
    return absl::FailedPreconditionError("no candidate is feasible");
  }
  if (!flags.trace.empty()) ORRERY_RETURN_IF_ERROR(WriteBestTrace(settings, results, flags.trace));
  if (const std::string& gathered = ranked.front()->gathered; !gathered.empty()) {
    std::cout << "\nwarning: data parallelism of the best gathers activations: " << gathered
              << "\n";
  }
  std::cout << "\nbest: " << transforms::ToString(ranked.front()->plan, setting.base) << "\n";
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  ProgramSpec spec{
      .usage = "grid_search --model M --batch-size B --cluster C [flags]",
      .about =
          "Simulates every way to parallelize a training step over the cluster and ranks them.",
      .example =
          "build/bin/grid_search --model examples/models/mlp_64x512.onnx --batch-size 8192 "
          "--cluster dgx-a100:2 --micro-batches 1,2,4,8 --csv out/grid.csv",
      .options = po::options_description("Flags"),
      .searches = true};
  AddModelFlags(spec.options, flags.model);
  AddPlanFlags(spec.options, PlanForm::kSpace, {}, flags.axes);
  spec.options.add_options()("threads", po::value(&flags.threads),
                             "threads to search with [one a core]")(
      "top", po::value(&flags.top), "candidates to print [10]")("stack", po::value(&flags.stack),
                                                                StackHelp().c_str())(
      "cuda-graphs", po::bool_switch(&flags.cuda_graphs),
      "forward and backward are captured graphs: the host launches none of their kernels")(
      "csv", po::value(&flags.csv), "write one row a candidate to this file")(
      "json", po::value(&flags.json), "the same as JSON")(
      "trace", po::value(&flags.trace),
      "write the best candidate's Chrome trace (.json, .json.gz)")(
      "progress", po::bool_switch(&flags.progress),
      "show progress on standard error even when that is no terminal");
  return RunProgram(argc, argv, spec, [&] { return Search(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
