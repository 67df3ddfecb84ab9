#include "tools/kernel_listing_text.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cost_models/cost_model.h"
#include "ir/op_info.h"
#include "lowering/blocks/kernel_room.h"
#include "lowering/kernel_listing.h"
#include "support/text_table.h"

namespace orrery::tools {
namespace kernel_listing_text_cc {
namespace {

using lowering::KernelListing;
using lowering::ListedKernel;
using Json = nlohmann::ordered_json;

struct Listings {
  KernelListing fused, apart;
  Duration start, host_start;  // of a kernel: as the stack launches it, and as a host does
};

Listings List(const KernelListingQuestion& question) {
  const auto cost_model = cost_models::MakeCostModel("kernels").value();
  cluster::Device device = question.device;
  const auto list = [&](const lowering::StackKernels& kernels) {
    return lowering::ListKernels(
        question.function, {.cost_model = *cost_model, .device = &device, .kernels = kernels});
  };
  const auto start = [&] { return *cost_model->Fused(Flops(0), Bytes(0), device); };
  Listings listings;
  listings.apart = list({.choice = question.kernels.choice});
  listings.host_start = start();
  if (question.kernels.graphs) device.launch_overhead = Duration(0);
  listings.fused = list(question.kernels);
  listings.start = start();
  return listings;
}

// "Add Mul Add", or of many "Add Mul Exp … (12 ops)".
std::string OpsText(const ir::Function& function, const ListedKernel& kernel) {
  constexpr size_t kShown = 6;
  std::vector<absl::string_view> names;
  for (const ir::OpId op : kernel.ops) {
    if (names.size() < kShown) names.push_back(function.info(op).name);
  }
  const std::string text = absl::StrJoin(names, " ");
  return kernel.ops.size() <= kShown ? text
                                     : absl::StrCat(text, " … (", kernel.ops.size(), " ops)");
}

// "4", or "4-6" of several.
std::string LaunchText(const ListedKernel& kernel) {
  const int32_t first = kernel.launch + 1;
  return kernel.launches == 1 ? absl::StrCat(first)
                              : absl::StrCat(first, "-", kernel.launch + kernel.launches);
}

std::string Table(const ir::Function& function, const KernelListing& listing) {
  std::vector<TextRow> rows = {
      {"  kernel", "reads", "writes", "inside", "live", "held", "launch", "time"}};
  for (const ListedKernel& kernel : listing.kernels) {
    const bool several = kernel.ops.size() > 1;
    rows.push_back({absl::StrCat("  ", OpsText(function, kernel)), ToString(kernel.reads),
                    ToString(kernel.writes), several ? absl::StrCat(kernel.inside) : "-",
                    several ? absl::StrCat(kernel.needs.live_values) : "-",
                    several ? ToString(kernel.needs.held) : "-", LaunchText(kernel),
                    ToString(kernel.time)});
  }
  return TextTable(rows, 1);
}

double Intensity(const KernelListing& listing) {
  const auto bytes = static_cast<double>(listing.bytes().count());
  return bytes > 0 ? listing.flops().count() / bytes : 0;
}

Json TotalsJson(const KernelListing& listing) {
  return {{"kernels", listing.kernels.size()},    {"launches", listing.launches},
          {"bytes", listing.bytes().count()},     {"flops", listing.flops().count()},
          {"flops_per_byte", Intensity(listing)}, {"time_s", listing.time().seconds()}};
}

Json KernelJson(const ir::Function& function, const ListedKernel& kernel) {
  Json ops = Json::array();
  for (const ir::OpId op : kernel.ops) {
    ops.push_back({{"op", std::string(function.info(op).name)},
                   {"result", std::string(function.value_name(function.result(op)))}});
  }
  return {{"ops", std::move(ops)},
          {"launch", kernel.launch + 1},
          {"launches", kernel.launches},
          {"read_bytes", kernel.reads.count()},
          {"written_bytes", kernel.writes.count()},
          {"inside", kernel.inside},
          {"live_values", kernel.needs.live_values},
          {"held_bytes", kernel.needs.held.count()},
          {"flops", kernel.flops.count()},
          {"time_s", kernel.time.seconds()}};
}

}  // namespace
}  // namespace kernel_listing_text_cc

std::string KernelListingText(const KernelListingQuestion& question) {
  namespace own = kernel_listing_text_cc;
  const own::Listings listings = own::List(question);
  const auto &fused = listings.fused, &apart = listings.apart;
  std::string text =
      absl::StrFormat("kernels of @%s on %s, by the stack %s\n", question.function.name(),
                      question.device.name, question.stack);
  absl::StrAppend(&text, own::Table(question.function, fused));
  const auto add = [&](absl::string_view what, const std::string& now, const std::string& before) {
    absl::StrAppendFormat(&text, "  %-14s%s; op by op %s\n", what, now, before);
  };
  add("kernels", absl::StrCat(fused.kernels.size()), absl::StrCat(apart.kernels.size()));
  add("launches", absl::StrCat(fused.launches), absl::StrCat(apart.launches));
  add("traffic", ToString(fused.bytes()), ToString(apart.bytes()));
  add("flops a byte", absl::StrFormat("%.3f", own::Intensity(fused)),
      absl::StrFormat("%.3f", own::Intensity(apart)));
  add("time", ToString(fused.time()), ToString(apart.time()));
  absl::StrAppendFormat(&text, "  %-14s%s%s\n", "a start takes", ToString(listings.start),
                        question.kernels.graphs ? absl::StrCat(" in a captured graph; by the host ",
                                                               ToString(listings.host_start))
                                                : "");
  if (question.kernels.bounds_fusion) {
    const lowering::KernelRoom room = lowering::KernelRoomOf(question.device);
    absl::StrAppendFormat(&text, "  %-14s%s\n", "room",
                          room.bounded() ? absl::StrCat(room.live_values, " live values, ",
                                                        ToString(room.held), " held of a row")
                                         : absl::StrCat("not known of ", question.device.name));
  }
  return text;
}

std::string KernelListingJson(const KernelListingQuestion& question) {
  namespace own = kernel_listing_text_cc;
  const own::Listings listings = own::List(question);
  own::Json json = {{"function", question.function.name()},
                    {"device", question.device.name},
                    {"stack", question.stack},
                    {"graphs", question.kernels.graphs},
                    {"start_s", listings.start.seconds()},
                    {"host_start_s", listings.host_start.seconds()},
                    {"total", own::TotalsJson(listings.fused)},
                    {"op_by_op", own::TotalsJson(listings.apart)},
                    {"kernels", own::Json::array()}};
  for (const lowering::ListedKernel& kernel : listings.fused.kernels) {
    json["kernels"].push_back(own::KernelJson(question.function, kernel));
  }
  return absl::StrCat(json.dump(2), "\n");
}

}  // namespace orrery::tools
