#include <algorithm>
#include <array>
#include <vector>

#include "lowering/placement/instantiator.h"

// Sends between stages whose ranks are not alike.

namespace orrery::lowering {

using simulator::StreamKind;
using simulator::TaskId;

// Ranks of the two stages are not alike. A rank has all of it after the last message on its stream.
Makers::Tasks Instantiator::TransferAcross(const Item& item, const TemplateSend& send,
                                           const Makers::Tasks* made) {
  const std::vector<Actor>& from = StageOf(item).actors;
  const std::vector<Actor>& to = stages_[static_cast<size_t>(send.to)].actors;
  const SendStreams streams = StreamsOf(item, send);
  const simulator::MemoryKind kind = SentKind(item);
  Makers::Tasks tasks(to.size()), sent(from.size());
  std::vector<int64_t> left(to.size(), send.across.received.count());
  for (const SendMessage& message : send.across.messages) {
    const auto sender = static_cast<size_t>(message.from),
               receiver = static_cast<size_t>(message.to);
    if (!Runs(item, sender) || !Runs(send.to, item.microbatch, receiver)) continue;
    after_.clear();
    if (made != nullptr && (*made)[sender].valid()) after_.push_back((*made)[sender]);
    const TaskTime time = pricing_.TimeOf(message.movement, message.group);
    const TaskId task =
        program_.AddRendezvous(std::array{StreamOf(from[sender], streams.sending),
                                          StreamOf(to[receiver], streams.receiving)},
                               {.duration = time.duration,
                                .flow = time.flow,
                                .label = message.label,
                                .microbatch = item.microbatch},
                               after_);
    sent[sender] = tasks[receiver] = task;
    const int64_t taken = std::min(left[receiver], message.bytes.count());
    left[receiver] -= taken;
    program_.AddMemoryEvent(
        {.task = task, .rank = to[receiver].rank, .kind = kind, .bytes = taken});
  }
  // Who sends or gets nothing has, or lets go of, its own all the same.
  const TaskId any = program_.task_count() > 0 ? TaskId(program_.task_count() - 1) : TaskId();
  for (size_t a = 0; a < from.size() && send.freed; ++a) {
    if (!Runs(item, a)) continue;
    const bool known = made != nullptr && (*made)[a].valid();
    const TaskId last = sent[a].valid() ? sent[a] : known ? (*made)[a] : any;
    program_.AddMemoryEvent(
        {.task = last, .rank = from[a].rank, .kind = kind, .bytes = -send.bytes.count()});
  }
  if (send.across.gathering.valid()) GatherReceived(item, send, tasks);
  for (size_t a = 0; a < to.size(); ++a) {
    if (left[a] == 0 || !Runs(send.to, item.microbatch, a)) continue;
    program_.AddMemoryEvent({.task = tasks[a].valid() ? tasks[a] : any,
                             .rank = to[a].rank,
                             .kind = kind,
                             .bytes = left[a]});
  }
  return tasks;
}

// The local all-gather: each receiver has a share of what all of its group want.
void Instantiator::GatherReceived(const Item& item, const TemplateSend& send,
                                  Makers::Tasks& tasks) {
  const std::vector<Actor>& actors = stages_[static_cast<size_t>(send.to)].actors;
  const auto& groups = pricing_.GroupsOf(send.to, send.across.gather);
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!Runs(send.to, item.microbatch, static_cast<size_t>(groups[g].front()))) continue;
    after_.clear();
    streams_.clear();
    for (const int32_t member : groups[g]) {
      const auto actor = static_cast<size_t>(member);
      if (tasks[actor].valid()) after_.push_back(tasks[actor]);
      streams_.push_back(StreamOf(actors[actor], StreamKind::kHorizontal));
    }
    const TaskTime time = pricing_.TimeOf(send.across.gathering, g);
    const TaskId gathered = program_.AddRendezvous(streams_,
                                                   {.duration = time.duration,
                                                    .flow = time.flow,
                                                    .label = send.across.label,
                                                    .microbatch = item.microbatch},
                                                   after_);
    for (const int32_t member : groups[g]) tasks[static_cast<size_t>(member)] = gathered;
  }
}

}  // namespace orrery::lowering
