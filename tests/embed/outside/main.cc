// An experiment of one's own: DistIR's MLP, parallelized over eight devices, and how long a step
// takes.
#include <cstdio>
#include <iostream>
#include <string>
#include <tuple>
#include <vector>

#include "ir/builder.h"
#include "lowering/lower.h"
#include "simulator/engine/play.h"
#include "simulator/report/report.h"
#include "support/status.h"
#include "transforms/parallel.h"
#include "transforms/training/training_step.h"

using namespace orrery;

absl::StatusOr<ir::Function> Mlp(int64_t batch, int64_t dim, size_t layers) {
  const ir::TensorType activation = {ir::DType::kF32, {batch, dim}};
  ir::Builder b("mlp");
  std::vector<ir::ValueId> a = {b.Data("x", activation)}, w, y;
  const ir::ValueId z = b.Data("z", activation);
  for (size_t i = 0; i < layers; ++i) {
    w.push_back(b.Parameter("w" + std::to_string(i), {ir::DType::kF32, {dim, dim}}));
    y.push_back(b.MatMul(a[i], w[i]));
    a.push_back(b.Relu(y[i]));
  }
  b.Return(b.Loss(a.back(), z, batch), ir::OutputRole::kLoss);
  ir::ValueId dw, dy = b.LossGrad(a.back(), z, batch);
  for (size_t i = layers; i-- > 0;) {
    std::tie(dy, dw) = b.MatMulGrad(a[i], w[i], b.ReluGrad(y[i], dy));
    b.ReturnGradient(dw, w[i]);
  }
  b.Return(dy);
  return std::move(b).Finalize();
}

absl::Status Experiment() {
  ORRERY_ASSIGN_OR_RETURN(ir::Function step, Mlp(2048, 1024, 16));
  ORRERY_RETURN_IF_ERROR(transforms::MakeTrainingStep(step, {.optimizer = "sgd"}));
  ORRERY_ASSIGN_OR_RETURN(const cluster::Cluster cluster,
                          cluster::ParseCluster("uniform:8@200Gbps"));
  ORRERY_ASSIGN_OR_RETURN(const auto cost_model, cost_models::MakeCostModel("kernels"));
  ORRERY_ASSIGN_OR_RETURN(const auto* schedule, transforms::FindSchedule("1f1b"));
  ORRERY_ASSIGN_OR_RETURN(
      const transforms::PipelinedStep pipelined,
      transforms::ParallelTransform3d(step, {.dp = 2, .hp = 2, .pp = 2, .microbatches = 4}));
  ORRERY_ASSIGN_OR_RETURN(const simulator::Program program,
                          lowering::Lower({pipelined, *schedule, cluster, *cost_model}));
  ORRERY_ASSIGN_OR_RETURN(const simulator::Trace trace, simulator::Play(program));
  std::printf("%.12f s\n", simulator::Summarize(program, trace).step_time.seconds());
  return absl::OkStatus();
}

int main() {
  const absl::Status status = Experiment();
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
