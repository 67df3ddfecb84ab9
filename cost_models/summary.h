#ifndef ORRERY_COST_MODELS_SUMMARY_H_
#define ORRERY_COST_MODELS_SUMMARY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "support/units.h"

// What a function is and does, counted: parameters, flops, bytes and kernels, without a device and
// without a schedule. Of a function that is sharded over a mesh, what one rank holds and does.

namespace orrery::cost_models {

/// The parts of a training step. Backward is what depends on the gradient of the loss.
enum class Phase : uint8_t { kForward, kBackward, kOptimizer };
/// How many phases there are.
inline constexpr size_t kPhaseCount = 3;

/// The phase of each op, by op number; ops that the order leaves out count as forward.
IdTable<ir::OpId, Phase> PhasesOf(const ir::Function& function);

/// What some ops do together.
struct Work {
  int64_t ops = 0;
  int64_t kernels = 0;  // views are none
  Flops flops;
  /// Of matrix products, convolutions and attention alone, and without what backward computes a
  /// second time: the flops of the published formulas, which count a multiply-add as two.
  Flops model_flops;
  Bytes moved;  // operands read and results written, once each

  Work& operator+=(const Work& other);
  /// Flops a byte moved.
  double intensity() const;
};

/// Tensors of one kind: how many elements, and how many bytes.
struct Extent {
  int64_t elements = 0;
  Bytes bytes;
};

/// What all ops of one kind do together.
struct KindWork {
  ir::OpKind kind;
  Work work;
};

/// What a function holds and does; of a sharded one, one rank of it.
struct Summary {
  Extent parameters, buffers, state;
  std::array<Work, kPhaseCount> phases;
  /// Results of forward ops that backward ops read, each tensor once: a view of it is no other.
  Bytes saved_activations;
  std::vector<KindWork> kinds;  // most flops first

  /// What the ops of one phase do.
  const Work& phase(Phase phase) const { return phases[static_cast<size_t>(phase)]; }
  /// What all phases do together.
  Work total() const;
};

/// Counts. The function must verify.
Summary Summarize(const ir::Function& function);

/// The summary as tables for people, under the name of the model.
std::string SummaryText(const Summary& summary, absl::string_view model);

/// The summary as one JSON object with a newline at its end; sizes are in bytes.
std::string SummaryJson(const Summary& summary, absl::string_view model);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_SUMMARY_H_
