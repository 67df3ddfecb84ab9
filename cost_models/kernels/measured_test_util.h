#ifndef ORRERY_COST_MODELS_KERNELS_MEASURED_TEST_UTIL_H_
#define ORRERY_COST_MODELS_KERNELS_MEASURED_TEST_UTIL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "support/numbers/median.h"
#include "support/paths_test_util.h"

// Tables of measured kernels, and what docs/kernels.md says of them.

namespace orrery::cost_models {

/// Lines of a file of `folder`, by their fields, without comments and the head.
inline std::vector<std::vector<std::string>> Lines(absl::string_view file,
                                                   absl::string_view folder = "tests/data") {
  std::vector<std::vector<std::string>> lines;
  const std::string text = *ReadFile(absl::StrCat(SourceDir(), "/", folder, "/", file));
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] != '#') lines.push_back(absl::StrSplit(line, ','));
  }
  lines.erase(lines.begin());
  return lines;
}

inline std::string KernelsPage() { return *ReadFile(SourceDir() + "/docs/kernels.md"); }

/// Absolute errors by device: the median of each is at most that of `most`, and the page has a line
/// "| device | rows | median |" of it.
inline void ExpectMedians(const std::map<std::string, std::vector<double>>& errors,
                          const std::map<std::string, double>& most) {
  ASSERT_EQ(errors.size(), most.size());
  const std::string page = KernelsPage();
  for (const auto& [device, of_device] : errors) {
    EXPECT_LE(MedianOf(of_device), most.at(device)) << device;
    EXPECT_THAT(
        page, testing::HasSubstr(absl::StrFormat("| %s | %d | %.1f %% |", device, of_device.size(),
                                                 100 * MedianOf(of_device))));
  }
}

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_MEASURED_TEST_UTIL_H_
