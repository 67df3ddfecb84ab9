#include <algorithm>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/mesh.h"
#include "search/details.h"
#include "search/memory_fit.h"
#include "search/pipedream.h"
#include "search/slices.h"
#include "search/views/changes.h"
#include "search/views/explain.h"
#include "search/views/step_summary.h"
#include "search/views/timeline.h"
#include "simulator/report/report_json.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "tools/jitter/jitter_flags.h"
#include "tools/jitter/steps_report.h"
#include "tools/play_program.h"
#include "tools/report_text.h"
#include "tools/reports/page.h"
#include "tools/reports/run_plots.h"
#include "tools/reports/run_views.h"
#include "tools/step_chart.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/terminal.h"
#include "tools/traces/write_trace.h"
#include "tools/validation/nearest_steps.h"
#include "tools/validation/software_stack.h"
#include "tools/validation/step_features.h"
#include "transforms/plan/mesh.h"
#include "transforms/plan/plan_text.h"
#include "transforms/schedules/schedule.h"
#include "transforms/schedules/text.h"

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
  std::string plan;
  std::string stack = "ideal";
  JitterFlags jitter;
  bool cuda_graphs = false;
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
  if (const std::string split = HpSplitText(run, plan.hp); !split.empty()) {
    constexpr size_t kIndent = 27;
    std::cout << WrapLines(absl::StrCat("  hp splits                ", split, "\n"), kIndent,
                           OutputTerminal());
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

// The schedule as it was simulated, and in unit times.
absl::Status PrintTimeline(const search::Setting& setting, const search::ParallelPlan& plan,
                           const search::Run& run) {
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelineSchedule schedule,
                          search::ScheduleOf(setting, plan));
  const transforms::PipelineShape shape = search::ShapeOf(schedule, plan);
  const transforms::RankOrders orders = schedule.OrdersOf(shape);
  std::cout << "\nas simulated" << (schedule.asynchronous ? ", in the steady state:\n" : ":\n")
            << search::DrawRun(run, search::WindowOf(run, schedule, shape)) << "\nin unit times:\n"
            << transforms::DrawTimeline(
                   orders, TimeOrders(orders, schedule.placement, shape, shape.durations));
  return absl::OkStatus();
}

absl::Status PrintPlan(const Flags& flags, const search::Setting& setting, int64_t microbatches) {
  if (flags.plan != "pipedream") {
    return absl::InvalidArgumentError(absl::StrCat("--plan '", flags.plan, "': wanted pipedream"));
  }
  if (!flags.json.empty() || flags.trace.any() || !flags.report.empty() || !flags.plot.empty() ||
      flags.timeline || flags.explain || flags.jitter.any()) {
    return absl::InvalidArgumentError(
        "--plan: nothing is simulated; wanted it without --json, --trace, --report, --plot, "
        "--timeline, --explain, --jitter, --slow, --seed and --steps");
  }
  ORRERY_ASSIGN_OR_RETURN(const search::PipeDreamStages stages,
                          search::PlanPipeDream(setting, microbatches));
  std::cout << search::PipeDreamText(stages);
  const std::string assumed = cost_models::DoubtAbout(*setting.cost_model, setting.cluster);
  if (!assumed.empty()) std::cout << "assumed: " << assumed << "\n";
  return absl::OkStatus();
}

absl::Status ReadOrders(const search::ParallelPlan& plan, search::Setting& setting) {
  if (plan.schedule_file.empty()) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(plan.schedule_file));
  ORRERY_ASSIGN_OR_RETURN(setting.orders, transforms::ParseOrders(text, plan.schedule_file));
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
  if (flags.model.cost_model.empty() || absl::StartsWith(flags.model.cost_model, "kernels")) {
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

absl::Status Simulate(const Flags& flags) {
  ORRERY_ASSIGN_OR_RETURN(const search::ParallelPlan plan, ReadPlan(flags.plan_axes, {}));
  ORRERY_ASSIGN_OR_RETURN(search::Setting setting, MakeSetting(flags.model, plan));
  PrintWarnings(setting.notes.warnings);
  if (!flags.plan.empty()) return PrintPlan(flags, setting, plan.microbatches);
  ORRERY_RETURN_IF_ERROR(
      Annotate(SetStack(flags.stack, StackUseOf(setting.step), setting.lowering), "--stack"));
  if (flags.cuda_graphs) CaptureGraphs(setting.lowering);
  RunFiles files;
  ORRERY_ASSIGN_OR_RETURN(const ir::Mesh mesh, transforms::MakeMesh(plan));
  ORRERY_ASSIGN_OR_RETURN(files.trace, ReadTraceFlags(flags.trace, mesh.size()));
  ORRERY_ASSIGN_OR_RETURN(files.plots, ReadPlots(flags.plot, RunPlotViews()));
  ORRERY_ASSIGN_OR_RETURN(files.steps,
                          ReadJitterFlags(flags.jitter, setting.cluster.topology, mesh.size()));
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
  ORRERY_RETURN_IF_ERROR(CheckFlags(flags.plan_axes, plan, setting.base));
  ORRERY_RETURN_IF_ERROR(ReadOrders(plan, setting));
  const absl::StatusOr<search::Run> run = [&] {
    const Waiting waiting("simulating");
    return search::Play(setting, plan);
  }();
  if (run.ok()) return Report(flags, files, setting, plan, *run);
  const auto infeasible = AsInfeasible(run.status());
  if (!infeasible.has_value()) return run.status();
  return absl::FailedPreconditionError(
      absl::StrCat("infeasible (", ToString(infeasible->reason), "): ", infeasible->detail));
}

// Whether the command line names a program to play instead of a model: then other flags are
// required. Boost takes a flag by any beginning that no other one has, so this does too.
bool HasProgram(int argc, char** argv) {
  constexpr absl::string_view kFlag = "--program";
  constexpr size_t kShortest = 8;  // --prog could be --progress
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
      "json", po::value(&flags.json), "write the report to this file");
  AddTraceFlags(spec.options, flags.trace, "the");
  return RunProgram(argc, argv, spec, [&] { return PlayProgramFile(flags); });
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
      .options = po::options_description("Flags"),
      .listings = {StackListing(), JitterListing()}};
  AddModelFlags(spec.options, flags.model);
  AddPlanFlags(spec.options, PlanForm::kOne, {}, flags.plan_axes);
  AddTraceFlags(spec.options, flags.trace, "the");
  AddJitterFlags(spec.options, flags.jitter);
  spec.options.add_options()("json", po::value(&flags.json), "write the report to this file")(
      "report", po::value(&flags.report),
      "write a page with timeline, memory, links and all else to this file (.html)")(
      "plot", po::value(&flags.plot)->composing(), PlotHelp(RunPlotViews()).c_str())(
      "timeline", po::bool_switch(&flags.timeline), "draw the schedule as text")(
      "stack", po::value(&flags.stack), StackHelp().c_str())(
      "cuda-graphs", po::bool_switch(&flags.cuda_graphs),
      "forward and backward are captured graphs: the host launches none of their kernels")(
      "plan", po::value(&flags.plan),
      "pipedream: print what PipeDream's planner makes of all devices of the cluster, stages and "
      "their replicas, and simulate nothing")(
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
