#include "simulator/jitter/waits.h"

#include <algorithm>
#include <span>

namespace orrery::simulator {

WaitFinder::WaitFinder(const Program& program)
    : program_(program),
      arrivals_(program.stream_pool().size()),
      before_(program.stream_pool().size()),
      last_(static_cast<size_t>(program.task_count())),
      latest_(program.stream_count()),
      stamp_(static_cast<size_t>(program.task_count())),
      place_(program.rank_count(), -1) {
  // A stream runs its tasks in the order of their ids.
  for (int32_t t = 0; t < program.task_count(); ++t) {
    size_t row = program.stream_offsets()[static_cast<size_t>(t)];
    for (const StreamId stream : program.streams_of(TaskId(t))) {
      before_[row++] = latest_[stream];
      latest_[stream] = TaskId(t);
    }
  }
}

// When each rank of a rendezvous had come: what ran before on its stream and what it waits for on
// that rank had ended.
void WaitFinder::Arrive(TaskId task, const Trace& trace) {
  const std::span<const StreamId> streams = program_.streams_of(task);
  const std::span arrivals =
      std::span(arrivals_).subspan(program_.stream_offsets()[Row(task)], streams.size());
  for (size_t i = 0; i < streams.size(); ++i) {
    const TaskId before = before_[program_.stream_offsets()[Row(task)] + i];
    arrivals[i] = before.valid() ? trace.finish_of(before) : Time();
    place_[RankOf(streams[i])] = static_cast<int32_t>(i);
  }
  for (const TaskId dependency : program_.dependencies_of(task)) {
    if (stamp_[Row(dependency)] == task.index()) continue;  // named for each rank of it
    stamp_[Row(dependency)] = task.index();
    for (const StreamId stream : program_.streams_of(dependency)) {
      const int32_t place = place_[RankOf(stream)];
      if (place < 0) continue;
      Time& arrival = arrivals[static_cast<size_t>(place)];
      arrival = std::max(arrival, trace.finish_of(dependency));
    }
  }
  for (const StreamId stream : streams) place_[RankOf(stream)] = -1;
  last_[Row(task)] = static_cast<int32_t>(std::ranges::max_element(arrivals) - arrivals.begin());
}

// What finished last of what a kernel waited for beside its stream, where that was a rendezvous.
TaskId WaitFinder::GateOf(TaskId task, Time ready, const Trace& trace) const {
  TaskId gate;
  Time latest = ready;
  for (const TaskId dependency : program_.dependencies_of(task)) {
    if (trace.finish_of(dependency) <= latest) continue;
    gate = dependency;
    latest = trace.finish_of(dependency);
  }
  return gate.valid() && Meets(gate) ? gate : TaskId();
}

// From the start of a kernel to when its rank was ready: through rendezvous that stand in line.
void WaitFinder::WalkBack(TaskId gate, RankClassId rank, Time ready, Time start,
                          const Tell& tell) const {
  while (start > ready) {
    const std::span<const StreamId> streams = program_.streams_of(gate);
    const size_t begin = program_.stream_offsets()[Row(gate)];
    const auto own =
        std::ranges::find_if(streams, [&](StreamId stream) { return RankOf(stream) == rank; });
    if (own == streams.end()) return;
    const size_t row = begin + static_cast<size_t>(own - streams.begin());
    const auto last = static_cast<size_t>(last_[Row(gate)]);
    const Time from = std::max(arrivals_[row], ready);
    const Time to = std::min(arrivals_[begin + last], start);
    if (to > from) tell(rank, RankOf(streams[last]), to - from);
    const TaskId before = before_[row];
    start = arrivals_[row];
    if (!before.valid() || !Meets(before) || trace_->finish_of(before) < start) return;
    gate = before;
  }
}

void WaitFinder::Find(const Trace& trace, const Tell& tell) {
  trace_ = &trace;
  std::ranges::fill(stamp_, -1);
  for (int32_t t = 0; t < program_.task_count(); ++t) {
    const TaskId task(t);
    const std::span<const StreamId> streams = program_.streams_of(task);
    if (Meets(task)) Arrive(task, trace);
    const size_t begin = program_.stream_offsets()[Row(task)];
    for (size_t i = 0; i < streams.size(); ++i) {
      if (program_.stream(streams[i]).kind != StreamKind::kCompute) continue;
      const TaskId before = before_[begin + i];
      const Time ready = before.valid() ? trace.finish_of(before) : Time();
      const Time start = trace.start_of(task);
      if (start <= ready) continue;
      const TaskId gate = Meets(task) ? task : GateOf(task, ready, trace);
      if (gate.valid()) WalkBack(gate, RankOf(streams[i]), ready, start, tell);
    }
  }
}

}  // namespace orrery::simulator
