#ifndef ORRERY_SIMULATOR_PROGRAM_PROGRAM_TEST_UTIL_H_
#define ORRERY_SIMULATOR_PROGRAM_PROGRAM_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/string_view.h"
#include "simulator/program/program_text.h"

// For tests only.

namespace orrery::simulator {

/// The program of that text, which must be one.
inline Program Parse(absl::string_view text) {
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_PROGRAM_PROGRAM_TEST_UTIL_H_
