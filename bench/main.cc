#include <benchmark/benchmark.h>

#include "support/heap.h"

// Benchmarks run on the heap that the programs run on.
int main(int argc, char** argv) {
  orrery::TuneHeap();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
