#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "search/search.h"
#include "search/settings/settings.h"
#include "search/spaces/space.h"
#include "support/file.h"
#include "support/status.h"
#include "support/threads.h"
#include "tools/flags.h"
#include "tools/plan_file.h"
#include "tools/reports/page.h"
#include "tools/reports/plot_files.h"
#include "tools/searches/choice_flags.h"
#include "tools/searches/plan_job.h"
#include "tools/searches/plan_views.h"
#include "tools/searches/space_flags.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/terminal.h"
#include "tools/validation/software_stack.h"
#include "transforms/plan/plan_text.h"

// Searches for a plan by one of several methods, and holds it against an expert's.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;
using search::ParallelPlan;
using search::Result;

// So many fields: a flag each.
struct Flags : SpaceFlags {
  std::string method = "mcmc";
  ChoiceFlags choices;
  std::string budget = "60s";
  int64_t seed = 1;
  int32_t threads = 0;
  std::string out, json, report;
  std::vector<std::string> plot;
  std::string command;
};

nlohmann::json JsonOf(const search::Setting& setting, const Result& result) {
  return {{"plan", transforms::ToString(result.plan, setting.base)},
          {"step_time_s", result.step_time.seconds()},
          {"throughput_samples_per_s", result.figures.throughput_samples_per_s},
          {"peak_memory_bytes", result.peak_memory.count()}};
}

absl::Status WriteJson(const Flags& flags, const search::Setting& setting,
                       const PlanOutcome& outcome) {
  if (flags.json.empty()) return absl::OkStatus();
  nlohmann::json json = {{"method", flags.method},   {"seed", flags.seed},
                         {"budget", flags.budget},   {"candidates", outcome.candidates},
                         {"played", outcome.played}, {"seconds", outcome.seconds},
                         {"log", outcome.log},       {"best", JsonOf(setting, *outcome.best)}};
  if (outcome.expert.has_value()) {
    json["expert"] = JsonOf(setting, outcome.expert->result());
    json["differences"] = Differences(outcome.best->plan, outcome.expert->result().plan);
  }
  for (const Milestone& one : outcome.course) {
    json["course"].push_back({{"seconds", one.seconds},
                              {"played", one.played},
                              {"step_time_s", one.step_time.seconds()}});
  }
  return WriteFile(flags.json, absl::StrCat(json.dump(2), "\n"));
}

void Tell(const Flags& flags, const search::Setting& setting, const PlanOutcome& outcome) {
  std::cout << "seconds    plans  best step\n";
  for (const Milestone& one : outcome.course) {
    std::cout << absl::StrFormat("%7.1f  %7d  %s\n", one.seconds, one.played,
                                 ToString(one.step_time));
  }
  std::cout << "\n";
  if (!outcome.log.empty()) std::cout << flags.method << ": " << outcome.log << "\n";
  std::cout << outcome.certainty;
  const Result& best = *outcome.best;
  std::cout << "\n"
            << Paint("best:", Colour::kGreen, OutputTerminal()) << " "
            << transforms::ToString(best.plan, setting.base) << "\n";
  if (!outcome.expert.has_value()) return;
  const Result& expert = outcome.expert->result();
  const std::vector<std::string> differences = Differences(best.plan, expert.plan);
  if (differences.empty()) {
    std::cout << "which is the expert's\n";
    return;
  }
  std::cout << (best.step_time == expert.step_time
                    ? "as fast as the expert's, with\n"
                    : absl::StrFormat(
                          "%.1f %% faster than the expert's, with\n",
                          100 * (expert.step_time.seconds() / best.step_time.seconds() - 1)));
  for (const std::string& difference : differences) std::cout << "  " << difference << "\n";
}

PlanCourse CourseOf(const Flags& flags, const search::Setting& setting,
                    const PlanOutcome& outcome) {
  PlanCourse course{.method = flags.method, .milestones = outcome.course, .played = outcome.played};
  course.facts = {{"best", transforms::ToString(outcome.best->plan, setting.base)},
                  {"step time", ToString(outcome.best->step_time)}};
  if (outcome.expert.has_value()) {
    const Result& expert = outcome.expert->result();
    course.expert = expert.step_time;
    course.facts.emplace_back("the expert's", transforms::ToString(expert.plan, setting.base));
    for (std::string& text : Differences(outcome.best->plan, expert.plan)) {
      course.facts.emplace_back("differs in", std::move(text));
    }
  }
  course.facts.emplace_back("plans to choose from", absl::StrCat(outcome.candidates));
  course.facts.emplace_back("plans played", absl::StrCat(outcome.played));
  if (!outcome.log.empty()) course.facts.emplace_back(flags.method, outcome.log);
  return course;
}

absl::Status WritePictures(const Flags& flags, const search::Setting& setting,
                           const PlanOutcome& outcome, const std::vector<PlotFile>& plots) {
  if (flags.report.empty() && plots.empty()) return absl::OkStatus();
  const std::vector<Section> sections = PlanViews(CourseOf(flags, setting, outcome));
  if (!flags.report.empty()) {
    ORRERY_RETURN_IF_ERROR(
        WritePage({.title = absl::StrCat("A plan of ", setting.model_name, ", batch ",
                                         setting.batch_size, ", on ", setting.cluster.name),
                   .program = "plan",
                   .command = flags.command,
                   .notes = setting.notes.warnings,
                   .sections = sections},
                  flags.report));
  }
  return WritePlots(plots,
                    [&](size_t view) { return PictureOf(sections, PlanPlotViews()[view].name); });
}

absl::Status Finish(const Flags& flags, const search::Setting& setting, const PlanOutcome& outcome,
                    const std::vector<PlotFile>& plots) {
  if (!outcome.best.has_value()) {
    std::cout << outcome.misfit;
    return absl::FailedPreconditionError(
        outcome.others_left
            ? "no plan that was played is feasible; others are left: try more --budget"
            : "no plan is feasible");
  }
  Tell(flags, setting, outcome);
  ORRERY_RETURN_IF_ERROR(WriteJson(flags, setting, outcome));
  ORRERY_RETURN_IF_ERROR(WritePictures(flags, setting, outcome, plots));
  if (flags.out.empty()) return absl::OkStatus();
  const std::string about =
      absl::StrFormat("%s\nstep time %s", flags.command, ToString(outcome.best->step_time));
  return WriteFile(flags.out, PlanFileText(outcome.best->plan, about));
}

void TellExpert(const search::Setting& setting, const PlanOutcome& outcome) {
  if (!outcome.expert.has_value()) {
    std::cout << "the expert's: nothing fits that is usual\n\n";
    return;
  }
  const Result& expert = outcome.expert->result();
  std::cout << "the expert's: " << transforms::ToString(expert.plan, setting.base) << ", "
            << ToString(expert.step_time) << "\n\n";
}

absl::Status Plan(const Flags& flags) {
  ORRERY_RETURN_IF_ERROR(CheckPlanMethod(flags.method));
  ORRERY_ASSIGN_OR_RETURN(const search::SearchBudget budget,
                          Annotated(search::ParseBudget(flags.budget), "--budget"));
  if (flags.seed < 0 || flags.seed > std::numeric_limits<uint32_t>::max() || flags.threads < 0) {
    return absl::InvalidArgumentError(
        "--seed and --threads: wanted numbers of at least 0, the seed below 2^32");
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<PlotFile> plots,
                          ReadPlots(flags.plot, PlanPlotViews()));
  ORRERY_ASSIGN_OR_RETURN(const search::Space space, SpaceOf(flags));
  ORRERY_ASSIGN_OR_RETURN(const search::Settings settings,
                          search::Settings::Make(space, [&](const ParallelPlan& plan) {
                            return SettingOf(flags, flags.model, plan);
                          }));
  const search::Setting& setting = settings.front();
  PrintWarnings(setting.notes.warnings);
  const int32_t threads = flags.threads > 0 ? flags.threads : OwnProcessors();
  ORRERY_ASSIGN_OR_RETURN(const search::Listing listing,
                          search::ListPlans(space, search::SpaceSizeOf(setting), search::kMostPlans,
                                            static_cast<size_t>(threads)));
  ORRERY_RETURN_IF_ERROR(AtBoundary(search::CheckListed(space, listing.plans)));
  std::cout << setting.model_name << ", batch " << setting.batch_size << ", on "
            << setting.cluster.name << ": " << listing.plans.size()
            << (listing.plans.size() == 1 ? " plan" : " plans") << "\n";
  ORRERY_ASSIGN_OR_RETURN(const std::optional<search::ChoiceList> choices,
                          ChoicesOf(flags.choices, flags.method, setting, listing.plans));
  if (choices.has_value()) std::cout << ChoicesText(flags.choices, *choices) << "\n";
  ORRERY_ASSIGN_OR_RETURN(const PlanOutcome outcome,
                          FindPlan({.space = space,
                                    .settings = settings,
                                    .plans = listing.plans,
                                    .choices = choices.has_value() ? &*choices : nullptr,
                                    .method = flags.method,
                                    .budget = budget,
                                    .seed = static_cast<uint32_t>(flags.seed),
                                    .threads = threads}));
  if (!outcome.best.has_value() && CaughtSignal() != 0) {
    return absl::CancelledError("stopped before a plan was found that fits");
  }
  TellExpert(setting, outcome);
  ORRERY_RETURN_IF_ERROR(Finish(flags, setting, outcome, plots));
  return StoppedBefore("plans");
}

Listing MethodListing() {
  return {
      .flag = "list-methods",
      .about = "names the methods of a search",
      .of = {"method"},
      .things = [] {
        std::vector<NamedThing> things = {
            {std::string(kExpertMethod), "what an engineer would begin with: Megatron-LM's rules"},
            {std::string(kExactMethod),
             "planners of stages with ranks of their own: Alpa, PipeDream"}};
        for (const search::Method method : search::AllMethods()) {
          things.push_back({std::string(method->name),
                            absl::StrCat(method->summary, " (", method->source, ")")});
        }
        return things;
      }};
}

int Main(int argc, char** argv) {
  Flags flags;
  ProgramSpec spec{
      .usage = "plan --model M --batch-size B --cluster C [--method METHOD] [--budget 60s] [flags]",
      .about = "Searches for a plan by one of several methods, and holds it against an expert's.",
      .example =
          "build/bin/plan --model gpt2-medium --batch-size 64 --dtype bf16 --cluster dgx-a100:2 "
          "--method mcmc --budget 40 --out out/best.plan",
      .options = po::options_description("Flags"),
      .searches = true,
      .listings = {StackListing(), MethodListing()}};
  AddModelFlags(spec.options, flags.model);
  AddPlanFlags(spec.options, PlanForm::kSpace, {}, flags.axes);
  AddSpaceFlags(spec.options, flags);
  spec.options.add_options()(
      "method", po::value(&flags.method),
      absl::StrCat(kExpertMethod, ", ", kExactMethod, ", ", search::MethodsText(), " [mcmc]")
          .c_str())("budget", po::value(&flags.budget),
                    "search so long, as in 60s or 10min, or play so many plans, as in 500 [60s]")(
      "seed", po::value(&flags.seed), "of a method that draws [1]")(
      "threads", po::value(&flags.threads), "threads to search with [one a core]")(
      "out", po::value(&flags.out), "write the best plan to this file, for simulate --plan-file")(
      "json", po::value(&flags.json), "write what was found to this file")(
      "report", po::value(&flags.report), "write a page with charts to this file (.html)")(
      "plot", po::value(&flags.plot)->composing(), PlotHelp(PlanPlotViews()).c_str());
  AddChoiceFlags(spec.options, flags.choices);
  flags.command = CommandText(argc, argv);
  return RunProgram(argc, argv, spec, [&] { return Plan(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
