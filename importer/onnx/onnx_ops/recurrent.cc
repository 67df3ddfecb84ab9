#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx/onnx_op.h"
#include "ir/op_kind.h"
#include "ir/ops/recurrent_activation.h"
#include "support/status.h"

// LSTM, GRU and RNN. With layout=1 the batch comes first.

namespace orrery::importer {
namespace recurrent_cc {
namespace {

// The next number of a list for an activation that takes one, while there are any; else `fallback`.
double NextNumber(const std::vector<double>& numbers, bool takes, double fallback, size_t& next) {
  return takes && next < numbers.size() ? numbers[next++] : fallback;
}

// Numbers come in the order of those activations that take one.
void SetActivations(NodeContext& c, ir::AttributeSet& attributes) {
  const onnx::AttributeProto* names = c.Attribute("activations");
  if (names == nullptr || names->strings_size() == 0) return;
  const std::vector<double> alphas = c.Floats("activation_alpha");
  const std::vector<double> betas = c.Floats("activation_beta");
  std::vector<double> alpha, beta;
  size_t next_alpha = 0, next_beta = 0;
  for (const std::string& name : names->strings()) {
    const ir::ActivationDefaults* found = ir::FindActivation(name);
    // An unknown one is an error when the op is appended.
    const ir::ActivationDefaults f = found == nullptr ? ir::ActivationDefaults() : *found;
    alpha.push_back(NextNumber(alphas, f.takes_alpha, f.alpha, next_alpha));
    beta.push_back(NextNumber(betas, f.takes_beta, f.beta, next_beta));
  }
  attributes.Set("activations", absl::StrJoin(names->strings(), ","));
  attributes.Set("activation_alpha", alpha);
  attributes.Set("activation_beta", beta);
}

ir::AttributeSet RecurrentAttributes(NodeContext& c, const std::vector<std::string>& given) {
  ir::AttributeSet attributes = {{"given", absl::StrJoin(given, ",")},
                                 {"direction", c.String("direction", "forward")}};
  for (const char* flag : {"linear_before_reset", "input_forget"}) {
    if (c.Int(flag, 0) != 0) attributes.Set(flag, int64_t{1});
  }
  if (c.Attribute("clip") != nullptr) attributes.Set("clip", c.Float("clip", 0));
  SetActivations(c, attributes);
  return attributes;
}

absl::StatusOr<ir::ValueId> Permuted(NodeContext& c, ir::ValueId value,
                                     const std::vector<int64_t>& perm) {
  return c.Op(ir::OpKind::kTranspose, {value}, {{"perm", perm}});
}

absl::Status CheckHidden(NodeContext& c) {
  const ir::Dims& r = c.input_type(2).dims;
  if (c.Attribute("hidden_size") == nullptr || r.empty()) return absl::OkStatus();
  const int64_t given = c.Int("hidden_size", 0);
  if (given == r.back()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("attribute 'hidden_size' is ", given, "; wanted ",
                                                 r.back(), ", as the weights have it"));
}

// Input i may be any of the names; `names[i]` is what the IR calls it, "" for x, w and r.
absl::Status Lower(NodeContext& c, ir::OpKind kind, const std::vector<std::string>& names,
                   int outputs) {
  ORRERY_RETURN_IF_ERROR(CheckHidden(c));
  const bool batch_first = c.Int("layout", 0) != 0;
  std::vector<ir::ValueId> operands;
  std::vector<std::string> given;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto at = static_cast<int>(i);
    if (!c.has_input(at)) continue;
    ir::ValueId value = c.input(at);
    const bool turned = i == 0 || names[i] == "initial_h" || names[i] == "initial_c";
    if (batch_first && turned) {
      ORRERY_ASSIGN_OR_RETURN(value, Permuted(c, value, {1, 0, 2}));
    }
    operands.push_back(value);
    if (!names[i].empty()) given.push_back(names[i]);
  }
  ORRERY_ASSIGN_OR_RETURN(std::vector<ir::ValueId> results,
                          c.Ops(kind, operands, RecurrentAttributes(c, given)));
  for (int i = 0; i < outputs; ++i) {
    ir::ValueId value = results[static_cast<size_t>(i)];
    if (!c.has_output(i)) continue;
    if (batch_first) {
      const std::vector<int64_t> perm =
          i == 0 ? std::vector<int64_t>{2, 0, 1, 3} : std::vector<int64_t>{1, 0, 2};
      ORRERY_ASSIGN_OR_RETURN(value, Permuted(c, value, perm));
    }
    c.SetOutput(i, value);
  }
  return absl::OkStatus();
}

absl::Status LowerLstm(NodeContext& c) {
  return Lower(c, ir::OpKind::kLstm,
               {"", "", "", "bias", "sequence_lens", "initial_h", "initial_c", "peepholes"}, 3);
}

absl::Status LowerGru(NodeContext& c) {
  return Lower(c, ir::OpKind::kGru, {"", "", "", "bias", "sequence_lens", "initial_h"}, 2);
}

absl::Status LowerRnn(NodeContext& c) {
  return Lower(c, ir::OpKind::kRnn, {"", "", "", "bias", "sequence_lens", "initial_h"}, 2);
}

}  // namespace
}  // namespace recurrent_cc

extern const OnnxOp kLSTMOnnxOp = {.type = "LSTM",
                                   .inputs = 3,
                                   .since_opset = 7,
                                   .weights = 0b10001110,
                                   .lower = recurrent_cc::LowerLstm};

extern const OnnxOp kGRUOnnxOp = {.type = "GRU",
                                  .inputs = 3,
                                  .since_opset = 7,
                                  .weights = 0b1110,
                                  .lower = recurrent_cc::LowerGru};

extern const OnnxOp kRNNOnnxOp = {.type = "RNN",
                                  .inputs = 3,
                                  .since_opset = 7,
                                  .weights = 0b1110,
                                  .lower = recurrent_cc::LowerRnn};

}  // namespace orrery::importer
