#ifndef ORRERY_TESTS_IR_TEXT_GOLDEN_H_
#define ORRERY_TESTS_IR_TEXT_GOLDEN_H_

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/file.h"
#include "support/paths_test_util.h"

// The texts of this folder, for tests: each parses, verifies, and prints as it stands.

namespace orrery::ir::golden {

/// The folder of the texts: this one, or another that the variable ORRERY_IR_TEXT names.
inline std::string Folder() {
  const char* other = std::getenv("ORRERY_IR_TEXT");
  return other != nullptr ? other : SourceDir() + "/tests/ir_text";
}

/// Paths of all texts, sorted.
inline std::vector<std::string> Paths() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Folder())) {
    if (entry.path().extension() == ".ir") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The contents of all texts, in the order of Paths.
inline std::vector<std::string> Texts() {
  std::vector<std::string> texts;
  for (const std::string& path : Paths()) texts.push_back(ReadFile(path).value());
  return texts;
}

/// Whether texts are to be rewritten instead of compared: ORRERY_BLESS=1.
inline bool Blessing() {
  const char* bless = std::getenv("ORRERY_BLESS");
  return bless != nullptr && std::string(bless) == "1";
}

}  // namespace orrery::ir::golden

#endif  // ORRERY_TESTS_IR_TEXT_GOLDEN_H_
