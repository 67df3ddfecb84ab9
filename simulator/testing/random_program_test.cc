#include "simulator/testing/random_program.h"

#include <gtest/gtest.h>

#include "simulator/program/program_text.h"

namespace orrery::simulator {
namespace random_program_test_cc {
namespace {

TEST(RandomProgram, VerifiesAndRepeats) {
  int32_t rendezvous = 0;
  int32_t unordered = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const RandomProgramOptions options{.seed = seed, .ordered = seed % 2 == 0};
    const Program program = RandomProgram(options);
    EXPECT_TRUE(program.Verify().ok()) << program.Verify();
    EXPECT_EQ(Print(program), Print(RandomProgram(options)));
    unordered += !program.ordered();
    for (int32_t i = 0; i < program.task_count(); ++i) {
      rendezvous += program.streams_of(TaskId(i)).size() > 1;
    }
  }
  EXPECT_GT(rendezvous, 300);
  EXPECT_GE(unordered, 20);
}

}  // namespace
}  // namespace random_program_test_cc
}  // namespace orrery::simulator
