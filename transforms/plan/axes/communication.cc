#include "transforms/plan/axis_fields.h"

namespace orrery::transforms {
namespace communication_cc {
namespace {

absl::StatusOr<Bytes> ParseSize(absl::string_view text) {
  if (text == "none") return Bytes(0);
  absl::StatusOr<Bytes> size = ParseBytes(text);
  if (size.ok()) return size;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "': wanted bytes, such as 25MiB, or none to reduce each gradient by itself"));
}

// Exact, in the largest unit that divides it: "25MiB".
std::string PrintSize(const ParallelPlan& plan) {
  int64_t count = plan.bucket_size.count();
  if (count == 0) return "none";
  constexpr absl::string_view kUnits[] = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  for (; unit + 1 < std::size(kUnits) && count % 1024 == 0; ++unit) count /= 1024;
  return absl::StrCat(count, kUnits[unit]);
}

}  // namespace
}  // namespace communication_cc

extern const AxisInfo kBlockingAxis = {
    .flag = "blocking",
    .summary = "communication on the compute stream, no overlap",
    .values = "0 or 1",
    .page = "communication on the compute stream: nothing overlaps",
    .examples = {"1", "0"},
    .mistake = {"2", "'2': wanted 0 or 1"},
    .form = AxisForm::kSwitch,
    .parse = ParseSwitch<&ParallelPlan::blocking>,
    .print = PrintSwitch<&ParallelPlan::blocking>,
    .copy = CopyField<&ParallelPlan::blocking>,
    .cell = SwitchCell<&ParallelPlan::blocking>,
    .detail = true,
};

extern const AxisInfo kBucketSizeAxis = {
    .flag = "bucket-size",
    .summary =
        "bytes of gradients that are reduced at once while backward still runs, or none: "
        "each gradient by itself; not with --blocking",
    .values = "bytes, such as 25MiB, or none",
    .page =
        "bytes of gradients that are reduced at once, or `none`: each gradient by itself. "
        "Reductions go in the order in which backward makes gradients, and overlap with it. "
        "Without effect with `--blocking`",
    .examples = {"none", "25MiB", "100MiB"},
    .mistake = {"-5", "'-5': wanted bytes, such as 25MiB, or none"},
    .parse = ParseField<&ParallelPlan::bucket_size, communication_cc::ParseSize>,
    .print = communication_cc::PrintSize,
    .copy = CopyField<&ParallelPlan::bucket_size>,
    .detail = true,
};

extern const AxisInfo kAlgorithmAxis = {
    .flag = "algorithm",
    .summary =
        "of collectives, where it can serve the group; `collective --help` lists all; auto: "
        "the fastest",
    .values = "auto, ring, or as in all-reduce=ring,all-gather=direct",
    .page =
        "how collectives are carried out: `ring`, or by kind, `all-reduce=ring,all-gather=direct`; "
        "where it cannot serve a group, and for kinds that are not named, the fastest. "
        "[Collectives](collectives.md) lists them. Not read by `--cost-model distir`",
    .examples = {"ring", "auto", "all-reduce=ring,all-gather=direct"},
    .mistake = {"all-reduce=in-line", "algorithm 'in-line' is unknown"},
    .lists = false,
    .parse = ParseField<&ParallelPlan::algorithm, CollectiveChoice::Parse>,
    .print = [](const ParallelPlan& plan) { return plan.algorithm.ToString(); },
    .copy = CopyField<&ParallelPlan::algorithm>,
    .detail = true,
};

}  // namespace orrery::transforms
