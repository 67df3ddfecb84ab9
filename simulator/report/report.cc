#include "simulator/report/report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "simulator/program/fragmentation.h"
#include "simulator/program/time_alone.h"
#include "simulator/report/activity.h"
#include "simulator/report/host_memory.h"
#include "support/check.h"
#include "support/json_text.h"

namespace orrery::simulator {
namespace report_cc {
namespace {

// What the label of a task adds to the report, looked up once a label and not once a task.
struct LabelFacts {
  double flops = 0;  // of each rank that takes part
  int64_t bytes_sent = 0;
  int64_t halves_reduced = 0;  // of bytes
  Bytes bytes;
  int32_t column = -1;     // of the shares of communication; -1: it computes
  bool has_parts = false;  // communication inside (StretchPart)
};

// An all-reduce is a reduce-scatter and then an all-gather, so each of these counts half.
int64_t HalvesReduced(const TaskLabel& label, Bytes of_all) {
  if (label.kind != TaskKind::kCollective) return 0;
  const bool half = absl::StartsWith(label.communication, "all-gather") ||
                    absl::StartsWith(label.communication, "reduce-scatter");
  return of_all.count() * (half ? 1 : 2);
}

std::vector<LabelFacts> FactsOfLabels(const Program& program, const CommunicationShares& shares) {
  std::vector<LabelFacts> facts;
  facts.reserve(static_cast<size_t>(program.label_count()));
  for (int32_t i = 0; i < program.label_count(); ++i) {
    const TaskLabel label = program.label(LabelId(i));
    const int64_t bytes = label.bytes.count();
    facts.push_back({.flops = label.flops.count(),
                     .bytes_sent = label.kind == TaskKind::kSend ? bytes : 0,
                     .halves_reduced = HalvesReduced(label, Bytes(bytes * label.collectives)),
                     .bytes = label.bytes,
                     .column = shares.column_of(LabelId(i)),
                     .has_parts = !program.parts_of(LabelId(i)).empty()});
  }
  return facts;
}

IdTable<StreamId, int64_t> MembersByStream(const Program& program) {
  IdTable<StreamId, int64_t> members;
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    const RankClass& rank = program.rank(program.stream(StreamId(i)).rank);
    members.push_back(static_cast<int64_t>(rank.members.size()));
  }
  return members;
}

void AddTask(bool communicates, Time finish, Duration duration, StreamSums& sum) {
  (communicates ? sum.communicating : sum.computing) += duration;
  ++(communicates ? sum.communicating_tasks : sum.computing_tasks);
  sum.finish = std::max(sum.finish, finish);
}

// What communicates inside of a task of the label, on a rank.
void AddParts(const Program& program, LabelId label, RankClassId rank, StreamSums& sum,
              CommunicationShares& shares, int64_t& halves_reduced) {
  for (const StretchPart& part : program.parts_of(label)) {
    shares.at(rank, shares.column_of(part.label)) +=
        {.bytes = part.bytes, .total = part.total, .exposed = part.exposed};
    halves_reduced += HalvesReduced(program.label(part.label), part.reduced);
    sum.communicating += part.total;
    sum.computing -= part.exposed;
    sum.exposed_inside += part.exposed;
    sum.has_parts = true;
  }
}

// What within chains of the tasks took longer than alone: they were counted as if it computed.
void AddDelays(const Program& program, const Trace& trace, size_t begin, size_t end,
               IdTable<StreamId, StreamSums>& sums, CommunicationShares& shares) {
  for (const LegDelay& delay : trace.delays) {
    const auto row = static_cast<size_t>(delay.task.index());
    if (row < begin || row >= end) continue;
    const Leg& leg = program.flow(program.flow_of(delay.task)).legs[static_cast<size_t>(delay.leg)];
    const std::span<const StretchPart> parts = program.parts_of(program.label_of(delay.task));
    const Duration exposed = LegDelayOfTask(delay, program);
    for (const StreamId stream : program.streams_of(delay.task)) {
      StreamSums& sum = sums[stream];
      sum.communicating += delay.time;
      sum.computing -= exposed;
      sum.exposed_inside += exposed;
      shares.at(program.stream(stream).rank,
                shares.column_of(parts[static_cast<size_t>(leg.part)].label)) +=
          {.bytes = Bytes(0), .total = delay.time, .exposed = exposed};
    }
  }
}

// The pass over the tasks `begin` … `end` - 1.
IdTable<StreamId, StreamSums> SumStreams(const Program& program, const Trace& trace, size_t begin,
                                         size_t end, Report& report) {
  const std::vector<LabelFacts> facts = FactsOfLabels(program, report.shares);
  const IdTable<StreamId, int64_t> members = MembersByStream(program);
  IdTable<StreamId, StreamSums> sums(program.stream_count());
  int64_t bytes_sent = 0;
  int64_t halves_reduced = 0;
  double flops = 0;
  const std::span<const LabelId> labels = program.task_labels();
  for (size_t row = begin; row < end; ++row) {
    const LabelFacts& fact = facts[static_cast<size_t>(labels[row].index())];
    const TaskId task(static_cast<int32_t>(row));
    const std::span<const StreamId> streams = program.streams_of(task);
    const Duration duration = trace.finish[row] - trace.start[row];
    for (const StreamId stream : streams) {
      AddTask(fact.column >= 0, trace.finish[row], duration, sums[stream]);
      if (fact.has_parts) {
        AddParts(program, labels[row], program.stream(stream).rank, sums[stream], report.shares,
                 halves_reduced);
      }
      if (fact.column >= 0) {
        report.shares.at(program.stream(stream).rank, fact.column) +=
            {.bytes = fact.bytes, .total = duration, .exposed = {}};
      }
      flops += fact.flops * static_cast<double>(members[stream]);
    }
    bytes_sent += fact.bytes_sent * members[streams.front()];
    halves_reduced += fact.halves_reduced;
  }
  AddDelays(program, trace, begin, end, sums, report.shares);
  report.bytes_sent = Bytes(bytes_sent);
  report.bytes_reduced = Bytes((halves_reduced + 1) / 2);
  report.flops = Flops(flops);
  return sums;
}

void SumRanks(const Program& program, const IdTable<StreamId, StreamSums>& sums, Report& report) {
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    const StreamSums& sum = sums[StreamId(i)];
    RankReport& rank = report.ranks[program.stream(StreamId(i)).rank];
    rank.finish = std::max(rank.finish, sum.finish);
    rank.busy += sum.computing + sum.communicating;
    rank.communication += sum.communicating;
  }
}

void AddActivity(const Program& program, const Trace& trace,
                 const IdTable<StreamId, StreamSums>& sums, Report& report) {
  const IdTable<RankClassId, Activity> activities =
      ActivityOfRanks(program, trace, sums, report.shares);
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const Activity& activity = activities[RankClassId(i)];
    RankReport& rank = report.ranks[RankClassId(i)];
    rank.exposed_communication = activity.active - activity.computing;
    rank.idle = report.step_time - activity.active;
  }
}

// Once the peak of the rank is known.
void CheckFit(const Program& program, RankClassId id, Report& report) {
  RankReport& rank = report.ranks[id];
  const Bytes capacity = program.rank(id).capacity;
  rank.fits = capacity == Bytes(0) || rank.memory.total <= capacity;
  report.fits &= rank.fits;
  report.peak_memory = std::max(report.peak_memory, rank.memory.total);
}

void AddMemory(const Program& program, const Trace& trace, Report& report) {
  const IdTable<RankClassId, MemoryUse> peaks = PeakMemory(program, trace);
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const RankClassId id(i);
    report.ranks[id].memory = peaks[id];
    CheckFit(program, id, report);
  }
}

void AddHostMemory(const Program& program, const Trace& trace, Report& report) {
  const IdTable<RankClassId, Bytes> of_hosts = PeakHostMemory(program, trace);
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    report.ranks[RankClassId(i)].host_memory = of_hosts[RankClassId(i)];
  }
}

// Picoseconds over all ranks, which can leave 64 bits; exact, so that folding changes no digit.
struct Totals {
  using Wide = __int128;
  Wide busy = 0, communication = 0, exposed = 0, idle = 0;

  void Add(const RankReport& rank, int64_t members) {
    busy += Wide{rank.busy.picoseconds()} * members;
    communication += Wide{rank.communication.picoseconds()} * members;
    exposed += Wide{rank.exposed_communication.picoseconds()} * members;
    idle += Wide{rank.idle.picoseconds()} * members;
  }
};

std::string CommunicationText(const Report& report) {
  std::string out;
  for (const CommunicationReport& row : report.communication) {
    absl::StrAppend(&out, out.empty() ? "\n" : ",\n", "    {\"kind\": ", JsonString(row.kind),
                    ", \"level\": ", JsonString(row.level), ", \"bytes\": ", JsonNumber(row.bytes),
                    ", \"total_s\": ", JsonNumber(row.total_s),
                    ", \"exposed_s\": ", JsonNumber(row.exposed_s),
                    ", \"hidden_s\": ", JsonNumber(row.hidden_s), "}");
  }
  return out.empty() ? "[]" : absl::StrCat("[", out, "\n  ]");
}

constexpr ReportFigure kFigures[] = {
    {"step_time_s", [](const Report& r) { return JsonNumber(r.step_time.seconds()); }},
    {"communication_overhead",
     [](const Report& r) { return JsonNumber(r.communication_overhead); }},
    {"exposed_communication_s",
     [](const Report& r) { return JsonNumber(r.exposed_communication_s); }},
    {"communication", CommunicationText},
    {"bubble_fraction", [](const Report& r) { return JsonNumber(r.bubble_fraction); }},
    {"peak_memory_bytes", [](const Report& r) { return absl::StrCat(r.peak_memory.count()); }},
    {"fits", [](const Report& r) { return std::string(r.fits ? "true" : "false"); }},
    {"bytes_sent", [](const Report& r) { return absl::StrCat(r.bytes_sent.count()); }},
    {"bytes_reduced", [](const Report& r) { return absl::StrCat(r.bytes_reduced.count()); }},
    {"simulated_tasks", [](const Report& r) { return absl::StrCat(r.simulated_tasks); }},
};

}  // namespace
}  // namespace report_cc

void SetRatios(const Program& program, Report& report) {
  report_cc::Totals totals;
  report.rank_count = 0;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const auto members = static_cast<int64_t>(program.rank(RankClassId(i)).members.size());
    report.rank_count += members;
    totals.Add(report.ranks[RankClassId(i)], members);
  }
  const auto ratio = [](report_cc::Totals::Wide part, report_cc::Totals::Wide whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
  };
  report.exposed_communication_s = 1e-12 * ratio(totals.exposed, report.rank_count);
  report.communication_overhead = ratio(totals.communication, totals.busy);
  report.communication = report.shares.Means(program);
  report.bubble_fraction = ratio(
      totals.idle, report_cc::Totals::Wide{report.step_time.picoseconds()} * report.rank_count);
}

void AddFragmentation(const Program& program, double fragmentation, Report& report) {
  if (fragmentation == 0) return;
  report.fits = true;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const RankClassId id(i);
    MemoryUse& use = report.ranks[id].memory;
    const Bytes lost = LostOf(program, id, fragmentation, use.total);
    use.by_kind[static_cast<size_t>(MemoryKind::kOther)] += lost;
    use.total += lost;
    report_cc::CheckFit(program, id, report);
  }
}

namespace report_cc {
namespace {

Report Begin(const Program& program) {
  Report report;
  report.ranks.resize(program.rank_count());
  report.shares = CommunicationShares(program);
  return report;
}

Report SummarizeTrace(const Program& program, const Trace& trace, bool brief) {
  ORRERY_CHECK(trace.finish.size() == static_cast<size_t>(program.task_count()))
      << "the trace is of another program";
  Report report = Begin(program);
  report.step_time = trace.makespan;
  report.simulated_tasks = program.task_count();
  const IdTable<StreamId, StreamSums> sums =
      SumStreams(program, trace, 0, trace.finish.size(), report);
  SumRanks(program, sums, report);
  if (!brief) AddActivity(program, trace, sums, report);
  AddMemory(program, trace, report);
  if (!brief) AddHostMemory(program, trace, report);
  SetRatios(program, report);
  return report;
}

}  // namespace
}  // namespace report_cc

Report Summarize(const Program& program, const Trace& trace) {
  return report_cc::SummarizeTrace(program, trace, /*brief=*/false);
}

Report SummarizeBriefly(const Program& program, const Trace& trace) {
  return report_cc::SummarizeTrace(program, trace, /*brief=*/true);
}

void Repeat(const Program& program, const Trace& trace, const Repetition& repetition,
            Report& report) {
  Report once = report_cc::Begin(program);
  report_cc::SumRanks(
      program,
      report_cc::SumStreams(program, trace, static_cast<size_t>(repetition.begin.index()),
                            static_cast<size_t>(repetition.end.index()), once),
      once);
  report.fits = true;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    RankReport& rank = report.ranks[RankClassId(i)];
    const RankReport& more = once.ranks[RankClassId(i)];
    report_cc::CheckFit(program, RankClassId(i), report);
    rank.finish += repetition.time * repetition.times;
    rank.busy += more.busy * repetition.times;
    rank.communication += more.communication * repetition.times;
  }
  report.step_time += repetition.time * repetition.times;
  SetRatios(program, report);
}

std::span<const ReportFigure> AllReportFigures() { return report_cc::kFigures; }

}  // namespace orrery::simulator
