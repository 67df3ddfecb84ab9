#ifndef ORRERY_SEARCH_BOUNDS_LEAST_WORK_H_
#define ORRERY_SEARCH_BOUNDS_LEAST_WORK_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "cost_models/least_time.h"
#include "search/cuts/step_chains.h"
#include "search/settings/setting.h"

// The kernels of a step, priced from below without knowing how they are sharded: what a bound of
// time is made of. docs/search.md argues it.

namespace orrery::search {

/// From below, seconds of some ops in one microbatch of one replica.
struct LeastSeconds {
  double shared = 0;  // that the ranks of a stage share out among them
  double starts = 0;  // that each of them has

  /// Of a rank, where so many ranks share.
  double Of(double ranks) const { return shared / ranks + starts; }
  LeastSeconds& operator+=(const LeastSeconds& other) {
    shared += other.shared;
    starts += other.starts;
    return *this;
  }
};

/// The larger of both, by parts.
inline LeastSeconds Larger(const LeastSeconds& a, const LeastSeconds& b) {
  return {.shared = std::max(a.shared, b.shared), .starts = std::max(a.starts, b.starts)};
}

/// What one microbatch of one replica takes at least on all stages together, and which of it
/// nothing else of that microbatch goes on beside, however the model is cut (StepChains).
struct LeastWork {
  LeastSeconds all;                // forward and backward
  LeastSeconds sums;               // of gradients, with those of earlier microbatches
  LeastSeconds forward, backward;  // the chains, of `all`
  LeastSeconds gap;                // the longest of StepChains::gaps
  LeastSeconds outside;            // of both chains, in a stage outside of them at most
  LeastSeconds all_outside;        // in all such stages
  LeastSeconds outside_again;      // of forward, whatever is in such a stage
  LeastSeconds layer;              // the longest layer, forward
};

/// Which of the ops of a step count, and how its batch is parted.
struct WorkChoice {
  int64_t parts = 1;  // of the batch: microbatches of all replicas
  /// Sequences are parted over ranks: a mask may leave out up to half of attention.
  bool parts_sequences = false;
  /// Microbatches are slices of the sequence: products with parameters alone count.
  bool slices = false;

  friend bool operator==(const WorkChoice&, const WorkChoice&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const WorkChoice& c) {
    return H::combine(std::move(h), c.parts, c.parts_sequences, c.slices);
  }
};

/// The ops of the step of one device under one recomputation, as far as they are sure to be kernels
/// however they are sharded, and what they take at least.
class StepPrices {
 public:
  /// Of plans whose linear layers' products read copies of that type where there is one. `model`
  /// lives longer.
  StepPrices(const Setting& setting, const cost_models::LeastTimes& model,
             std::optional<ir::DType> copies);

  /// Takes the step under that recomputation, in several numbers of microbatches.
  void Take(const transforms::RecomputePolicy& policy);

  /// All 0: nothing can be told of it.
  LeastWork Of(const WorkChoice& choice) const;
  /// Seconds of the update, on one device.
  double update_seconds() const { return update_s_; }

 private:
  // Seconds over all parts: what is the same in however many, and what each of them adds.
  struct Linear {
    double whole = 0, each = 0;
  };
  struct Kernel {
    Linear arithmetic, memory;
    double overlap = 0;
  };
  struct Op {
    absl::InlinedVector<Kernel, 4> kernels;
    double starts_s = 0;
    bool attention = false, product = false;
  };
  // Of each position of a function its op in `ops_`; kFree: no kernel, or none that is sure.
  using Numbers = std::vector<int32_t>;
  static constexpr int32_t kFree = -1;
  // An op in the functions of several numbers of microbatches.
  struct InParts {
    const ir::Function* function;
    ir::OpId op;
  };

  bool IsSure(const ir::Function& function, ir::OpId op) const;
  cost_models::LeastTime LeastOf(const ir::Function& function, ir::OpId op) const;
  static Linear Fit(const std::vector<double>& seconds, const std::vector<int64_t>& parts);
  int32_t NumberOf(const std::vector<InParts>& op);
  bool NumberAll(const std::vector<const ir::Function*>& functions, Numbers& numbers);
  void FindSums(const ir::Function& backward);
  void PriceUpdate(const ir::Function& update);
  LeastSeconds SecondsOf(const Op& op, const WorkChoice& choice) const;

  const Setting& setting_;
  const cost_models::LeastTimes& model_;
  const std::optional<ir::DType> copies_;
  std::vector<int64_t> parts_;  // in which the step was taken; none: nothing can be told
  std::vector<Op> ops_;         // that differ
  Numbers forward_, backward_, sums_;
  StepChains chains_;
  std::vector<PositionRange> layers_;  // in forward
  double update_s_ = 0;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_BOUNDS_LEAST_WORK_H_
