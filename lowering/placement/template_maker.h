#ifndef ORRERY_LOWERING_PLACEMENT_TEMPLATE_MAKER_H_
#define ORRERY_LOWERING_PLACEMENT_TEMPLATE_MAKER_H_

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

/// What stages are made of, and where what is found out about them goes. All live longer than who
/// makes them.
struct StageMaterials {
  const LoweringInput& input;
  const Geometry& geometry;
  const Repetitions repetitions;  // of all microbatches that there are
  Pricing& pricing;
  simulator::Program& program;
};

/// The kinds of the devices at each position along "pp", each once.
std::vector<std::vector<int32_t>> KindsByPosition(const StageMaterials& of);

/// Whether communication slows down kernels, of any kind of device.
bool MaySlowDown(const LoweringInput& input);

/// Whether a stage sees one microbatch: it has nothing to add to, and the update follows it.
bool SeesOne(const StageMaterials& of, int32_t stage);

/// Makes the templates of stages, runs of kernels fused, before it is known what communication
/// costs. Stages that match op by op share the work (StageCopier).
class TemplateMaker {
 public:
  /// `kinds`: KindsByPosition.
  TemplateMaker(const StageMaterials& of, const std::vector<std::vector<int32_t>>& kinds)
      : of_(of), input_(of.input), kinds_(kinds), copier_(of.program) {}

  /// The stages, without actors and prices; what they communicate is announced to Pricing.
  std::vector<Stage> Make() &&;

 private:
  PricedTemplate MakeTemplate(const transforms::StageFunction& part, const Stage& stage,
                              const TemplateContext& context);
  void Reduce(const ir::Function& update, const Stage& stage, const TemplateContext& context,
              TaskTemplate& task_template, simulator::Program& program) const;
  size_t SizeOf(int32_t s) const;
  int32_t FindAlike(int32_t s) const;
  bool CopyFromEarlier(int32_t s);
  void MakeStage(int32_t s);
  void Announce(int32_t s);
  void AnnounceAcross(int32_t s, const transforms::StageFunction& part, TemplateSend& send);
  TemplateContext ContextOf(int32_t s);
  void MakePhases(TemplateContext context, Stage& stage);
  void MakeSlices(TemplateContext context, Stage& stage);
  void MakeUpdate(TemplateContext context, Stage& stage);
  std::vector<cluster::DeviceId> FirstGroup(int32_t s, const ir::AxisList& axes);
  int64_t PlacesOf(int32_t s, const ir::AxisList& axes);
  Duration TimeAlone(int32_t s, const TemplateTask& task);
  const transforms::PipelineStage& PartsOf(int32_t s) const {
    return input_.step.stages[static_cast<size_t>(s)];
  }
  const std::vector<int32_t>& KindsOf(int32_t s) const {
    return kinds_[static_cast<size_t>(of_.geometry.position_of(s))];
  }

  const transforms::StageFunction& PartOf(int32_t s, size_t number) const;

  const StageMaterials& of_;
  const LoweringInput& input_;
  const std::vector<std::vector<int32_t>>& kinds_;
  StageCopier copier_;
  bool has_runs_ = true;  // of kernels
  std::vector<Stage> stages_;
  absl::flat_hash_map<size_t, int32_t> last_of_size_;  // of stages, by the sizes of their parts
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_TEMPLATE_MAKER_H_
