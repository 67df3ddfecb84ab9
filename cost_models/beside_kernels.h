#ifndef ORRERY_COST_MODELS_BESIDE_KERNELS_H_
#define ORRERY_COST_MODELS_BESIDE_KERNELS_H_

#include <memory>
#include <string>

#include "cost_models/cost_model.h"

namespace orrery::cost_models {

/// Of models that measurements correct: all that they do not say themselves is as `kernels` has it.
class BesideKernels : public CostModel {
 public:
  Duration Compute(const OpView& op, const cluster::Device& device) const override {
    return kernels_->Compute(op, device);
  }
  std::optional<Duration> Fused(Flops flops, Bytes bytes,
                                const cluster::Device& device) const override {
    return kernels_->Fused(flops, bytes, device);
  }
  Duration Transfer(Bytes size, const cluster::PathInfo& path) const override {
    return kernels_->Transfer(size, path);
  }
  Duration Collective(CollectiveKind kind, Bytes size, std::span<const cluster::DeviceId> group,
                      const cluster::Topology& topology) const override {
    return kernels_->Collective(kind, size, group, topology);
  }
  bool shares_links() const override { return kernels_->shares_links(); }
  double Straggling(const cluster::Device& device) const override {
    return kernels_->Straggling(device);
  }
  std::string DoubtAbout(const cluster::Device& device) const override {
    return kernels_->DoubtAbout(device);
  }

 private:
  std::unique_ptr<const CostModel> kernels_ = *MakeCostModel("kernels");
};

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_BESIDE_KERNELS_H_
