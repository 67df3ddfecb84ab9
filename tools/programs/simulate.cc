#include <array>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "simulator/report_json.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "transforms/schedules/schedule.h"

// Plays one configuration and prints its report.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

struct Flags {
  ModelFlags model;
  search::Candidate candidate;
  std::string schedule;
  std::string json;
  std::string trace;
  bool timeline = false;
};

void PrintLine(absl::string_view name, absl::string_view value) {
  std::cout << absl::StrFormat("  %-24s %s\n", name, value);
}

void PrintReport(const search::Setting& setting, const search::Candidate& candidate,
                 const search::Run& run) {
  const simulator::Report& report = run.report;
  const auto percent = [](double fraction) { return absl::StrFormat("%.2f %%", 100 * fraction); };
  std::cout << setting.model_name << ", batch " << setting.batch_size << ", on "
            << setting.cluster.name << "\n"
            << search::ToString(candidate) << "\n\n";
  PrintLine("step time", absl::StrFormat("%s (%.12f s)", ToString(report.step_time),
                                         report.step_time.seconds()));
  PrintLine("throughput", absl::StrFormat("%.2f samples/s", run.figures.throughput_samples_per_s));
  PrintLine("model flops utilization", percent(run.figures.mfu));
  PrintLine("communication overhead", percent(report.communication_overhead));
  PrintLine("exposed communication",
            absl::StrFormat("%.6f s a rank, of the step %s", report.exposed_communication_s,
                            percent(report.exposed_communication_s / report.step_time.seconds())));
  for (const simulator::CommunicationReport& row : report.communication) {
    const absl::string_view separator = row.level.empty() ? "" : ", ";
    PrintLine(absl::StrCat("  ", row.kind, separator, row.level),
              absl::StrFormat("%.6f s exposed, %.6f s hidden, %s", row.exposed_s, row.hidden_s,
                              ToString(Bytes(static_cast<int64_t>(row.bytes)))));
  }
  PrintLine("bubble", percent(report.bubble_fraction));
  PrintLine("peak memory",
            absl::StrCat(ToString(report.peak_memory), report.fits ? ", fits" : ", DOES NOT FIT"));
  PrintLine("bytes sent, reduced",
            absl::StrCat(ToString(report.bytes_sent), ", ", ToString(report.bytes_reduced)));
  PrintLine("simulated",
            absl::StrFormat("%d tasks of %d rank classes in %.3f ms", report.simulated_tasks,
                            run.program.rank_count(), 1e3 * run.figures.wall_time_s));
}

absl::Status Simulate(const Flags& flags) {
  ORRERY_RETURN_IF_ERROR(CheckOutputs(std::array{flags.json, flags.trace}));
  ORRERY_ASSIGN_OR_RETURN(const search::Setting setting, MakeSetting(flags.model));
  search::Candidate candidate = flags.candidate;
  candidate.schedule = !flags.schedule.empty() ? flags.schedule
                       : flags.model.distir()  ? "distir"
                                               : "1f1b";
  ORRERY_RETURN_IF_ERROR(ParseSchedules(candidate.schedule).status());
  const absl::StatusOr<search::Run> run = search::Play(setting, candidate);
  if (!run.ok()) {
    const auto infeasible = AsInfeasible(run.status());
    if (!infeasible.has_value()) return run.status();
    return absl::FailedPreconditionError(
        absl::StrCat("infeasible (", ToString(infeasible->reason), "): ", infeasible->detail));
  }
  if (!flags.json.empty()) {
    ORRERY_RETURN_IF_ERROR(
        WriteFile(flags.json, simulator::ReportJson(run->program, run->report, run->figures)));
  }
  if (!flags.trace.empty()) ORRERY_RETURN_IF_ERROR(WriteTrace(*run, flags.trace));
  PrintReport(setting, candidate, *run);
  if (!flags.timeline) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelineSchedule* schedule,
                          transforms::FindSchedule(candidate.schedule));
  std::cout << "\n"
            << transforms::DrawTimeline(schedule->orders(
                   {.stages = static_cast<int32_t>(candidate.pp),
                    .microbatches = static_cast<int32_t>(candidate.microbatches)}));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
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
      "micro-batches", po::value(&flags.candidate.microbatches),
      "microbatches of a data-parallel replica [1]")("schedule", po::value(&flags.schedule),
                                                     "gpipe, 1f1b, pipedream or distir [1f1b]")(
      "json", po::value(&flags.json), "write the report to this file")(
      "trace", po::value(&flags.trace), "write the Chrome trace to this file (.json or .json.gz)")(
      "timeline", po::bool_switch(&flags.timeline), "draw the schedule as text");
  return RunProgram(argc, argv, spec, [&] { return Simulate(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
