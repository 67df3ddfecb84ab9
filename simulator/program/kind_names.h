#ifndef ORRERY_SIMULATOR_PROGRAM_KIND_NAMES_H_
#define ORRERY_SIMULATOR_PROGRAM_KIND_NAMES_H_

#include "simulator/program/program.h"
#include "support/enum_names.h"

// How the kinds of a program are called in its text, in reports and traces, and by ToString.

namespace orrery::simulator {

inline constexpr EnumNames<StreamKind, kStreamKindCount> kStreamKindNames(
    {{"compute", StreamKind::kCompute},
     {"horizontal", StreamKind::kHorizontal},
     {"data", StreamKind::kData},
     {"send-next", StreamKind::kSendNext},
     {"receive-previous", StreamKind::kReceivePrevious},
     {"send-previous", StreamKind::kSendPrevious},
     {"receive-next", StreamKind::kReceiveNext},
     {"host", StreamKind::kHost},
     {"context", StreamKind::kContext},
     {"experts", StreamKind::kExperts},
     {"from-host", StreamKind::kFromHost},
     {"host-compute", StreamKind::kHostCompute}});

inline constexpr EnumNames<TaskKind, kTaskKindCount> kTaskKindNames(
    {{"compute", TaskKind::kCompute},
     {"collective", TaskKind::kCollective},
     {"send", TaskKind::kSend}});

inline constexpr EnumNames<KernelKind, kKernelKindCount> kKernelKindNames(
    {{"products", KernelKind::kProduct},
     {"attention", KernelKind::kAttention},
     {"updates", KernelKind::kUpdate},
     {"others", KernelKind::kOther}});

inline constexpr EnumNames<MemoryKind, kAllMemoryKindCount> kMemoryKindNames(
    {{"parameters", MemoryKind::kParameters},
     {"gradients", MemoryKind::kGradients},
     {"optimizer", MemoryKind::kOptimizer},
     {"activations", MemoryKind::kActivations},
     {"buffers", MemoryKind::kBuffers},
     {"other", MemoryKind::kOther},
     {"host", MemoryKind::kHost}});

inline constexpr EnumNames<Phase, kPhaseCount> kPhaseNames({{"forward", Phase::kForward},
                                                            {"backward", Phase::kBackward},
                                                            {"update", Phase::kUpdate}});

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_PROGRAM_KIND_NAMES_H_
