#include "tools/validation/stack_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/file.h"
#include "support/names/near_names.h"
#include "support/status.h"

namespace orrery::tools {
namespace stack_file_cc {
namespace {

using Json = nlohmann::ordered_json;

// A figure of a stack: what it is called in files, what it may be.
template <typename Struct>
struct Figure {
  absl::string_view key;
  std::variant<bool Struct::*, double Struct::*, int64_t Struct::*> field;
  double most = 1e12;
};

// A new field of SoftwareStack gets a line here.
constexpr Figure<SoftwareStack> kFigures[] = {
    {"split_loss", &SoftwareStack::split_loss},
    {"compiles", &SoftwareStack::compiles},
    {"copies_apart", &SoftwareStack::copies_apart},
    {"bounds_fusion", &SoftwareStack::bounds_fusion},
    {"batches_kernels", &SoftwareStack::batches_kernels},
    {"fuses_dropout_sums", &SoftwareStack::fuses_dropout_sums},
    {"sum_share", &SoftwareStack::sum_share, 1},
    {"recomputes_whole", &SoftwareStack::recomputes_whole},
    {"waits_for_tensor_parallel", &SoftwareStack::waits_for_tensor_parallel},
    {"waits_for_sends", &SoftwareStack::waits_for_sends},
    {"copies_gathers", &SoftwareStack::copies_gathers},
    {"scatters_sends", &SoftwareStack::scatters_sends},
    {"sends_tokens_once", &SoftwareStack::sends_tokens_once},
    {"overlaps_experts", &SoftwareStack::overlaps_experts},
    {"reduces_after_backward", &SoftwareStack::reduces_after_backward},
    {"pipelines_products", &SoftwareStack::pipelines_products},
    {"gathers_ahead", &SoftwareStack::gathers_ahead},
    {"waits_for_kernels", &SoftwareStack::waits_for_kernels},
    {"bucket_parameters", &SoftwareStack::bucket_parameters},
    {"bucket_parameters_a_rank", &SoftwareStack::bucket_parameters_a_rank, 1e9},
    {"slowdown", &SoftwareStack::slowdown, 0.99},
    {"launch_us", &SoftwareStack::launch_us, 1e6},
    {"collective_us", &SoftwareStack::collective_us, 1e6},
    {"prepare_us", &SoftwareStack::prepare_us, 1e6},
    {"step_us", &SoftwareStack::step_us, 1e8},
    {"experts_us", &SoftwareStack::experts_us, 1e6},
    {"cuda_graphs", &SoftwareStack::cuda_graphs},
    {"expert_kernels", &SoftwareStack::expert_kernels},
    {"expert_call_us", &SoftwareStack::expert_call_us, 1e6},
};

constexpr Figure<lowering::StackMemory> kMemoryFigures[] = {
    {"gradient", &lowering::StackMemory::gradient, 1e3},
    {"loss", &lowering::StackMemory::loss, 1e3},
    {"update", &lowering::StackMemory::update, 1e3},
    {"sent", &lowering::StackMemory::sent, 1e3},
};

constexpr Figure<cost_models::ExtraTraffic> kTrafficFigures[] = {
    {"gradient_sum", &cost_models::ExtraTraffic::gradient_sum, 1e3},
    {"reduction", &cost_models::ExtraTraffic::reduction, 1e3},
    {"update", &cost_models::ExtraTraffic::update, 1e3},
    {"loss", &cost_models::ExtraTraffic::loss, 1e3},
    {"loss_gradient", &cost_models::ExtraTraffic::loss_gradient, 1e3},
    {"activation", &cost_models::ExtraTraffic::activation, 1e3},
    {"sorting", &cost_models::ExtraTraffic::sorting, 1e3},
    {"norm", &cost_models::ExtraTraffic::norm, 1e3},
    {"norm_gradient", &cost_models::ExtraTraffic::norm_gradient, 1e3},
    {"rotary", &cost_models::ExtraTraffic::rotary, 1e3},
    {"gated", &cost_models::ExtraTraffic::gated, 1e3},
    {"gated_gradient", &cost_models::ExtraTraffic::gated_gradient, 1e3},
};

// Objects of figures, by the type of parameters.
template <typename Struct>
struct OfType {
  absl::string_view key;
  Struct SoftwareStack::*field;
};
constexpr OfType<lowering::StackMemory> kMemories[] = {{"fp16", &SoftwareStack::fp16},
                                                       {"bf16", &SoftwareStack::bf16}};
constexpr OfType<cost_models::ExtraTraffic> kTraffics[] = {
    {"fp16_traffic", &SoftwareStack::fp16_traffic}, {"bf16_traffic", &SoftwareStack::bf16_traffic}};
constexpr absl::string_view kAttention = "attention";

absl::Status Wanted(const std::string& where, const Json& found, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": found ", found.dump().substr(0, 60), "; wanted ", wanted));
}

template <typename Struct>
absl::Status Set(const Figure<Struct>& figure, const Json& value, const std::string& where,
                 Struct& into) {
  if (const auto* flag = std::get_if<bool Struct::*>(&figure.field)) {
    if (!value.is_boolean()) return Wanted(where, value, "true or false");
    into.** flag = value.get<bool>();
    return absl::OkStatus();
  }
  const auto* whole = std::get_if<int64_t Struct::*>(&figure.field);
  const double number = value.is_number() ? value.get<double>() : -1;
  const bool fits =
      number >= 0 && number <= figure.most && (whole == nullptr || number == std::floor(number));
  if (!fits) {
    return Wanted(
        where, value,
        absl::StrCat(whole != nullptr ? "a whole number" : "a number", " from 0 to ", figure.most));
  }
  if (whole != nullptr) {
    into.** whole = static_cast<int64_t>(number);
  } else {
    into.*std::get<double Struct::*>(figure.field) = number;
  }
  return absl::OkStatus();
}

template <typename Figures>
const auto* Find(const Figures& figures, absl::string_view key) {
  const auto* found =
      std::ranges::find_if(figures, [&](const auto& each) { return each.key == key; });
  return found == std::end(figures) ? nullptr : found;
}

template <typename Figures>
std::string Keys(const Figures& figures) {
  return absl::StrJoin(figures, ", ",
                       [](std::string* out, const auto& each) { absl::StrAppend(out, each.key); });
}

template <typename Struct, size_t kCount>
absl::Status SetObject(const Json& object, const Figure<Struct> (&figures)[kCount],
                       const std::string& where, Struct& into) {
  if (!object.is_object()) return Wanted(where, object, absl::StrCat("{", Keys(figures), "}"));
  for (const auto& [key, value] : object.items()) {
    const Figure<Struct>* const figure = Find(figures, key);
    if (figure == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": found '", key.substr(0, 60), "'; wanted one of ", Keys(figures)));
    }
    ORRERY_RETURN_IF_ERROR(Set(*figure, value, absl::StrCat(where, ".", key), into));
  }
  return absl::OkStatus();
}

absl::Status SetAttention(const Json& value, const std::string& where, SoftwareStack& stack) {
  const auto& names = cost_models::kAttentionClassNames;
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  const auto* const found = std::ranges::find(names, name);
  if (found == names.end()) {
    return Wanted(where, value, absl::StrCat("one of ", absl::StrJoin(names, ", ")));
  }
  stack.attention = static_cast<cost_models::AttentionClass>(found - names.begin());
  return absl::OkStatus();
}

absl::Status SetKey(const std::string& key, const Json& value, const std::string& path,
                    SoftwareStack& stack) {
  const std::string where = absl::StrCat(path, ": ", key.substr(0, 60));
  if (key == kAttention) return SetAttention(value, where, stack);
  if (const auto* const memory = Find(kMemories, key); memory != nullptr) {
    return SetObject(value, kMemoryFigures, where, stack.*memory->field);
  }
  if (const auto* const traffic = Find(kTraffics, key); traffic != nullptr) {
    return SetObject(value, kTrafficFigures, where, stack.*traffic->field);
  }
  if (const Figure<SoftwareStack>* const figure = Find(kFigures, key); figure != nullptr) {
    return Set(*figure, value, where, stack);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": found '", key.substr(0, 60), "'; wanted one of like, ", Keys(kMemories),
                   ", ", Keys(kTraffics), ", ", kAttention, ", ", Keys(kFigures)));
}

absl::StatusOr<SoftwareStack> OfName(absl::string_view name) {
  for (const SoftwareStack* known : AllSoftwareStacks()) {
    if (known->name == name) return *known;
  }
  std::vector<absl::string_view> names;
  for (const SoftwareStack* known : AllSoftwareStacks()) names.push_back(known->name);
  const std::string all =
      absl::StrCat("wanted one of ", StackNames(), ", or a file that ends in .json");
  return absl::InvalidArgumentError(absl::StrCat("there is no stack '", name.substr(0, 60), "'; ",
                                                 WantedNames(name, names, "list-stacks", all)));
}

template <typename Struct, typename Figures>
Json JsonOf(const Struct& of, const Figures& figures) {
  Json object = Json::object();
  for (const Figure<Struct>& figure : figures) {
    std::visit([&](auto field) { object[std::string(figure.key)] = of.*field; }, figure.field);
  }
  return object;
}

}  // namespace
}  // namespace stack_file_cc

bool IsStackFile(absl::string_view stack) { return absl::EndsWith(stack, ".json"); }

absl::StatusOr<SoftwareStack> ParseStack(absl::string_view text, const std::string& path) {
  using stack_file_cc::Json;
  const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": found no JSON object; wanted one, such as {\"like\": \"megatron\", "
                     "\"launch_us\": 20}"));
  }
  const Json like = object.value("like", Json("ideal"));
  if (!like.is_string()) return stack_file_cc::Wanted(path + ": like", like, StackNames());
  absl::StatusOr<SoftwareStack> stack = stack_file_cc::OfName(like.get<std::string>());
  if (!stack.ok()) return Annotate(stack.status(), path + ": like");
  for (const auto& [key, value] : object.items()) {
    if (key == "like") continue;
    ORRERY_RETURN_IF_ERROR(stack_file_cc::SetKey(key, value, path, *stack));
  }
  return stack;
}

std::string StackText(const SoftwareStack& stack) {
  using namespace stack_file_cc;  // NOLINT(google-build-using-namespace): this file's own
  Json object = Json::object();
  object["like"] = "ideal";
  for (const auto& memory : kMemories) {
    object[std::string(memory.key)] = JsonOf(stack.*memory.field, kMemoryFigures);
  }
  for (const auto& traffic : kTraffics) {
    object[std::string(traffic.key)] = JsonOf(stack.*traffic.field, kTrafficFigures);
  }
  object[std::string(kAttention)] =
      cost_models::kAttentionClassNames[static_cast<size_t>(stack.attention)];
  object.update(JsonOf(stack, kFigures));
  return object.dump(2) + "\n";
}

absl::StatusOr<SoftwareStack> FindStack(absl::string_view stack) {
  if (!IsStackFile(stack)) return stack_file_cc::OfName(stack);
  const std::string path(stack);
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseStack(text, path);
}

}  // namespace orrery::tools
