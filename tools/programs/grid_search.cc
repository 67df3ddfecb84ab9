#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "search/memory_fit.h"
#include "search/search.h"
#include "search/slices.h"
#include "search/space.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "transforms/offload.h"
#include "transforms/recompute.h"
#include "transforms/slices.h"

// Plays every configuration and ranks them.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

struct Flags {
  ModelFlags model;
  std::string dp, hp, pp, cp, ep, microbatches, schedule, slices, chunks, zero, recompute, offload;
  std::string csv, json, trace;
  int32_t threads = 0;
  int64_t top = 10;
  bool progress = false;
};

absl::StatusOr<search::Space> MakeSpace(const Flags& flags) {
  search::Space space;
  ORRERY_ASSIGN_OR_RETURN(space.dp, ParseList("dp", flags.dp));
  ORRERY_ASSIGN_OR_RETURN(space.hp, ParseList("hp", flags.hp));
  ORRERY_ASSIGN_OR_RETURN(space.pp, ParseList("pp", flags.pp));
  ORRERY_ASSIGN_OR_RETURN(space.cp, ParseList("cp", flags.cp.empty() ? "1" : flags.cp));
  ORRERY_ASSIGN_OR_RETURN(space.ep, ParseList("ep", flags.ep.empty() ? "1" : flags.ep));
  ORRERY_ASSIGN_OR_RETURN(space.microbatches, ParseList("micro-batches", flags.microbatches));
  const std::string schedules = !flags.schedule.empty() ? flags.schedule
                                : flags.model.distir()  ? "distir"
                                                        : "1f1b";
  ORRERY_ASSIGN_OR_RETURN(space.schedules, ParseSchedules(schedules));
  if (!flags.chunks.empty()) {
    ORRERY_ASSIGN_OR_RETURN(space.chunks, ParseList("chunks", flags.chunks));
  }
  ORRERY_ASSIGN_OR_RETURN(
      space.recompute,
      Annotated(transforms::ParseRecomputeList(flags.recompute.empty() ? "none" : flags.recompute),
                "--recompute"));
  ORRERY_ASSIGN_OR_RETURN(
      space.offload,
      Annotated(transforms::ParseOffloadList(flags.offload.empty() ? "none" : flags.offload),
                "--offload"));
  ORRERY_ASSIGN_OR_RETURN(space.zero, ParseZero(flags.zero.empty() ? "0" : flags.zero));
  ORRERY_RETURN_IF_ERROR(CheckZeroFlags(flags.model, space.zero));
  space.distir_microbatches = flags.model.distir();
  return space;
}

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

absl::Status WriteBestTrace(const search::Setting& setting,
                            const std::vector<search::Result>& results, const std::string& path) {
  const std::vector<const search::Result*> ranked = search::Ranked(results);
  ORRERY_ASSIGN_OR_RETURN(const search::Run run, search::Play(setting, ranked.front()->candidate));
  return WriteTrace(run, path);
}

absl::Status Search(const Flags& flags) {
  if (flags.threads < 0 || flags.top < 0) {
    return absl::InvalidArgumentError("--threads and --top: wanted numbers of at least 0");
  }
  ORRERY_RETURN_IF_ERROR(CheckOutputs(std::array{flags.csv, flags.json, flags.trace}));
  ORRERY_ASSIGN_OR_RETURN(search::Space space, MakeSpace(flags));
  ORRERY_ASSIGN_OR_RETURN(search::Setting setting, MakeSetting(flags.model));
  ORRERY_ASSIGN_OR_RETURN(setting.slices,
                          Annotated(search::ReadSlices(flags.slices, space.schedules), "--slices"));
  space.sequence = transforms::SequenceLength(setting.step);
  space.slices = std::ssize(setting.slices.rows);
  ORRERY_ASSIGN_OR_RETURN(const std::vector<search::Candidate> candidates,
                          search::Enumerate(space, setting.cluster.size(), setting.batch_size));
  const int32_t cores = static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  Progress progress(candidates.size(), flags.progress || isatty(STDERR_FILENO) != 0);
  ORRERY_ASSIGN_OR_RETURN(
      const std::vector<search::Result> results,
      search::RunSearch(setting, candidates, flags.threads > 0 ? flags.threads : cores,
                        [&](size_t done) { progress(done); }));
  std::cout << search::ResultsTable(setting, results, flags.top);
  if (!flags.csv.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(flags.csv, search::ResultsCsv(setting, results)));
  }
  if (!flags.json.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(flags.json, search::ResultsJson(setting, results)));
  }
  const std::vector<const search::Result*> ranked = search::Ranked(results);
  if (ranked.empty()) {
    std::cout << "\n" << search::ClosestMisfit(setting, results);
    return absl::FailedPreconditionError("no candidate is feasible");
  }
  if (!flags.trace.empty()) ORRERY_RETURN_IF_ERROR(WriteBestTrace(setting, results, flags.trace));
  const search::Candidate& best = ranked.front()->candidate;
  const bool sliced = !flags.slices.empty() && search::SlicesSequence(best.schedule);
  std::cout << "\nbest: " << search::ToString(best)
            << (sliced ? absl::StrCat(" --slices ", flags.slices) : "") << "\n";
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  ProgramSpec spec{
      .usage = "grid_search --model M --batch-size B --cluster C [flags]",
      .about = "Simulates every way to spread a training step over the cluster and ranks them.",
      .example =
          "build/bin/grid_search --model examples/models/mlp_64x512.onnx --batch-size 8192 "
          "--cluster dgx-a100:2 --micro-batches 1,2,4,8 --csv out/grid.csv",
      .options = po::options_description("Flags")};
  AddModelFlags(spec.options, flags.model);
  spec.options.add_options()("dp", po::value(&flags.dp),
                             "data-parallel degrees, as in 1,2,4 [all that divide]")(
      "hp", po::value(&flags.hp), "horizontal (tensor) parallel degrees [all that divide]")(
      "pp", po::value(&flags.pp), "pipeline stages [all that divide]")(
      "cp", po::value(&flags.cp), "context-parallel degrees [1]")("ep", po::value(&flags.ep),
                                                                  "expert-parallel degrees [1]")(
      "micro-batches", po::value(&flags.microbatches),
      "microbatches of a data-parallel replica, or slices of the sequence [all that divide]")(
      "schedule", po::value(&flags.schedule),
      "pipeline schedules; `schedule --list` names all [1f1b]")(
      "slices", po::value(&flags.slices),
      "of terapipe, how long slices are: equal, balanced, or as in 1024,640,384 [equal]")(
      "chunks", po::value(&flags.chunks),
      "stages that a rank holds, of schedules that leave it open [2]")(
      "recompute", po::value(&flags.recompute),
      "what backward computes again: none,selective,full,every:K,match:REGEX [none]")(
      "offload", po::value(&flags.offload),
      "what the host keeps: none,optimizer,activations,optimizer+activations [none]")(
      "zero", po::value(&flags.zero), "stages of ZeRO, as in 0,1,2,3 [0]")(
      "threads", po::value(&flags.threads), "threads to search with [one a core]")(
      "top", po::value(&flags.top), "candidates to print [10]")(
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
