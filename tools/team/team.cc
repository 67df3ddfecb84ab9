#include "tools/team/team.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "support/module.h"
#include "support/status.h"

namespace orrery::tools {
namespace team_cc {
namespace {

// How many processes were started together, as Open MPI, and as MPICH and its kin, tell it.
int32_t Company() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const text = std::getenv(name);
    int32_t size = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &size)) return size;
  }
  return 1;
}

}  // namespace
}  // namespace team_cc

absl::StatusOr<std::unique_ptr<Team>> FindTeam() {
  const int32_t company = team_cc::Company();
  if (company <= 1) return nullptr;
  const auto make = LoadModule<absl::StatusOr<std::unique_ptr<Team>>()>("mpi");
  if (make.ok()) return (*make)();
  return Annotate(
      make.status(),
      absl::StrCat("started as one of ", company,
                   " processes of MPI, which this build does not have (Debian: "
                   "libopenmpi-dev before cmake); wanted `part`, which needs none, or no "
                   "OMPI_COMM_WORLD_SIZE nor PMI_SIZE in the environment"));
}

}  // namespace orrery::tools
