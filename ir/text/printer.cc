#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/names.h"
#include "ir/op_info.h"
#include "ir/text/text.h"

namespace orrery::ir {
namespace printer_cc {
namespace {

class Printer {
 public:
  explicit Printer(const Function& function)
      : function_(function), positions_(function.value_limit(), -1) {
    for (const Input& input : function.inputs()) positions_[input.value] = next_++;
    for (const OpId op : function.order()) {
      for (int32_t i = 0; i < function.result_count(op); ++i) {
        positions_[function.result(op, i)] = next_++;
      }
    }
  }

  std::string Print() {
    absl::StrAppend(&text_, "func @",
                    IsPlainName(function_.name()) ? function_.name() : Quote(function_.name()));
    if (!function_.mesh().empty()) absl::StrAppend(&text_, " ", ToString(function_.mesh()));
    absl::StrAppend(&text_, " (");
    for (const Input& input : function_.inputs()) {
      absl::StrAppend(&text_, &input == &function_.inputs().front() ? "\n  " : ",\n  ");
      AppendTyped(input.value);
      absl::StrAppend(&text_, " ", ToString(input.role));
    }
    absl::StrAppend(&text_, function_.inputs().empty() ? ") {\n" : "\n) {\n");
    for (const OpId op : function_.order()) AppendOp(op);
    AppendReturn();
    absl::StrAppend(&text_, "}\n");
    return std::move(text_);
  }

 private:
  void AppendValue(ValueId value) {
    const absl::string_view name = function_.value_name(value);
    if (name.empty() && positions_[value] >= 0) {
      absl::StrAppend(&text_, "%", positions_[value]);
    } else {
      absl::StrAppend(&text_, PrintValue(function_, value));
    }
  }

  void AppendTyped(ValueId value) {
    AppendValue(value);
    absl::StrAppend(&text_, ": ", ToString(function_.type(value), function_.mesh()));
  }

  void AppendOp(OpId op) {
    absl::StrAppend(&text_, "  ");
    for (int32_t i = 0; i < function_.result_count(op); ++i) {
      if (i > 0) absl::StrAppend(&text_, ", ");
      AppendTyped(function_.result(op, i));
    }
    if (function_.result_count(op) > 0) absl::StrAppend(&text_, " = ");
    absl::StrAppend(&text_, function_.info(op).name, "(");
    const auto operands = function_.operands(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (i > 0) absl::StrAppend(&text_, ", ");
      AppendValue(operands[i]);
    }
    absl::StrAppend(&text_, ")");
    const AttributeSet& attributes = function_.attributes(op);
    if (!attributes.empty()) absl::StrAppend(&text_, " ", ToString(attributes));
    absl::StrAppend(&text_, "\n");
  }

  void AppendReturn() {
    absl::StrAppend(&text_, "  return");
    for (const Output& output : function_.outputs()) {
      absl::StrAppend(&text_, &output == &function_.outputs().front() ? " " : ", ");
      AppendValue(output.value);
      absl::StrAppend(&text_, ": ", ToString(output.role));
      if (!output.of.valid()) continue;
      absl::StrAppend(&text_, "(");
      AppendValue(output.of);
      absl::StrAppend(&text_, ")");
    }
    absl::StrAppend(&text_, "\n");
  }

  const Function& function_;
  IdTable<ValueId, int32_t> positions_;  // for values without a name
  int32_t next_ = 0;
  std::string text_;
};

}  // namespace
}  // namespace printer_cc

std::string Print(const Function& function) { return printer_cc::Printer(function).Print(); }

std::string Print(const std::vector<Function>& functions) {
  std::string text;
  for (const Function& function : functions) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", Print(function));
  }
  return text;
}

}  // namespace orrery::ir
