#include "tools/model_columns.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "importer/builtin_models.h"

namespace orrery::tools {

std::vector<std::string> ModelColumnNames(const std::vector<std::string>& models) {
  std::vector<std::string> names;
  for (const std::string& model : models) {
    for (const importer::BuiltinKey& key : importer::BuiltinKeys(model)) {
      if (key.is_named && std::ranges::find(names, key.name) == names.end()) {
        names.push_back(key.name);
      }
    }
  }
  return names;
}

std::vector<search::ModelColumn> ModelColumnsOf(const std::string& model,
                                                const std::vector<std::string>& names) {
  const std::vector<importer::BuiltinKey> keys = importer::BuiltinKeys(model);
  std::vector<search::ModelColumn> columns;
  for (const std::string& name : names) {
    search::ModelColumn& column = columns.emplace_back(search::ModelColumn{.name = name});
    const auto key = std::ranges::find(keys, name, &importer::BuiltinKey::name);
    if (key == keys.end() || key->value.empty()) continue;
    int64_t whole = 0;
    double number = 0;
    if (absl::SimpleAtoi(key->value, &whole)) {
      column.value = whole;
    } else if (absl::SimpleAtod(key->value, &number)) {
      column.value = number;
    } else {
      column.value = key->value;
    }
  }
  return columns;
}

}  // namespace orrery::tools
