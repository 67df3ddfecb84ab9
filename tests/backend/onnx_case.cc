#include "tests/backend/onnx_case.h"

#include <onnx/onnx_pb.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "importer/onnx.h"
#include "ir/execution/execute.h"
#include "ir/mesh.h"
#include "ir/type.h"
#include "support/file.h"
#include "support/status.h"
#include "tests/backend/tensor_file.h"

namespace orrery::backend {
namespace onnx_case_cc {
namespace {

using ir::DType;
using ir::Tensor;
using onnx::TensorProto;
using Tensors = std::map<std::string, Tensor>;

constexpr unsigned kSecondsACase = 20;

template <typename Proto>
absl::StatusOr<Proto> ReadProto(const std::string& path) {
  ORRERY_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  Proto proto;
  if (!proto.ParseFromString(bytes)) return absl::InvalidArgumentError(path + " does not parse");
  return proto;
}

// A case.

bool IsNumeric(const onnx::ValueInfoProto& value) {
  const onnx::TypeProto& type = value.type();
  return type.has_tensor_type() && DTypeOf(type.tensor_type().elem_type()).has_value();
}

// Whether a node of the graph, or of a graph in it, works on sequences, optionals or maps.
bool UsesOtherKinds(const onnx::GraphProto& graph) {
  for (const onnx::NodeProto& node : graph.node()) {
    const std::string& type = node.op_type();
    if (absl::StrContains(type, "Sequence") || absl::StrContains(type, "Optional")) return true;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g() && UsesOtherKinds(attribute.g())) return true;
    }
  }
  return false;
}

struct Case {
  onnx::ModelProto model;
  std::vector<const onnx::ValueInfoProto*> inputs;  // those that are no initializers
  Tensors stored;                                   // initializers and constants
};

absl::StatusOr<Case> ReadCase(const std::string& folder) {
  Case test;
  ORRERY_ASSIGN_OR_RETURN(test.model, ReadProto<onnx::ModelProto>(folder + "/model.onnx"));
  const auto store = [&](const std::string& name, const TensorProto& proto) {
    if (std::optional<Tensor> tensor = TensorOf(proto)) test.stored[name] = *std::move(tensor);
  };
  for (const TensorProto& proto : test.model.graph().initializer()) store(proto.name(), proto);
  for (const onnx::NodeProto& node : test.model.graph().node()) {
    if (node.op_type() != "Constant" || node.attribute_size() != 1) continue;
    if (node.attribute(0).has_t()) store(node.output(0), node.attribute(0).t());
  }
  return test;
}

void FindInputs(Case& test) {
  std::set<std::string> initializers;
  for (const TensorProto& proto : test.model.graph().initializer())
    initializers.insert(proto.name());
  for (const onnx::ValueInfoProto& input : test.model.graph().input()) {
    if (!initializers.contains(input.name())) test.inputs.push_back(&input);
  }
}

// What dynamic dimensions of those inputs that are not in `known` are in the data.
std::map<std::string, int64_t> Symbols(const Case& test, const Tensors& inputs,
                                       const Tensors& known) {
  std::map<std::string, int64_t> symbols;
  for (const onnx::ValueInfoProto* input : test.inputs) {
    if (known.contains(input->name())) continue;
    const ir::Dims& dims = inputs.at(input->name()).dims();
    const onnx::TensorShapeProto& shape = input->type().tensor_type().shape();
    for (int d = 0; d < shape.dim_size() && d < static_cast<int>(dims.size()); ++d) {
      const auto& dim = shape.dim(d);
      if (dim.has_dim_value()) continue;
      symbols[dim.dim_param().empty() ? absl::StrCat(input->name(), ".", d) : dim.dim_param()] =
          dims[static_cast<size_t>(d)];
    }
  }
  return symbols;
}

Tensors Known(const Tensors& inputs, int level) {
  Tensors known;
  for (const auto& [name, tensor] : inputs) {
    if (level == 2 || (level == 1 && !tensor.is_float())) known[name] = tensor;
  }
  return known;
}

// With as few inputs known as it takes; the error is that with none, and that with all.
absl::StatusOr<ir::Function> Import(const std::string& folder, const Case& test,
                                    const Tensors& inputs, int& level) {
  absl::Status first;
  for (level = 0;; ++level) {
    importer::ImportOptions options;
    options.values = Known(inputs, level);
    options.symbols = Symbols(test, inputs, options.values);
    absl::StatusOr<ir::Function> function = importer::ImportOnnx(folder + "/model.onnx", options);
    if (function.ok()) return function;
    if (level == 0) first = function.status();
    if (level < 2) continue;
    if (first == function.status()) return first;
    return Annotate(first, absl::StrCat("(when all is known, ", function.status().message(), ")"));
  }
}

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};

Tolerance ToleranceOf(DType dtype) {
  if (dtype == DType::kF16) return {.relative = 1e-2, .absolute = 1e-3};
  if (dtype == DType::kBF16) return {.relative = 4e-2, .absolute = 1e-2};
  if (!ir::IsFloat(dtype)) return {.relative = 0, .absolute = 0};
  return {};
}

bool Near(double ours, double expected, const Tolerance& tolerance) {
  if (ours == expected || (std::isnan(ours) && std::isnan(expected))) return true;
  if (!std::isfinite(ours) || !std::isfinite(expected)) return false;
  return std::abs(ours - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

std::string Show(const Tensor& tensor) { return ir::ToString(tensor.type(), ir::Mesh()); }

absl::Status Compare(const std::string& name, const Tensor& ours, const Tensor& expected) {
  if (ours.dtype() != expected.dtype() || ours.dims() != expected.dims()) {
    return absl::InternalError(
        absl::StrCat("output '", name, "' is ", Show(ours), "; wanted ", Show(expected)));
  }
  for (int64_t i = 0; i < ours.size(); ++i) {
    if (Near(ours.Number(i), expected.Number(i), ToleranceOf(expected.dtype()))) continue;
    return absl::InternalError(absl::StrCat("output '", name, "' ", Show(ours), " element ", i,
                                            " is ", ours.Number(i), "; wanted ",
                                            expected.Number(i)));
  }
  return absl::OkStatus();
}

// The tensors of files input_0.pb … in order; nothing when one is no tensor.
absl::StatusOr<std::vector<Tensor>> ReadTensors(const std::string& data_set,
                                                const std::string& prefix) {
  std::vector<Tensor> tensors;
  for (int i = 0;; ++i) {
    const std::string path = absl::StrCat(data_set, "/", prefix, "_", i, ".pb");
    if (!std::filesystem::exists(path)) return tensors;
    ORRERY_ASSIGN_OR_RETURN(const TensorProto proto, ReadProto<TensorProto>(path));
    std::optional<Tensor> tensor = TensorOf(proto);
    if (!tensor.has_value()) return absl::InvalidArgumentError(path + " is no tensor of numbers");
    tensors.push_back(*std::move(tensor));
  }
}

// numpy has no bfloat16: the data sets hold the bits as whole numbers.
Tensor AsDeclared(const Tensor& tensor, const onnx::ValueInfoProto& value) {
  const bool is_bfloat16 = value.type().tensor_type().elem_type() == TensorProto::BFLOAT16;
  if (!is_bfloat16 || tensor.dtype() != DType::kU16) return tensor;
  Tensor floats(DType::kBF16, tensor.dims());
  for (size_t i = 0; i < floats.floats().size(); ++i) {
    floats.floats()[i] = FromBFloat16(static_cast<uint16_t>(tensor.ints()[i]));
  }
  return floats;
}

absl::Status RunDataSet(const std::string& folder, const std::string& data_set, const Case& test,
                        int& level) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<Tensor> given, ReadTensors(data_set, "input"));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<Tensor> expected, ReadTensors(data_set, "output"));
  if (given.size() < test.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the data set has ", given.size(), " inputs; the model ", test.inputs.size()));
  }
  Tensors inputs;
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    inputs[test.inputs[i]->name()] = AsDeclared(given[i], *test.inputs[i]);
  }
  ORRERY_ASSIGN_OR_RETURN(const ir::Function function, Import(folder, test, inputs, level));
  Tensors all = inputs;
  all.insert(test.stored.begin(), test.stored.end());
  ORRERY_ASSIGN_OR_RETURN(const ir::Execution execution, ir::Execute(function, all));
  std::vector<Tensor> ours;
  for (size_t i = 0; i < execution.outputs.size(); ++i) {
    if (function.outputs()[i].role == ir::OutputRole::kResult) ours.push_back(execution.outputs[i]);
  }
  if (ours.size() != expected.size()) {
    return absl::InternalError(
        absl::StrCat("got ", ours.size(), " outputs; wanted ", expected.size()));
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::string& name = test.model.graph().output(static_cast<int>(i)).name();
    const Tensor wanted = AsDeclared(expected[i], test.model.graph().output(static_cast<int>(i)));
    ORRERY_RETURN_IF_ERROR(Compare(name, ours[i], wanted));
  }
  return absl::OkStatus();
}

std::vector<std::string> DataSets(const std::string& folder) {
  std::vector<std::string> sets;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) sets.push_back(entry.path().string());
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

}  // namespace
}  // namespace onnx_case_cc

CaseResult RunCase(const std::string& folder) {
  absl::StatusOr<onnx_case_cc::Case> test = onnx_case_cc::ReadCase(folder);
  if (!test.ok()) return {.message = std::string(test.status().message())};
  onnx_case_cc::FindInputs(*test);
  bool numeric = !onnx_case_cc::UsesOtherKinds(test->model.graph());
  for (const onnx::ValueInfoProto* input : test->inputs)
    numeric = numeric && onnx_case_cc::IsNumeric(*input);
  for (const auto& output : test->model.graph().output())
    numeric = numeric && onnx_case_cc::IsNumeric(output);
  if (!numeric) {
    (void)importer::ImportOnnx(folder + "/model.onnx");  // it may refuse, yet not crash
    return {.verdict = Verdict::kOtherKind};
  }
  CaseResult result{.verdict = Verdict::kPassed};
  for (const std::string& data_set : onnx_case_cc::DataSets(folder)) {
    int level = 0;
    const absl::Status status = onnx_case_cc::RunDataSet(folder, data_set, *test, level);
    result.known = std::max(result.known, level);
    if (status.ok()) continue;
    return {.message = absl::StrReplaceAll(status.message(), {{folder + "/model.onnx: ", ""}}),
            .known = level};
  }
  return result;
}

CaseResult RunCaseApart(const std::string& folder) {
  int ends[2];
  if (pipe(ends) != 0) return {.message = "no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    alarm(onnx_case_cc::kSecondsACase);
    const CaseResult result = RunCase(folder);
    const std::string bytes =
        absl::StrCat(static_cast<int>(result.verdict), result.known, result.message);
    const ssize_t written = write(ends[1], bytes.data(), bytes.size());
    _exit(written == static_cast<ssize_t>(bytes.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string bytes;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    bytes.append(buffer, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    return {.message = absl::StrCat("crashed: ", strsignal(WTERMSIG(status)))};
  }
  if (status != 0 || bytes.size() < 2) return {.message = "ended without a result"};
  return {.verdict = static_cast<Verdict>(bytes[0] - '0'),
          .message = bytes.substr(2),
          .known = bytes[1] - '0'};
}

}  // namespace orrery::backend
