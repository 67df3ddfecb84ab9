#include "tools/validation/fitted_figures.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cluster/cluster_file.h"
#include "cluster/part_file.h"
#include "support/status.h"
#include "tools/validation/stack_file.h"

namespace orrery::tools {
namespace fitted_figures_cc {
namespace {

absl::Status AddPart(const std::string& path, FittedFigures& figures) {
  ORRERY_ASSIGN_OR_RETURN(const cluster::ClusterText read, cluster::ReadClusterParts(path));
  if (read.kinds.empty() && !read.collectives.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": got neither device_kinds nor collectives; wanted one of them"));
  }
  figures.devices.insert(figures.devices.end(), read.kinds.begin(), read.kinds.end());
  if (read.collectives.has_value()) figures.collectives.push_back(*read.collectives);
  return absl::OkStatus();
}

void Replace(const FittedFigures& figures, cluster::Device& device) {
  const auto found =
      std::ranges::find(figures.devices, device.name, [](const auto& each) { return each.name; });
  if (found != figures.devices.end()) device = *found;
}

}  // namespace
}  // namespace fitted_figures_cc

absl::StatusOr<FittedFigures> ReadFigures(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  FittedFigures figures;
  bool any = false;
  for (const std::filesystem::path& path : paths) {
    if (path.extension() == ".textproto") {
      ORRERY_RETURN_IF_ERROR(fitted_figures_cc::AddPart(path.string(), figures));
    } else if (path.extension() == ".json") {
      ORRERY_ASSIGN_OR_RETURN(const SoftwareStack stack, FindStack(path.string()));
      figures.stacks.emplace_back(path.stem().string(), stack);
    } else {
      continue;
    }
    any = true;
  }
  if (any) return figures;
  return absl::InvalidArgumentError(
      absl::StrCat(folder, ": found no file of a device, a library or a stack; wanted *.textproto ",
                   "and *.json, as validate --fit --fit-out writes them"));
}

std::vector<std::pair<std::string, std::string>> FilesOf(const FittedFigures& figures) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const cluster::Device& device : figures.devices) {
    files.emplace_back(absl::StrCat(device.name, ".textproto"), cluster::PrintDevice(device));
  }
  for (const cluster::CollectiveProfile& profile : figures.collectives) {
    files.emplace_back(absl::StrCat(profile.name, ".textproto"),
                       cluster::PrintCollectives(profile));
  }
  for (const auto& [name, stack] : figures.stacks) {
    files.emplace_back(absl::StrCat(name, ".json"), StackText(stack));
  }
  return files;
}

void Apply(const FittedFigures& figures, cluster::Cluster& cluster) {
  fitted_figures_cc::Replace(figures, cluster.device);
  for (cluster::Device& kind : cluster.other_kinds) fitted_figures_cc::Replace(figures, kind);
  for (const cluster::CollectiveProfile& profile : figures.collectives) {
    if (profile.name != cluster.topology.collective_profile().name) continue;
    cluster.topology.SetCollectiveProfile(profile);
    return;
  }
}

absl::StatusOr<SoftwareStack> FindStack(absl::string_view name, const FittedFigures& figures) {
  for (const auto& [known, stack] : figures.stacks) {
    if (known == name) return stack;
  }
  return FindStack(name);
}

}  // namespace orrery::tools
