#include <algorithm>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "search/details.h"
#include "search/memory_fit.h"
#include "search/slices.h"
#include "search/views/changes.h"
#include "search/views/explain.h"
#include "search/views/slowest_path.h"
#include "search/views/step_summary.h"
#include "search/views/timeline.h"
#include "simulator/report/report_json.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "tools/jitter/jitter_flags.h"
#include "tools/jitter/steps_report.h"
#include "tools/one_plan.h"
#include "tools/parameter_server/server_flags.h"
#include "tools/parameter_server/server_report.h"
#include "tools/parameter_server/server_run.h"
#include "tools/plan_file.h"
#include "tools/play_program.h"
#include "tools/report_text.h"
#include "tools/reports/page.h"
#include "tools/reports/run_plots.h"
#include "tools/reports/run_views.h"
#include "tools/searches/planned_stages.h"
#include "tools/step_chart.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/terminal.h"
#include "tools/traces/packed_stream.h"
#include "tools/traces/write_trace.h"
#include "tools/validation/nearest_steps.h"
#include "tools/validation/software_stack.h"
#include "tools/validation/step_features.h"
#include "transforms/plan/mesh.h"
#include "transforms/plan/plan_text.h"
#include "transforms/schedules/schedule.h"
#include "transforms/schedules/text.h"
#include "transforms/stages/placed_orders.h"

// Plays one configuration and prints its report.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

// So many fields: a flag each.
struct Flags {
  ModelFlags model;
  PlanFlags plan_axes;
  std::string json;
  TraceFlags trace;
  std::string report;
  std::vector<std::string> plot;
  std::string command;  // for the report
  std::string plan, plan_file, plan_text;
  std::string stack = "ideal";
  JitterFlags jitter;
  ServerFlags servers;
  bool cuda_graphs = false, no_skip = false;
  bool timeline = false;
  bool explain = false;
};

// What the stack stands for; empty where cost models know of none.
std::string SoftwareText(const Flags& flags) {
  if (!flags.model.cost_model.empty() && !absl::StartsWith(flags.model.cost_model, "kernels")) {
    return "";
  }
  if (flags.stack != "ideal") return flags.stack;
  return "none: what the hardware allows, by --stack ideal; real ones are in --list-stacks";
}

void PrintReport(const Flags& flags, const search::Setting& setting,
                 const search::ParallelPlan& plan, const search::Run& run,
                 const simulator::ReportDetails& details) {
  std::cout << setting.model_name << ", batch " << setting.batch_size << ", on "
            << setting.cluster.name << "\n"
            << transforms::ToString(plan, setting.base) << "\n\n";
  PrintReportLines(run.program, run.report, details, run.figures, true);
  if (const std::string software = SoftwareText(flags); !software.empty()) {
    std::cout << "  software                 " << software << "\n";
  }
  for (const auto& [title, text] : search::SlowestPathLines(setting, plan, run)) {
    constexpr size_t kIndent = 27;
    std::cout << WrapLines(absl::StrFormat("  %-24s %s\n", title, text), kIndent, OutputTerminal());
  }
  if (const std::string split = HpSplitText(run, plan.most_hp()); !split.empty()) {
    constexpr size_t kIndent = 27;
    std::cout << WrapLines(absl::StrCat("  hp splits                ", split, "\n"), kIndent,
                           OutputTerminal());
  }
  if (const std::string padded = transforms::ToString(run.pipelined.padded); !padded.empty()) {
    std::cout << "  padded                   " << padded << "\n";
  }
  if (const std::string gathered = ToString(run.pipelined.gathered); !gathered.empty()) {
    std::cout << "  gathered over dp         " << gathered << "\n";
  }
  if (!run.slices.empty()) {
    std::cout << "  slices                   " << search::SlicesText(run.slices) << "\n";
  }
  if (ShowsCharts()) {
    std::cout << "\n" << StepChart(run.program, run.report, details, OutputTerminal());
  }
  if (run.report.fits) return;
  std::cout << "\n" << search::MisfitAndSuggestions(setting, plan, run);
}

// The plan's schedule, each step as long as its kind.
std::string DrawInUnitTimes(const transforms::PipelineSchedule& schedule,
                            const transforms::PipelineShape& shape, const search::Run& run) {
  if (!run.pipelined.unequal.placed) {
    const transforms::RankOrders orders = schedule.OrdersOf(shape);
    return transforms::DrawTimeline(orders,
                                    TimeOrders(orders, schedule.placement, shape, shape.durations));
  }
  transforms::RankOrders orders(run.pipelined.unequal.places.size());
  for (const lowering::LoweredStep& lowered : run.steps) {
    const auto stage = static_cast<size_t>(lowered.step.stage);
    orders[static_cast<size_t>(run.pipelined.ranks[stage])].push_back(lowered.step);
  }
  return transforms::DrawTimeline(
      orders, TimePlacedOrders(transforms::PlacedStagesOf(run.pipelined), orders, shape.durations));
}

// The schedule as it was simulated, and in unit times; of replicas that have microbatches of their
// own the schedule alone has no orders.
absl::Status PrintTimeline(const search::Setting& setting, const search::ParallelPlan& plan,
                           const search::Run& run) {
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelineSchedule schedule,
                          search::ScheduleOf(setting, plan));
  const transforms::PipelineShape shape = search::ShapeOf(schedule, plan);
  std::cout << "\nas simulated" << (schedule.asynchronous ? ", in the steady state:\n" : ":\n")
            << search::DrawRun(run, search::WindowOf(run, schedule, shape));
  if (run.pipelined.unequal.dealt()) return absl::OkStatus();
  std::cout << "\nin unit times:\n" << DrawInUnitTimes(schedule, shape, run);
  return absl::OkStatus();
}

// What the page of the report shows.
Document DocumentOf(const Flags& flags, const PlayedPlan& played) {
  const search::Setting& setting = played.setting;
  Document document{.title = absl::StrCat(setting.model_name, ", batch ", setting.batch_size,
                                          ", on ", setting.cluster.name),
                    .program = "simulate",
                    .command = flags.command,
                    .notes = setting.notes.warnings};
  if (const std::string software = SoftwareText(flags); !software.empty()) {
    document.notes.push_back(absl::StrCat("software: ", software));
  }
  document.runs.push_back(RunViews(played, "the step"));
  return document;
}

// What is written of a run beside its report.
struct RunFiles {
  TraceRequest trace;
  std::vector<PlotFile> plots;
  std::optional<search::StepsQuestion> steps;  // that are played besides
};

absl::Status Report(const Flags& flags, const RunFiles& files, search::Setting& setting,
                    const search::ParallelPlan& plan, const search::Run& run) {
  ORRERY_ASSIGN_OR_RETURN(simulator::ReportDetails details, search::DetailsOf(setting, plan, run));
  // Other cost models are ideals, which measured steps were not predicted by.
  const bool measured =
      flags.model.cost_model.empty() || absl::StartsWith(flags.model.cost_model, "kernels");
  if (measured && !plan.unequal()) {
    details.error_bar = ErrorBarOf(FeaturesOf(setting, plan, flags.stack),
                                   run.report.step_time.seconds(), AllMeasuredResiduals());
  }
  std::optional<search::StepsAnswer> steps;
  if (files.steps.has_value()) {
    const Waiting waiting("playing steps");
    ORRERY_ASSIGN_OR_RETURN(steps, search::PlayDisturbed(setting, plan, run, *files.steps));
    details.further.emplace_back("steps", StepsJson(*files.steps, *steps));
  }
  if (!flags.json.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(
        flags.json, simulator::ReportJson(run.program, run.report, run.figures, &details)));
  }
  ORRERY_RETURN_IF_ERROR(WriteTrace(files.trace, setting, run));
  if (!flags.report.empty()) {
    ORRERY_RETURN_IF_ERROR(
        WritePage(DocumentOf(flags, {setting, plan, run, details}), flags.report));
  }
  ORRERY_RETURN_IF_ERROR(WritePlots(files.plots, [&](size_t view) {
    return RunPlot({setting, plan, run, details}, view);
  }));
  PrintReport(flags, setting, plan, run, details);
  if (steps.has_value()) std::cout << "\n" << StepsText(*files.steps, *steps);
  if (flags.explain) {
    ORRERY_ASSIGN_OR_RETURN(const search::Explanation explanation,
                            search::Explain(setting, plan, run));
    constexpr int64_t kMostChanges = 4;
    constexpr size_t kIndent = 27;
    constexpr int64_t kWork = 100'000'000;  // of neighbours: up to a minute of a processor
    ORRERY_ASSIGN_OR_RETURN(const search::TriedChanges tried,
                            search::TryChanges(setting, plan, run, kMostChanges, kWork));
    std::cout << "\n"
              << WrapLines(search::SummaryText(setting, plan, run, details, tried), kIndent,
                           OutputTerminal())
              << "\n"
              << search::ExplanationText(explanation, run.report.step_time);
  }
  return flags.timeline ? PrintTimeline(setting, plan, run) : absl::OkStatus();
}

// What is told of one step and means nothing of workers that are at different ones.
absl::Status CheckServerOutputs(const Flags& flags) {
  const TraceFlags usual;
  const bool trace_parts = flags.trace.level != usual.level || !flags.trace.ranks.empty() ||
                           !flags.trace.microbatches.empty() || !flags.trace.snapshot.empty() ||
                           absl::StrContains(flags.trace.path, "{rank}");
  if (!flags.plan.empty() || !flags.plan_text.empty() || flags.no_skip || !flags.report.empty() ||
      !flags.plot.empty() || flags.timeline || flags.explain || trace_parts) {
    return absl::InvalidArgumentError(
        "--update ps: has --json and --trace; wanted it without --plan, --plan-text, --no-skip, "
        "--report, --plot, "
        "--timeline, --explain, and without what picks parts of a trace");
  }
  return absl::OkStatus();
}

absl::Status SimulateServers(const Flags& flags) {
  ORRERY_RETURN_IF_ERROR(CheckServerOutputs(flags));
  ORRERY_ASSIGN_OR_RETURN(const ServerRun run, PlayServers({.model = flags.model,
                                                            .plan_axes = flags.plan_axes,
                                                            .servers = flags.servers,
                                                            .jitter = flags.jitter,
                                                            .stack = flags.stack,
                                                            .cuda_graphs = flags.cuda_graphs,
                                                            .traced = flags.trace.any()}));
  if (!flags.json.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags.json, ServerRunJson(run)));
  if (flags.trace.any()) {
    ORRERY_ASSIGN_OR_RETURN(const auto out, PackedStream::Open(flags.trace.path));
    WriteServerTrace(run, *out);
    ORRERY_RETURN_IF_ERROR(out->Finish());
  }
  std::cout << ServerRunText(run);
  return absl::OkStatus();
}

absl::Status Simulate(const Flags& flags) {
  if (flags.servers.ps()) return SimulateServers(flags);
  ORRERY_RETURN_IF_ERROR(ReadServerFlags(flags.servers, 1).status());
  ORRERY_ASSIGN_OR_RETURN(search::ParallelPlan plan, ReadPlan(flags.plan_axes, {}));
  ORRERY_ASSIGN_OR_RETURN(search::Setting setting, MakeSetting(flags.model, plan));
  PrintWarnings(setting.notes.warnings);
  ORRERY_RETURN_IF_ERROR(
      Annotate(SetStack(flags.stack, StackUseOf(setting.step), setting.lowering), "--stack"));
  if (flags.cuda_graphs) CaptureGraphs(setting.lowering);
  setting.plays_all = flags.no_skip;
  if ((plan.unequal() || !flags.plan.empty()) && flags.jitter.any()) {
    return absl::InvalidArgumentError(
        "--jitter, --slow, --seed, --steps: stages or replicas have ranks or microbatches of their "
        "own; wanted none of these");
  }
  std::string planned_text;
  if (!flags.plan.empty()) {
    ORRERY_RETURN_IF_ERROR(CheckPlanner(flags.plan, flags.plan_axes, setting.base, plan));
    absl::StatusOr<PlannedStages> planned = PlanStages(flags.plan, setting, plan);
    if (!planned.ok()) return AsPrecondition(planned.status());
    plan = std::move(planned->plan);
    planned_text = absl::StrCat(planned->text, "\n");
  }
  RunFiles files;
  ORRERY_RETURN_IF_ERROR(transforms::MakeMesh(plan).status());
  ORRERY_ASSIGN_OR_RETURN(files.trace, ReadTraceFlags(flags.trace, plan.ranks()));
  ORRERY_ASSIGN_OR_RETURN(files.plots, ReadPlots(flags.plot, RunPlotViews()));
  ORRERY_ASSIGN_OR_RETURN(files.steps,
                          ReadJitterFlags(flags.jitter, setting.cluster.topology, plan.ranks()));
  setting.lowering.every_link =
      files.trace.any() || !flags.report.empty() || flags.explain || NeedEveryLink(files.plots);
  if (flags.explain && !setting.cost_model->shares_links()) {
    return absl::InvalidArgumentError(
        "--explain: the distir cost model knows no links; wanted another, such as roofline");
  }
  if (files.steps.has_value() && !files.steps->links.empty() &&
      !setting.cost_model->shares_links()) {
    return absl::InvalidArgumentError(
        "--jitter link: the distir cost model knows no links; wanted another, such as roofline");
  }
  std::cout << planned_text;  // also where it cannot be played
  if (plan.shares.dealt() && !flags.plan.empty() && plan.microbatches < plan.most_dp()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--plan ", flags.plan, ": a stage has ", plan.most_dp(),
        " replicas, each of which runs whole microbatches; wanted --micro-batches of at least as "
        "many"));
  }
  if (flags.plan.empty()) {
    ORRERY_RETURN_IF_ERROR(CheckFlags(flags.plan_axes, plan, setting.base));
  }
  if (!flags.plan_text.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(flags.plan_text, PlanFileText(plan, flags.command)));
  }
  ORRERY_RETURN_IF_ERROR(ReadOrders(plan, setting));
  ORRERY_ASSIGN_OR_RETURN(const search::Run run, PlayOne(setting, plan));
  return Report(flags, files, setting, plan, run);
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
      "json", po::value(&flags.json), "write the report to this file");
  AddTraceFlags(spec.options, flags.trace, "the");
  return RunProgram(argc, argv, spec, [&] { return PlayProgramFile(flags); });
}

int Main(int argc, char** argv) {
  constexpr size_t kShortest = 8;  // --prog could be --progress
  if (GivesFlag(argc, argv, "--program", kShortest)) return PlayProgram(argc, argv);
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
      .options = po::options_description("Flags"),
      .further = FlagsOfPlanFile,
      .listings = {StackListing(), JitterListing(), ServerPlaceListing()}};
  AddModelFlags(spec.options, flags.model);
  AddPlanFlags(spec.options, PlanForm::kOne, {}, flags.plan_axes);
  AddTraceFlags(spec.options, flags.trace, "the");
  AddJitterFlags(spec.options, flags.jitter);
  AddServerFlags(spec.options, flags.servers);
  spec.options.add_options()("json", po::value(&flags.json), "write the report to this file")(
      "report", po::value(&flags.report),
      "write a page with timeline, memory, links and all else to this file (.html)")(
      "plot", po::value(&flags.plot)->composing(), PlotHelp(RunPlotViews()).c_str())(
      "timeline", po::bool_switch(&flags.timeline), "draw the schedule as text")(
      "stack", po::value(&flags.stack), StackHelp().c_str())(
      "cuda-graphs", po::bool_switch(&flags.cuda_graphs),
      "forward and backward are captured graphs: the host launches none of their kernels")(
      "plan", po::value(&flags.plan),
      "a planner's stages on all devices of the cluster, each with ranks of its own: pipedream "
      "(replicas of each stage, microbatches dealt in turn) or alpa (submeshes, sharded by cost)")(
      "no-skip", po::bool_switch(&flags.no_skip),
      "play all microbatches, as it does of one plan anyway")(
      "plan-file", po::value(&flags.plan_file),
      "play the plan of this file, flags of a plan; those that are given beside it count")(
      "plan-text", po::value(&flags.plan_text), "write the plan to this file")(
      "explain", po::bool_switch(&flags.explain),
      "tell where the time goes, what limits the step next, which single change of the plan helps "
      "most, and the busiest links")(
      "program", po::value(&program),
      "play this file of programs of ranks in place of a model (docs/programs.md); with --cluster, "
      "--json, --trace and what belongs to it only");
  flags.command = CommandText(argc, argv);
  return RunProgram(argc, argv, spec, [&] { return Simulate(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
