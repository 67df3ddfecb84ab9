#include "simulator/parameter_server/play_training.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/parameter_server/agenda.h"
#include "simulator/parameter_server/channels.h"
#include "simulator/parameter_server/connections.h"
#include "simulator/parameter_server/hosts.h"
#include "simulator/parameter_server/kernel_times.h"
#include "simulator/parameter_server/layout.h"
#include "simulator/parameter_server/meters.h"
#include "simulator/parameter_server/servers.h"
#include "simulator/parameter_server/span_log.h"
#include "simulator/parameter_server/versions.h"
#include "simulator/parameter_server/worker_state.h"
#include "support/check.h"

namespace orrery::simulator::parameter_server {
namespace play_training_cc {
namespace {

// Workers, connections and servers, each in a place of its own, and what passes between them: what
// a moment makes of one of them is told to the others by the functions below. So many fields: all
// that there is in a run.
class Engine {
 public:
  Engine(const Training& training, int32_t traced);
  absl::StatusOr<Outcome> Run();

 private:
  size_t Row(int32_t worker, int32_t part) const {
    return static_cast<size_t>(worker) * training_.parts.size() + static_cast<size_t>(part);
  }
  int32_t AgentOf(int32_t worker, int32_t part) const {
    return hosts_.AgentOf(worker, PartOf(part).lane);
  }
  const Part& PartOf(int32_t part) const { return training_.parts[static_cast<size_t>(part)]; }
  WorkerState& WorkerOf(int32_t worker) { return workers_[static_cast<size_t>(worker)]; }
  void Note(Span::Kind kind, const Reader& of, int32_t what, Time start) {
    spans_.Add(kind, of, what, {start, now_});
  }
  void Handle(const Event& event);
  void MeasureFromHere();
  void HeldUp(int32_t w);
  void TakeSent();
  Outcome Tell();

  void TryStart(int32_t w);
  void Computed(int32_t w);
  void Completed(const Reader& of, int32_t part);
  void Added(const Reader& agent, int32_t part);
  void Send(Message::Way way, const Reader& of, int32_t part);
  void Pushed(const Message& message);
  void TakeUp(const Message& message);
  void Worked(int32_t server);
  void AskForAll(int32_t w, int32_t step);
  void Ask(const Reader& reader, int32_t part);
  void Readable(const Reader& reader, int32_t part, Time arrived);
  void Release(const Reader& reader, int32_t part);
  void Pulled(const Message& message);
  void Spread(const Message& message);
  void Have(const Reader& reader, int32_t part);

  const Training& training_;
  const Layout layout_;
  const Hosts hosts_;
  const Connections connections_;
  const bool by_key_;  // parameters are asked for one by one, with each gradient
  Time now_;
  uint32_t sequence_ = 0;
  int64_t done_ = 0, warm_at_ = 0, last_begin_ = 0, target_ = 0, events_ = 0;
  Agenda agenda_;
  std::vector<std::pair<int32_t, Message>> sent_;
  Channels channels_;
  Servers servers_;
  Versions versions_;
  KernelTimes times_;
  Meters meters_;
  std::vector<WorkerState> workers_;
  std::vector<Copy> copies_;                  // by worker and part
  std::vector<std::vector<Reader>> readers_;  // by part
  SpanLog spans_;
};

Engine::Engine(const Training& training, int32_t traced)
    : training_(training),
      layout_(LayoutOf(training)),
      hosts_(training),
      connections_(training),
      by_key_(training.policy.overlap && training.policy.backup == 0),
      channels_(training.network, connections_.routes(), connections_.Weights()),
      servers_(training.servers),
      versions_(training.policy, hosts_.count(), training.parts.size()),
      times_(training),
      meters_(training.workers),
      workers_(static_cast<size_t>(training.workers)),
      copies_(static_cast<size_t>(training.workers) * training.parts.size()),
      readers_(training.parts.size()),
      spans_(training.parts, traced) {
  last_begin_ = target_ = int64_t{training.workers} * training.steps;
  warm_at_ = int64_t{training.workers} * (training.steps == 1 ? 0 : (training.steps + 4) / 5);
}

absl::StatusOr<Outcome> Engine::Run() {
  if (warm_at_ == 0) MeasureFromHere();
  for (int32_t w = 0; w < training_.workers; ++w) {
    WorkerOf(w).asks = false;
    TryStart(w);
  }
  constexpr Duration kMargin(1'000'000'000'000'000);  // no event is scheduled so far ahead
  while (done_ < target_) {
    std::optional<Time> next = channels_.Next(now_);
    if (!agenda_.empty() && (!next.has_value() || agenda_.next() < *next)) next = agenda_.next();
    ORRERY_CHECK(next.has_value()) << "all workers wait, and nothing will happen";
    if (*next > kLongestDuration - kMargin) {
      return absl::OutOfRangeError("the run takes longer than 53 days; wanted fewer steps");
    }
    now_ = *next;
    TakeSent();
    while (!agenda_.empty() && agenda_.next() == now_ && done_ < target_) Handle(agenda_.Take());
  }
  return Tell();
}

// What was sent by now is on its way until it arrives.
void Engine::TakeSent() {
  sent_.clear();
  channels_.Advance(now_, sent_);
  for (const auto& [channel, message] : sent_) {
    agenda_.AddArrival(now_ + connections_.route(channel).latency, message);
  }
}

Outcome Engine::Tell() {
  Outcome outcome = std::move(meters_).Tell(now_);
  const double length = (now_ - outcome.warm).seconds();
  outcome.link_use = channels_.Use(now_, length);
  outcome.server_use = servers_.Use(length);
  outcome.events = events_;
  outcome.spans = std::move(spans_).Take();
  return outcome;
}

void Engine::MeasureFromHere() {
  meters_.Warm(now_);
  channels_.Forget(now_);
  servers_.Forget(now_);
}

// A worker that is held up by the bound for the first time has been faster than it can be in the
// long run until now: what counts begins anew, as long as the run would have gone on, and goes on
// for as many steps as are measured otherwise.
void Engine::HeldUp(int32_t w) {
  WorkerState& worker = WorkerOf(w);
  if (worker.held) return;
  worker.held = true;
  if (training_.policy.bound == 0 || done_ < warm_at_ || done_ >= last_begin_) return;
  target_ = done_ + last_begin_ - warm_at_;
  MeasureFromHere();
}

void Engine::Handle(const Event& event) {
  ++events_;
  switch (event.kind) {
    case Event::Kind::kComputed:
      return Computed(event.who);
    case Event::Kind::kWorked:
      return Worked(event.who);
    case Event::Kind::kArrived:
      break;
  }
  const Message message = agenda_.Land(event.who);
  const Reader of{message.worker, message.step};
  switch (message.way) {
    case Message::Way::kPush:
      return Pushed(message);
    case Message::Way::kPull:
      return Pulled(message);
    case Message::Way::kAddUp:
      Note(Span::Kind::kAddUp, of, message.part, message.start);
      return Added({AgentOf(of.worker, message.part), of.step}, message.part);
    case Message::Way::kSpread:
      return Spread(message);
  }
}

// Begins with the next segment where all that it needs is there.
void Engine::TryStart(int32_t w) {
  WorkerState& worker = WorkerOf(w);
  if (worker.asks) return;
  const std::vector<int32_t>& needs = layout_.needs[worker.segment];
  for (; worker.checked < needs.size(); ++worker.checked) {
    if (copies_[Row(w, needs[worker.checked])].step < worker.step) return;
  }
  worker.computes = true;
  worker.waits_since = now_;  // of the kernels: when they could begin
  agenda_.Add(times_.FinishOf(w, worker.step, worker.segment, worker.last, now_),
              Event::Kind::kComputed, w);
}

void Engine::Computed(int32_t w) {
  WorkerState& worker = WorkerOf(w);
  const Reader of{w, worker.step};
  meters_.Computed(w, worker.waits_since, now_);
  Note(Span::Kind::kCompute, of, static_cast<int32_t>(worker.segment), worker.waits_since);
  for (const int32_t part : layout_.completes[worker.segment]) Completed(of, part);
  worker.computes = false;
  worker.last = worker.waits_since = now_;
  worker.checked = 0;
  if (++worker.segment == training_.segments.size()) {
    worker.segment = 0;
    meters_.Finished(w, worker.step++, now_);
    worker.asks = !by_key_;
    if (++done_ == warm_at_) MeasureFromHere();
  }
  TryStart(w);
}

// A gradient goes to who pushes it for its host.
void Engine::Completed(const Reader& of, int32_t part) {
  if (AgentOf(of.worker, part) == of.worker) return Added(of, part);
  Send(Message::Way::kAddUp, of, part);
}

void Engine::Added(const Reader& agent, int32_t part) {
  int32_t& added = copies_[Row(agent.worker, part)].added;
  if (++added < hosts_.SizeOf(agent.worker)) return;
  added = 0;
  Send(Message::Way::kPush, agent, part);
}

void Engine::Send(Message::Way way, const Reader& of, int32_t part) {
  const int32_t server = PartOf(part).server, agent = AgentOf(of.worker, part);
  const bool gradient = way == Message::Way::kPush || way == Message::Way::kAddUp;
  channels_.Send(connections_.Of(way, {.worker = of.worker, .agent = agent, .server = server}),
                 {.priority = layout_.priorities[static_cast<size_t>(part)],
                  .sequence = sequence_++,
                  .worker = of.worker,
                  .part = part,
                  .step = of.step,
                  .way = way,
                  .size = gradient ? PartOf(part).gradient : PartOf(part).parameter},
                 now_);
}

void Engine::Pushed(const Message& message) {
  Note(Span::Kind::kPush, {message.worker, message.step}, message.part, message.start);
  TakeUp(message);
  copies_[Row(message.worker, message.part)].stages.pushed = now_;
  if (by_key_) return Ask({message.worker, message.step + 1}, message.part);
  const int32_t first = hosts_.FirstOf(message.worker);
  if (++WorkerOf(first).arrived < training_.parts.size()) return;
  WorkerOf(first).arrived = 0;
  const int32_t size = hosts_.SizeOf(first);
  for (int32_t i = 0; i < size; ++i) AskForAll(first + i, message.step + 1);
}

// What the server makes of a gradient.
void Engine::TakeUp(const Message& message) {
  const auto p = static_cast<size_t>(message.part);
  const Taken taken = versions_.Take(p, message.step);
  const Part& part = PartOf(message.part);
  meters_.Came(static_cast<double>(part.gradient.count()), taken == Taken::kDropped);
  if (taken == Taken::kDropped || (taken == Taken::kSummed && versions_.first())) return;
  const bool updates = taken == Taken::kApplied;
  Duration length = versions_.first() ? Duration(0) : layout_.sums[p];
  if (updates) length = SaturatedSum(length, layout_.updates[p]);
  const std::optional<Time> end = servers_.Add(part.server,
                                               {.priority = layout_.priorities[p],
                                                .sequence = sequence_++,
                                                .worker = message.worker,
                                                .part = message.part,
                                                .step = message.step,
                                                .updates = updates,
                                                .arrived = now_,
                                                .length = length},
                                               now_);
  if (end.has_value()) agenda_.Add(*end, Event::Kind::kWorked, part.server);
}

void Engine::Worked(int32_t server) {
  const Work work = servers_.Take(server, now_);
  const auto p = static_cast<size_t>(work.part);
  Note(work.updates ? Span::Kind::kUpdate : Span::Kind::kSum, {work.worker, work.step}, work.part,
       work.start);
  if (work.updates) {
    if (training_.policy.sync != Sync::kBulk) {
      meters_.Delayed(versions_.updates(p) - copies_[Row(work.worker, work.part)].version,
                      static_cast<double>(PartOf(work.part).gradient.count()));
    }
    versions_.Applied(p, work.worker);
    if (work.part == 0) meters_.Updated(now_);
    std::vector<Reader> waiting = std::exchange(readers_[p], {});
    for (const Reader& reader : waiting) {
      if (versions_.MayRead(p, reader.worker, reader.step)) {
        Readable(reader, work.part, work.arrived);
      } else {
        if (versions_.IsAhead(p, reader.worker, reader.step)) HeldUp(reader.worker);
        readers_[p].push_back(reader);
      }
    }
  }
  const std::optional<Time> end = servers_.Next(server, now_);
  if (end.has_value()) agenda_.Add(*end, Event::Kind::kWorked, server);
}

// All gradients of a worker are at servers. One that the others have left behind joins them.
void Engine::AskForAll(int32_t w, int32_t step) {
  WorkerState& worker = WorkerOf(w);
  const int32_t next = training_.policy.backup > 0 ? std::max(step, versions_.complete()) : step;
  meters_.WaitedForPushes(w, worker.waits_since, now_);
  if (next > step) meters_.Skipped(w, next - step);
  worker.step = next;
  worker.waits_since = now_;
  worker.readable = 0;
  worker.asks = false;
  for (size_t p = 0; p < training_.parts.size(); ++p) {
    const auto part = static_cast<int32_t>(p);
    if (AgentOf(w, part) != w) continue;
    copies_[Row(w, part)].stages.pushed = now_;
    Ask({w, next}, part);
  }
  TryStart(w);
}

void Engine::Ask(const Reader& reader, int32_t part) {
  const auto p = static_cast<size_t>(part);
  if (versions_.MayRead(p, reader.worker, reader.step)) return Readable(reader, part, now_);
  if (versions_.IsAhead(p, reader.worker, reader.step)) HeldUp(reader.worker);
  readers_[p].push_back(reader);
}

// A reader might have the part, since the gradient that came at `arrived` is in it.
void Engine::Readable(const Reader& reader, int32_t part, Time arrived) {
  Stages& stages = copies_[Row(reader.worker, part)].stages;
  stages.gathered = std::max(stages.pushed, arrived);
  if (training_.policy.overlap) return Release(reader, part);
  WorkerState& first = WorkerOf(hosts_.FirstOf(reader.worker));
  if (++first.readable < training_.parts.size()) return;
  const Time gathered = stages.gathered;
  for (int32_t p = 0; p < static_cast<int32_t>(training_.parts.size()); ++p) {
    const int32_t agent = AgentOf(reader.worker, p);
    copies_[Row(agent, p)].stages.gathered = gathered;
    Release({agent, reader.step}, p);
  }
}

void Engine::Release(const Reader& reader, int32_t part) {
  const auto p = static_cast<size_t>(part);
  Copy& copy = copies_[Row(reader.worker, part)];
  copy.stages.released = now_;
  copy.version = versions_.updates(p);
  meters_.Lacks(reader.worker, reader.step, versions_.Lag(p, reader.step));
  Send(Message::Way::kPull, reader, part);
}

void Engine::Pulled(const Message& message) {
  const Reader agent{message.worker, message.step};
  Note(Span::Kind::kPull, agent, message.part, message.start);
  const int32_t first = hosts_.FirstOf(agent.worker), size = hosts_.SizeOf(agent.worker);
  for (int32_t w = first; w < first + size; ++w) {
    if (w != agent.worker) Send(Message::Way::kSpread, {w, agent.step}, message.part);
  }
  Have(agent, message.part);
}

void Engine::Spread(const Message& message) {
  const Reader reader{message.worker, message.step};
  Note(Span::Kind::kSpread, reader, message.part, message.start);
  copies_[Row(reader.worker, message.part)].stages =
      copies_[Row(AgentOf(reader.worker, message.part), message.part)].stages;
  Have(reader, message.part);
}

// A worker has a part for a step.
void Engine::Have(const Reader& reader, int32_t part) {
  Copy& copy = copies_[Row(reader.worker, part)];
  copy.step = reader.step;
  WorkerState& worker = WorkerOf(reader.worker);
  if (worker.computes || worker.asks) return;
  const std::vector<int32_t>& needs = layout_.needs[worker.segment];
  if (worker.checked >= needs.size() || needs[worker.checked] != part) return;
  meters_.Waited(reader.worker, worker.waits_since, now_, copy.stages);
  worker.waits_since = now_;
  TryStart(reader.worker);
}

}  // namespace
}  // namespace play_training_cc

absl::StatusOr<Outcome> Play(const Training& training, int32_t traced) {
  const absl::Status status = Check(training);
  if (!status.ok()) return status;
  return play_training_cc::Engine(training, traced).Run();
}

}  // namespace orrery::simulator::parameter_server
