#ifndef ORRERY_SIMULATOR_PROGRAM_PROGRAM_TEXT_H_
#define ORRERY_SIMULATOR_PROGRAM_PROGRAM_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "simulator/program/program.h"

// The text form of a Program: a line each for what it declares and then for each task, in the order
// of the ids. `Print` and `ParseProgram` are inverses of each other, byte for byte, so that two
// programs are the same when their texts are. What has its default value is left out, and so are
// the parts of stretches, which say only what their time goes into.
//
//   program
//   rank0 "dp0 hp0 pp0" members 0-3,8 stage 0 capacity 17179869184 bytes slowdown 0.1
//   resident rank0 parameters 4096 bytes
//   stream0 rank0 compute
//   label0 "MatMul y0" compute forward stage 0 flops 2e+09 bytes 4096
//   label1 "AllReduce dwA" collective backward stage 0 bytes 4096 collectives 4
//   label2 "Send y0" send forward stage 0 bytes 4096 communication "send" level "nic"
//   resource0 "device3 -> switch0" "port" capacity 25000000000 bytes/s latency 250 ps
//   flow0 size 4096 bytes rate 25000000000 bytes/s latency 500 ps loads resource0 1
//   task0 stream0 label0 microbatch 3 takes 1500 ps
//   task1 stream0 stream1 label1 takes flow0 after task0
//   memory task0 rank0 activations +4096 bytes
//   memory task1 rank0 activations -4096 bytes
//   memory task2 rank0 gradients +4096 bytes late
//
// Empty lines and lines that start with '#' are skipped.

namespace orrery::simulator {

/// The text of `program`, whose ids must be in range.
std::string Print(const Program& program);

/// The program of that text; a line that cannot be read is named by its number. All ids in the
/// outcome are in range; whether its tasks wait in a cycle is for `Verify` to say.
absl::StatusOr<Program> ParseProgram(absl::string_view text);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_PROGRAM_PROGRAM_TEXT_H_
