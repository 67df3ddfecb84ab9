#ifndef ORRERY_TOOLS_VALIDATION_FITTED_FIGURES_H_
#define ORRERY_TOOLS_VALIDATION_FITTED_FIGURES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster.h"
#include "cluster/collective_profile.h"
#include "cluster/device.h"
#include "tools/validation/software_stack.h"

// Figures of devices, libraries and stacks in place of those that are built in: a folder of files,
// as `validate --fit` writes it and `validate --with` reads it.

namespace orrery::tools {

/// Each stands for the built-in one of its name. So many fields: three kinds.
struct FittedFigures {
  std::vector<cluster::Device> devices;
  std::vector<cluster::CollectiveProfile> collectives;
  std::vector<std::pair<std::string, SoftwareStack>> stacks;
};

/// Of a folder: each *.textproto is a device, or what a communication library adds
/// (cluster/part_file.h); each *.json a stack (tools/validation/stack_file.h), of the name that the
/// file has. Errors name the file; a folder without any is one.
absl::StatusOr<FittedFigures> ReadFigures(const std::string& folder);

/// The files of such a folder, as names and texts.
std::vector<std::pair<std::string, std::string>> FilesOf(const FittedFigures& figures);

/// Puts the figures of its devices and of its library into a cluster.
void Apply(const FittedFigures& figures, cluster::Cluster& cluster);

/// The stack of that name or file, as the figures have it.
absl::StatusOr<SoftwareStack> FindStack(absl::string_view name, const FittedFigures& figures);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_FITTED_FIGURES_H_
