#ifndef ORRERY_TOOLS_MODEL_KERNELS_H_
#define ORRERY_TOOLS_MODEL_KERNELS_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "search/views/kernel_list.h"
#include "tools/flags.h"
#include "tools/plots/gnuplot.h"

// The kernels of a model's step: as a table, as the CSV that --cost-model kernels:FILE reads and
// examples/profile_gpu.py measures, and on the roofline of a device (Williams et al., 2009).

namespace orrery::tools {

/// The flags of the program `kernel` for a model, as they were given; a flag each.
struct ModelKernelFlags {
  ModelFlags model;
  PlanFlags plan_axes;
  std::string roofline, csv, json;
};

/// Plays the step and prints what its kernels take; writes what the flags name.
absl::Status AnswerModel(const ModelKernelFlags& flags);

/// The table for people: the `most` that take longest, and all others together.
std::string KernelsText(std::span<const search::StepKernel> kernels, const cluster::Device& device,
                        size_t most);

/// One line a kernel that a table may have (cost_models/kernel_table.h), its time as `seconds`, and
/// how often and for what share of all kernels' time it runs.
std::string KernelsCsv(std::span<const search::StepKernel> kernels);

/// All kernels as a list of objects.
std::string KernelsJson(std::span<const search::StepKernel> kernels);

/// Flops a byte against flops a second, both logarithmic; the larger a point, the larger its share
/// of the time. Roofs: memory, and the peak of each type that products have and of fp32. Kernels
/// without arithmetic are not on it; the title says what they take.
Plot RooflinePlot(std::span<const search::StepKernel> kernels, const cluster::Device& device,
                  const std::string& title);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_MODEL_KERNELS_H_
