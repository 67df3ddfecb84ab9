#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "simulator/program/kind_names.h"
#include "simulator/program/line_reader.h"
#include "simulator/program/program_text.h"
#include "support/status.h"

namespace orrery::simulator {
namespace program_parser_cc {
namespace {

// Of all classes together; a slip of the pen must not fill memory.
constexpr int64_t kMaxMembers = 1 << 24;
// A rank has a next one, as in traces.
constexpr int32_t kLastRank = std::numeric_limits<int32_t>::max() - 1;

// Adds the numbers of "0-3" or "8" to `members`, ascending after those that are there.
bool AppendRange(absl::string_view range, std::vector<int32_t>& members) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(range, absl::MaxSplits('-', 1));
  int32_t first = 0;
  if (!absl::SimpleAtoi(ends.first, &first)) return false;
  int32_t last = first;
  if (absl::StrContains(range, "-") && !absl::SimpleAtoi(ends.second, &last)) return false;
  const bool ascending = members.empty() || members.back() < first;
  if (first < 0 || last < first || last > kLastRank || !ascending) return false;
  if (int64_t{last} - first >= kMaxMembers) return false;
  for (int32_t member = first; member <= last; ++member) members.push_back(member);
  return true;
}

// One method a kind of line. A method reads its line to the end and adds to the program.
class Parser {
 public:
  explicit Parser(Program& program) : program_(program) {}

  absl::Status ParseLine(LineReader& line) {
    if (line.Take("resident")) return ParseResident(line);
    if (line.Take("memory")) return ParseMemory(line);
    if (line.At("rank")) return ParseRank(line);
    if (line.At("stream")) return ParseStream(line);
    if (line.At("label")) return ParseLabel(line);
    if (line.At("resource")) return ParseResource(line);
    if (line.At("flow")) return ParseFlow(line);
    if (line.At("task")) return ParseTask(line);
    return line.Wanted(
        "a line that begins with rank, resident, stream, label, resource, flow, task or memory");
  }

  // What can only be told once all tasks are there.
  absl::Status Finish() const {
    for (const LateTask& late : late_) {
      if (late.task.index() < program_.task_count()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("line ", late.line, ": found ", ToString(late.task), ", wanted one of the ",
                       program_.task_count(), " tasks that there are; try adding it"));
    }
    return absl::OkStatus();
  }

 private:
  struct LateTask {
    TaskId task;
    int line;
  };

  absl::Status ParseRank(LineReader& line) {
    RankClass rank;
    ORRERY_RETURN_IF_ERROR(line.NextId("rank", program_.rank_count()));
    ORRERY_ASSIGN_OR_RETURN(rank.name, line.String());
    ORRERY_RETURN_IF_ERROR(line.Expect("members"));
    for (const absl::string_view range : absl::StrSplit(line.word(), ',')) {
      if (!AppendRange(range, rank.members)) {
        return line.Wanted("ascending global ranks such as 0-3,8");
      }
      if (members_ + std::ssize(rank.members) > kMaxMembers) {
        return line.Wanted(absl::StrCat("at most ", kMaxMembers, " ranks in all classes together"));
      }
    }
    members_ += std::ssize(rank.members);
    line.Next();
    ORRERY_RETURN_IF_ERROR(line.Expect("stage"));
    ORRERY_ASSIGN_OR_RETURN(rank.stage, line.Int32());
    if (line.Take("capacity")) {
      ORRERY_ASSIGN_OR_RETURN(const int64_t capacity, line.Int64(0));
      rank.capacity = Bytes(capacity);
      ORRERY_RETURN_IF_ERROR(line.Expect("bytes"));
    }
    if (line.Take("slowdown")) {
      const LineReader here = line;
      ORRERY_ASSIGN_OR_RETURN(rank.communication_slowdown, line.Double());
      if (!(rank.communication_slowdown >= 0 && rank.communication_slowdown < 1)) {
        return here.Wanted("a slow-down of 0 to less than 1");
      }
    }
    program_.AddRank(std::move(rank));
    return line.End();
  }

  absl::Status ParseResident(LineReader& line) {
    ORRERY_ASSIGN_OR_RETURN(const RankClassId rank, Rank(line));
    ORRERY_ASSIGN_OR_RETURN(const MemoryKind kind, line.Enum(kMemoryKindNames));
    ORRERY_ASSIGN_OR_RETURN(const int64_t size, line.Int64(0));
    ORRERY_RETURN_IF_ERROR(line.Expect("bytes"));
    program_.AddResident(rank, kind, Bytes(size));
    return line.End();
  }

  absl::Status ParseStream(LineReader& line) {
    ORRERY_RETURN_IF_ERROR(line.NextId("stream", program_.stream_count()));
    ORRERY_ASSIGN_OR_RETURN(const RankClassId rank, Rank(line));
    ORRERY_ASSIGN_OR_RETURN(const StreamKind kind, line.Enum(kStreamKindNames));
    program_.AddStream(rank, kind);
    return line.End();
  }

  absl::Status ParseLabel(LineReader& line) {
    TaskLabel label;
    ORRERY_RETURN_IF_ERROR(line.NextId("label", program_.label_count()));
    ORRERY_ASSIGN_OR_RETURN(const std::string name, line.String());
    label.name = name;
    ORRERY_ASSIGN_OR_RETURN(label.kind, line.Enum(kTaskKindNames));
    ORRERY_ASSIGN_OR_RETURN(label.phase, line.Enum(kPhaseNames));
    ORRERY_RETURN_IF_ERROR(line.Expect("stage"));
    ORRERY_ASSIGN_OR_RETURN(label.stage, line.Int32());
    if (line.Take("flops")) {
      ORRERY_ASSIGN_OR_RETURN(const double flops, line.Double());
      label.flops = Flops(flops);
    }
    if (line.Take("bytes")) {
      ORRERY_ASSIGN_OR_RETURN(const int64_t bytes, line.Int64());
      label.bytes = Bytes(bytes);
    }
    if (line.Take("collectives")) {
      ORRERY_ASSIGN_OR_RETURN(label.collectives, line.Int32());
    }
    std::string communication, level;
    if (line.Take("communication")) {
      ORRERY_ASSIGN_OR_RETURN(communication, line.String());
      label.communication = communication;
    }
    if (line.Take("level")) {
      ORRERY_ASSIGN_OR_RETURN(level, line.String());
      label.level = level;
    }
    program_.AddLabel(label);
    return line.End();
  }

  absl::Status ParseResource(LineReader& line) {
    Resource resource;
    ORRERY_RETURN_IF_ERROR(line.NextId("resource", program_.resource_count()));
    ORRERY_ASSIGN_OR_RETURN(resource.name, line.String());
    ORRERY_ASSIGN_OR_RETURN(resource.kind, line.String());
    ORRERY_RETURN_IF_ERROR(line.Expect("capacity"));
    ORRERY_ASSIGN_OR_RETURN(const int64_t capacity, line.Int64(1));
    resource.capacity = Bandwidth(capacity);
    ORRERY_RETURN_IF_ERROR(line.Expect("bytes/s"));
    ORRERY_RETURN_IF_ERROR(line.Expect("latency"));
    ORRERY_ASSIGN_OR_RETURN(const int64_t latency, line.Int64(0));
    resource.latency = Duration(latency);
    ORRERY_RETURN_IF_ERROR(line.Expect("ps"));
    program_.AddResource(std::move(resource));
    return line.End();
  }

  absl::Status ParseFlow(LineReader& line) {
    ORRERY_RETURN_IF_ERROR(line.NextId("flow", program_.flow_count()));
    if (line.Take("chain")) return ParseChain(line);
    ORRERY_RETURN_IF_ERROR(line.Expect("size"));
    ORRERY_ASSIGN_OR_RETURN(const int64_t size, line.Int64(0));
    ORRERY_RETURN_IF_ERROR(line.Expect("bytes"));
    ORRERY_RETURN_IF_ERROR(line.Expect("rate"));
    ORRERY_ASSIGN_OR_RETURN(const int64_t rate, line.Int64(1));
    ORRERY_RETURN_IF_ERROR(line.Expect("bytes/s"));
    ORRERY_RETURN_IF_ERROR(line.Expect("latency"));
    ORRERY_ASSIGN_OR_RETURN(const int64_t latency, line.Int64(0));
    ORRERY_RETURN_IF_ERROR(line.Expect("ps"));
    loads_.clear();
    if (line.Take("loads")) ORRERY_RETURN_IF_ERROR(ParseLoads(line));
    program_.AddFlow({.size = Bytes(size),
                      .rate = Bandwidth(rate),
                      .latency = Duration(latency),
                      .loads = loads_});
    return line.End();
  }

  // Times and flows, at least one; which flows may stand in a chain is for `Verify` to say.
  absl::Status ParseChain(LineReader& line) {
    std::vector<Leg> legs;
    do {
      Leg leg;
      ORRERY_ASSIGN_OR_RETURN(const int64_t before, line.Int64(0));
      leg.before = Duration(before);
      ORRERY_RETURN_IF_ERROR(line.Expect("ps"));
      const bool flows = line.At("flow");
      if (flows) {
        ORRERY_ASSIGN_OR_RETURN(leg.flow, line.IdOf<FlowId>("flow", program_.flow_count()));
        if (line.Take("beside")) {
          ORRERY_ASSIGN_OR_RETURN(const int64_t beside, line.Int64(0));
          leg.beside = Duration(beside);
          ORRERY_RETURN_IF_ERROR(line.Expect("ps"));
        }
        if (line.Take("part")) {
          ORRERY_ASSIGN_OR_RETURN(leg.part, line.Int32());
        }
      }
      legs.push_back(leg);
      if (!flows) break;  // only time comes behind the last
    } while (!line.AtEnd());
    program_.AddChain(legs);
    return line.End();
  }

  // Resources and loads, at least one, into `loads_`. That none comes twice is for `Verify` to say.
  absl::Status ParseLoads(LineReader& line) {
    do {
      ORRERY_ASSIGN_OR_RETURN(const ResourceId resource,
                              line.IdOf<ResourceId>("resource", program_.resource_count()));
      const LineReader here = line;
      ORRERY_ASSIGN_OR_RETURN(const double load, line.Double());
      if (!(load >= kLeastLoad && load <= kMostLoad)) {
        return here.Wanted(absl::StrCat("a load of ", kLeastLoad, " to ", kMostLoad));
      }
      loads_.push_back({.resource = resource, .load = load});
    } while (line.At("resource"));
    return absl::OkStatus();
  }

  absl::Status ParseTask(LineReader& line) {
    Task task;
    ORRERY_RETURN_IF_ERROR(line.NextId("task", program_.task_count()));
    ORRERY_RETURN_IF_ERROR(ParseStreams(line));
    ORRERY_ASSIGN_OR_RETURN(task.label, line.IdOf<LabelId>("label", program_.label_count()));
    if (line.Take("microbatch")) {
      ORRERY_ASSIGN_OR_RETURN(task.microbatch, line.Int32());
    }
    ORRERY_RETURN_IF_ERROR(line.Expect("takes"));
    if (line.At("flow")) {
      ORRERY_ASSIGN_OR_RETURN(task.flow, line.IdOf<FlowId>("flow", program_.flow_count()));
    } else {
      ORRERY_ASSIGN_OR_RETURN(const int64_t duration, line.Int64(0));
      task.duration = Duration(duration);
      ORRERY_RETURN_IF_ERROR(line.Expect("ps"));
    }
    after_.clear();
    if (line.Take("after")) {
      do {
        ORRERY_ASSIGN_OR_RETURN(const TaskId before, LateTaskOf(line));
        after_.push_back(before);
      } while (line.At("task"));
    }
    program_.AddRendezvous(streams_, task, after_);
    return line.End();
  }

  // The streams of a task, into `streams_`.
  absl::Status ParseStreams(LineReader& line) {
    streams_.clear();
    do {
      const LineReader here = line;
      ORRERY_ASSIGN_OR_RETURN(const StreamId stream,
                              line.IdOf<StreamId>("stream", program_.stream_count()));
      if (std::find(streams_.begin(), streams_.end(), stream) != streams_.end()) {
        return here.Wanted("a stream that the task is not on already");
      }
      streams_.push_back(stream);
    } while (line.At("stream"));
    return absl::OkStatus();
  }

  absl::Status ParseMemory(LineReader& line) {
    MemoryEvent event;
    ORRERY_ASSIGN_OR_RETURN(event.task, LateTaskOf(line));
    ORRERY_ASSIGN_OR_RETURN(event.rank, Rank(line));
    ORRERY_ASSIGN_OR_RETURN(event.kind, line.Enum(kMemoryKindNames));
    ORRERY_ASSIGN_OR_RETURN(event.bytes, line.Int64());
    ORRERY_RETURN_IF_ERROR(line.Expect("bytes"));
    if (line.Take("late")) event.moment = MemoryMoment::kFinish;
    if (line.Take("early")) event.moment = MemoryMoment::kStart;
    program_.AddMemoryEvent(event);
    return line.End();
  }

  absl::StatusOr<RankClassId> Rank(LineReader& line) {
    return line.IdOf<RankClassId>("rank", program_.rank_count());
  }

  // A task that may be on a later line.
  absl::StatusOr<TaskId> LateTaskOf(LineReader& line) {
    ORRERY_ASSIGN_OR_RETURN(const TaskId task,
                            line.IdOf<TaskId>("task", std::numeric_limits<int32_t>::max()));
    if (task.index() >= program_.task_count()) late_.push_back({task, line.number()});
    return task;
  }

  Program& program_;
  int64_t members_ = 0;  // of all ranks until here
  std::vector<LateTask> late_;
  std::vector<StreamId> streams_;  // of the task at hand
  std::vector<TaskId> after_;      // of the task at hand
  std::vector<Load> loads_;        // of the flow at hand
};

}  // namespace
}  // namespace program_parser_cc

absl::StatusOr<Program> ParseProgram(absl::string_view text) {
  Program program;
  program_parser_cc::Parser parser(program);
  int number = 0;
  bool opened = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    LineReader reader(line, ++number);
    if (reader.AtEnd() || reader.word().front() == '#') continue;
    if (!opened) {
      ORRERY_RETURN_IF_ERROR(reader.Expect("program"));
      ORRERY_RETURN_IF_ERROR(reader.End());
      opened = true;
      continue;
    }
    ORRERY_RETURN_IF_ERROR(parser.ParseLine(reader));
  }
  if (!opened) return absl::InvalidArgumentError("line 1: found nothing, wanted 'program'");
  ORRERY_RETURN_IF_ERROR(parser.Finish());
  return program;
}

}  // namespace orrery::simulator
