#ifndef ORRERY_LOWERING_PLACEMENT_PLACER_H_
#define ORRERY_LOWERING_PLACEMENT_PLACER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "lowering/network/geometry.h"
#include "lowering/network/pricing.h"
#include "lowering/placement/lowering_input.h"
#include "lowering/placement/stage.h"
#include "simulator/program/program.h"

namespace orrery::lowering {

/// Places blocks: adds their tasks to a program, for every rank that is simulated, each after what
/// made its inputs.
class Placer {
 public:
  /// In the place of a microbatch, of what runs once a step.
  static constexpr int32_t kUpdate = -1;

  /// A block of a stage, for a microbatch.
  struct Item {
    int32_t stage = 0;
    const PlacedBlock* placed = nullptr;
    int32_t microbatch = kUpdate;
    int64_t collected = 0;  // microbatches whose results the stage has kept before
  };

  /// All must outlive this.
  Placer(const LoweringOptions& options, const Geometry& geometry, Pricing& pricing, bool fold,
         std::vector<Stage>& stages, simulator::Program& program)
      : options_(options),
        geometry_(geometry),
        pricing_(pricing),
        fold_(fold),
        remembers_(!options.blocking || geometry.stages() > geometry.places()),
        stages_(stages),
        program_(program),
        releases_(program.rank_count()),
        last_kernels_(program.rank_count()) {}

  bool folded() const { return fold_; }
  /// Runs one block on every actor of its stage: op by op, so that the members of a collective
  /// meet.
  void Place(const Item& item);
  /// Two blocks of one rank at once: the runs of kernels of each between those of the other, as
  /// evenly as their durations allow, so that one computes while the other communicates.
  void PlaceTogether(const Item& a, const Item& b);
  /// A value that a block makes or hands on goes to another stage: over the network, unless that
  /// is on the same rank.
  void PlaceSend(const Item& item, size_t send);

 private:
  // A block while its tasks are being added.
  struct Placing {
    Item item;
    std::vector<simulator::TaskId> task_of;  // by task, then actor
    std::vector<simulator::TaskId> inputs;   // who made them, by input, then actor
    size_t next = 0;                         // task
    Duration done, total;                    // of its kernels
  };

  Stage& StageOf(const Item& item) { return stages_[static_cast<size_t>(item.stage)]; }
  size_t ActorCount(const Item& item) { return StageOf(item).actors.size(); }
  void Begin(const Item& item, Placing& placing);
  void PlaceNext(Placing& placing);
  void PlaceRun(Placing& placing);
  void End(Placing& placing);
  void FindInputs(Placing& placing);
  void FindAfter(Placing& placing, const BlockTask& task, size_t actor);
  void PlaceKernel(Placing& placing, size_t t, size_t actor);
  void PlaceCollective(Placing& placing, size_t t);
  void AddMemory(Placing& placing);
  void RememberMakers(Placing& placing);
  void HandOver(const Item& item, const BlockSend& send, const Makers::Tasks* made);
  Makers::Tasks Transfer(const Item& item, size_t send, const Makers::Tasks* made);
  simulator::StreamId StreamOf(const Actor& actor, simulator::StreamKind kind) const {
    return actor.streams[options_.blocking ? 0 : static_cast<size_t>(kind)];
  }

  const LoweringOptions& options_;
  const Geometry& geometry_;
  Pricing& pricing_;
  const bool fold_;
  const bool remembers_;  // who made what; a rank that does one thing at a time need not ask
  std::vector<Stage>& stages_;
  simulator::Program& program_;
  std::array<Placing, 2> placing_;
  // Of the last block of each rank that gathers weights: after which tasks it has dropped them.
  IdTable<simulator::RankClassId, std::vector<simulator::TaskId>> releases_;
  IdTable<simulator::RankClassId, simulator::TaskId> last_kernels_;  // placed on each rank
  std::vector<simulator::TaskId> after_;
  std::vector<simulator::StreamId> streams_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_PLACER_H_
