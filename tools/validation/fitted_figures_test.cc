#include "tools/validation/fitted_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "support/file.h"
#include "tools/validation/stack_file.h"

namespace orrery::tools {
namespace fitted_figures_test_cc {
namespace {

using testing::HasSubstr;

std::string FolderOf(const std::string& name,
                     const std::vector<std::pair<std::string, std::string>>& files) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/figures_", getpid(), "_", name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const auto& [file, text] : files) {
    EXPECT_TRUE(WriteFile(absl::StrCat(folder, "/", file), text).ok());
  }
  return folder;
}

FittedFigures Some() {
  FittedFigures figures;
  figures.devices.push_back(cluster::FindDevice("h100-80gb").value());
  figures.devices[0].rates.sustained = 0.5;
  figures.collectives.push_back(cluster::FindCollectiveProfile("nccl-hopper").value());
  figures.collectives[0].protocols[0].rate = 0.25;
  figures.stacks.emplace_back("nemo", FindStack("nemo").value());
  figures.stacks[0].second.launch_us = 7;
  return figures;
}

TEST(FittedFigures, AreReadAsTheyAreWritten) {
  const FittedFigures some = Some();
  const FittedFigures read = ReadFigures(FolderOf("all", FilesOf(some))).value();
  EXPECT_EQ(read.devices, some.devices);
  EXPECT_EQ(read.collectives, some.collectives);
  ASSERT_EQ(read.stacks.size(), 1);
  EXPECT_EQ(read.stacks[0].first, "nemo");
  EXPECT_EQ(StackText(read.stacks[0].second), StackText(some.stacks[0].second));
}

TEST(FittedFigures, StandForThoseOfTheirName) {
  const FittedFigures some = Some();
  cluster::Cluster h100 = cluster::ParseCluster("dgx-h100:2").value();
  Apply(some, h100);
  EXPECT_EQ(h100.device.rates.sustained, 0.5);
  EXPECT_EQ(h100.topology.collective_profile(), some.collectives[0]);
  cluster::Cluster a100 = cluster::ParseCluster("dgx-a100:2").value();
  const cluster::Cluster before = a100;
  Apply(some, a100);
  EXPECT_EQ(a100.device, before.device);
  EXPECT_EQ(a100.topology.collective_profile(), before.topology.collective_profile());
  EXPECT_EQ(FindStack("nemo", some)->launch_us, 7);
  EXPECT_EQ(FindStack("megatron", some)->launch_us, FindStack("megatron")->launch_us);
  EXPECT_FALSE(FindStack("abacus", some).ok());
}

TEST(FittedFigures, SayWhatIsWrongOfAFolder) {
  const auto error_of = [](const std::string& folder) {
    return std::string(ReadFigures(folder).status().message());
  };
  EXPECT_THAT(error_of("no/such/folder"), HasSubstr("no/such/folder: found no file of a device"));
  EXPECT_THAT(error_of(FolderOf("none", {{"residuals.csv", "id\n"}})), HasSubstr("found no file"));
  EXPECT_THAT(error_of(FolderOf("empty", {{"a.textproto", ""}})),
              HasSubstr("a.textproto: got neither device_kinds nor collectives"));
  EXPECT_THAT(error_of(FolderOf("key", {{"nemo.json", "{\"speed\": 1}"}})),
              HasSubstr("nemo.json: found 'speed'"));
}

}  // namespace
}  // namespace fitted_figures_test_cc
}  // namespace orrery::tools
