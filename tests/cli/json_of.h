#ifndef ORRERY_TESTS_CLI_JSON_OF_H_
#define ORRERY_TESTS_CLI_JSON_OF_H_

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run.h"

namespace orrery::cli {

/// What a command writes with --json; null, and a failure of the test, where it does not end with 0
/// or writes no JSON.
inline nlohmann::json JsonOf(const std::string& command) {
  const Finished run = Execute(command + " --json of.json");
  EXPECT_EQ(run.code, 0) << command << ": " << run.err;
  if (run.code != 0) return {};
  nlohmann::json json =
      nlohmann::json::parse(Contents("of.json"), nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << command;
  return json;
}

}  // namespace orrery::cli

#endif  // ORRERY_TESTS_CLI_JSON_OF_H_
