#include "tools/play_program.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lowering/network/cluster_machine.h"
#include "simulator/engine/event_queue.h"
#include "simulator/network/fluid_network.h"
#include "simulator/program/program_text.h"
#include "simulator/program/time_alone.h"
#include "simulator/report/report.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "tools/report_text.h"
#include "tools/traces/write_trace.h"

namespace orrery::tools {
namespace play_program_cc {
namespace {

using simulator::Program;

// The word that a text form begins with.
std::string FirstWord(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (!stripped.empty()) return std::string(stripped.substr(0, stripped.find_first_of(" \t")));
  }
  return "";
}

absl::Status JoinOn(const std::string& text, const cluster::Cluster& cluster, Program& program) {
  const std::vector<absl::string_view> kinds = lowering::ClusterMachine::Collectives();
  ORRERY_ASSIGN_OR_RETURN(const simulator::RankPrograms ranks,
                          simulator::ParseRankPrograms(text, kinds));
  lowering::ClusterMachine machine(cluster, program);
  return simulator::Join(ranks, machine, program);
}

absl::Status Load(const ProgramFlags& flags, Program& program) {
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.program));
  const std::string form = FirstWord(text);
  if (form == "program") {
    absl::StatusOr<Program> parsed = simulator::ParseProgram(text);
    if (!parsed.ok()) return Annotate(parsed.status(), flags.program);
    program = *std::move(parsed);
    return Annotate(program.Verify(), flags.program);
  }
  if (form != "rank-programs") {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.program, ": begins with '", form.substr(0, 40),
        "'; wanted 'rank-programs', or 'program'; try examples/programs, or docs/programs.md"));
  }
  if (flags.cluster.empty()) {
    return absl::InvalidArgumentError(
        "--cluster is missing; wanted one for programs of ranks, such as dgx-h100:2");
  }
  ORRERY_ASSIGN_OR_RETURN(const cluster::Cluster cluster, cluster::ParseCluster(flags.cluster));
  return Annotate(JoinOn(text, cluster, program), flags.program);
}

// Figures of a report are sums in 64 bits: of bytes, of the tasks of a rank on all its streams. A
// Program that a person wrote may hold any numbers.
absl::Status CheckSums(const Program& program) {
  constexpr __int128 kMost = int64_t{1} << 62;
  __int128 bytes = 0;
  const auto add = [&bytes](int64_t count, int64_t times) {
    const __int128 product = static_cast<__int128>(count) * times;
    bytes += product < 0 ? -product : product;
  };
  for (int32_t i = 0; i < program.task_count(); ++i) {
    const simulator::TaskLabel label = program.label(program.label_of(simulator::TaskId(i)));
    const simulator::StreamId stream = program.streams_of(simulator::TaskId(i)).front();
    const auto members = program.rank(program.stream(stream).rank).members.size();
    add(label.bytes.count(),
        std::max<int64_t>(static_cast<int64_t>(members), std::abs(int64_t{label.collectives})));
  }
  for (const simulator::MemoryEvent& event : program.memory_events()) add(event.bytes, 1);
  for (int32_t rank = 0; rank < program.rank_count(); ++rank) {
    for (int kind = 0; kind < simulator::kMemoryKindCount; ++kind) {
      add(program.resident(simulator::RankClassId(rank), static_cast<simulator::MemoryKind>(kind))
              .count(),
          1);
    }
  }
  if (bytes <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "all labels, memory events and residents together are more than 4 EiB; wanted less");
}

absl::Status CheckLength(const Program& program, Duration makespan) {
  IdTable<simulator::RankClassId, int64_t> streams(program.rank_count());
  int64_t most = 1;
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    most = std::max(most, ++streams[program.stream(simulator::StreamId(i)).rank]);
  }
  if (makespan.picoseconds() <= simulator::kEndOfTime.picoseconds() / most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("takes ", ToString(makespan), " on ", most,
                   " streams of a rank; wanted busy times of at most ",
                   ToString(simulator::kEndOfTime), " in all"));
}

// Ranks are numbered from 0, with or without gaps.
int64_t RankCount(const Program& program) {
  int64_t count = 0;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    count = std::max<int64_t>(count, program.rank(simulator::RankClassId(i)).members.back() + 1);
  }
  return count;
}

}  // namespace
}  // namespace play_program_cc

absl::Status PlayProgramFile(const ProgramFlags& flags) {
  ORRERY_RETURN_IF_ERROR(
      CheckOutputs(std::array{flags.json, flags.trace.path, flags.trace.snapshot}));
  const auto start = std::chrono::steady_clock::now();
  simulator::Program program;
  ORRERY_RETURN_IF_ERROR(play_program_cc::Load(flags, program));
  ORRERY_RETURN_IF_ERROR(Annotate(play_program_cc::CheckSums(program), flags.program));
  ORRERY_ASSIGN_OR_RETURN(const TraceRequest request,
                          ReadTraceFlags(flags.trace, play_program_cc::RankCount(program)));
  simulator::LinkUse use(program);
  simulator::FluidNetwork network(program, !request.any() ? nullptr : &use);
  const absl::StatusOr<simulator::Trace> trace = simulator::RunEvents(program, network);
  if (!trace.ok()) return Annotate(trace.status(), flags.program);
  ORRERY_RETURN_IF_ERROR(
      Annotate(play_program_cc::CheckLength(program, trace->makespan), flags.program));
  const simulator::Report report = simulator::Summarize(program, *trace);
  const simulator::ReportDetails details =
      simulator::DetailsOf(program, *trace, report, /*steady=*/false);
  simulator::ModelFigures figures;
  figures.wall_time_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!flags.json.empty()) {
    ORRERY_RETURN_IF_ERROR(
        WriteFile(flags.json, simulator::ReportJson(program, report, figures, &details)));
  }
  ORRERY_RETURN_IF_ERROR(WriteTrace(request, program, *trace, &use));
  std::cout << flags.program;
  if (!flags.cluster.empty()) std::cout << ", on " << flags.cluster;
  std::cout << "\n\n";
  PrintReportLines(program, report, details, figures, false);
  return absl::OkStatus();
}

}  // namespace orrery::tools
