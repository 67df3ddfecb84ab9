#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cost_models/collectives/steps.h"
#include "search/memory_fit.h"
#include "search/search.h"
#include "search/settings/settings.h"
#include "search/spaces/space.h"
#include "search/views/front.h"
#include "search/views/run_cost.h"
#include "support/status.h"
#include "support/threads.h"
#include "tools/flags.h"
#include "tools/planning/answers.h"
#include "tools/planning/planning_flags.h"
#include "tools/planning/questions.h"
#include "tools/presets.h"
#include "tools/reports/page.h"
#include "tools/searches/search_charts.h"
#include "tools/searches/search_difference.h"
#include "tools/searches/search_files.h"
#include "tools/searches/search_job.h"
#include "tools/searches/search_question.h"
#include "tools/searches/space_flags.h"
#include "tools/searches/unequal_candidates.h"
#include "tools/team/team.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/terminal.h"
#include "tools/traces/write_trace.h"
#include "tools/validation/software_stack.h"
#include "transforms/plan/plan_text.h"

// Plays every configuration and ranks them.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

// So many fields: a flag each.
struct Flags : SpaceFlags {
  std::vector<int64_t> batch_sizes;
  TraceFlags trace;
  std::vector<std::string> diff;  // two candidates
  SearchFileFlags files;
  int64_t top = 10;
  bool no_prune = false;
  bool unequal = false;
  JobFlags job;
  PlanningFlags planning;
  std::string program;          // as it was called
  std::vector<FlagText> given;  // of the command line, and of a journal
};

// What is asked of one of them; rows of what comes of it are good as long as this.
struct Asked {
  std::optional<search::Settings> settings;
  SearchJob job;
};

absl::Status WriteBestTrace(search::Settings& settings, const search::SearchRows& rows,
                            const TraceFlags& flags) {
  const std::vector<const search::Result*> ranked = search::Ranked(rows);
  const search::ParallelPlan& best = ranked.front()->plan;
  ORRERY_ASSIGN_OR_RETURN(const TraceRequest request, ReadTraceFlags(flags, best.ranks()));
  search::Setting& setting = settings.Of(best);
  setting.lowering.every_link = true;  // kernel by kernel, as of one that is simulated
  ORRERY_ASSIGN_OR_RETURN(const search::Run run, search::Play(setting, best));
  return WriteTrace(request, setting, run);
}

absl::StatusOr<search::Setting> SettingOf(const Flags& flags, const Question& question,
                                          const search::ParallelPlan& plan) {
  ORRERY_ASSIGN_OR_RETURN(search::Setting setting, SettingOf(flags, question.model, plan));
  setting.device_hour = question.device_hour;
  setting.model_columns = question.model_columns;
  ORRERY_ASSIGN_OR_RETURN(setting.run_samples, RunSamples(flags.planning, setting));
  return setting;
}

// What the best of the results is.
void TellBest(const search::Settings& settings, const search::Result& best,
              absl::string_view title) {
  if (!best.gathered.empty()) {
    std::cout << "\nwarning: data parallelism of the best gathers activations: " << best.gathered
              << "\n";
  }
  std::cout << "\n"
            << Paint(absl::StrCat(title, ":"), Colour::kGreen, OutputTerminal()) << " "
            << transforms::ToString(best.plan, settings.front().base) << "\n";
}

// Prints what came of a question. FailedPrecondition where nothing is feasible.
absl::Status Tell(const Flags& flags, const Question& question, const Asked& asked,
                  const JobOutcome& outcome, std::vector<Answer>& answers) {
  const search::Settings& settings = *asked.settings;
  const search::Setting& setting = settings.front();
  const search::SearchRows& rows = outcome.results;
  std::cout << search::ResultsTable(setting, rows, flags.top, ColumnsOfTables());
  if (ShowsCharts()) std::cout << TimeBars(rows, flags.top, OutputTerminal());
  const std::string assumed = cost_models::DoubtAbout(*setting.cost_model, setting.cluster);
  if (!assumed.empty()) std::cout << "\nassumed: " << assumed << "\n";
  const std::vector<const search::Result*> ranked = search::Ranked(rows);
  if (ranked.empty()) {
    // Other parts may have what fits.
    if (outcome.is_part) return absl::OkStatus();
    std::cout << "\n" << search::ClosestMisfit(settings.AsFunction(), rows);
    return absl::FailedPreconditionError(
        rows.least_left().has_value()
            ? "no candidate that was played is feasible; others are left: try more --budget"
            : "no candidate is feasible");
  }
  // Of several sizes a table tells at the end what each comes to.
  const bool brief = question.is_of_table;
  if (!brief) {
    std::cout << WrapLines(search::TradesText(rows, flags.top), 6, OutputTerminal())
              << search::FrontText(setting, rows, flags.top);
    if (ShowsCharts()) std::cout << FrontChart(rows, OutputTerminal());
  }
  std::cout << search::GapText(rows);
  ORRERY_RETURN_IF_ERROR(TellDifference(flags.diff, settings, rows));
  if (setting.run_samples > 0 && !brief) {
    std::cout << search::RunText(setting, rows, flags.top) << RunNote(flags.stack);
  }
  TellBest(settings, *ranked.front(), outcome.is_part ? "best of the part" : "best");
  ORRERY_ASSIGN_OR_RETURN(const std::vector<EmitTarget> targets, EmitTargets(flags.planning));
  answers.push_back(AnswerOf(question, setting, rows, targets));
  return absl::OkStatus();
}

// Of a search that was interrupted: no files, which would be those of another search.
// `is_one`: there are no other questions.
absl::Status TellStopped(const Flags& flags, const search::Settings& settings,
                         const JobOutcome& outcome, bool is_one) {
  std::cout << search::ResultsTable(settings.front(), outcome.results, flags.top,
                                    ColumnsOfTables());
  const std::vector<const search::Result*> ranked = search::Ranked(outcome.results);
  if (!ranked.empty()) TellBest(settings, *ranked.front(), "best so far");
  std::string further = "`resume` FILE would keep those of one question";
  if (is_one && flags.job.resume.empty()) further = "`resume` FILE would keep them";
  if (is_one && !flags.job.resume.empty()) {
    further = outcome.journal.ok()
                  ? absl::StrCat("`resume` ", flags.job.resume, " goes on")
                  : absl::StrCat("not all of them are kept: ", outcome.journal.message());
  }
  return absl::CancelledError(absl::StrCat("stopped after ", outcome.candidates - outcome.missing,
                                           " of ", outcome.candidates, " candidates; ", further));
}

// What to do next, with the best of all by the goal.
absl::Status TellWinner(const Flags& flags, const std::vector<Answer>& answers) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<EmitTarget> targets, EmitTargets(flags.planning));
  const Answer& winner = WinnerOf(answers, GoalOf(flags.planning));
  return TellNext({flags.program, flags.given, winner.question.model, winner.base}, winner,
                  targets);
}

// The candidates of a question, and all that finds their results.
absl::Status Ask(const Flags& flags, const Question& question, const search::Space& space,
                 Team* team, Asked& asked) {
  ORRERY_ASSIGN_OR_RETURN(asked.settings,
                          search::Settings::Make(space, [&](const search::ParallelPlan& plan) {
                            return SettingOf(flags, question, plan);
                          }));
  const search::Setting& setting = asked.settings->front();
  const search::SpaceSize size = SpaceSizeOf(setting);
  SearchJob& job = asked.job;
  job.top = flags.no_prune ? 0 : std::max<int64_t>(1, flags.top);
  job.goal = GoalOf(flags.planning);
  const auto threads = static_cast<size_t>(Threads(flags.job));
  if (PlaysSome(flags.job, job.top, team)) {
    ORRERY_ASSIGN_OR_RETURN(search::Listing listing,
                            search::ListPlans(space, size, search::kMostPlans, threads));
    job.plans = std::move(listing.plans);
    job.held = std::move(listing.held);
    job.variants = [&space, size, held = job.held](const search::ParallelPlan& plan) {
      return search::VariantsOf(space, size, held, plan);
    };
  } else {
    ORRERY_ASSIGN_OR_RETURN(job.plans, search::Enumerate(space, size, threads));
  }
  ORRERY_RETURN_IF_ERROR(AtBoundary(search::CheckListed(space, job.plans)));
  ORRERY_RETURN_IF_ERROR(
      AddUnequal(flags.unequal ? "--unequal-stages" : "", space, *asked.settings, job.plans));
  job.setting_of = asked.settings->AsFunction();
  if (search::MayRelieve(space)) {
    job.relief = [&space](const auto& plan) { return search::Relief(space, plan); };
  }
  job.team = team;
  if (!NeedsQuestion(flags.job, team)) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(job.question, QuestionOf(flags.given, *asked.settings, job.plans.size()));
  return absl::OkStatus();
}

absl::Status CheckSeveral(const Flags& flags, const Team* team) {
  const JobFlags& job = flags.job;
  if (team == nullptr && job.part.empty() && job.resume.empty() && job.merge.empty() &&
      !flags.trace.any() && flags.diff.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "several models, batch sizes or clusters, or sizes of one (`gpus`, `fits-on`), are searched "
      "one after another by one process; "
      "wanted one of each beside `part`, `resume`, `merge`, `trace`, `diff` and MPI");
}

// Whether no other question of its group has more devices.
bool IsLargest(const std::vector<Question>& questions, size_t i) {
  return i + 1 == questions.size() || questions[i + 1].group != questions[i].group;
}

absl::Status SearchSeveral(const Flags& flags, const search::Space& space,
                           const std::vector<Question>& questions, SearchFiles files) {
  // What is wrong with one is told before another is searched.
  for (size_t i = 0; i < questions.size(); ++i) {
    if (flags.planning.fits_on && !IsLargest(questions, i)) continue;
    Asked asked;
    ORRERY_RETURN_IF_ERROR(Ask(flags, questions[i], space, nullptr, asked));
  }
  std::vector<Answer> answers;
  for (size_t i = 0; i < questions.size(); ++i) {
    const Question& question = questions[i];
    const bool answered = !answers.empty() && answers.back().question.group == question.group;
    if (flags.planning.fits_on && answered) continue;  // on fewer devices
    Asked asked;
    const absl::Status possible = Ask(flags, question, space, nullptr, asked);
    if (!possible.ok() && flags.planning.fits_on && !IsLargest(questions, i)) {
      std::cout << question.model.cluster << ": no candidates: " << possible.message() << "\n";
      continue;
    }
    ORRERY_RETURN_IF_ERROR(possible);
    PrintWarnings(asked.settings->front().notes.warnings);
    ORRERY_ASSIGN_OR_RETURN(const JobOutcome outcome, RunJob(flags.job, asked.job));
    if (outcome.stopped || CaughtSignal() != 0) {
      return TellStopped(flags, *asked.settings, outcome, /*is_one=*/false);
    }
    files.Add(*asked.settings, outcome.results, outcome.is_part);
    const bool fits = !search::Ranked(outcome.results).empty();
    if (flags.planning.fits_on && !fits) {
      std::cout << question.model.cluster << ": "
                << MisfitLine(asked.settings->AsFunction(), outcome.results) << "\n";
      continue;
    }
    if (flags.planning.fits_on) std::cout << question.model.cluster << ": fits\n\n";
    const absl::Status status = Tell(flags, question, asked, outcome, answers);
    if (!status.ok() && !absl::IsFailedPrecondition(status)) return status;
    std::cout << "\n";
  }
  const absl::Status written = files.Write();
  if (answers.empty()) return absl::FailedPreconditionError("no candidate is feasible");
  std::cout << BestsText(answers) << ScalingText(answers) << "\n";
  ORRERY_RETURN_IF_ERROR(written);
  return TellWinner(flags, answers);
}

absl::Status Search(const Flags& flags, std::unique_ptr<Team>& team) {
  ORRERY_RETURN_IF_ERROR(CheckJob(flags.job));
  ORRERY_RETURN_IF_ERROR(CheckDifference(flags.diff));
  // Which ranks there are the best plan will tell.
  ORRERY_RETURN_IF_ERROR(ReadTraceFlags(flags.trace, ir::kMaxRanks).status());
  ORRERY_RETURN_IF_ERROR(CheckPlanning(flags.planning));
  ORRERY_ASSIGN_OR_RETURN(team, FindTeam());
  if (flags.job.threads < 0 || flags.top < 0) {
    return absl::InvalidArgumentError("--threads and --top: wanted numbers of at least 0");
  }
  ORRERY_ASSIGN_OR_RETURN(search::Space space, SpaceOf(flags));
  ORRERY_RETURN_IF_ERROR(WidenFor(GoalOf(flags.planning), space));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<Question> questions,
                          QuestionsOf({flags.model, flags.batch_sizes}, flags.planning));
  const bool several = questions.size() > 1;
  ORRERY_ASSIGN_OR_RETURN(std::vector<PlotFile> plots, ReadSearchPlots(flags.files.plot, several));
  SearchFileFlags file_flags = flags.files;
  file_flags.threads =
      static_cast<size_t>(flags.job.threads > 0 ? flags.job.threads : OwnProcessors());
  SearchFiles files(std::move(file_flags), std::move(plots));
  if (several) {
    ORRERY_RETURN_IF_ERROR(CheckSeveral(flags, team.get()));
    return SearchSeveral(flags, space, questions, std::move(files));
  }
  Asked asked;
  ORRERY_RETURN_IF_ERROR(Ask(flags, questions.front(), space, team.get(), asked));
  ORRERY_RETURN_IF_ERROR(
      ReadTraceFlags(flags.trace, asked.settings->front().cluster.size()).status());
  if (team == nullptr || team->rank() == 0) {
    PrintWarnings(asked.settings->front().notes.warnings);
  }
  ORRERY_ASSIGN_OR_RETURN(const JobOutcome outcome, RunJob(flags.job, asked.job));
  if (!outcome.is_told) return absl::OkStatus();
  if (outcome.stopped) return TellStopped(flags, *asked.settings, outcome, /*is_one=*/true);
  std::vector<Answer> answers;
  const absl::Status status = Tell(flags, questions.front(), asked, outcome, answers);
  files.Add(*asked.settings, outcome.results, outcome.is_part);
  const absl::Status written = files.Write();
  ORRERY_RETURN_IF_ERROR(status);
  ORRERY_RETURN_IF_ERROR(written);
  if (flags.trace.any() && !answers.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteBestTrace(*asked.settings, outcome.results, flags.trace));
  }
  if (!answers.empty() && !outcome.is_part) ORRERY_RETURN_IF_ERROR(TellWinner(flags, answers));
  return outcome.journal;
}

// The flags of a command line, and those that the journal of its search tells.
absl::StatusOr<std::vector<FlagText>> Further(const std::vector<FlagText>& given, Flags& flags) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<FlagText> further, FlagsOfJournals(given));
  flags.given = given;
  flags.given.insert(flags.given.end(), further.begin(), further.end());
  return further;
}

int Main(int argc, char** argv) {
  Flags flags;
  flags.program = argv[0];
  ProgramSpec spec{
      .usage = "grid_search --model M --batch-size B --cluster C [flags]",
      .about =
          "Simulates every way to parallelize a training step over the cluster and ranks them.",
      .example =
          "build/bin/grid_search --model examples/models/mlp_64x512.onnx --batch-size 8192 "
          "--cluster dgx-a100:2 --micro-batches 1,2,4,8 --csv out/grid.csv",
      .options = po::options_description("Flags"),
      .searches = true,
      .further = [&](const std::vector<FlagText>& given) { return Further(given, flags); },
      .listings = {StackListing(), EmitterListing()}};
  AddModelFlags(spec.options, flags.model, &flags.batch_sizes);
  AddPlanFlags(spec.options, PlanForm::kSpace, {}, flags.axes);
  AddTraceFlags(spec.options, flags.trace, "the best candidate's");
  AddPlanningFlags(spec.options, flags.planning);
  AddUnequalFlag(spec.options, flags.unequal);
  AddSpaceFlags(spec.options, flags);
  spec.options.add_options()("threads", po::value(&flags.job.threads),
                             "threads to search with [one a core]")(
      "method", po::value(&flags.job.method),
      absl::StrCat(search::MethodsText(), " [exhaustive; with a budget beam]").c_str())(
      "budget", po::value(&flags.job.budget),
      "play so long, as in 60s, 10min or 2h, or so many candidates, and tell how sure the best is "
      "[all; of over 100,000 candidates 10s and 6s a million]")("seed", po::value(&flags.job.seed),
                                                                "of a method that draws [1]")(
      "top", po::value(&flags.top), "candidates to print [10]")(
      "diff", po::value(&flags.diff)->multitoken(),
      "A B: why A is faster than B, part by part; places in the table, 1 and 2, or values of axes, "
      "'dp=2 pp=4'")("csv", po::value(&flags.files.csv), "write one row a candidate to this file")(
      "json", po::value(&flags.files.json), "the same as JSON")(
      "plot", po::value(&flags.files.plot)->composing(), PlotHelp(SearchPlotViews()).c_str())(
      "report", po::value(&flags.files.report),
      "write a page with all candidates, charts, and the best in detail to this file (.html)")(
      "no-prune", po::bool_switch(&flags.no_prune),
      "play candidates, too, that can be neither of the best nor on the Pareto front over time, "
      "memory and devices")(
      "resume", po::value(&flags.job.resume),
      "journal of the search: each candidate that is done is a line in it, and counts as done when "
      "the search is begun again")(
      "part", po::value(&flags.job.part),
      "I/N: do the I-th of N parts alone, which take about equally long, as in 2/3")(
      "merge", po::value(&flags.job.merge)->multitoken(),
      "journals of all parts, F1 F2 …: tell what one search would have told");
  flags.files.command = CommandText(argc, argv);
  std::unique_ptr<Team> team;
  const int code = RunProgram(argc, argv, spec, [&] { return Search(flags, team); });
  if (team != nullptr && code != kDone) team->Abort(code);  // others may wait for this one
  return code;
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
