#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "simulator/program/program_text.h"
#include "support/number_text.h"

namespace orrery::simulator {
namespace program_printer_cc {
namespace {

std::string Quoted(absl::string_view text) { return absl::StrCat("\"", absl::CEscape(text), "\""); }

// "0-3,8": ascending numbers, neighbours as a range.
std::string Ranges(const std::vector<int32_t>& numbers) {
  std::string out;
  for (size_t first = 0; first < numbers.size();) {
    size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    absl::StrAppend(&out, out.empty() ? "" : ",", numbers[first]);
    if (last > first) absl::StrAppend(&out, "-", numbers[last]);
    first = last + 1;
  }
  return out;
}

void PrintRank(const Program& program, RankClassId id, std::string* out) {
  const RankClass& rank = program.rank(id);
  absl::StrAppend(out, ToString(id), " ", Quoted(rank.name), " members ", Ranges(rank.members),
                  " stage ", rank.stage);
  if (rank.capacity != Bytes(0)) {
    absl::StrAppend(out, " capacity ", rank.capacity.count(), " bytes");
  }
  if (rank.communication_slowdown != 0) {
    absl::StrAppend(out, " slowdown ", FewestDigits(rank.communication_slowdown));
  }
  absl::StrAppend(out, "\n");
}

void PrintResidents(const Program& program, RankClassId id, std::string* out) {
  for (int i = 0; i < kAllMemoryKindCount; ++i) {
    const MemoryKind kind = static_cast<MemoryKind>(i);
    const Bytes size = program.resident(id, kind);
    if (size == Bytes(0)) continue;
    absl::StrAppend(out, "resident ", ToString(id), " ", ToString(kind), " ", size.count(),
                    " bytes\n");
  }
}

void PrintLabel(const Program& program, LabelId id, std::string* out) {
  const TaskLabel& label = program.label(id);
  absl::StrAppend(out, ToString(id), " ", Quoted(label.name), " ", ToString(label.kind), " ",
                  ToString(label.phase), " stage ", label.stage);
  if (label.flops != Flops()) absl::StrAppend(out, " flops ", FewestDigits(label.flops.count()));
  if (label.bytes != Bytes()) absl::StrAppend(out, " bytes ", label.bytes.count());
  if (label.collectives != 1) absl::StrAppend(out, " collectives ", label.collectives);
  if (!label.communication.empty()) {
    absl::StrAppend(out, " communication ", Quoted(label.communication));
  }
  if (!label.level.empty()) absl::StrAppend(out, " level ", Quoted(label.level));
  absl::StrAppend(out, "\n");
}

void PrintResource(const Program& program, ResourceId id, std::string* out) {
  const Resource& resource = program.resource(id);
  absl::StrAppend(out, ToString(id), " ", Quoted(resource.name), " ", Quoted(resource.kind),
                  " capacity ", resource.capacity.bytes_per_second(), " bytes/s latency ",
                  resource.latency.picoseconds(), " ps\n");
}

void PrintFlow(const Program& program, FlowId id, std::string* out) {
  const Flow flow = program.flow(id);
  if (!flow.legs.empty()) {
    absl::StrAppend(out, ToString(id), " chain");
    for (const Leg& leg : flow.legs) {
      absl::StrAppend(out, " ", leg.before.picoseconds(), " ps");
      if (leg.flow.valid()) absl::StrAppend(out, " ", ToString(leg.flow));
      if (leg.beside > Duration(0)) {
        absl::StrAppend(out, " beside ", leg.beside.picoseconds(), " ps");
      }
      if (leg.part >= 0) absl::StrAppend(out, " part ", leg.part);
    }
    absl::StrAppend(out, "\n");
    return;
  }
  absl::StrAppend(out, ToString(id), " size ", flow.size.count(), " bytes rate ",
                  flow.rate.bytes_per_second(), " bytes/s latency ", flow.latency.picoseconds(),
                  " ps");
  if (!flow.loads.empty()) absl::StrAppend(out, " loads");
  for (const Load& load : flow.loads) {
    absl::StrAppend(out, " ", ToString(load.resource), " ", FewestDigits(load.load));
  }
  absl::StrAppend(out, "\n");
}

void PrintTask(const Program& program, TaskId id, std::string* out) {
  absl::StrAppend(out, ToString(id));
  for (const StreamId stream : program.streams_of(id)) absl::StrAppend(out, " ", ToString(stream));
  absl::StrAppend(out, " ", ToString(program.label_of(id)));
  const int32_t microbatch = program.microbatch_of(id);
  if (microbatch != -1) absl::StrAppend(out, " microbatch ", microbatch);
  const FlowId flow = program.flow_of(id);
  if (flow.valid()) {
    absl::StrAppend(out, " takes ", ToString(flow));
  } else {
    absl::StrAppend(out, " takes ", program.duration(id).picoseconds(), " ps");
  }
  const std::span<const TaskId> after = program.dependencies_of(id);
  if (!after.empty()) absl::StrAppend(out, " after");
  for (const TaskId before : after) absl::StrAppend(out, " ", ToString(before));
  absl::StrAppend(out, "\n");
}

void PrintMemoryEvent(const MemoryEvent& event, std::string* out) {
  absl::StrAppend(out, "memory ", ToString(event.task), " ", ToString(event.rank), " ",
                  ToString(event.kind), event.bytes < 0 ? " " : " +", event.bytes, " bytes",
                  event.at_start() == (event.bytes > 0) ? ""
                  : event.bytes > 0                     ? " late"
                                                        : " early",
                  "\n");
}

}  // namespace
}  // namespace program_printer_cc

std::string Print(const Program& program) {
  std::string out = "program\n";
  for (int32_t i = 0; i < program.rank_count(); ++i)
    program_printer_cc::PrintRank(program, RankClassId(i), &out);
  for (int32_t i = 0; i < program.rank_count(); ++i)
    program_printer_cc::PrintResidents(program, RankClassId(i), &out);
  for (int32_t i = 0; i < program.stream_count(); ++i) {
    const Stream& stream = program.stream(StreamId(i));
    absl::StrAppend(&out, ToString(StreamId(i)), " ", ToString(stream.rank), " ",
                    ToString(stream.kind), "\n");
  }
  for (int32_t i = 0; i < program.label_count(); ++i)
    program_printer_cc::PrintLabel(program, LabelId(i), &out);
  for (int32_t i = 0; i < program.resource_count(); ++i) {
    program_printer_cc::PrintResource(program, ResourceId(i), &out);
  }
  for (int32_t i = 0; i < program.flow_count(); ++i)
    program_printer_cc::PrintFlow(program, FlowId(i), &out);
  for (int32_t i = 0; i < program.task_count(); ++i)
    program_printer_cc::PrintTask(program, TaskId(i), &out);
  for (const MemoryEvent& event : program.memory_events())
    program_printer_cc::PrintMemoryEvent(event, &out);
  return out;
}

}  // namespace orrery::simulator
