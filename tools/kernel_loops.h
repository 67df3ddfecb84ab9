#ifndef ORRERY_TOOLS_KERNEL_LOOPS_H_
#define ORRERY_TOOLS_KERNEL_LOOPS_H_

#include <boost/program_options.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cluster/device.h"
#include "cost_models/op_kernels.h"
#include "ir/op_info.h"

// The loop nests of one product side by side: what each loads and stores, what it needs of the
// device, and which tiles are the best.

namespace orrery::tools {

/// How the user wants tiles, as it was given; "" and nothing: as is best.
struct KernelLoopFlags {
  bool loads = false;
  std::string tile, register_tile;
  std::optional<int64_t> pad = {}, vector = {};

  /// Whether any of them was given.
  bool wanted() const {
    return loads || !tile.empty() || !register_tile.empty() || pad.has_value() ||
           vector.has_value();
  }
};

/// Adds --loads, --tile, --register-tile, --pad and --vector.
void AddKernelLoopFlags(boost::program_options::options_description& options,
                        KernelLoopFlags& flags);

/// A product on a device.
struct KernelLoopQuestion {
  ir::ProductShape shape;
  ir::DType dtype = ir::DType::kF32;
  cost_models::ProductLayout layout = cost_models::ProductLayout::kTN;
  const cluster::Device& device;
};

/// The tables for people, and the same as JSON.
struct KernelLoopAnswer {
  std::string text;
  nlohmann::ordered_json json;
};

/// Errors name the flag: tiles that contradict each other, or that the device has no room for; a
/// type or a device that such loops are not for.
absl::StatusOr<KernelLoopAnswer> AnswerKernelLoops(const KernelLoopFlags& flags,
                                                   const KernelLoopQuestion& question);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_KERNEL_LOOPS_H_
