#ifndef ORRERY_LOWERING_PLACEMENT_STAGE_MAKER_H_
#define ORRERY_LOWERING_PLACEMENT_STAGE_MAKER_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lowering/network/geometry.h"
#include "lowering/network/pricing.h"
#include "lowering/placement/lowering_input.h"
#include "lowering/placement/stage.h"
#include "lowering/placement/stage_copy.h"
#include "simulator/program/program.h"

namespace orrery::lowering {

/// Makes the stages of a step before anything is instantiated: their templates, with what they
/// cost, and the ranks that are simulated.
/// So many parameters: all that lowering has made until then; made at one place.
class StageMaker {
 public:
  /// All of them must outlive this.
  StageMaker(const LoweringInput& input, const Geometry& geometry, const Repetitions& repetitions,
             Pricing& pricing, simulator::Program& program)
      : input_(input),
        geometry_(geometry),
        repetitions_(repetitions),
        pricing_(pricing),
        program_(program),
        copier_(program) {}

  std::vector<Stage> Make();

  /// Whether one rank of each stage stands for all.
  bool folded() const { return fold_; }

 private:
  PricedTemplate MakeTemplate(const transforms::StageFunction& part, const Stage& stage,
                              const TemplateContext& context);
  void MakeTemplates();
  size_t SizeOf(int32_t s) const;
  bool SeesOne(int32_t s) const;
  int32_t FindAlike(int32_t s) const;
  bool CopyFromEarlier(int32_t s);
  void MakeStage(int32_t s);
  std::vector<cluster::DeviceId> FirstGroup(int32_t s, const ir::AxisList& axes);
  int64_t PlacesOf(int32_t s, const ir::AxisList& axes);
  Duration TimeAlone(int32_t s, const TemplateTask& task);
  void MakeSlices(TemplateContext context, Stage& stage);
  bool CanFold();
  bool OneKindAStage() const;
  void MakeRanks();
  void MakeActors(int32_t position);
  Bytes CapacityOf(int32_t rank) const;
  void SetLevels();
  bool MaySlowDown() const;  // any kind of device
  double SlowDownOf(int32_t position, int32_t rank) const;
  void PriceTemplates();
  void TakeSlowest(PricedTemplate& priced) const;
  const cluster::Device& DeviceOf(int32_t rank) const;
  const std::vector<int32_t>& KindsOf(int32_t stage) const {
    return kinds_[static_cast<size_t>(geometry_.position_of(stage))];
  }

  // Whether the value goes to another rank.
  bool Travels(int32_t stage, const TemplateSend& send) const {
    return geometry_.position_of(stage) != geometry_.position_of(send.to);
  }

  const LoweringInput& input_;
  const Geometry& geometry_;
  const Repetitions repetitions_;
  Pricing& pricing_;
  simulator::Program& program_;
  StageCopier copier_;
  bool uses_host_ = false;
  bool fold_ = true;
  std::vector<Stage> stages_;
  absl::flat_hash_map<size_t, int32_t> last_of_size_;  // of stages, by the sizes of their parts
  std::vector<std::vector<Actor>> actors_;             // by position
  std::vector<std::vector<int32_t>> kinds_;            // of the devices of each position, each once
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_STAGE_MAKER_H_
