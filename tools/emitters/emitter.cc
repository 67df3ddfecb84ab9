#include "tools/emitters/emitter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/model_facts.h"
#include "support/word_list.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {
namespace emitter_cc {
namespace {

constexpr const Emitter* kEmitters[] = {
#define ORRERY_EMITTER(Name, file) &k##Name##Emitter,
#include "tools/emitters/emitters.def"
#undef ORRERY_EMITTER
};

// "--zero 3", "--blocking=0".
std::string ValueText(const transforms::AxisInfo& axis, const search::ParallelPlan& plan) {
  const bool is_switch = axis.form == transforms::AxisForm::kSwitch;
  return absl::StrCat("--", axis.flag, is_switch ? "=" : " ", axis.print(plan));
}

}  // namespace
}  // namespace emitter_cc

std::span<const Emitter* const> AllEmitters() { return emitter_cc::kEmitters; }

std::string EmitterNames() {
  std::vector<absl::string_view> names;
  for (const Emitter* emitter : AllEmitters()) names.push_back(emitter->name);
  return ListWords(names, " or ");
}

absl::StatusOr<const Emitter*> FindEmitter(absl::string_view name) {
  for (const Emitter* emitter : AllEmitters()) {
    if (emitter->name == name) return emitter;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "': wanted ", EmitterNames()));
}

Emitted Emit(const Emitter& emitter, const EmitQuestion& question) {
  if (!question.plan.unequal()) return emitter.emit(question);
  return {.text = emitter.comment.empty() ? "{}\n" : "",
          .notes = {absl::StrCat("no counterpart: ", emitter.name,
                                 " has no stages or replicas that are not alike; nothing is told "
                                 "it of ",
                                 transforms::ToString(question.plan, question.setting.base))}};
}

void EmitNotes::Lack(absl::string_view flag, absl::string_view why) {
  Take(flag);
  const transforms::AxisInfo& axis = *transforms::FindAxis(flag);
  notes_.push_back(absl::StrCat("no counterpart: ", emitter_cc::ValueText(axis, plan_), ": ", why));
}

std::vector<std::string> EmitNotes::All(absl::string_view system) {
  const search::ParallelPlan usual;
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    if (taken_.contains(axis->flag) || axis->print(plan_) == axis->print(usual)) continue;
    if (axis->applies != nullptr && !axis->applies(plan_)) continue;
    Lack(axis->flag, absl::StrCat(system, " has no option for it"));
  }
  return notes_;
}

void SayOfHeads(int64_t heads, int64_t hp, absl::string_view system, EmitNotes& notes) {
  if (heads % hp == 0) return;
  notes.Say(absl::StrCat("no counterpart: ", heads, " attention heads do not divide over --hp ", hp,
                         ", and ", system, " refuses that"));
}

int64_t MicrobatchSize(const EmitQuestion& question) {
  const search::ParallelPlan& plan = question.plan;
  return std::max<int64_t>(1, question.setting.batch_size / (plan.dp * plan.ep) /
                                  std::max<int64_t>(1, plan.microbatches));
}

int64_t BytesAnElement(const EmitQuestion& question) {
  const std::optional<ir::DType> type = ir::ComputeType(question.setting.step);
  return ir::SizeOf(type.value_or(ir::DType::kBF16));
}

int64_t BucketElements(const EmitQuestion& question) {
  return std::max<int64_t>(1, question.plan.bucket_size.count() / BytesAnElement(question));
}

}  // namespace orrery::tools
