#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/file.h"
#include "support/status.h"
#include "support/text_table.h"
#include "tools/flags.h"
#include "tools/redistribution/plan_text.h"
#include "tools/redistribution/redistribution.h"
#include "tools/reports/page.h"
#include "tools/reports/plot_files.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/progress.h"

// The change of a tensor's layout on a mesh: its steps, what each costs, and what it needs.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;
using redistribution::PackedLayout;
using redistribution::PlannedStep;
using redistribution::RedistributionPlan;

constexpr PlotView kPlotViews[] = {{"steps", "what the steps cost"}};

// So many fields: a flag each.
struct Flags {
  RedistributionText text;
  std::string cost, cost_model = "roofline", planner, steps, devices, groups, group_price,
                    straggler, ties, limit, json, report, cases;
  std::vector<std::string> plot;
  std::string command;  // for the report
  bool compare = false, frontier = false, parts = false;
};

std::string PlannerOf(const Flags& flags) {
  return flags.planner.empty() ? "optimal" : flags.planner;
}

// A line for each planner; below them, why one has no plan.
void PrintComparison(const Redistributor& question, int64_t limit) {
  std::vector<TextRow> rows = {
      {"Planner", WithUnit("Cost", question), "Cost / optimal", "Steps", "Peak [MB]"}};
  std::string notes;
  std::optional<double> optimum;
  for (const absl::string_view planner : {"optimal", "greedy", "naive"}) {
    const absl::StatusOr<RedistributionPlan> plan = question.Plan(planner, limit);
    if (!plan.ok()) {
      absl::StrAppend(&notes, planner, ": ", PlannerNote(plan.status()), "\n");
      continue;
    }
    if (planner == "optimal") optimum = plan->cost;
    const bool free = optimum == 0.0 && plan->cost == 0;
    const std::string ratio =
        optimum.has_value() ? absl::StrFormat("%.2f", plan->cost / *optimum) : "-";
    rows.push_back({std::string(planner), PlainNumber(plan->cost), free ? "1.00" : ratio,
                    absl::StrCat(plan->steps.size()), Megabytes(plan->peak, question)});
  }
  std::cout << TextTable(rows);
  std::cout << notes;
}

void PrintFrontier(const Redistributor& question) {
  std::vector<TextRow> rows = {{WithUnit("Cost", question), "Steps", "Peak [MB]"}};
  for (const RedistributionPlan& plan : redistribution::ParetoPlans(
           question.move_set(), Source(question),
           question.move_set().Normal(PackedLayout(question.problem().to)))) {
    rows.push_back(
        {PlainNumber(plan.cost), absl::StrCat(plan.steps.size()), Megabytes(plan.peak, question)});
  }
  std::cout << TextTable(rows);
}

// The steps of the plan, and where its cost goes.
Document DocumentOf(const Flags& flags, const WrittenProblem& written,
                    const Redistributor& question, const RedistributionPlan& plan) {
  const auto bytes = [&](int64_t elements) { return elements * question.problem().itemsize; };
  PackedLayout at = Source(question);
  TableView table{.title = "Steps",
                  .columns = {{"operation"},
                              {"layout after"},
                              {WithUnit("cost", question)},
                              {"held after", "bytes"},
                              {"held meanwhile, at most", "bytes"}}};
  table.rows.push_back({std::string(), written.Text(PackedLayout(question.problem().from)), 0.0,
                        bytes(question.move_set().Elements(at)), Cell()});
  ChartView costs{.title = "What the steps cost",
                  .style = ChartStyle::kBars,
                  .x = {"step"},
                  .y = {WithUnit("cost", question)},
                  .panels = {Panel()},
                  .name = "steps"};
  Series series{.name = "cost"};
  for (const PlannedStep& step : plan.steps) {
    const std::string name = question.move_set().NameOf(at, step.step);
    const std::string after = written.Text(step.step.after);
    table.rows.push_back({name, after, step.cost,
                          bytes(question.move_set().Elements(step.step.after)), bytes(step.peak)});
    series.points.emplace_back(costs.categories.size(), step.cost);
    costs.categories.push_back(absl::StrCat(costs.categories.size() + 1, ": ", name));
    at = step.step.after;
  }
  costs.panels.front().series.push_back(std::move(series));
  Section section{.id = "steps", .title = "Steps", .views = {std::move(table), std::move(costs)}};
  section.text = {absl::StrCat("In all ", PlainNumber(plan.cost),
                               question.unit().empty() ? "" : " ", question.unit(), ".")};
  if (!plan.exact && flags.steps.empty()) {
    section.text.push_back("The search gave up: there may be a better plan.");
  }
  return {.title = absl::StrCat(written.Text(PackedLayout(written.problem.from)), " to ",
                                written.Text(PackedLayout(written.problem.to))),
          .program = "redistribute",
          .command = flags.command,
          .sections = {std::move(section)}};
}

// A file of cases has the problems, and its plans are one table.
absl::Status CheckCases(const Flags& flags) {
  const RedistributionText& text = flags.text;
  const std::pair<absl::string_view, bool> others[] = {{"mesh", !text.mesh.empty()},
                                                       {"shape", !text.shape.empty()},
                                                       {"itemsize", text.itemsize != 0},
                                                       {"from", !text.from.empty()},
                                                       {"to", !text.to.empty()},
                                                       {"from-blocks", !text.from_blocks.empty()},
                                                       {"to-blocks", !text.to_blocks.empty()},
                                                       {"steps", !flags.steps.empty()},
                                                       {"devices", !flags.devices.empty()},
                                                       {"groups", !flags.groups.empty()},
                                                       {"straggler", !flags.straggler.empty()},
                                                       {"ties", !flags.ties.empty()},
                                                       {"parts", flags.parts},
                                                       {"compare", flags.compare},
                                                       {"frontier", flags.frontier},
                                                       {"json", !flags.json.empty()},
                                                       {"report", !flags.report.empty()},
                                                       {"plot", !flags.plot.empty()}};
  for (const auto& [flag, given] : others) {
    if (!given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag,
                     ": --cases has problems of its own, and prints CSV; wanted one of "
                     "the two"));
  }
  return absl::OkStatus();
}

// Steps that are given are no planner's, and ties are the optimal one's.
absl::Status CheckSteps(const Flags& flags) {
  const bool others_plan = PlannerOf(flags) != "optimal" || flags.frontier || !flags.steps.empty();
  if (!flags.ties.empty() && others_plan) {
    return absl::InvalidArgumentError(absl::StrCat("--ties ", flags.ties,
                                                   ": the optimal planner breaks ties; wanted no ",
                                                   flags.frontier        ? "--frontier"
                                                   : flags.steps.empty() ? "--planner"
                                                                         : "--steps",
                                                   " beside it"));
  }
  const std::pair<absl::string_view, bool> others[] = {{"planner", !flags.planner.empty()},
                                                       {"compare", flags.compare},
                                                       {"frontier", flags.frontier}};
  for (const auto& [flag, given] : others) {
    if (flags.steps.empty() || !given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, ": --steps says what the steps are; wanted one of the two"));
  }
  return absl::OkStatus();
}

// Tables of several plans have no steps, and a frontier is a search for each limit.
absl::Status CheckBeside(const Flags& flags) {
  if (!flags.group_price.empty() && flags.groups.empty()) {
    return absl::InvalidArgumentError(
        "--group-price: without --groups all groups exist; wanted it to say which do");
  }
  const char* const several = flags.compare ? "--compare" : flags.frontier ? "--frontier" : nullptr;
  if (flags.parts && several != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--parts: ", several, " has no steps; wanted one of the two"));
  }
  if (flags.frontier && !flags.group_price.empty()) {
    return absl::InvalidArgumentError(
        "--group-price: --frontier has plans within groups that exist; wanted one of the two");
  }
  return absl::OkStatus();
}

// The problem at the costs that the flags say.
absl::StatusOr<Redistributor> QuestionOf(const Flags& flags, const WrittenProblem& written) {
  const absl::string_view usual =
      written.notation == Notation::kMapping ? "tensorcraft" : "dtensor";
  ORRERY_ASSIGN_OR_RETURN(
      Redistributor question,
      Redistributor::Create(written.problem, flags.cost.empty() ? usual : flags.cost,
                            flags.cost_model, flags.devices));
  if (!flags.straggler.empty()) {
    ORRERY_RETURN_IF_ERROR(Annotate(question.WaitForStragglers(flags.straggler), "--straggler"));
  }
  if (!flags.groups.empty()) {
    ORRERY_RETURN_IF_ERROR(question.UseGroups(flags.groups, flags.group_price));
  }
  if (!flags.ties.empty()) {
    ORRERY_RETURN_IF_ERROR(Annotate(question.BreakTiesBy(flags.ties), "--ties"));
  }
  return question;
}

absl::StatusOr<RedistributionPlan> PlanOf(const Flags& flags, const WrittenProblem& written,
                                          const Redistributor& question, int64_t limit) {
  if (!flags.steps.empty()) {
    return Annotated(question.Given(written, flags.steps, limit), "--steps");
  }
  const Waiting waiting("planning");
  return question.Plan(PlannerOf(flags), limit);
}

absl::Status Redistribute(const Flags& flags) {
  ORRERY_RETURN_IF_ERROR(CheckSteps(flags));
  ORRERY_RETURN_IF_ERROR(CheckBeside(flags));
  if (!flags.cases.empty()) {
    ORRERY_RETURN_IF_ERROR(CheckCases(flags));
    const StopOnSignals signals;
    ORRERY_ASSIGN_OR_RETURN(const std::string csv,
                            PlanRedistributionCases({.path = flags.cases,
                                                     .cost = flags.cost,
                                                     .cost_model = flags.cost_model,
                                                     .planner = PlannerOf(flags),
                                                     .limit = flags.limit}));
    std::cout << csv;
    return StoppedBefore("records");
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<PlotFile> plots, ReadPlots(flags.plot, kPlotViews));
  ORRERY_ASSIGN_OR_RETURN(const WrittenProblem written, ParseRedistribution(flags.text));
  ORRERY_ASSIGN_OR_RETURN(const Redistributor question, QuestionOf(flags, written));
  ORRERY_ASSIGN_OR_RETURN(const int64_t limit, ParseElementLimit(flags.limit, question));
  ORRERY_ASSIGN_OR_RETURN(const RedistributionPlan plan, PlanOf(flags, written, question, limit));
  if (!flags.json.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(flags.json, PlanJson(written, question, plan)));
  }
  if (!flags.report.empty()) {
    ORRERY_RETURN_IF_ERROR(WritePage(DocumentOf(flags, written, question, plan), flags.report));
  }
  ORRERY_RETURN_IF_ERROR(WritePlots(plots, [&](size_t view) {
    return PictureOf(DocumentOf(flags, written, question, plan).sections, kPlotViews[view].name);
  }));
  if (!flags.steps.empty()) {
    ORRERY_ASSIGN_OR_RETURN(const std::string text, GivenText(written, question, plan, limit));
    std::cout << text;
  } else if (flags.compare) {
    PrintComparison(question, limit);
  } else if (flags.frontier) {
    PrintFrontier(question);
  } else {
    std::cout << PlanText(written, question, plan);
  }
  if (flags.parts) std::cout << PartsText(question, plan);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  ProgramSpec spec{
      .usage = "redistribute --mesh M --shape S --from LAYOUT --to LAYOUT [flags]",
      .about = "Plans the change of a tensor's layout on a mesh: its steps, costs and memory.",
      .example =
          "build/bin/redistribute --mesh 2,8 --shape 8192,1024 --from S0,S0 --to R,S0 "
          "--cost cluster:dgx-h100:2 --compare",
      .options = po::options_description("Flags")};
  spec.options.add_options()("mesh", po::value(&flags.text.mesh),
                             "sizes of the mesh's axes, the last one fastest: 2,8 or dp=2,hp=8")(
      "shape", po::value(&flags.text.shape), "sizes of the tensor: 8192,1024")(
      "itemsize", po::value(&flags.text.itemsize),
      "bytes an element [8 for tensorcraft's layouts, else 4]")(
      "from", po::value(&flags.text.from),
      "layout before: one entry a tensor dimension, '(0,1),-'; one entry a mesh axis, 'S0,R,P'; or "
      "'[64@dp.hp,32] partial(pp)'")("to", po::value(&flags.text.to), "layout after")(
      "from-blocks", po::value(&flags.text.from_blocks),
      "block sizes of the first form: '100,-' [1]")("to-blocks", po::value(&flags.text.to_blocks),
                                                    "likewise, after")(
      "cost", po::value(&flags.cost),
      "tensorcraft[:alpha=1,beta=1,gamma=1,epsilon=0,physical], "
      "dtensor[:devices_per_host=8,merge,replica_consistent,...] or cluster:SPEC, in microseconds "
      "but tensorcraft's [by the layouts' form: tensorcraft or dtensor]")(
      "cost-model", po::value(&flags.cost_model), "of collectives on a cluster [roofline]")(
      "devices", po::value(&flags.devices),
      "of a cluster, where each rank of the mesh is, in their order: 8-15, or 0-56:8 for each "
      "eighth "
      "[0 to as many as there are ranks]")(
      "groups", po::value(&flags.groups),
      "groups of ranks that exist, by their axes, 'a0,a1,a0.a1': no collective goes over others "
      "[all]")("group-price", po::value(&flags.group_price),
               "what it costs to create a group that does not exist, before the first step that "
               "wants it: 5ms")(
      "straggler", po::value(&flags.straggler),
      "what each step in which ranks exchange something waits for the last of them: 50us [0]")(
      "parts", po::bool_switch(&flags.parts), "what the cost of each step is made of")(
      "planner", po::value(&flags.planner), "optimal, greedy (DTensor's) or naive [optimal]")(
      "steps", po::value(&flags.steps),
      "check and price these steps instead: 'all-to-all a0: 0->2; slice a1: 1', axes by name or "
      "number, or operations as they are printed")(
      "ties", po::value(&flags.ties),
      "a part of the cost that only breaks ties: launches, latency, transfer, copy, reduction, "
      "synchronization, memory, or local, what ranks do by themselves")(
      "memory-limit", po::value(&flags.limit),
      "most that a rank may hold: 1500 elements, 64MiB, or endpoints, what source and target take")(
      "compare", po::bool_switch(&flags.compare), "all three planners side by side")(
      "frontier", po::bool_switch(&flags.frontier),
      "all plans of which none is both cheaper and smaller than another")(
      "json", po::value(&flags.json), "write the plan to this file")(
      "plot", po::value(&flags.plot)->composing(), PlotHelp(kPlotViews).c_str())(
      "report", po::value(&flags.report), "write a page with the plan to this file (.html)")(
      "cases", po::value(&flags.cases),
      "plan every record of a file such as tests/data/redistribution_dtensor.json, as CSV");
  flags.command = CommandText(argc, argv);
  return RunProgram(argc, argv, spec, [&] { return Redistribute(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
