#include "transforms/simplify/simplify.h"

#include <filesystem>
#include <map>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "ir/execution/execute.h"
#include "ir/tensor_parts.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "transforms/pass_registry.h"
#include "transforms/training/training_step.h"

// What the golden texts of tests/cli/opt show of folding and fusing is executed: before and after,
// functions give the same, and so do their gradients. And running a pass again changes nothing.

namespace orrery::transforms {
namespace simplify_test_cc {
namespace {

using ir::Function;
using ir::Tensor;

constexpr absl::string_view kPrefixes[] = {"fold_", "remove_", "merge_",   "fuse_",
                                           "sink_", "unpack_", "simplify_"};

std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(SourceDir() + "/tests/cli/opt")) {
    const std::string name = entry.path().filename().string();
    for (const absl::string_view prefix : kPrefixes) {
      if (absl::StartsWith(name, prefix)) files.push_back(name);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Function Input(const std::string& file) {
  const std::string text = ReadFile(absl::StrCat(SourceDir(), "/tests/cli/opt/", file)).value();
  const size_t begin = text.find('\n') + 1, end = text.find("// OUTPUT");
  return ir::ParseFunction(text.substr(begin, end - begin)).value();
}

std::vector<PassCall> Passes(const std::string& file) {
  const std::string text = ReadFile(absl::StrCat(SourceDir(), "/tests/cli/opt/", file)).value();
  std::string line = text.substr(0, text.find('\n'));
  line = line.substr(line.find("--passes ") + 9);
  line = line.substr(0, line.find(" --"));
  line.erase(std::remove(line.begin(), line.end(), '\''), line.end());
  return ParsePasses(line).value();
}

ir::NamedTensors RandomInputs(const Function& function, uint32_t seed) {
  std::mt19937 random(seed);
  ir::NamedTensors inputs;
  for (const ir::Input& input : function.inputs()) {
    Tensor tensor(function.type(input.value).dtype, function.type(input.value).dims);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const double number = static_cast<double>(random() % 2001) / 1000 - 1;
      tensor.SetNumber(i, tensor.is_float() ? number : static_cast<double>(random() % 2));
    }
    tensor.RoundToDType();
    inputs[ir::ExecutionName(function, input.value)] = tensor;
  }
  return inputs;
}

// The columns of `whole` from `begin` on that make a tensor of `type`, which differs in one
// dimension.
Tensor PartOf(const Tensor& whole, const ir::TensorType& type, int64_t begin) {
  Tensor part(type.dtype, type.dims);
  const ir::Dims strides = ir::StridesOf(whole.dims());
  int64_t offset = 0;
  for (size_t d = 0; d < type.dims.size(); ++d) {
    if (type.dims[d] != whole.dims()[d]) offset = begin * strides[d];
  }
  for (ir::Odometer at(type.dims, {strides}); !at.done(); at.Next()) {
    part.CopyElement(at.index(), whole, offset + at.offset(0));
  }
  return part;
}

// A pass may part a weight w into w.0, w.1 and so on.
ir::NamedTensors WithParts(ir::NamedTensors inputs, const Function& after) {
  std::map<std::string, int64_t> begins;
  for (const ir::Input& input : after.inputs()) {
    const std::string name = ir::ExecutionName(after, input.value);
    const std::string whole = name.substr(0, name.rfind('.'));
    if (inputs.contains(name) || !inputs.contains(whole)) continue;
    const ir::TensorType& type = after.type(input.value);
    const Tensor tensor = inputs.at(whole);
    int64_t& begin = begins[whole];
    inputs[name] = PartOf(tensor, type, begin);
    for (size_t d = 0; d < type.dims.size(); ++d) {
      if (type.dims[d] == tensor.dims()[d]) continue;
      begin += type.dims[d];
      break;
    }
  }
  return inputs;
}

std::vector<Tensor> Run(const Function& function, const ir::NamedTensors& inputs) {
  const auto execution = ir::Execute(function, inputs, {.round = false});
  if (!execution.ok()) ADD_FAILURE() << execution.status();
  return execution.ok() ? execution->outputs : std::vector<Tensor>();
}

void ExpectSame(const Function& a, const Function& b) {
  for (uint32_t seed = 1; seed < 4; ++seed) {
    const ir::NamedTensors inputs = RandomInputs(a, seed);
    const std::vector<Tensor> before = Run(a, inputs), after = Run(b, WithParts(inputs, b));
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_LT(ir::Distance(before[i], after[i]), 2e-3) << "output " << i << ", seed " << seed;
    }
  }
}

// The loss and all gradients, by the name of what they are of.
std::map<std::string, Tensor> Gradients(const Function& function, const ir::NamedTensors& inputs) {
  const std::vector<Tensor> outputs = Run(function, inputs);
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ir::ValueId of = function.outputs()[i].of;
    named[of.valid() ? ir::ExecutionName(function, of) : "loss"] = outputs[i];
  }
  return named;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, GivesTheSameBeforeAndAfter) {
  const Function before = Input(GetParam());
  Function after = before;
  for (const PassCall& call : Passes(GetParam())) {
    const auto changed = RunPass(call, after);
    ASSERT_TRUE(changed.ok()) << changed.status();
    ASSERT_TRUE(ir::Verify(after).ok()) << ir::Verify(after);
    const std::string once = ir::Print(after);
    const auto again = RunPass(call, after);
    if (call.pass->idempotent) {
      EXPECT_FALSE(again.value());
      EXPECT_EQ(ir::Print(after), once);
    }
  }
  ExpectSame(before, after);
}

TEST_P(Golden, SimplifiesToTheSame) {
  const Function before = Input(GetParam());
  Function after = before;
  ASSERT_TRUE(Simplify(after).ok());
  ASSERT_TRUE(ir::Verify(after).ok()) << ir::Verify(after);
  ExpectSame(before, after);
  EXPECT_FALSE(Simplify(after).value()) << ir::Print(after);
}

// All outputs that can have a loss; the first alone where they have no names.
std::string LossOutputs(const Function& function) {
  std::string names;
  for (const ir::Output& output : function.outputs()) {
    const ir::TensorType& type = function.type(output.value);
    if (!ir::IsFloat(type.dtype) || type.dims.empty()) continue;
    if (function.value_name(output.value).empty()) return "";
    absl::StrAppend(&names, names.empty() ? "" : ",", function.value_name(output.value));
  }
  return names;
}

// With all floating-point data trained, and squared errors as the losses: a sum would not see what
// comes before a softmax.
TEST_P(Golden, HasTheSameGradients) {
  Function before = Input(GetParam());
  std::string text = ir::Print(before);
  for (size_t at = text.find(" data"); at != std::string::npos; at = text.find(" data", at + 1)) {
    const size_t line = text.rfind('\n', at);
    if (text.substr(line, at - line).find(": f") != std::string::npos) {
      text.replace(at, 5, " parameter");
    }
  }
  before = ir::ParseFunction(text).value();
  Function after = before;
  ASSERT_TRUE(Simplify(after).ok());
  const LossChoice squares = {.kind = "mse", .output = LossOutputs(before)};
  const auto loss = AttachLoss(before, squares);
  if (!loss.ok() || !*loss) GTEST_SKIP() << "no floating-point output";
  ASSERT_TRUE(AttachLoss(after, squares).ok());
  ASSERT_TRUE(BuildBackward(before).ok()) << BuildBackward(before).status();
  ASSERT_TRUE(BuildBackward(after).ok()) << BuildBackward(after).status();
  const ir::NamedTensors inputs = RandomInputs(before, 7);
  const std::map<std::string, Tensor> wanted = WithParts(Gradients(before, inputs), after);
  const std::map<std::string, Tensor> found = Gradients(after, WithParts(inputs, after));
  EXPECT_LT(ir::Distance(wanted.at("loss"), found.at("loss")), 2e-3);
  for (const ir::Input& input : after.inputs()) {
    const std::string name = ir::ExecutionName(after, input.value);
    EXPECT_LE(found.count(name), wanted.count(name)) << name;
    if (!wanted.contains(name)) continue;
    // A part that the loss does not depend on has no gradient of its own.
    const Tensor none(wanted.at(name).dtype(), wanted.at(name).dims());
    const Tensor& gradient = found.contains(name) ? found.at(name) : none;
    EXPECT_LT(ir::Distance(wanted.at(name), gradient), 2e-3) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(Files()), [](const auto& info) {
  return info.param.substr(0, info.param.find('.'));
});

}  // namespace
}  // namespace simplify_test_cc
}  // namespace orrery::transforms
