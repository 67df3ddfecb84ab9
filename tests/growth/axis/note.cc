#include "transforms/plan/axis_fields.h"

// A word of the user's own, which tells rows of a table apart.

namespace orrery::transforms {
namespace note_cc {
namespace {

absl::StatusOr<std::string> Parse(absl::string_view text) {
  if (text.size() <= 80) return std::string(text);
  return absl::InvalidArgumentError(
      absl::StrCat("'", text.substr(0, 80), "': wanted at most 80 characters"));
}

}  // namespace
}  // namespace note_cc

extern const AxisInfo kNoteAxis = {
    .flag = "note",
    .summary = "a word that stands in the rows of tables",
    .values = "at most 80 characters",
    .examples = {"a-word", "it's two words", ""},
    .mistake =
        {"a text that is longer than the eighty characters that a row of a table has room for",
         "': wanted at most 80 characters"},
    .parse = ParseField<&ParallelPlan::note, note_cc::Parse>,
    .print = [](const ParallelPlan& plan) { return plan.note; },
    .copy = CopyField<&ParallelPlan::note>,
};

}  // namespace orrery::transforms
