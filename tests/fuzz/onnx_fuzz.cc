#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "importer/load_model.h"
#include "ir/verifier.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "tests/fuzz/onnx_mutator.h"
#include "transforms/training/training_step.h"

// onnx_fuzz [--rounds N] [--seed S] [--first R] [FILE.onnx …]: imports so many mutants of the files
// (without any: of the models of this repository and the test data of the ONNX project) and makes
// training steps of those that can be imported. Each must give a function that verifies or an error
// of one line, within 20 seconds and in little memory. What fails is said with seed and round:
// `--first R --rounds 1` replays it.

namespace onnx_fuzz_cc {
namespace {

using orrery::fuzz::OnnxMutator;

constexpr int kSecondsARound = 20;
constexpr long kMaxResidentKilobytes = 2L << 20;
constexpr uintmax_t kMaxFileBytes = 400'000;

struct Settings {
  int64_t rounds = 10'000;
  int64_t seed = 1;
  int64_t first = 0;
  std::vector<std::string> files;
};

// What the handler of a crash prints.
char g_where[512] = "";

extern "C" void OnCrash(int signal) {
  const char* what = signal == SIGALRM ? "hangs: " : "crashes: ";
  (void)!write(2, what, std::strlen(what));
  (void)!write(2, g_where, std::strlen(g_where));
  _exit(3);
}

std::vector<std::string> DefaultFiles() {
  std::vector<std::string> files;
  for (const std::string& folder : {orrery::SourceDir() + "/examples/models",
                                    std::string("/usr/share/libonnx-testdata/data")}) {
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".onnx") continue;
      if (std::filesystem::file_size(entry) <= kMaxFileBytes)
        files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool ReadSettings(int argc, char** argv, Settings& settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    int64_t* number = argument == "--rounds"  ? &settings.rounds
                      : argument == "--seed"  ? &settings.seed
                      : argument == "--first" ? &settings.first
                                              : nullptr;
    if (number == nullptr) {
      settings.files.push_back(argument);
    } else if (++i == argc || !absl::SimpleAtoi(argv[i], number)) {
      return false;
    }
  }
  if (settings.files.empty()) settings.files = DefaultFiles();
  return !settings.files.empty();
}

class Fuzzer {
 public:
  explicit Fuzzer(const Settings& settings) : settings_(settings) {
    path_ = (std::filesystem::temp_directory_path() / absl::StrCat("onnx_fuzz_", getpid(), ".onnx"))
                .string();
    for (const std::string& file : settings_.files) {
      const auto bytes = orrery::ReadFile(file);
      bytes_.push_back(bytes.ok() ? *bytes : "");
    }
  }
  ~Fuzzer() { std::filesystem::remove(path_); }

  void Round(int64_t round) {
    const auto seed =
        static_cast<uint64_t>(settings_.seed) * 0x9E3779B97F4A7C15U + static_cast<uint64_t>(round);
    OnnxMutator mutator(seed);
    const size_t file = static_cast<size_t>(round) % bytes_.size();
    std::snprintf(g_where, sizeof(g_where), "--seed %lld --first %lld --rounds 1: a mutant of %s\n",
                  static_cast<long long>(settings_.seed), static_cast<long long>(round),
                  settings_.files[file].c_str());
    std::ofstream(path_, std::ios::binary) << mutator.Mutate(bytes_[file]);
    alarm(kSecondsARound);
    Import(round);
    alarm(0);
  }

  int failures() const { return failures_; }
  std::string Summary() const {
    return absl::StrCat(imported_, " imported, ", trained_, " trained, ", refused_, " refused, ",
                        failures_, " failed");
  }

 private:
  void Import(int64_t round) {
    auto function =
        orrery::importer::LoadModel({.model = path_, .batch_size = round % 3 == 0 ? 6 : 0});
    if (!function.ok()) {
      ++refused_;
      return CheckLine(function.status(), path_);
    }
    ++imported_;
    CheckFunction(*function);
    const absl::Status status = orrery::transforms::MakeTrainingStep(*function, {});
    if (!status.ok()) return CheckLine(status, "");
    ++trained_;
    CheckFunction(*function);
  }

  void CheckFunction(const orrery::ir::Function& function) {
    if (const absl::Status status = orrery::ir::Verify(function); !status.ok()) {
      Fail(absl::StrCat("does not verify: ", status.message()));
    }
  }

  void CheckLine(const absl::Status& status, const std::string& start) {
    const std::string message(status.message());
    if (message.empty() || message.find('\n') != std::string::npos) Fail("no line: " + message);
    if (message.rfind(start, 0) != 0) Fail("does not say where: " + message);
    if (message.size() > 4000) Fail(absl::StrCat("is long: ", message.size(), " characters"));
  }

  void Fail(const std::string& what) {
    ++failures_;
    std::cerr << what << "\n  " << g_where;
  }

  const Settings& settings_;
  std::string path_;
  std::vector<std::string> bytes_;
  int imported_ = 0, trained_ = 0, refused_ = 0, failures_ = 0;
};

}  // namespace
}  // namespace onnx_fuzz_cc

int main(int argc, char** argv) {
  onnx_fuzz_cc::Settings settings;
  if (!onnx_fuzz_cc::ReadSettings(argc, argv, settings)) {
    std::cerr << "usage: onnx_fuzz [--rounds N] [--seed S] [--first R] [FILE.onnx …]\n";
    return 2;
  }
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGALRM})
    std::signal(signal, onnx_fuzz_cc::OnCrash);
  onnx_fuzz_cc::Fuzzer fuzzer(settings);
  for (int64_t r = settings.first; r < settings.first + settings.rounds; ++r) fuzzer.Round(r);
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::cout << "seed " << settings.seed << ": " << settings.rounds << " mutants of "
            << settings.files.size() << " files: " << fuzzer.Summary() << "; "
            << usage.ru_maxrss / 1024 << " MiB\n";
  return fuzzer.failures() > 0 || usage.ru_maxrss > onnx_fuzz_cc::kMaxResidentKilobytes ? 1 : 0;
}
