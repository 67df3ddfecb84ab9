#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cli/run.h"

// `kernel --loads`: what loops load and store that are written by hand, and which tiles fit.

namespace orrery::cli {
namespace kernel_loops_test_cc {
namespace {

using testing::HasSubstr;

Finished Ask(const std::string& flags) { return Execute(absl::StrCat("kernel ", flags)); }

const std::string kCube = "--shape 1024,1024,1024 --dtype f32 --device a100-80gb ";

nlohmann::json LoopsOf(const std::string& flags) {
  const Finished finished = Ask(absl::StrCat(flags, " --json kernel.json"));
  EXPECT_EQ(finished.code, 0) << flags << finished.err;
  return nlohmann::json::parse(Contents("kernel.json"))["loops"];
}

nlohmann::json Nest(const nlohmann::json& loops, const std::string& name) {
  for (const nlohmann::json& nest : loops["nests"]) {
    if (nest["name"] == name) return nest;
  }
  ADD_FAILURE() << name;
  return {};
}

// 2 n^3, 2 n^3 / 8, 2 n^3 / 128.
TEST(KernelLoops, AreThoseOfTextbooks) {
  const nlohmann::json loops = LoopsOf(kCube + "--tile 128x128x8 --register-tile 8x8");
  EXPECT_EQ(Nest(loops, "naive")["memory"]["loads"], 2147483648);
  EXPECT_EQ(Nest(loops, "register")["memory"]["loads"], 268435456);
  const nlohmann::json shared = Nest(loops, "shared");
  EXPECT_EQ(shared["memory"]["loads"], 16777216);
  EXPECT_EQ(shared["memory"]["stores"], 1048576);
  EXPECT_EQ(shared["near"]["loads"], 268435456);
  EXPECT_EQ(shared["blocks"], 64);
  EXPECT_EQ(shared["registers"], 112);
  EXPECT_EQ(loops["shared_tiles"].size(), 1u);
  EXPECT_EQ(loops["best"], "shared");
  EXPECT_FALSE(Nest(loops, "register-rows")["fits"].get<bool>());
  EXPECT_FALSE(Nest(loops, "cache").contains("time_s"));
}

// A user's tile is never faster than the one that is said to be the best.
TEST(KernelLoops, NameTheBestTile) {
  const nlohmann::json best = LoopsOf(kCube + "--loads");
  EXPECT_EQ(best["shared_tiles"].size(), 5u);
  EXPECT_EQ(best["shared_tiles"][0]["time_s"], Nest(best, "shared")["time_s"]);
  for (const char* tile : {"32x32x8", "64x64x8", "128x64x16"}) {
    const nlohmann::json other = LoopsOf(absl::StrCat(kCube, "--tile ", tile));
    EXPECT_GE(Nest(other, "shared")["time_s"], Nest(best, "shared")["time_s"]) << tile;
  }
  // Padding takes away the conflicts of what is transposed on its way, 8 words in one bank.
  const std::string usual = kCube + "--tile 128x128x8 --register-tile 8x8 --vector 1 --pad ";
  const auto stores = [](const nlohmann::json& loops) {
    const nlohmann::json banks = Nest(loops, "shared")["banks"]["a_stores"];
    return banks["cycles"].get<double>() / banks["cycles_without_conflicts"].get<double>();
  };
  EXPECT_EQ(stores(LoopsOf(usual + "0")), 8);
  EXPECT_EQ(stores(LoopsOf(usual + "4")), 1);
  EXPECT_EQ(stores(LoopsOf(usual + "0 --layout NT")), 1);  // nothing is transposed
}

// Without the flags nothing is printed of them.
TEST(KernelLoops, AreNotThereUnasked) {
  const std::string plain = Ask(kCube).out, loads = Ask(kCube + "--loads").out;
  EXPECT_EQ(loads.substr(0, plain.size()), plain);
  EXPECT_THAT(plain, testing::Not(HasSubstr("loops")));
  EXPECT_THAT(loads, HasSubstr("  the best on a100-80gb is 'shared': --tile "));
}

TEST(KernelLoops, SayWhatIsNotPossible) {
  EXPECT_THAT(Ask(kCube + "--tile 128x128x512").err,
              HasSubstr("--tile 128x128x512: on a100-80gb the loops 'shared' wants 524288 bytes of "
                        "shared memory; at most 166912; try a smaller tile"));
  EXPECT_THAT(Ask(kCube + "--register-tile 32x32").err,
              HasSubstr("--register-tile 32x32: on a100-80gb the loops 'register' wants 1120 "
                        "registers a thread; at most 255; try a smaller tile"));
  EXPECT_THAT(Ask(kCube + "--tile 128x128 --register-tile 3x3").err,
              HasSubstr("--tile 128x128 --register-tile 3x3: tiles of threads do not divide"));
  EXPECT_THAT(
      Ask(kCube + "--register-tile 8x8 --vector 8").err,
      HasSubstr("--register-tile 8x8 --vector 8: loads of 8 elements of f32 are of 32 bytes; "
                "wanted at most 16"));
  EXPECT_THAT(Ask(kCube + "--tile 128").err, HasSubstr("--tile '128': wanted rows x columns"));
  EXPECT_THAT(Ask(kCube + "--tile 0x4").err, HasSubstr("--tile '0x4': wanted rows x columns"));
  EXPECT_THAT(Ask(kCube + "--pad 99").err, HasSubstr("--pad 99: wanted 0 to 64"));
  for (const char* flag : {"--pad=-1", "--pad -1", "--pad=-2"}) {  // are no wish for the best
    EXPECT_THAT(Ask(kCube + flag).err, HasSubstr(": wanted 0 to 64")) << flag;
  }
  for (const char* flag : {"--vector=-1", "--vector 0", "--vector 9"}) {
    EXPECT_THAT(Ask(kCube + flag).err, HasSubstr(": wanted 1 to 8")) << flag;
  }
  EXPECT_THAT(Ask("--shape 8,8,8 --device mi300x --loads").err,
              HasSubstr("--loads: no figures of the cores of mi300x; wanted one of NVIDIA's"));
  // The name of a file's device says nothing, and what it is like does.
  const std::string of_file = "--shape 64,64,64 --dtype f32 --device mine.textproto --loads";
  Write("mine.textproto",
        "device_kinds { name: \"mine\" like: \"l40s\" rates { sustained: 0.7 } }");
  EXPECT_THAT(Ask(of_file).out, HasSubstr("142 cores of Ada, compute capability 8.9\n"));
  Write("mine.textproto", "device_kinds { name: \"h100-x\" like: \"mi300x\" }");
  EXPECT_THAT(Ask(of_file).err, HasSubstr("--loads: no figures of the cores of h100-x; wanted"));
  EXPECT_THAT(Ask("--shape 8,8,8 --device h100 --dtype f8 --loads").err,
              HasSubstr("--loads: vector units have no products of f8; wanted f32, bf16 or f16"));
  EXPECT_THAT(Ask("--op elementwise --shape 8 --device h100 --loads").err,
              HasSubstr("wanted with --op matmul alone"));
}

}  // namespace
}  // namespace kernel_loops_test_cc
}  // namespace orrery::cli
