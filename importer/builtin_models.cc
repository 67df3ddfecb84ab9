#include "importer/builtin_models.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "importer/printable.h"
#include "ir/models/mlp.h"
#include "support/status.h"

namespace orrery::importer {
namespace {

// dim·dim and dim·batch elements of 8 bytes stay below the 2^60 bytes that a tensor may have.
constexpr int64_t kMaxLayers = 1'000'000;
constexpr int64_t kMaxDim = int64_t{1} << 24;
constexpr int64_t kMaxBatch = int64_t{1} << 32;

struct Key {
  absl::string_view name;
  int64_t fallback;
  int64_t max;
};

using Values = std::map<absl::string_view, int64_t>;

struct Builtin {
  absl::string_view name;
  std::vector<Key> keys;
  absl::StatusOr<ir::Function> (*build)(const Values& values, int64_t batch, ir::DType dtype);
};

absl::StatusOr<ir::Function> BuildMlp(const Values& values, int64_t batch, ir::DType dtype) {
  return ir::Mlp(
      {.layers = values.at("layers"), .dim = values.at("dim"), .batch = batch, .dtype = dtype});
}

const std::vector<Builtin>& Builtins() {
  static const std::vector<Builtin> builtins = {
      {.name = "mlp",
       .keys = {{"layers", 64, kMaxLayers}, {"dim", 8192, kMaxDim}},
       .build = BuildMlp},
  };
  return builtins;
}

const Builtin* Find(absl::string_view model) {
  const absl::string_view name = model.substr(0, model.find(':'));
  for (const Builtin& builtin : Builtins()) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

// Reads "key=value" into `values`.
absl::Status ReadKey(const Builtin& builtin, absl::string_view text, Values& values) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  for (const Key& key : builtin.keys) {
    if (key.name != parts.first) continue;
    int64_t value = 0;
    if (!absl::SimpleAtoi(parts.second, &value) || value < 1 || value > key.max) {
      return absl::InvalidArgumentError(absl::StrCat(
          key.name, " is ", Show(parts.second), "; wanted a whole number from 1 to ", key.max));
    }
    if (values.emplace(key.name, value).second) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(key.name, " stands twice; wanted it once"));
  }
  const std::string known = absl::StrJoin(
      builtin.keys, ", ", [](std::string* out, const Key& key) { absl::StrAppend(out, key.name); });
  return absl::InvalidArgumentError(
      absl::StrCat("unknown key ", Show(parts.first), "; wanted ", known));
}

absl::StatusOr<Values> ReadKeys(const Builtin& builtin, absl::string_view model) {
  Values values;
  const size_t colon = model.find(':');
  if (colon != absl::string_view::npos) {
    for (const absl::string_view text : absl::StrSplit(model.substr(colon + 1), ',')) {
      ORRERY_RETURN_IF_ERROR(ReadKey(builtin, text, values));
    }
  }
  for (const Key& key : builtin.keys) values.emplace(key.name, key.fallback);
  return values;
}

}  // namespace

bool IsBuiltinModel(absl::string_view model) { return Find(model) != nullptr; }

absl::StatusOr<ir::Function> BuildBuiltinModel(absl::string_view model, int64_t batch,
                                               ir::DType dtype) {
  const std::string where = Printable(model);
  if (batch < 1 || batch > kMaxBatch) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": batch is ", batch, "; wanted 1 to ", kMaxBatch));
  }
  const Builtin* builtin = Find(model);
  if (builtin == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": is no built-in model; wanted ", BuiltinModels()));
  }
  const absl::StatusOr<Values> values = ReadKeys(*builtin, model);
  if (!values.ok()) return Annotate(values.status(), where);
  return builtin->build(*values, batch, dtype);
}

std::string BuiltinModels() {
  return absl::StrJoin(Builtins(), ", ", [](std::string* out, const Builtin& builtin) {
    absl::StrAppend(out, builtin.name, ":",
                    absl::StrJoin(builtin.keys, ",", [](std::string* keys, const Key& key) {
                      absl::StrAppend(keys, key.name, "=", key.fallback);
                    }));
  });
}

}  // namespace orrery::importer
