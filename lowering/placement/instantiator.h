#ifndef ORRERY_LOWERING_PLACEMENT_INSTANTIATOR_H_
#define ORRERY_LOWERING_PLACEMENT_INSTANTIATOR_H_

#include <array>
#include <cstdint>
#include <vector>

#include "lowering/network/geometry.h"
#include "lowering/network/pricing.h"
#include "lowering/placement/lowering_input.h"
#include "lowering/placement/stage.h"
#include "simulator/program/program.h"

namespace orrery::lowering {

/// Instantiates task templates: adds their tasks to a program, for every rank that is simulated,
/// each after what made its inputs.
/// So many parameters, and so many fields: all that lowering has made until then; made at one
/// place.
class Instantiator {
 public:
  /// Instead of a microbatch, of what runs once a step.
  static constexpr int32_t kUpdate = -1;

  /// A template of a stage, for a microbatch.
  struct Item {
    int32_t stage = 0;
    const PricedTemplate* priced = nullptr;
    int32_t microbatch = kUpdate;
    int64_t collected = 0;  // microbatches whose results the stage has kept before
  };

  /// All must outlive this.
  Instantiator(const LoweringOptions& options, const Geometry& geometry, Pricing& pricing,
               bool fold, const std::vector<Stage>& stages, simulator::Program& program)
      : options_(options),
        geometry_(geometry),
        pricing_(pricing),
        fold_(fold),
        remembers_(!options.blocking || geometry.stages() > geometry.positions()),
        stages_(stages),
        program_(program),
        progress_(RunnersBegin(geometry, stages.size(), first_runner_)),
        begun_(stages.size()),
        releases_(program.rank_count()),
        last_kernels_(program.rank_count()) {}

  /// How far a stage is; where microbatches are dealt, its replica that runs this one.
  StageProgress& progress(int32_t stage, int32_t microbatch) {
    return progress_[RunnerOf(stage, microbatch)];
  }
  /// What runs microbatches by itself, counted from 0: a stage, or a replica of one.
  size_t RunnerOf(int32_t stage, int32_t microbatch) const {
    const int32_t replica = geometry_.ReplicaOf(stage, microbatch);
    return first_runner_[static_cast<size_t>(stage)] +
           static_cast<size_t>(replica < 0 ? 0 : replica);
  }
  size_t runners() const { return progress_.size(); }
  /// Runs one template on every actor of its stage: op by op, so that the members of a collective
  /// meet.
  void Instantiate(const Item& item);
  /// Begins the update of a stage: what it reduces of gradients while backwards of other stages on
  /// its ranks still run. Instantiate(item) then does the rest.
  void BeginUpdate(const Item& item);
  /// Where replicas of a stage run microbatches in turn and update by themselves
  /// (transforms/stages/dealt_rounds.h): begins the update by a round, in which `first` and those
  /// behind it are the last microbatches, whose backwards have all been instantiated: all that
  /// replicas do together. The rest of it comes with EndRound, of each replica, before the next
  /// round begins.
  void BeginRound(int32_t stage, int32_t first);
  /// That rest, on the replica that runs this microbatch.
  void EndRound(int32_t stage, int32_t microbatch);
  /// Two templates of one rank at once: the runs of kernels of each between those of the other, as
  /// evenly as their durations allow, so that one computes while the other communicates.
  void InstantiateTogether(const Item& a, const Item& b);
  /// A value that a template makes or hands on goes to another stage: over the network, unless that
  /// is on the same rank.
  void InstantiateSend(const Item& item, size_t send);

 private:
  // On which streams of its sender and its receiver a message goes.
  struct SendStreams {
    simulator::StreamKind sending, receiving;
  };
  // A template while its tasks are being added.
  struct Instance {
    Item item;
    std::vector<simulator::TaskId> task_of;  // by task, then actor
    std::vector<simulator::TaskId> inputs;   // who made them, by input, then actor
    size_t next = 0;                         // task
    Duration done, total;                    // of its kernels
  };

  static size_t RunnersBegin(const Geometry& geometry, size_t stages, std::vector<size_t>& begin);
  // Whether a rank of the stage of an item takes part in it.
  bool Runs(int32_t stage, int32_t microbatch, size_t actor) const {
    const int32_t replica = geometry_.ReplicaOf(stage, microbatch);
    if (replica < 0) return true;
    return geometry_.replicas_at(geometry_.position_of(stage))[actor] == replica;
  }
  bool Runs(const Item& item, size_t actor) const {
    return Runs(item.stage, item.microbatch, actor);
  }
  const Makers::Tasks* FindLastMade(int32_t stage, ir::ValueId origin);

  const Stage& StageOf(const Item& item) const { return stages_[static_cast<size_t>(item.stage)]; }
  bool IsUpdate(const Item& item) const {
    return item.microbatch == kUpdate || StageOf(item).IsUpdate(item.priced);
  }
  // Of what goes to another stage.
  simulator::MemoryKind SentKind(const Item& item) const {
    return IsUpdate(item) ? simulator::MemoryKind::kGradients : simulator::MemoryKind::kActivations;
  }
  const Makers::Tasks* FindMade(int32_t stage, ir::ValueId origin, int32_t microbatch);
  size_t ActorCount(const Item& item) const { return StageOf(item).actors.size(); }
  void Begin(const Item& item, Instance& instance);
  void InstantiateNext(Instance& instance);
  void InstantiateRun(Instance& instance);
  void End(Instance& instance);
  void FindInputs(Instance& instance);
  void FindInputsOfRound(int32_t first, Instance& instance);
  size_t TogetherIn(const Item& item) const;
  void FindAfter(Instance& instance, const TemplateTask& task, size_t actor);
  void InstantiateKernel(Instance& instance, size_t t, size_t actor);
  void InstantiateCollective(Instance& instance, size_t t);
  void AddMemory(Instance& instance);
  void RememberMakers(Instance& instance);
  void HandOver(const Item& item, const TemplateSend& send, const Makers::Tasks* made);
  Makers::Tasks Transfer(const Item& item, size_t send, const Makers::Tasks* made);
  Makers::Tasks TransferAcross(const Item& item, const TemplateSend& send,
                               const Makers::Tasks* made);
  void GatherReceived(const Item& item, const TemplateSend& send, Makers::Tasks& tasks);
  SendStreams StreamsOf(const Item& item, const TemplateSend& send) const;
  simulator::StreamId StreamOf(const Actor& actor, simulator::StreamKind kind) const {
    return actor.streams[options_.blocking ? 0 : static_cast<size_t>(kind)];
  }

  const LoweringOptions& options_;
  const Geometry& geometry_;
  Pricing& pricing_;
  const bool fold_;
  const bool remembers_;  // who made what; a rank that does one thing at a time need not ask
  const std::vector<Stage>& stages_;
  simulator::Program& program_;
  std::vector<size_t> first_runner_;     // by stage
  std::vector<StageProgress> progress_;  // by runner
  Makers::Tasks last_made_;              // by all replicas of a stage
  std::array<Instance, 2> instances_;
  std::vector<Instance> begun_;  // updates, by stage; of rounds, what replicas do together
  // Of the last template of each rank that gathers weights: after which tasks it has dropped them.
  IdTable<simulator::RankClassId, std::vector<simulator::TaskId>> releases_;
  IdTable<simulator::RankClassId, simulator::TaskId> last_kernels_;  // added on each rank
  std::vector<simulator::TaskId> after_;
  std::vector<simulator::StreamId> streams_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_INSTANTIATOR_H_
