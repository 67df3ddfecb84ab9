#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cluster/cluster_file.h"
#include "cluster/device.h"
#include "cluster/part_file.h"
#include "cost_models/fused_attention.h"
#include "cost_models/kernels/attention_kernel.h"
#include "cost_models/kernels/kernel_choice.h"
#include "cost_models/kernels/kernel_rates.h"
#include "cost_models/kernels/matrix_product.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"

// One kernel by the cost model `kernels`: how long it takes, and what decides that.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;
using cost_models::KernelRates;
using Json = nlohmann::ordered_json;

struct Flags {
  std::string op = "matmul", shape, dtype = "bf16", device, json, attention = "cudnn";
  bool backward = false, all_keys = false, print_device = false;
};

// What is asked, and on what.
struct Question {
  std::vector<int64_t> shape;
  ir::DType dtype = ir::DType::kBF16;
  cluster::Device device;
  const KernelRates& rates;
  cost_models::KernelChoice choice = {};
};

struct Answer {
  Duration time, burst, memory;
  double flops = 0, bytes = 0;
  std::string limit = {};
  std::vector<std::pair<std::string, std::string>> lines = {};  // that one kind has
  Json figures = Json::object();                                // likewise
};

// That of the name or file, or the first of those whose names begin so: "h100".
absl::StatusOr<cluster::Device> DeviceOf(const std::string& name) {
  absl::StatusOr<cluster::Device> exact = cluster::FindDeviceOrFile(name);
  if (exact.ok() || cluster::IsClusterFile(name)) return exact;
  for (const cluster::Device& device : cluster::AllDevices()) {
    if (absl::StartsWith(device.name, absl::StrCat(name, "-"))) return device;
  }
  return Annotate(exact.status(), "--device");
}

absl::StatusOr<std::vector<int64_t>> ShapeOf(const std::string& text, size_t least, size_t most,
                                             absl::string_view wanted) {
  constexpr int64_t kMost = int64_t{1} << 24;
  constexpr double kMostTogether = 1e17;  // bytes and flops of more are no 64-bit numbers
  std::vector<int64_t> shape;
  double together = 1;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t size = 0;
    const bool fits = absl::SimpleAtoi(part, &size) && size >= 1 && size <= kMost;
    if (fits) shape.push_back(size);
    together *= static_cast<double>(size);
    if (!fits || shape.size() > most || together > kMostTogether) shape.clear();
    if (shape.empty()) break;
  }
  if (shape.size() >= least) return shape;
  return absl::InvalidArgumentError(absl::StrCat("--shape '", text, "': wanted ", wanted,
                                                 ", each from 1 to ", kMost,
                                                 ", and together at most 1e17"));
}

absl::StatusOr<cost_models::AttentionClass> ClassOf(const std::string& name) {
  const auto& names = cost_models::kAttentionClassNames;
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<cost_models::AttentionClass>(found - names.begin());
  return absl::InvalidArgumentError(
      absl::StrCat("--attention '", name, "': wanted one of ", absl::StrJoin(names, ", ")));
}

Answer PriceMatmul(const Question& question) {
  const std::vector<int64_t>& s = question.shape;
  const ir::ProductShape shape = {.batch = s.size() == 4 ? s[0] : 1,
                                  .m = s[s.size() - 3],
                                  .n = s[s.size() - 2],
                                  .k = s[s.size() - 1]};
  const ir::DType out = ir::SizeOf(question.dtype) == 1 ? ir::DType::kBF16 : question.dtype;
  const auto at = [&](double clock) {
    return cost_models::PriceProduct(shape, {.in = question.dtype, .out = out}, question.device,
                                     clock);
  };
  const cost_models::ProductTime time = at(cost_models::ClockOf(question.rates, question.dtype));
  const auto batch = static_cast<double>(shape.batch), m = static_cast<double>(shape.m),
             n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  const auto in = ir::BytesOf(question.dtype);
  Answer answer = {
      .time = time.time,
      .burst = at(1).time,
      .memory = time.memory,
      .flops = 2 * batch * m * n * k,
      .bytes = batch * (in * (m * k + k * n) + static_cast<double>(ir::SizeOf(out)) * m * n),
      .limit = std::string(time.limit())};
  answer.figures = {{"tile_m", time.tile_m},
                    {"tile_n", time.tile_n},
                    {"waves", time.waves},
                    {"splits", time.splits},
                    {"products_s", time.products.seconds()},
                    {"memory_s", time.memory.seconds()},
                    {"steps_s", time.steps.seconds()},
                    {"reductions_s", time.reductions.seconds()}};
  answer.lines = {
      {"tiles", absl::StrFormat("%d x %d in %.2f waves over %d cores", time.tile_m, time.tile_n,
                                time.waves, question.rates.cores)},
      {"k is split into", absl::StrCat(time.splits)},
      {"parts", absl::StrCat("products ", ToString(time.products), ", memory ",
                             ToString(time.memory), ", steps of a block ", ToString(time.steps),
                             ", reductions ", ToString(time.reductions))}};
  return answer;
}

// Of an Attention, or of its gradient, of these sizes.
absl::StatusOr<cost_models::FusedAttention> AttentionOf(const Question& question, bool backward,
                                                        bool all_keys) {
  const std::vector<int64_t>& s = question.shape;
  const int64_t keys = s.size() == 5 ? s[4] : s[2];
  const ir::TensorType q = {.dtype = question.dtype,
                            .dims = {s[0], s[1], s[2], s[3]},
                            .sharding = {}},
                       k = {.dtype = question.dtype,
                            .dims = {s[0], s[1], keys, s[3]},
                            .sharding = {}};
  const ir::AttributeSet attributes = {
      {"causal", int64_t{all_keys ? 0 : 1}}, {"flash", int64_t{1}}, {"heads", s[1]}};
  const ir::Mesh alone;
  const std::vector<const ir::TensorType*> operands = {&q, &k, &k};
  ir::TypeList results;
  ORRERY_RETURN_IF_ERROR(
      ir::InferTypes(ir::OpKind::kAttention, {attributes, operands, alone}, results));
  const ir::TensorType* const outputs[] = {&results[0], &results[1]};
  if (!backward) {
    return cost_models::FusedAttentionOf({.kind = ir::OpKind::kAttention,
                                          .attributes = attributes,
                                          .operands = operands,
                                          .results = outputs,
                                          .choice = &question.choice});
  }
  const ir::TensorType* const inputs[] = {&q, &k, &k, outputs[0], outputs[1], outputs[0]};
  const ir::TensorType* const gradients[] = {&q, &k, &k};
  return cost_models::FusedAttentionOf({.kind = ir::OpKind::kAttentionGrad,
                                        .attributes = attributes,
                                        .operands = inputs,
                                        .results = gradients,
                                        .choice = &question.choice});
}

absl::StatusOr<Answer> PriceFlash(const Question& question, bool backward, bool all_keys) {
  ORRERY_ASSIGN_OR_RETURN(const cost_models::FusedAttention attention,
                          AttentionOf(question, backward, all_keys));
  const Duration time = PriceAttention(attention, question.device, question.rates);
  Answer answer = {.time = time,
                   .burst = time,
                   .memory = AttentionMemoryTime(attention, question.device, question.rates),
                   .flops = attention.flops.count() * attention.visible,
                   .bytes = static_cast<double>(attention.bytes.count())};
  answer.limit = answer.memory >= time ? "memory" : "products";
  answer.figures = {{"visible", attention.visible}};
  answer.lines = {{"seen of the scores", absl::StrFormat("%.1f %%", 100 * attention.visible)}};
  return answer;
}

void Print(const Flags& flags, const Question& question, const Answer& answer) {
  const double peak = cost_models::MatrixPeak(question.dtype, question.device).flops_per_second();
  const double rate = answer.flops / answer.time.seconds();
  const double turns =
      peak / static_cast<double>(question.device.memory_bandwidth.bytes_per_second());
  std::vector<std::pair<std::string, std::string>> lines = {
      {"time", absl::StrCat(ToString(answer.time), " under load, ", ToString(answer.burst),
                            " in a burst; ", ToString(question.rates.start), " to start besides")},
      {"reaches",
       absl::StrFormat("%.1f TFLOP/s, %.1f %% of the peak", rate / 1e12, 100 * rate / peak)},
      {"limited by", answer.limit},
      {"intensity", absl::StrFormat("%.1f flops a byte; the device wants %.1f",
                                    answer.flops / answer.bytes, turns)}};
  lines.insert(lines.end(), answer.lines.begin(), answer.lines.end());
  lines.emplace_back("rates", std::string(question.rates.source));
  std::cout << absl::StrFormat("%s %s of %s on %s\n", flags.op,
                               absl::StrJoin(question.shape, " x "), ToString(question.dtype),
                               question.device.name);
  for (const auto& [name, text] : lines) std::cout << absl::StrFormat("  %-19s %s\n", name, text);
}

absl::Status WriteJson(const Flags& flags, const Question& question, const Answer& answer) {
  Json json = {{"op", flags.op},
               {"shape", question.shape},
               {"dtype", std::string(ToString(question.dtype))},
               {"device", question.device.name},
               {"time_s", answer.time.seconds()},
               {"burst_s", answer.burst.seconds()},
               {"start_s", question.rates.start.seconds()},
               {"flops", answer.flops},
               {"bytes", answer.bytes},
               {"limited_by", answer.limit},
               {"measured", question.rates.measured}};
  json.update(answer.figures);
  return WriteFile(flags.json, absl::StrCat(json.dump(2), "\n"));
}

absl::Status PrintDevice(const Flags& flags) {
  ORRERY_ASSIGN_OR_RETURN(const cluster::Device device, DeviceOf(flags.device));
  std::cout << cluster::PrintDevice(device);
  return absl::OkStatus();
}

absl::Status Kernel(const Flags& flags) {
  if (flags.print_device) return PrintDevice(flags);
  const bool matmul = flags.op == "matmul";
  if (!matmul && flags.op != "attention") {
    return absl::InvalidArgumentError(
        absl::StrCat("--op '", flags.op, "': wanted matmul or attention"));
  }
  const bool of_attention = flags.backward || flags.all_keys || flags.attention != "cudnn";
  if (matmul && of_attention) {
    return absl::InvalidArgumentError(
        "--backward, --all-keys, --attention: wanted with --op attention alone");
  }
  const std::optional<ir::DType> dtype = ir::ParseDType(flags.dtype);
  if (!dtype.has_value() || !ir::IsFloat(*dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype '", flags.dtype, "': wanted bf16, f16, f32, f8 or f4"));
  }
  ORRERY_ASSIGN_OR_RETURN(const cluster::Device device, DeviceOf(flags.device));
  ORRERY_ASSIGN_OR_RETURN(
      std::vector<int64_t> shape,
      matmul ? ShapeOf(flags.shape, 3, 4, "m,n,k or batch,m,n,k")
             : ShapeOf(flags.shape, 4, 5, "batch,heads,queries,width or those and keys"));
  ORRERY_ASSIGN_OR_RETURN(const cost_models::AttentionClass attention, ClassOf(flags.attention));
  const Question question = {.shape = std::move(shape),
                             .dtype = *dtype,
                             .device = device,
                             .rates = device.rates,
                             .choice = {.attention = attention}};
  Answer answer;
  if (matmul) {
    answer = PriceMatmul(question);
  } else {
    ORRERY_ASSIGN_OR_RETURN(answer, PriceFlash(question, flags.backward, flags.all_keys));
  }
  if (!flags.json.empty()) ORRERY_RETURN_IF_ERROR(WriteJson(flags, question, answer));
  Print(flags, question, answer);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  ProgramSpec spec{
      .usage = "kernel --shape SIZES --device NAME [flags]",
      .about = "Says how long a kernel takes by the cost model `kernels`, and what decides that.",
      .example = "build/bin/kernel --shape 4096,12288,12288 --dtype bf16 --device h100",
      .options = po::options_description("Flags")};
  spec.options.add_options()("op", po::value(&flags.op)->default_value(flags.op),
                             "matmul: a product of matrices; attention: a fused one")(
      "shape", po::value(&flags.shape),
      "of matmul m,n,k or batch,m,n,k: [m,k] times [k,n]; of attention batch,heads,queries,width "
      "and, where there are others, keys")(
      "dtype", po::value(&flags.dtype)->default_value(flags.dtype), "bf16, f16, f32, f8 or f4")(
      "device", po::value(&flags.device)->required(),
      "kind of device, as h100-80gb, the beginning of its name, as h100, or a file of one")(
      "print-device", po::bool_switch(&flags.print_device),
      "print the device as a file, with its rates, instead")(
      "backward", po::bool_switch(&flags.backward), "of attention, its gradients")(
      "all-keys", po::bool_switch(&flags.all_keys), "of attention, without a causal mask")(
      "attention", po::value(&flags.attention)->default_value(flags.attention),
      absl::StrCat("class of attention's kernel: ",
                   absl::StrJoin(cost_models::kAttentionClassNames, ", "))
          .c_str())("json", po::value(&flags.json), "write the figures to this file");
  return RunProgram(argc, argv, spec, [&] { return Kernel(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
