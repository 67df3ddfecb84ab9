#ifndef ORRERY_TESTS_BACKEND_ONNX_CASE_H_
#define ORRERY_TESTS_BACKEND_ONNX_CASE_H_

#include <string>

// One test of the ONNX project's backend tests: a folder with a model, inputs, and the outputs that
// they should give.

namespace orrery::backend {

enum class Verdict {
  kPassed,
  kFailed,
  kOtherKind,  // works on other things than tensors of numbers: sequences, optionals, strings
};

struct CaseResult {
  Verdict verdict = Verdict::kFailed;
  /// What is wrong, in one line.
  std::string message = {};
  /// Which inputs had to be known while importing: 0 none, 1 those that are not of floating point,
  /// 2 all.
  int known = 0;
};

/// Imports the model of `folder` and executes it on each of its data sets.
CaseResult RunCase(const std::string& folder);

/// The same in a process of its own: a crash or an endless loop is a failure like others.
CaseResult RunCaseApart(const std::string& folder);

}  // namespace orrery::backend

#endif  // ORRERY_TESTS_BACKEND_ONNX_CASE_H_
