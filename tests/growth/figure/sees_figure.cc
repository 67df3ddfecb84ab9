#include <iostream>

#include "simulator/engine/longest_path.h"
#include "simulator/program/program_text.h"
#include "simulator/report/report_json.h"

// The JSON of a step in which one of two ranks computes nothing.

int main() {
  const auto program = orrery::simulator::ParseProgram(R"(program
rank0 "pp0" members 0,2 stage 0
rank1 "pp1" members 1,3 stage 1
stream0 rank0 compute
stream1 rank1 compute
label0 "MatMul" compute forward stage 0
task0 stream0 label0 takes 1500000000000 ps
)");
  if (!program.ok()) {
    std::cerr << program.status() << "\n";
    return 1;
  }
  std::cout << ReportJson(*program, Summarize(*program, RunLongestPath(*program)), {});
}
