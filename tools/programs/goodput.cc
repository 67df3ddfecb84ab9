#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/goodput/best_interval.h"
#include "simulator/goodput/trials.h"
#include "support/file.h"
#include "support/status.h"
#include "support/threads.h"
#include "tools/flags.h"
#include "tools/goodput/goodput_files.h"
#include "tools/goodput/goodput_question.h"
#include "tools/goodput/goodput_views.h"
#include "tools/reports/page.h"
#include "tools/reports/plot_files.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/terminal.h"

// A training run of days: what of its time is left for training when things fail.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;
using simulator::goodput::BestInterval;
using simulator::goodput::CheckpointTier;
using simulator::goodput::Episode;

// What is written beside the report on the screen, and what this asks for.
struct Outputs {
  std::string json, csv, trace, report;
  std::vector<std::string> plot;
  bool timeline = false;
  std::string command;  // for the report

  bool looks() const { return !report.empty() || !plot.empty(); }
};

std::vector<BestInterval> ByInterval(const GoodputAnswer& answer,
                                     const simulator::goodput::PlayManner& manner) {
  const auto& spec = answer.question.spec;
  const auto tier =
      std::ranges::find(spec.tiers, answer.question.safest_tier, &CheckpointTier::name);
  if (tier == spec.tiers.end()) return {};
  return GoodputByInterval(spec, static_cast<size_t>(tier - spec.tiers.begin()),
                           std::max<int64_t>(answer.question.best.steps, 1), manner);
}

absl::Status WriteFiles(const GoodputAnswer& answer, const Outputs& outputs,
                        const std::vector<PlotFile>& plots,
                        const simulator::goodput::PlayManner& manner) {
  std::vector<Episode> first_run;
  if (outputs.looks() || outputs.timeline || !outputs.trace.empty()) {
    PlayTrial(answer.question.spec, static_cast<uint64_t>(answer.flags.seed), 0, &first_run);
  }
  if (!outputs.json.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(outputs.json, GoodputJson(answer)));
  }
  if (!outputs.csv.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(outputs.csv, GoodputCsv(answer)));
  }
  if (!outputs.trace.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteFile(outputs.trace, EpisodesTrace(first_run)));
  }
  if (outputs.timeline) std::cout << "\nrun 0:\n" << TimelineText(first_run);
  if (!outputs.looks()) return absl::OkStatus();
  const std::vector<Section> sections = GoodputViews(answer, ByInterval(answer, manner), first_run);
  if (!outputs.report.empty()) {
    ORRERY_RETURN_IF_ERROR(WritePage({.title = absl::StrCat("Goodput: ", answer.facts.name),
                                      .program = "goodput",
                                      .command = outputs.command,
                                      .notes = answer.question.notes,
                                      .sections = sections},
                                     outputs.report));
  }
  return WritePlots(
      plots, [&](size_t view) { return PictureOf(sections, GoodputPlotViews()[view].name); });
}

absl::Status Goodput(const GoodputFlags& flags, const Outputs& outputs) {
  constexpr int64_t kMostTrials = 1'000'000;
  if (flags.trials < 1 || flags.trials > kMostTrials) {
    return absl::InvalidArgumentError(
        absl::StrCat("--trials ", flags.trials, ": wanted 1 to ", kMostTrials));
  }
  if (flags.threads < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads ", flags.threads, ": wanted at least 0"));
  }
  if (flags.seed < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--seed ", flags.seed, ": wanted at least 0"));
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<PlotFile> plots,
                          ReadPlots(outputs.plot, GoodputPlotViews()));
  const auto threads = static_cast<size_t>(flags.threads > 0 ? flags.threads : OwnProcessors());
  GoodputAnswer answer{.flags = flags};
  const StopOnSignals signals;
  const simulator::goodput::PlayManner manner{
      .seed = static_cast<uint64_t>(flags.seed), .threads = threads, .stop = &signals.stop()};
  ORRERY_ASSIGN_OR_RETURN(answer.facts, FactsOf(flags));
  {
    const Waiting waiting("playing runs");
    ORRERY_ASSIGN_OR_RETURN(answer.question, QuestionOf(flags, answer.facts, manner));
    answer.results = PlayTrials(answer.question.spec, static_cast<size_t>(flags.trials), manner);
  }
  answer.summary = Summarize(answer.question.spec, answer.results);
  std::cout << WrapLines(GoodputText(answer), 27, OutputTerminal());
  ORRERY_RETURN_IF_ERROR(WriteFiles(answer, outputs, plots, manner));
  return answer.results.size() < static_cast<size_t>(flags.trials)
             ? StoppedBefore("runs that were played")
             : absl::OkStatus();
}

void AddOutputFlags(po::options_description& options, Outputs& outputs) {
  options.add_options()("json", po::value(&outputs.json), "write the figures to this file")(
      "csv", po::value(&outputs.csv), "write a row a run to this file")(
      "trace", po::value(&outputs.trace),
      "write the first run to this file, for chrome://tracing and ui.perfetto.dev (.json)")(
      "timeline", po::bool_switch(&outputs.timeline), "print the first run, a line an episode")(
      "report", po::value(&outputs.report), "write a page with charts to this file (.html)")(
      "plot", po::value(&outputs.plot)->composing(), PlotHelp(GoodputPlotViews()).c_str());
}

int Main(int argc, char** argv) {
  GoodputFlags flags, other_flags;
  Outputs outputs;
  ProgramSpec spec{
      .usage =
          "goodput --model M --batch-size B --cluster C [--hp H] [--pp P] … --days D [flags], or "
          "goodput --step-time T --devices N --days D [flags]",
      .about =
          "Plays a training run of days in which components fail, and tells what of its time is "
          "left for training.",
      .example =
          "build/bin/goodput --step-time 7s --devices 16384 --checkpoint-bytes 5.67TB --days 54",
      .options = po::options_description("Flags"),
      .listings = GoodputListings(),
      .other_form = po::options_description("Flags")};
  constexpr size_t kShortest = 6;  // --st could be --stack
  const bool given = GivesFlag(argc, argv, "--step-time", kShortest);
  if (given) {
    AddGivenStepFlags(spec.options, flags);
    AddPlayedStepFlags(spec.other_form, other_flags);
  } else {
    AddPlayedStepFlags(spec.options, flags);
    AddGivenStepFlags(spec.other_form, other_flags);
  }
  AddRunFlags(spec.options, flags);
  AddOutputFlags(spec.options, outputs);
  outputs.command = CommandText(argc, argv);
  return RunProgram(argc, argv, spec, [&] { return Goodput(flags, outputs); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
