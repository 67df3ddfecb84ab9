#ifndef ORRERY_LOWERING_PLACEMENT_STAGE_MAKER_H_
#define ORRERY_LOWERING_PLACEMENT_STAGE_MAKER_H_

#include <cstdint>
#include <vector>

#include "lowering/network/geometry.h"
#include "lowering/network/pricing.h"
#include "lowering/placement/lowering_input.h"
#include "lowering/placement/stage.h"
#include "lowering/placement/template_maker.h"
#include "simulator/program/program.h"

namespace orrery::lowering {

/// Makes the stages of a step before anything is instantiated: their templates, with what they
/// cost, and the ranks that are simulated. It has so many fields: what it is made from stands by
/// its own names.
class StageMaker {
 public:
  /// All that it names must outlive this.
  explicit StageMaker(const StageMaterials& of)
      : of_(of),
        input_(of.input),
        geometry_(of.geometry),
        repetitions_(of_.repetitions),
        pricing_(of.pricing),
        program_(of.program),
        kinds_(KindsByPosition(of)) {}

  std::vector<Stage> Make();

  /// Whether one rank of each stage stands for all.
  bool folded() const { return fold_; }
  /// Whether the stages that were made are those of so many microbatches, too.
  bool Serves(const Repetitions& repetitions) const;

 private:
  bool HasTooManyTasks() const;
  bool OneKindAStage() const;
  void MakeRanks();
  void MakeActors(int32_t position);
  ir::Mesh MeshOfAll(int32_t position) const;
  int64_t SamplesAt(int32_t position) const;
  int64_t MicrobatchesOf(int32_t position) const;
  int64_t UnderWayOn(int32_t s) const;
  int32_t VersionsOf(const Repetitions& repetitions, int32_t s) const;
  void AddResidentsOf(int32_t position);
  Bytes CapacityOf(int32_t rank) const;
  void SetLevels();
  double SlowDownOf(int32_t position, int32_t rank) const;
  void PriceTemplates();
  void TakeSlowest(PricedTemplate& priced) const;
  const cluster::Device& DeviceOf(int32_t rank) const;

  const StageMaterials of_;
  const LoweringInput& input_;
  const Geometry& geometry_;
  const Repetitions& repetitions_;
  Pricing& pricing_;
  simulator::Program& program_;
  const std::vector<std::vector<int32_t>> kinds_;  // of the devices of each position, each once
  bool uses_host_ = false;
  bool alike_ = false;  // ranks of a stage
  bool fold_ = true;
  std::vector<Stage> stages_;
  std::vector<std::vector<Actor>> actors_;  // by position
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_STAGE_MAKER_H_
