#include "importer/onnx/inline_functions.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/inline_names.h"
#include "importer/onnx/onnx_type.h"
#include "support/printable.h"
#include "support/status.h"

namespace orrery::importer {
namespace inline_functions_cc {
namespace {

constexpr int kMaxNodes = 1 << 16;
constexpr size_t kMaxDepth = 64;

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using Bindings = absl::flat_hash_map<std::string, onnx::AttributeProto>;

// Fields of versions of ONNX that are newer than its library.
constexpr int kNodeOverload = 8;
constexpr int kFunctionOverload = 13;
constexpr int kFunctionDefaults = 11;

template <typename Message, typename Use>
void ForEachUnknown(const Message& message, int field, Use use) {
  const google::protobuf::UnknownFieldSet& fields =
      message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& unknown = fields.field(i);
    if (unknown.number() == field &&
        unknown.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      use(unknown.length_delimited());
    }
  }
}

// Domain, name and overload, which only functions of the same name have.
template <typename Message>
std::string KeyOf(const Message& message, const std::string& name, int overload_field) {
  std::string overload;
  ForEachUnknown(message, overload_field, [&](const std::string& text) { overload = text; });
  const std::string domain = message.domain() == "ai.onnx" ? "" : message.domain();
  return absl::StrCat(domain, "\n", name, "\n", overload);
}

// The attributes that references in the body of `function` stand for.
Bindings BindingsOf(const onnx::FunctionProto& function, const onnx::NodeProto& call) {
  Bindings bindings;
  for (const onnx::AttributeProto& attribute : call.attribute()) {
    bindings.emplace(attribute.name(), attribute);
  }
  ForEachUnknown(function, kFunctionDefaults, [&](const std::string& bytes) {
    onnx::AttributeProto attribute;
    if (attribute.ParseFromString(bytes)) bindings.emplace(attribute.name(), attribute);
  });
  return bindings;
}

void Bind(const Bindings& bindings, onnx::NodeProto& node, ByteBudget& budget) {
  google::protobuf::RepeatedPtrField<onnx::AttributeProto> bound;
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.ref_attr_name().empty()) {
      if (attribute.has_g()) {
        for (onnx::NodeProto& inner : *attribute.mutable_g()->mutable_node()) {
          Bind(bindings, inner, budget);
        }
      }
      bound.Add(std::move(attribute));
      continue;
    }
    const auto found = bindings.find(attribute.ref_attr_name());
    if (found == bindings.end() || !budget.Spend(found->second.ByteSizeLong())) continue;
    onnx::AttributeProto* value = bound.Add();
    *value = found->second;
    value->set_name(attribute.name());
  }
  node.mutable_attribute()->Swap(&bound);
}

// A name that the node reads and that is not in `renaming`, which has all names of its function.
const std::string* Unknown(const onnx::NodeProto& node, const Renaming& renaming) {
  for (const std::string& input : node.input()) {
    if (!input.empty() && !renaming.contains(input)) return &input;
  }
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.g().input_size() > 0) continue;  // of a Loop: it has names of its own
    for (const onnx::NodeProto& inner : attribute.g().node()) {
      if (const std::string* name = Unknown(inner, renaming); name != nullptr) return name;
    }
  }
  return nullptr;
}

class Inliner {
 public:
  explicit Inliner(onnx::ModelProto& model) : model_(model), names_(model.graph()) {}

  absl::Status Run() {
    for (const onnx::FunctionProto& function : model_.functions()) {
      const auto key = KeyOf(function, function.name(), kFunctionOverload);
      if (functions_.emplace(key, &function).second) continue;
      return absl::InvalidArgumentError(absl::StrCat("function ", Show(function.name()),
                                                     " of domain ", Show(function.domain()),
                                                     " stands twice"));
    }
    return Expand(*model_.mutable_graph()->mutable_node());
  }

 private:
  absl::Status Expand(Nodes& nodes) {
    Nodes expanded;
    for (onnx::NodeProto& node : nodes) ORRERY_RETURN_IF_ERROR(Append(std::move(node), expanded));
    nodes.Swap(&expanded);
    return absl::OkStatus();
  }

  absl::Status Append(onnx::NodeProto node, Nodes& out) {
    if (++nodes_ > kMaxNodes) {  // a call counts too: it may be one of very many that do nothing
      return absl::InvalidArgumentError(
          absl::StrCat("its functions make more than ", kMaxNodes, " nodes"));
    }
    const auto found = functions_.find(KeyOf(node, node.op_type(), kNodeOverload));
    if (found != functions_.end()) return Call(*found->second, node, out);
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) {
        ORRERY_RETURN_IF_ERROR(Expand(*attribute.mutable_g()->mutable_node()));
      }
    }
    *out.Add() = std::move(node);
    return absl::OkStatus();
  }

  absl::Status Call(const onnx::FunctionProto& function, const onnx::NodeProto& call, Nodes& out) {
    const auto bad = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat(Describe(call), ": ", what));
    };
    if (std::find(calls_.begin(), calls_.end(), &function) != calls_.end()) {
      return bad(absl::StrCat("function ", Show(function.name()), " calls itself"));
    }
    if (calls_.size() >= kMaxDepth) {
      return bad(absl::StrCat("stands inside ", kMaxDepth, " calls; wanted fewer"));
    }
    if (call.input_size() > function.input_size() || call.output_size() > function.output_size()) {
      return bad(absl::StrCat("has ", call.input_size(), " inputs and ", call.output_size(),
                              " outputs; function ", Show(function.name()), " wants at most ",
                              function.input_size(), " and ", function.output_size()));
    }
    calls_.push_back(&function);
    const std::string prefix =
        call.name().empty() && call.output_size() > 0 ? call.output(0) : call.name();
    const Renaming renaming = NamesIn(function, call, prefix, out);
    if (budget_.is_spent()) return TooLarge(call);
    const Bindings bindings = BindingsOf(function, call);
    for (const onnx::NodeProto& inner : function.node()) {
      if (!budget_.Spend(inner.ByteSizeLong() + prefix.size())) return TooLarge(call);
      if (const std::string* name = Unknown(inner, renaming); name != nullptr) {
        return bad(absl::StrCat("function ", Show(function.name()), " reads ", Show(*name),
                                ", which is none of its inputs and made by none of its nodes"));
      }
      onnx::NodeProto node = inner;
      Bind(bindings, node, budget_);
      RenameValues(renaming, node, budget_);
      if (budget_.is_spent()) return TooLarge(call);
      if (!node.name().empty()) node.set_name(absl::StrCat(prefix, "/", node.name()));
      ORRERY_RETURN_IF_ERROR(Append(std::move(node), out));
    }
    calls_.pop_back();
    return absl::OkStatus();
  }

  absl::Status TooLarge(const onnx::NodeProto& call) const {
    return absl::InvalidArgumentError(absl::StrCat(
        Describe(call), ": what calls of functions copy takes more than ", ByteBudget::kBytes >> 20,
        " MiB; wanted shorter names, smaller attributes or fewer calls"));
  }

  // What the values of the body are called in the graph.
  Renaming NamesIn(const onnx::FunctionProto& function, const onnx::NodeProto& call,
                   const std::string& prefix, Nodes& out) {
    Renaming renaming;
    for (int i = 0; i < function.input_size(); ++i) {
      const std::string outer = i < call.input_size() ? call.input(i) : "";
      if (budget_.Spend(function.input(i).size() + outer.size())) {
        renaming.emplace(function.input(i), outer);
      }
    }
    for (int i = 0; i < call.output_size(); ++i) {
      if (call.output(i).empty()) continue;
      const auto [row, is_new] = renaming.emplace(function.output(i), call.output(i));
      if (!is_new) Copy(row->second, call.output(i), out);  // an input that is an output too
    }
    for (const onnx::NodeProto& node : function.node()) NameInside(node, prefix, renaming);
    return renaming;
  }

  void NameInside(const onnx::NodeProto& node, const std::string& prefix, Renaming& renaming) {
    const auto name = [&](const std::string& value) {
      if (value.empty() || renaming.contains(value)) return;
      if (!budget_.Spend(prefix.size() + value.size())) return;
      renaming.emplace(value, names_.Take(absl::StrCat(prefix, "/", value)));
    };
    for (const std::string& output : node.output()) name(output);
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (!attribute.has_g()) continue;
      for (const onnx::TensorProto& tensor : attribute.g().initializer()) name(tensor.name());
      for (const onnx::NodeProto& inner : attribute.g().node()) NameInside(inner, prefix, renaming);
    }
  }

  void Copy(const std::string& from, const std::string& to, Nodes& out) {
    onnx::NodeProto* node = out.Add();
    node->set_op_type("Identity");
    node->add_input(from);
    node->add_output(to);
  }

  onnx::ModelProto& model_;
  NameSet names_;
  absl::flat_hash_map<std::string, const onnx::FunctionProto*> functions_;
  std::vector<const onnx::FunctionProto*> calls_;  // that are being expanded
  int nodes_ = 0;
  ByteBudget budget_;  // of names and attributes
};

}  // namespace
}  // namespace inline_functions_cc

absl::Status InlineFunctions(onnx::ModelProto& model) {
  if (model.functions_size() == 0) return absl::OkStatus();
  return inline_functions_cc::Inliner(model).Run();
}

}  // namespace orrery::importer
