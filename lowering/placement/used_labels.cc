#include "lowering/placement/used_labels.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"

namespace orrery::lowering {
namespace used_labels_cc {
namespace {

using simulator::LabelId;

// Calls `visit` with the label of each task and send.
template <typename Visit>
void ForLabels(std::vector<Stage>& stages, const Visit& visit) {
  for (Stage& stage : stages) {
    for (PricedTemplate* priced : stage.templates()) {
      for (TemplateTask& task : priced->task_template.tasks) visit(task.label);
      for (TemplateSend& send : priced->task_template.sends) {
        visit(send.label);
        if (send.across.label.valid()) visit(send.across.label);
        for (SendMessage& message : send.across.messages) visit(message.label);
      }
    }
  }
}

void KeepFirstOfEachKind(const simulator::Program& program, IdTable<LabelId, char>& kept) {
  std::vector<std::pair<absl::string_view, absl::string_view>> seen;
  for (int32_t i = 0; i < program.label_count(); ++i) {
    const simulator::TaskLabel label = program.label(LabelId(i));
    if (label.kind == simulator::TaskKind::kCompute) continue;
    const std::pair kind(label.communication, label.level);
    if (std::ranges::find(seen, kind) != seen.end()) continue;
    seen.push_back(kind);
    kept[LabelId(i)] = 1;
  }
}

}  // namespace
}  // namespace used_labels_cc

void KeepUsedLabels(std::vector<Stage>& stages, simulator::Program& program) {
  IdTable<simulator::LabelId, char> kept(program.label_count(), 0);
  used_labels_cc::KeepFirstOfEachKind(program, kept);
  used_labels_cc::ForLabels(stages, [&](simulator::LabelId label) {
    kept[label] = 1;
    for (const simulator::StretchPart& part : program.parts_of(label)) kept[part.label] = 1;
  });
  const auto ids = program.KeepLabels(kept);
  used_labels_cc::ForLabels(stages, [&](simulator::LabelId& label) { label = ids[label]; });
}

}  // namespace orrery::lowering
