#include "importer/load_model.h"

#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "importer/batch/rebind.h"
#include "importer/builtin_models.h"
#include "importer/onnx.h"
#include "ir/batch.h"
#include "ir/text/text.h"
#include "support/file.h"
#include "support/names/near_names.h"
#include "support/printable.h"
#include "support/status.h"

namespace orrery::importer {
namespace load_model_cc {
namespace {

// The parser's errors start with "line:column"; the verifier's with the name of the function.
absl::StatusOr<ir::Function> ReadText(const std::string& path) {
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<ir::Function> function = ir::ParseFunction(text);
  if (function.ok()) return function;
  const absl::string_view message = function.status().message();
  if (absl::EndsWith(message, "wanted no dead op")) {
    return Annotate(absl::InvalidArgumentError(absl::StrCat(
                        message, "; opt FILE.orr --passes dead-code prints the text without it")),
                    path);
  }
  const bool placed = !message.empty() && std::isdigit(static_cast<unsigned char>(message[0])) != 0;
  if (!placed) return Annotate(function.status(), path);
  return absl::Status(function.status().code(), absl::StrCat(path, ":", message));
}

absl::StatusOr<ir::Function> Adapt(ir::Function function, const ModelSpec& spec) {
  if (spec.batch_size > 0 && spec.batch_size != ir::BatchOf(function)) {
    ORRERY_ASSIGN_OR_RETURN(function, WithBatch(function, spec.batch_size));
  }
  if (spec.dtype.has_value()) {
    ORRERY_ASSIGN_OR_RETURN(function, WithDType(function, *spec.dtype));
  }
  return function;
}

absl::StatusOr<ir::Function> LoadFile(const ModelSpec& spec,
                                      absl::StatusOr<ir::Function> function) {
  if (!function.ok()) return function;
  function = Adapt(*std::move(function), spec);
  if (!function.ok()) return Annotate(function.status(), spec.model);
  return function;
}

}  // namespace
}  // namespace load_model_cc

absl::StatusOr<ir::Function> LoadModel(const ModelSpec& spec) {
  const std::string where = Printable(spec.model);
  if (spec.batch_size < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": batch is ", spec.batch_size, "; wanted at least 1"));
  }
  if (absl::EndsWith(spec.model, ".onnx")) {
    return load_model_cc::LoadFile(spec, ImportOnnx(spec.model, {.symbols = spec.symbols,
                                                                 .batch_size = spec.batch_size,
                                                                 .roles = spec.roles,
                                                                 .notes = spec.notes}));
  }
  if (!spec.symbols.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": has no dynamic dimensions; symbol '",
                                                   spec.symbols.begin()->first,
                                                   "' is for an ONNX file"));
  }
  const std::pair<absl::string_view, const std::string*> patterns[] = {
      {"parameters", &spec.roles.parameters},
      {"data", &spec.roles.data},
      {"freeze", &spec.roles.freeze}};
  for (const auto& [option, pattern] : patterns) {
    if (pattern->empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": ", option, " ", Show(*pattern),
        " is for an ONNX file; a text says of its inputs whether they are parameters"));
  }
  if (absl::EndsWith(spec.model, ".orr"))
    return load_model_cc::LoadFile(spec, load_model_cc::ReadText(spec.model));
  if (IsBuiltinModel(spec.model)) {
    return BuildBuiltinModel(spec.model, spec.batch_size, spec.dtype.value_or(ir::DType::kF32));
  }
  const std::string all =
      absl::StrCat("wanted FILE.onnx, FILE.orr or a built-in one: ", BuiltinModels());
  const std::vector<absl::string_view> names = BuiltinModelNames();
  const absl::string_view name = absl::string_view(spec.model).substr(0, spec.model.find(':'));
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": is no model; ", WantedNames(name, names, "list-models", all)));
}

}  // namespace orrery::importer
