#include "importer/onnx/onnx_ops/windows.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/printable.h"
#include "support/status.h"

namespace orrery::importer {
namespace windows_cc {
namespace {

constexpr ptrdiff_t kShown = 8;  // numbers of a list, in an error

}  // namespace
}  // namespace windows_cc

absl::StatusOr<ir::Dims> SpatialInput(NodeContext& c, int i) {
  const ir::Dims& dims = c.input_type(i).dims;
  if (dims.size() >= 3) return ir::Dims(dims.begin() + 2, dims.end());
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " has ", dims.size(), " dimensions; wanted [batch,channels,..]"));
}

absl::StatusOr<std::vector<int64_t>> SpatialList(NodeContext& c, absl::string_view name,
                                                 size_t rank, int64_t fallback) {
  std::vector<int64_t> list = c.Ints(name);
  if (list.empty()) list.assign(rank, fallback);
  const auto fits = [](int64_t value) { return value >= 0 && value <= (int64_t{1} << 30); };
  if (list.size() == rank && std::all_of(list.begin(), list.end(), fits)) return list;
  std::string shown = absl::StrJoin(
      list.begin(), list.begin() + std::min<ptrdiff_t>(std::ssize(list), windows_cc::kShown), ",");
  if (std::ssize(list) > windows_cc::kShown) absl::StrAppend(&shown, ",...");
  return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' is [", shown, "]; wanted ",
                                                 rank, " numbers, none of them negative or huge"));
}

absl::Status CheckKernel(NodeContext& c, const ir::Dims& kernel) {
  const std::vector<int64_t> wanted(kernel.begin(), kernel.end());
  if (c.Attribute("kernel_shape") == nullptr) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> given,
                          SpatialList(c, "kernel_shape", kernel.size(), 1));
  if (given == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("attribute 'kernel_shape' is [", absl::StrJoin(given, ","), "]; wanted [",
                   absl::StrJoin(wanted, ","), "], as the weights have it"));
}

absl::StatusOr<std::string> AutoPad(NodeContext& c) {
  const std::string mode = c.String("auto_pad", "NOTSET");
  if (mode.empty()) return "NOTSET";
  for (const char* known : {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}) {
    if (mode == known) return mode;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "auto_pad is \"", Printable(mode), "\"; wanted NOTSET, SAME_UPPER, SAME_LOWER or VALID"));
}

absl::StatusOr<ir::AttributeSet> WindowAttributes(NodeContext& c,
                                                  const std::vector<int64_t>& kernel,
                                                  const ir::Dims& input) {
  const size_t rank = input.size();
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, SpatialList(c, "strides", rank, 1));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations,
                          SpatialList(c, "dilations", rank, 1));
  std::vector<int64_t> pads(2 * rank, 0);
  ORRERY_ASSIGN_OR_RETURN(const std::string mode, AutoPad(c));
  if (mode == "NOTSET") {
    ORRERY_ASSIGN_OR_RETURN(pads, SpatialList(c, "pads", 2 * rank, 0));
  } else if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (size_t d = 0; d < rank && d < kernel.size(); ++d) {
      if (strides[d] == 0) break;  // for inference to refuse
      const int64_t positions = (input[d] + strides[d] - 1) / strides[d];
      const int64_t reach = (kernel[d] - 1) * dilations[d] + 1;
      const int64_t all = std::max<int64_t>((positions - 1) * strides[d] + reach - input[d], 0);
      pads[d] = mode == "SAME_UPPER" ? all / 2 : all - all / 2;
      pads[rank + d] = all - pads[d];
    }
  }
  return ir::AttributeSet{{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
}

}  // namespace orrery::importer
