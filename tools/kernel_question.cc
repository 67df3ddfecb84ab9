#include "tools/kernel_question.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cluster/cluster_file.h"
#include "cluster/device.h"
#include "cluster/part_file.h"
#include "cost_models/fused_attention.h"
#include "cost_models/kernel_table.h"
#include "cost_models/kernels/expert_products.h"
#include "cost_models/kernels/kernel_choice.h"
#include "cost_models/kernels/kernel_rates.h"
#include "cost_models/measured_kernels.h"
#include "cost_models/op_kernels.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/file.h"
#include "support/names/near_names.h"
#include "support/status.h"

namespace orrery::tools {
namespace kernel_question_cc {
namespace {

using cost_models::KernelRates;
using Json = nlohmann::ordered_json;

// What --shape lists, by op.
struct Form {
  absl::string_view op;
  size_t least, most;  // sizes
  absl::string_view sizes;
};
constexpr Form kForms[] = {{"matmul", 3, 4, "m,n,k or batch,m,n,k"},
                           {"grouped", 4, 4, "experts,m,n,k, m rows of each"},
                           {"attention", 4, 5, "batch,heads,queries,width or those and keys"},
                           {"elementwise", 1, 1, "the bytes that are read and written"}};

// What is asked, and on what.
struct Question {
  std::vector<int64_t> shape;
  ir::DType dtype = ir::DType::kBF16;
  cluster::Device device;
  const KernelRates& rates;
  cost_models::KernelChoice choice = {};
  cost_models::ProductLayout layout = cost_models::ProductLayout::kTN;
};

struct Answer {
  Duration time, burst, memory;  // without the start
  std::string limit = {};
  cost_models::OpKernel kernel = {};
  std::vector<std::pair<std::string, std::string>> lines = {};  // that one kind has
  Json figures = Json::object();                                // likewise
};

absl::StatusOr<std::vector<int64_t>> ShapeOf(const std::string& text, const Form& form) {
  cost_models::SizesWanted wanted = {.least = form.least, .most = form.most};
  if (form.most == 1) wanted.most_of_one = int64_t{1} << 50;
  std::vector<int64_t> shape = cost_models::ParseKernelSizes(text, ",", wanted);
  if (!shape.empty()) return shape;
  return absl::InvalidArgumentError(absl::StrCat("--shape '", text, "': wanted ", form.sizes,
                                                 ", each from 1 to ", wanted.most_of_one,
                                                 ", and together at most 1e17"));
}

absl::StatusOr<cost_models::AttentionClass> ClassOf(const std::string& name) {
  const auto& names = cost_models::kAttentionClassNames;
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<cost_models::AttentionClass>(found - names.begin());
  return absl::InvalidArgumentError(
      absl::StrCat("--attention '", name, "': wanted one of ", absl::StrJoin(names, ", ")));
}

ir::ProductShape ProductOf(const std::vector<int64_t>& s) {
  return {.batch = s.size() == 4 ? s[0] : 1,
          .m = s[s.size() - 3],
          .n = s[s.size() - 2],
          .k = s[s.size() - 1]};
}

// Of a product, or of as many as there are experts; where each is a kernel, tiles and waves are of
// one of them.
Answer PriceMatmul(const Question& question) {
  const ir::ProductShape all = ProductOf(question.shape);
  const cost_models::ExpertProducts& experts = question.choice.experts;
  ir::ProductShape shape = all;
  if (experts.kernel_each) shape.batch = 1;
  const ir::DType out = ir::SizeOf(question.dtype) == 1 ? ir::DType::kBF16 : question.dtype;
  const cost_models::ProductTypes types = {
      .in = question.dtype,
      .out = out,
      .along_k = question.layout != cost_models::ProductLayout::kNT};
  const auto at = [&](double clock) {
    return cost_models::PriceProduct(shape, types, question.device, clock);
  };
  const cost_models::ProductTime time = at(cost_models::ClockOf(question.rates, question.dtype));
  const auto of_all = [&](double clock) {
    if (!experts.kernel_each) return at(clock).time;
    return PriceExpertProducts(all, types, experts, question.device, clock);
  };
  Answer answer = {
      .time = of_all(cost_models::ClockOf(question.rates, question.dtype)),
      .burst = of_all(1),
      .memory = time.memory,
      .limit = std::string(time.limit()),
      .kernel = cost_models::ProductKernel(all, types, question.layout, question.device)};
  if (experts.present) {
    answer.kernel = cost_models::ExpertsKernel(answer.kernel, experts, question.device);
  }
  const auto tiles = [](int64_t size, int tile) { return (size + tile - 1) / tile; };
  answer.figures = {
      {"tiles", shape.batch * tiles(shape.m, time.tile_m) * tiles(shape.n, time.tile_n)},
      {"tile_m", time.tile_m},
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

Answer PriceElementwise(const Question& question) {
  const Bytes bytes(question.shape[0]);
  const cost_models::OpKernel kernel = cost_models::MovingKernel(Flops(0), bytes, question.device);
  const Duration time = kernel.time - kernel.host - question.rates.start;
  return {.time = time, .burst = time, .memory = time, .limit = "memory", .kernel = kernel};
}

absl::StatusOr<Answer> PriceFlash(const Question& question, bool backward, bool all_keys) {
  ORRERY_ASSIGN_OR_RETURN(const cost_models::FusedAttention attention,
                          AttentionOf(question, backward, all_keys));
  const Duration time = PriceAttention(attention, question.device, question.rates);
  Answer answer = {.time = time,
                   .burst = time,
                   .memory = AttentionMemoryTime(attention, question.device, question.rates),
                   .kernel = cost_models::AttentionKernel(attention, question.device)};
  answer.limit = answer.memory >= time ? "memory" : "products";
  answer.figures = {{"visible", attention.visible}};
  answer.lines = {{"seen of the scores", absl::StrFormat("%.1f %%", 100 * attention.visible)}};
  return answer;
}

// What was measured near it, in lines and in figures.
void AddMeasured(const cost_models::MeasuredKernels& table, const std::string& file,
                 const Question& question, Answer& answer) {
  constexpr size_t kShown = 3;
  const cost_models::KernelPrice price = table.Price(answer.kernel, question.device);
  const absl::string_view source = kTimeSourceNames.Of(price.source);
  answer.lines.emplace_back("by the table",
                            absl::StrCat(ToString(price.time), " from start to start, ", source));
  Json nearest = Json::array();
  for (const auto& near : table.Nearest(answer.kernel, question.device, kShown)) {
    const cost_models::MeasuredKernel& row = *near.measured;
    const double over_model = row.seconds / near.model.seconds();
    const std::string layout(
        row.layout.has_value() ? cost_models::kProductLayoutNames.Of(*row.layout) : "");
    const std::string line = absl::StrCat(file, ": line ", absl::StrJoin(row.lines, ", "));
    answer.lines.emplace_back(
        nearest.empty() ? "nearest" : "",
        absl::StrFormat("%s%s%s: %s, %.2f of `kernels`%s (%s)", cost_models::ShapeText(row),
                        layout.empty() ? "" : " ", layout,
                        ToString(Duration::FromSeconds(row.seconds)), over_model,
                        near.in_reach ? "" : ", out of reach", line));
    nearest.push_back({{"shape", cost_models::ShapeText(row)},
                       {"layout", layout},
                       {"seconds", row.seconds},
                       {"over_model", over_model},
                       {"distance", near.distance},
                       {"in_reach", near.in_reach},
                       {"lines", row.lines}});
  }
  if (nearest.empty()) answer.lines.emplace_back("nearest", "none of this form, type and device");
  answer.figures.update({{"table_s", price.time.seconds()},
                         {"table_source", std::string(source)},
                         {"nearest", std::move(nearest)}});
}

void Print(const KernelFlags& flags, const Question& question, const Answer& answer) {
  const double peak = cost_models::MatrixPeak(question.dtype, question.device).flops_per_second();
  const double flops = answer.kernel.flops.count();
  const auto bytes = static_cast<double>(answer.kernel.bytes.count());
  const double rate = flops / answer.time.seconds();
  const auto memory = static_cast<double>(question.device.memory_bandwidth.bytes_per_second());
  std::vector<std::pair<std::string, std::string>> lines = {
      {"time", absl::StrCat(ToString(answer.time), " under load, ", ToString(answer.burst),
                            " in a burst; ", ToString(question.rates.start), " to start besides")},
      {"reaches",
       flops > 0
           ? absl::StrFormat("%.1f TFLOP/s, %.1f %% of the peak", rate / 1e12, 100 * rate / peak)
           : absl::StrFormat("%.1f GB/s, %.1f %% of the peak", bytes / answer.time.seconds() / 1e9,
                             100 * bytes / answer.time.seconds() / memory)},
      {"limited by", answer.limit},
      {"intensity",
       absl::StrFormat("%.1f flops a byte; the device wants %.1f", flops / bytes, peak / memory)}};
  lines.insert(lines.end(), answer.lines.begin(), answer.lines.end());
  lines.emplace_back("rates", std::string(question.rates.source));
  std::cout << absl::StrFormat("%s %s of %s on %s\n", flags.op,
                               absl::StrJoin(question.shape, " x "), ToString(question.dtype),
                               question.device.name);
  for (const auto& [name, text] : lines) std::cout << absl::StrFormat("  %-19s %s\n", name, text);
}

absl::Status WriteJson(const KernelFlags& flags, const Question& question, const Answer& answer) {
  Json json = {{"op", flags.op},
               {"shape", question.shape},
               {"dtype", std::string(ToString(question.dtype))},
               {"device", question.device.name},
               {"time_s", answer.time.seconds()},
               {"burst_s", answer.burst.seconds()},
               {"start_s", question.rates.start.seconds()},
               {"flops", answer.kernel.flops.count()},
               {"bytes", static_cast<double>(answer.kernel.bytes.count())},
               {"flops_per_byte",
                answer.kernel.flops.count() / static_cast<double>(answer.kernel.bytes.count())},
               {"limit", answer.limit},
               {"limited_by", answer.limit},
               {"measured", question.rates.measured}};
  json.update(answer.figures);
  return WriteFile(flags.json, absl::StrCat(json.dump(2), "\n"));
}

absl::StatusOr<Form> FormOf(const KernelFlags& flags) {
  const auto* const form = std::ranges::find(kForms, flags.op, &Form::op);
  if (form == std::end(kForms)) {
    constexpr absl::string_view kOps[] = {"matmul", "grouped", "attention", "elementwise"};
    return absl::InvalidArgumentError(
        absl::StrCat("--op '", flags.op, "': ",
                     WantedNames(flags.op, kOps, /*lister=*/"",
                                 "wanted matmul, grouped, attention or elementwise")));
  }
  const bool of_attention = flags.backward || flags.all_keys || flags.attention != "cudnn";
  if (form->op != "attention" && of_attention) {
    return absl::InvalidArgumentError(
        "--backward, --all-keys, --attention: wanted with --op attention alone");
  }
  const bool product = form->op == "matmul" || form->op == "grouped";
  if (!product && flags.layout != "TN") {
    return absl::InvalidArgumentError("--layout: wanted with --op matmul or grouped alone");
  }
  if (form->op != "matmul" && flags.loops.wanted()) {
    return absl::InvalidArgumentError(
        "--loads, --tile, --register-tile, --pad, --vector: wanted with --op matmul alone");
  }
  if (form->op != "grouped" && flags.kernel_each) {
    return absl::InvalidArgumentError("--kernel-each: wanted with --op grouped alone");
  }
  return *form;
}

absl::Status PrintDevice(const KernelFlags& flags) {
  ORRERY_ASSIGN_OR_RETURN(const cluster::Device device, DeviceByBeginning(flags.device));
  std::cout << cluster::PrintDevice(device);
  return absl::OkStatus();
}

// What loops written by hand load and store, for people; as JSON it goes to the figures.
absl::StatusOr<std::string> AddLoops(const KernelFlags& flags, const Question& question,
                                     Answer& answer) {
  ORRERY_ASSIGN_OR_RETURN(KernelLoopAnswer loops,
                          AnswerKernelLoops(flags.loops, {.shape = ProductOf(question.shape),
                                                          .dtype = question.dtype,
                                                          .layout = question.layout,
                                                          .device = question.device}));
  answer.figures["loops"] = std::move(loops.json);
  return std::move(loops.text);
}

// Nothing for the model alone.
absl::StatusOr<std::optional<cost_models::MeasuredKernels>> TableOf(absl::string_view cost_model) {
  if (cost_model == "kernels") return std::nullopt;
  if (!absl::ConsumePrefix(&cost_model, "kernels:")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--cost-model '", cost_model, "': wanted kernels or kernels:FILE"));
  }
  ORRERY_ASSIGN_OR_RETURN(std::vector<cost_models::MeasuredKernel> rows,
                          cost_models::ReadKernelTable(std::string(cost_model)));
  return cost_models::MeasuredKernels(std::move(rows));
}

}  // namespace
}  // namespace kernel_question_cc

absl::StatusOr<cluster::Device> DeviceByBeginning(const std::string& name) {
  absl::StatusOr<cluster::Device> exact = cluster::FindDeviceOrFile(name);
  if (exact.ok() || cluster::IsClusterFile(name)) return exact;
  for (const cluster::Device& device : cluster::AllDevices()) {
    if (absl::StartsWith(device.name, absl::StrCat(name, "-"))) return device;
  }
  return Annotate(exact.status(), "--device");
}

absl::Status AnswerKernel(const KernelFlags& flags) {
  namespace own = kernel_question_cc;
  if (flags.print_device) return own::PrintDevice(flags);
  ORRERY_ASSIGN_OR_RETURN(const own::Form form, own::FormOf(flags));
  const std::optional<ir::DType> dtype = ir::ParseDType(flags.dtype);
  if (!dtype.has_value() || !ir::IsFloat(*dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype '", flags.dtype, "': wanted bf16, f16, f32, f8, f8b or f4"));
  }
  ORRERY_ASSIGN_OR_RETURN(const cluster::Device device, DeviceByBeginning(flags.device));
  ORRERY_ASSIGN_OR_RETURN(std::vector<int64_t> shape, own::ShapeOf(flags.shape, form));
  ORRERY_ASSIGN_OR_RETURN(const cost_models::AttentionClass attention,
                          own::ClassOf(flags.attention));
  ORRERY_ASSIGN_OR_RETURN(
      const cost_models::ProductLayout layout,
      Annotated(cost_models::kProductLayoutNames.Parse(flags.layout), "--layout"));
  ORRERY_ASSIGN_OR_RETURN(const auto table, own::TableOf(flags.cost_model));
  const own::Question question = {
      .shape = std::move(shape),
      .dtype = *dtype,
      .device = device,
      .rates = device.rates,
      .choice = {.attention = attention,
                 .experts = {.present = form.op == "grouped", .kernel_each = flags.kernel_each}},
      .layout = layout};
  own::Answer answer;
  if (form.op == "matmul" || form.op == "grouped") {
    answer = own::PriceMatmul(question);
  } else if (form.op == "elementwise") {
    answer = own::PriceElementwise(question);
  } else {
    ORRERY_ASSIGN_OR_RETURN(answer, own::PriceFlash(question, flags.backward, flags.all_keys));
  }
  if (table.has_value()) {
    const std::string file = flags.cost_model.substr(std::string("kernels:").size());
    own::AddMeasured(*table, file, question, answer);
  }
  std::string loops;
  if (flags.loops.wanted()) {
    ORRERY_ASSIGN_OR_RETURN(loops, own::AddLoops(flags, question, answer));
  }
  if (!flags.json.empty()) ORRERY_RETURN_IF_ERROR(own::WriteJson(flags, question, answer));
  own::Print(flags, question, answer);
  std::cout << loops;
  return absl::OkStatus();
}

}  // namespace orrery::tools
