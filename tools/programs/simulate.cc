#include <algorithm>
#include <array>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "search/details.h"
#include "search/explain.h"
#include "search/memory_fit.h"
#include "search/pipedream.h"
#include "search/slices.h"
#include "search/timeline.h"
#include "simulator/report_json.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "tools/play_program.h"
#include "tools/report_text.h"
#include "tools/software_stack.h"
#include "transforms/offload.h"
#include "transforms/recompute.h"
#include "transforms/schedules/schedule.h"
#include "transforms/schedules/text.h"

// Plays one configuration and prints its report.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

struct Flags {
  ModelFlags model;
  search::Candidate candidate;
  std::string schedule, orders, slices;
  std::string recompute, offload;
  std::string json;
  std::string trace;
  std::string plan;
  std::string stack = "ideal";
  bool cut = false;  // into so many microbatches: --micro-batches is there
  bool timeline = false;
  bool explain = false;
};

void PrintReport(const search::Setting& setting, const search::Candidate& candidate,
                 const search::Run& run, const simulator::ReportDetails& details) {
  std::cout << setting.model_name << ", batch " << setting.batch_size << ", on "
            << setting.cluster.name << "\n"
            << search::ToString(candidate, setting.orders_file) << "\n\n";
  PrintReportLines(run.program, run.report, details, run.figures, true);
  if (!run.slices.empty()) {
    std::cout << "  slices                   " << search::SlicesText(run.slices) << "\n";
  }
  if (run.report.fits) return;
  std::cout << "\n" << search::MisfitAndRemedies(setting, candidate, run);
}

// The schedule as it was simulated, and in unit times.
absl::Status PrintTimeline(const search::Setting& setting, const search::Candidate& candidate,
                           const search::Run& run) {
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelineSchedule schedule,
                          search::ScheduleOf(setting, candidate));
  const transforms::PipelineShape shape = search::ShapeOf(schedule, candidate);
  const transforms::RankOrders orders = schedule.OrdersOf(shape);
  std::cout << "\nas simulated" << (schedule.asynchronous ? ", in the steady state:\n" : ":\n")
            << search::DrawRun(run, search::WindowOf(run, schedule, shape)) << "\nin unit times:\n"
            << transforms::DrawTimeline(
                   orders, TimeOrders(orders, schedule.placement, shape, shape.durations));
  return absl::OkStatus();
}

absl::Status PrintPlan(const Flags& flags, const search::Setting& setting) {
  if (flags.plan != "pipedream") {
    return absl::InvalidArgumentError(absl::StrCat("--plan '", flags.plan, "': wanted pipedream"));
  }
  if (!flags.json.empty() || !flags.trace.empty() || flags.timeline || flags.explain) {
    return absl::InvalidArgumentError(
        "--plan: nothing is simulated; wanted it without --json, --trace, --timeline and "
        "--explain");
  }
  ORRERY_ASSIGN_OR_RETURN(const search::PipeDreamStages stages,
                          search::PlanPipeDream(setting, flags.candidate.microbatches));
  std::cout << search::PipeDreamText(stages);
  return absl::OkStatus();
}

absl::Status ReadOrders(const Flags& flags, search::Setting& setting) {
  if (flags.orders.empty()) return absl::OkStatus();
  if (!flags.schedule.empty()) {
    return absl::InvalidArgumentError("--schedule and --schedule-file: wanted one of them");
  }
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.orders));
  ORRERY_ASSIGN_OR_RETURN(setting.orders, transforms::ParseOrders(text, flags.orders));
  setting.orders_file = flags.orders;
  return absl::OkStatus();
}

// A list of slices says how many there are.
absl::Status ReadSlices(const Flags& flags, search::Setting& setting,
                        search::Candidate& candidate) {
  ORRERY_ASSIGN_OR_RETURN(
      setting.slices,
      Annotated(search::ReadSlices(flags.slices, {candidate.schedule}), "--slices"));
  const std::vector<int64_t>& rows = setting.slices.rows;
  if (!flags.cut && !rows.empty()) candidate.microbatches = std::ssize(rows);
  return absl::OkStatus();
}

absl::Status Simulate(const Flags& flags) {
  ORRERY_RETURN_IF_ERROR(CheckOutputs(std::array{flags.json, flags.trace}));
  ORRERY_ASSIGN_OR_RETURN(search::Setting setting, MakeSetting(flags.model));
  if (!flags.plan.empty()) return PrintPlan(flags, setting);
  ORRERY_ASSIGN_OR_RETURN(
      setting.lowering.stack_memory,
      Annotated(StackMemoryOf(flags.stack, StackUseOf(setting.step, flags.candidate.hp)),
                "--stack"));
  setting.lowering.every_link = !flags.trace.empty() || flags.explain;
  if (flags.explain && !setting.cost_model->shares_links()) {
    return absl::InvalidArgumentError(
        "--explain: the distir cost model knows no links; wanted another, such as roofline");
  }
  search::Candidate candidate = flags.candidate;
  if (candidate.hp == 1 && flags.model.sequence_parallel) {
    return absl::InvalidArgumentError("--sequence-parallel: wanted --hp of at least 2");
  }
  ORRERY_RETURN_IF_ERROR(CheckZeroFlags(flags.model, std::array{candidate.zero}));
  if (candidate.cp == 1 && !flags.model.context_attention.empty()) {
    return absl::InvalidArgumentError("--context-attention: wanted --cp of at least 2");
  }
  ORRERY_RETURN_IF_ERROR(ReadOrders(flags, setting));
  candidate.schedule = !flags.schedule.empty() ? flags.schedule
                       : flags.model.distir()  ? "distir"
                                               : "1f1b";
  ORRERY_RETURN_IF_ERROR(ParseSchedules(candidate.schedule).status());
  ORRERY_RETURN_IF_ERROR(ReadSlices(flags, setting, candidate));
  ORRERY_ASSIGN_OR_RETURN(const transforms::RecomputePolicy recompute,
                          Annotated(transforms::ParseRecomputePolicy(
                                        flags.recompute.empty() ? "none" : flags.recompute),
                                    "--recompute"));
  candidate.recompute = ToString(recompute);
  ORRERY_ASSIGN_OR_RETURN(
      const transforms::OffloadPolicy offload,
      Annotated(transforms::ParseOffloadPolicy(flags.offload.empty() ? "none" : flags.offload),
                "--offload"));
  candidate.offload = ToString(offload);
  const absl::StatusOr<search::Run> run = search::Play(setting, candidate);
  if (!run.ok()) {
    const auto infeasible = AsInfeasible(run.status());
    if (!infeasible.has_value()) return run.status();
    return absl::FailedPreconditionError(
        absl::StrCat("infeasible (", ToString(infeasible->reason), "): ", infeasible->detail));
  }
  ORRERY_ASSIGN_OR_RETURN(const simulator::ReportDetails details,
                          search::DetailsOf(setting, candidate, *run));
  if (!flags.json.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(
        flags.json, simulator::ReportJson(run->program, run->report, run->figures, &details)));
  }
  if (!flags.trace.empty()) ORRERY_RETURN_IF_ERROR(WriteTrace(*run, flags.trace));
  PrintReport(setting, candidate, *run, details);
  if (flags.explain) {
    ORRERY_ASSIGN_OR_RETURN(const search::Explanation explanation,
                            search::Explain(setting, candidate, *run));
    std::cout << "\n" << search::ExplanationText(explanation, run->report.step_time);
  }
  return flags.timeline ? PrintTimeline(setting, candidate, *run) : absl::OkStatus();
}

// Whether the command line names a program to play in place of a model: then other flags are
// required. Boost takes a flag by any beginning that no other one has, so this does too.
bool HasProgram(int argc, char** argv) {
  constexpr absl::string_view kFlag = "--program";
  constexpr size_t kShortest = 5;  // --pr could be --preset
  return std::any_of(argv + 1, argv + argc, [&](absl::string_view argument) {
    const absl::string_view flag = argument.substr(0, argument.find('='));
    return flag.size() >= kShortest && absl::StartsWith(kFlag, flag);
  });
}

int PlayProgram(int argc, char** argv) {
  ProgramFlags flags;
  ProgramSpec spec{
      .usage = "simulate --program FILE --cluster C [flags]",
      .about = "Simulates programs of ranks and reports where their time goes.",
      .example =
          "build/bin/simulate --program examples/programs/overlap.ranks --cluster dgx-a100:1",
      .options = po::options_description("Flags")};
  spec.options.add_options()("program", po::value(&flags.program)->required(),
                             "programs of ranks, docs/programs.md")(
      "cluster", po::value(&flags.cluster), "as for models; rank r runs on device r")(
      "json", po::value(&flags.json), "write the report to this file")(
      "trace", po::value(&flags.trace), "write the Chrome trace to this file (.json or .json.gz)");
  return RunProgram(argc, argv, spec, [&] { return PlayProgramFile(flags); });
}

// What notes that a flag is there.
auto Sets(bool& there) {
  return [&there](int64_t) { there = true; };
}

int Main(int argc, char** argv) {
  if (HasProgram(argc, argv)) return PlayProgram(argc, argv);
  Flags flags;
  std::string program;  // for --help: with it, PlayProgram has taken over
  ProgramSpec spec{
      .usage =
          "simulate --model M --batch-size B --cluster C [--dp D] [--hp H] [--pp P] "
          "[--micro-batches K] [flags]",
      .about =
          "Simulates one training step in one configuration and reports where its time and "
          "memory go.",
      .example =
          "build/bin/simulate --model examples/models/mlp_64x512.onnx --batch-size 8192 "
          "--cluster dgx-a100:2 --dp 4 --hp 2 --pp 2 --micro-batches 8 --timeline",
      .options = po::options_description("Flags")};
  AddModelFlags(spec.options, flags.model);
  spec.options.add_options()("dp", po::value(&flags.candidate.dp), "data-parallel degree [1]")(
      "hp", po::value(&flags.candidate.hp), "horizontal (tensor) parallel degree [1]")(
      "pp", po::value(&flags.candidate.pp), "pipeline stages [1]")(
      "cp", po::value(&flags.candidate.cp),
      "context-parallel degree: ranks that share each sequence [1]")(
      "ep", po::value(&flags.candidate.ep),
      "expert-parallel degree: ranks that share the batch, and the experts of a mixture [1]")(
      "micro-batches", po::value(&flags.candidate.microbatches)->notifier(Sets(flags.cut)),
      "microbatches of a data-parallel replica, or slices of the sequence [1, or as listed]")(
      "schedule", po::value(&flags.schedule),
      "pipeline schedule; `schedule --list` names all [1f1b]")(
      "schedule-file", po::value(&flags.orders),
      "orders of the ranks, as `schedule` prints them and torch writes them, instead")(
      "slices", po::value(&flags.slices),
      "of terapipe, how long slices are: equal, balanced, or as in 1024,640,384 [equal]")(
      "chunks", po::value(&flags.candidate.chunks),
      "stages that a rank holds, of schedules that leave it open [2]")(
      "zero", po::value(&flags.candidate.zero),
      "stage of ZeRO: data-parallel ranks share out the optimizer's state (1), gradients too (2), "
      "parameters too (3) [0]")(
      "offload", po::value(&flags.offload),
      "what is kept in the memory of the host: none, optimizer (its states, and the update runs "
      "there), activations (all but the last layer's), activations:REGEX (with such names), or "
      "optimizer+activations [none]")(
      "recompute", po::value(&flags.recompute),
      "what backward computes again in place of what forward would keep: none, selective "
      "(attention's scores), full (all but the input of each layer), every:K (of K layers), "
      "match:REGEX (values with such names) [none]")("json", po::value(&flags.json),
                                                     "write the report to this file")(
      "trace", po::value(&flags.trace), "write the Chrome trace to this file (.json or .json.gz)")(
      "timeline", po::bool_switch(&flags.timeline), "draw the schedule as text")(
      "stack", po::value(&flags.stack),
      absl::StrCat("software, by what it holds beside the step: ", StackNames(), " [ideal]")
          .c_str())(
      "plan", po::value(&flags.plan),
      "pipedream: print what PipeDream's planner makes of all devices of the cluster, stages and "
      "their replicas, and simulate nothing")(
      "explain", po::bool_switch(&flags.explain),
      "name the busiest links, what they carry, and what would relieve them")(
      "program", po::value(&program),
      "play this file of programs of ranks in place of a model (docs/programs.md); with --cluster, "
      "--json and --trace only");
  return RunProgram(argc, argv, spec, [&] { return Simulate(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
