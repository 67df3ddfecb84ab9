#include "support/module.h"

#include <unistd.h>

#include <filesystem>
#include <new>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/file.h"

namespace orrery {
namespace module_test_cc {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

TEST(ModuleFolders, BesideTheProgramAndInLib) {
  EXPECT_THAT(ModuleFolders("/usr/bin"), ElementsAre("/usr/bin", "/usr/lib/orrery"));
}

TEST(LoadModule, NoneIsFound) {
  const auto entry = LoadModuleEntry("onnx", {"/nowhere", "/nowhere/else"});
  EXPECT_EQ(entry.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(entry.status().message(),
            "found no liborrery_onnx.so in /nowhere or /nowhere/else; wanted the one that was "
            "built or installed with this program");
}

absl::StatusOr<int> Half(const int& number, bool* told) {
  *told = true;
  if (number == 1) throw std::bad_alloc();
  if (number == 3) throw std::length_error("too long");
  return number / 2;
}

TEST(ModuleEntry, LetsNoExceptionOut) {
  const auto half = [](int number) {
    bool told = false;
    const auto result = internal::Catching<&Half>::Call(number, &told);
    EXPECT_TRUE(told);
    return result.ok() ? absl::StrCat(*result) : std::string(result.status().message());
  };
  EXPECT_EQ(half(8), "4");
  EXPECT_EQ(half(1), "out of memory; try a smaller file");
  EXPECT_EQ(half(3), "too long");
}

// The first that is found is the one: a module that is broken is not passed over in silence.
TEST(LoadModule, WhatIsFoundIsNoModule) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/orrery_module_test.", getpid());
  ASSERT_TRUE(WriteFile(absl::StrCat(folder, "/liborrery_onnx.so"), "no library\n").ok());
  const absl::Status status = LoadModuleEntry("onnx", {"/nowhere", folder}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              StartsWith(absl::StrCat("cannot load ", folder, "/liborrery_onnx.so: ")));
  EXPECT_THAT(std::string(status.message()),
              EndsWith("; wanted the one that was built or installed with this program"));
  std::filesystem::remove_all(folder);
}

// A test program stands beside no module, and links what modules hold.
TEST(LoadModule, NoModuleOfThatName) { EXPECT_FALSE(LoadModule<void()>("of_nobody").ok()); }

}  // namespace
}  // namespace module_test_cc
}  // namespace orrery
