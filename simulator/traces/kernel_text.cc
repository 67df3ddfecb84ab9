#include "simulator/traces/kernel_text.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "support/json_text.h"

namespace orrery::simulator {
namespace kernel_text_cc {
namespace {

// A collective, as we, NCCL's kernels and torch.distributed call it.
struct NcclKind {
  absl::string_view kind;
  absl::string_view kernel;
  absl::string_view collective;
};

// What has no kernel of its own is made of messages.
constexpr NcclKind kKinds[] = {
    {"all-reduce", "AllReduce", "allreduce"},
    {"all-gather", "AllGather", "_allgather_base"},
    {"reduce-scatter", "ReduceScatter", "_reduce_scatter_base"},
    {"all-to-all", "SendRecv", "all_to_all"},
    {"broadcast", "Broadcast", "broadcast"},
    {"reduce", "Reduce", "reduce"},
    {"scatter", "SendRecv", "scatter"},
    {"gather", "SendRecv", "gather"},
    {"barrier", "AllReduce", "barrier"},
};
constexpr NcclKind kUnknown = {"", "SendRecv", "collective"};

const NcclKind& KindOf(const TaskLabel& label) {
  const absl::string_view kind = label.communication.substr(0, label.communication.find(' '));
  const auto* found = std::ranges::find(kKinds, kind, &NcclKind::kind);
  return found == std::end(kKinds) ? kUnknown : *found;
}

// Whether tools would take that for communication or a copy.
bool Misleads(absl::string_view name) {
  return absl::StartsWith(name, "nccl") || absl::StartsWith(name, "dma") ||
         absl::StrContains(name, "ncclKernel") || absl::StrContains(name, "Memcpy") ||
         absl::StrContains(name, "Memset");
}

std::string Safe(absl::string_view name) {
  if (!Misleads(name)) return std::string(name);
  return absl::StrReplaceAll(
      name, {{"nccl", "n_ccl"}, {"Memcpy", "M_emcpy"}, {"Memset", "M_emset"}, {"dma", "d_ma"}});
}

// As torch writes them: not more than so many.
constexpr size_t kMostRanks = 32;

std::string RanksText(const std::vector<int32_t>& ranks) {
  const std::vector<int32_t> shown(
      ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(std::min(ranks.size(), kMostRanks)));
  return absl::StrCat("[", absl::StrJoin(shown, ", "), ranks.size() > kMostRanks ? ", ...]" : "]");
}

}  // namespace
}  // namespace kernel_text_cc

std::string NcclKernel(const TaskLabel& label) {
  if (label.kind == TaskKind::kSend) return "ncclKernel_SendRecv";
  return absl::StrCat("ncclKernel_", kernel_text_cc::KindOf(label).kernel);
}

KernelText KernelTextOf(const TaskLabel& label, StreamKind stream) {
  const std::string name = kernel_text_cc::Safe(label.name);
  if (label.kind != TaskKind::kCompute) {
    return {absl::StrCat(NcclKernel(label), "(", name, ")"), "kernel"};
  }
  switch (stream) {
    case StreamKind::kHost:
      return {absl::StrCat("Memcpy DtoH (", name, ")"), "gpu_memcpy"};
    case StreamKind::kFromHost:
      return {absl::StrCat("Memcpy HtoD (", name, ")"), "gpu_memcpy"};
    case StreamKind::kHostCompute:
      return {name, "cpu_op"};
    default:
      return {name, "kernel"};
  }
}

absl::string_view CommunicatorOf(const TaskLabel& label) {
  const size_t space = label.communication.find(' ');
  return space == absl::string_view::npos ? "" : label.communication.substr(space + 1);
}

const NcclArguments::Group& NcclArguments::GroupOf(int32_t rank, absl::string_view communicator) {
  if (rank != rank_) groups_.clear();
  rank_ = rank;
  const auto found = groups_.find(communicator);
  if (found != groups_.end()) return found->second;
  Group& group = groups_[std::string(communicator)];
  std::vector<int32_t> ranks;
  if (options_.group) ranks = options_.group(rank, communicator);
  group.size = ranks.size();
  if (!communicator.empty()) {
    group.text = absl::StrCat(",\"Process Group Name\":", JsonString(std::string(communicator)));
  }
  if (!ranks.empty()) {
    absl::StrAppend(&group.text, ",\"Group size\":", ranks.size(), ",\"Process Group Ranks\":\"",
                    kernel_text_cc::RanksText(ranks), "\"");
  }
  return group;
}

std::string NcclArguments::Of(const TaskLabel& label, int32_t rank, bool sends) {
  if (label.kind == TaskKind::kCompute) return "";
  int64_t in = label.bytes.count(), out = in;
  std::string group;
  absl::string_view collective = sends ? "send" : "recv";
  if (label.kind == TaskKind::kCollective) {
    const kernel_text_cc::NcclKind& kind = kernel_text_cc::KindOf(label);
    collective = kind.collective;
    const Group& of = GroupOf(rank, CommunicatorOf(label));
    group = of.text;
    const auto size = static_cast<int64_t>(std::max<size_t>(of.size, 1));
    if (kind.kind == "all-gather") in /= size;
    if (kind.kind == "reduce-scatter") out /= size;
  }
  // Elements of a byte: what they are of, the program does not know.
  return absl::StrCat(",\"Collective name\":\"", collective, "\",\"In msg nelems\":", in,
                      ",\"Out msg nelems\":", out, ",\"dtype\":\"Byte\"", group);
}

}  // namespace orrery::simulator
