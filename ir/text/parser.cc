#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/dead_code.h"
#include "ir/names.h"
#include "ir/op_info.h"
#include "ir/roles.h"
#include "ir/sharding_text.h"
#include "ir/text/dead_ops.h"
#include "ir/text/layout_text.h"
#include "ir/text/lexer.h"
#include "ir/text/text.h"
#include "ir/text/wanted_op.h"
#include "ir/verifier.h"
#include "support/status.h"

namespace orrery::ir {
namespace parser_cc {
namespace {

// Recursive descent over the grammar in text.h; one method a rule. Each leaves the token after its
// rule in token_.
class Parser {
 public:
  explicit Parser(absl::string_view text) : lexer_(text), token_(lexer_.Next()) {}

  absl::StatusOr<std::vector<Function>> Functions(bool drops_dead_ops = false) {
    std::vector<Function> functions;
    while (token_.kind != TokenKind::kEnd) {
      ORRERY_RETURN_IF_ERROR(OneFunction());
      if (drops_dead_ops) RemoveDeadOps(*function_);
      ORRERY_RETURN_IF_ERROR(Verify(*function_));
      functions.push_back(std::move(*function_));
    }
    return functions;
  }

 private:
  absl::Status Expected(absl::string_view wanted) const {
    return absl::InvalidArgumentError(absl::StrCat(token_.line, ":", token_.column, ": found ",
                                                   Show(token_), "; wanted ", wanted));
  }
  void Advance() { token_ = lexer_.Next(); }
  bool IsMark(char mark) const { return token_.kind == TokenKind::kMark && token_.text[0] == mark; }
  bool TakeMark(char mark) {
    if (!IsMark(mark)) return false;
    Advance();
    return true;
  }
  bool TakeWord(absl::string_view word) {
    if (token_.kind != TokenKind::kWord || token_.text != word) return false;
    Advance();
    return true;
  }
  absl::Status Mark(char mark) {
    if (TakeMark(mark)) return absl::OkStatus();
    return Expected(absl::StrCat("'", std::string(1, mark), "'"));
  }
  absl::StatusOr<std::string> Word(absl::string_view wanted) {
    if (token_.kind != TokenKind::kWord) return Expected(wanted);
    std::string word = std::move(token_.text);
    Advance();
    return word;
  }
  absl::StatusOr<int64_t> Integer(absl::string_view wanted) {
    int64_t value = 0;
    if (token_.kind != TokenKind::kWord || !absl::SimpleAtoi(token_.text, &value)) {
      return Expected(wanted);
    }
    Advance();
    return value;
  }

  absl::Status OneFunction() {
    if (!TakeWord("func")) return Expected("'func'");
    ORRERY_RETURN_IF_ERROR(Mark('@'));
    if (token_.kind != TokenKind::kWord && token_.kind != TokenKind::kString) {
      return Expected("the name of the function");
    }
    const std::string name = token_.text;
    Advance();
    Mesh mesh;
    if (TakeWord("mesh")) {
      ORRERY_ASSIGN_OR_RETURN(mesh, ParseMesh());
    }
    function_.emplace(name, mesh);
    values_.clear();
    ORRERY_RETURN_IF_ERROR(Mark('('));
    while (!TakeMark(')')) {
      ORRERY_RETURN_IF_ERROR(OneInput());
      if (!TakeMark(',') && !IsMark(')')) return Expected("',' or ')'");
    }
    ORRERY_RETURN_IF_ERROR(Mark('{'));
    while (!TakeWord("return")) ORRERY_RETURN_IF_ERROR(OneOp());
    while (!IsMark('}')) {
      ORRERY_RETURN_IF_ERROR(OneOutput());
      if (!TakeMark(',') && !IsMark('}')) return Expected("',' or '}'");
    }
    return Mark('}');
  }

  absl::StatusOr<Mesh> ParseMesh() {
    std::vector<Axis> axes;
    ORRERY_RETURN_IF_ERROR(Mark('('));
    while (!TakeMark(')')) {
      Axis axis;
      const Token at = token_;
      ORRERY_ASSIGN_OR_RETURN(axis.name, Word("the name of an axis"));
      ORRERY_RETURN_IF_ERROR(Mark('='));
      ORRERY_ASSIGN_OR_RETURN(axis.size, Integer("the size of the axis"));
      axes.push_back(std::move(axis));
      if (!Mesh::Fits(axes)) {
        token_ = at;
        return Expected(
            "up to 7 axes of letters, digits, _ and -, each once, and up to 2^40 ranks");
      }
      if (!TakeMark(',') && !IsMark(')')) return Expected("',' or ')'");
    }
    return Mesh(std::move(axes));
  }

  // A value that is being defined; the names that the lexer calls numbered have none.
  absl::StatusOr<Token> NewValue() {
    if (token_.kind != TokenKind::kValue && token_.kind != TokenKind::kNumbered) {
      return Expected("a value, such as %x");
    }
    if (values_.contains(Key(token_))) return Expected("a name that is not taken yet");
    Token value = token_;
    Advance();
    ORRERY_RETURN_IF_ERROR(Mark(':'));
    return value;
  }

  absl::StatusOr<ValueId> OldValue() {
    if (token_.kind != TokenKind::kValue && token_.kind != TokenKind::kNumbered) {
      return Expected("a value, such as %x");
    }
    const auto found = values_.find(Key(token_));
    if (found == values_.end()) return Expected("a value that is defined above");
    Advance();
    return found->second;
  }

  static std::string Key(const Token& token) {
    return absl::StrCat(token.kind == TokenKind::kNumbered ? "#" : "%", token.text);
  }
  static absl::string_view NameOf(const Token& token) {
    return token.kind == TokenKind::kNumbered ? absl::string_view() : absl::string_view(token.text);
  }

  absl::Status OneInput() {
    ORRERY_ASSIGN_OR_RETURN(const Token value, NewValue());
    ORRERY_ASSIGN_OR_RETURN(const TensorType type, Type());
    for (const EnumName<InputRole>& role : kInputRoleNames) {
      if (!TakeWord(role.name)) continue;
      values_[Key(value)] = function_->AddInput(NameOf(value), type, role.value);
      return absl::OkStatus();
    }
    return Expected(kInputRoleNames.List(" or "));
  }

  // "hp.dp", or "hp.dp/100" and "hp.dp/balanced" where there may be blocks.
  absl::StatusOr<AxisList> Axes(int64_t* block = nullptr) {
    const Token at = token_;
    ORRERY_ASSIGN_OR_RETURN(const std::string text, Word("the axes"));
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(text, absl::MaxSplits('/', 1));
    const bool blocks = parts.first.size() < text.size();
    AxisList list;
    for (const absl::string_view name : absl::StrSplit(parts.first, '.')) {
      const auto axis = function_->mesh().Find(name);
      if (!axis.has_value() || list.contains(*axis)) {
        token_ = at;
        return Expected(absl::StrCat("axes of ", ToString(function_->mesh()), ", each once"));
      }
      list.push_back(*axis);
    }
    if (!blocks) return list;
    const bool balanced = parts.second == "balanced";
    if (block != nullptr && balanced) *block = kBalancedChunks;
    if (block != nullptr && (balanced || (absl::SimpleAtoi(parts.second, block) && *block > 0))) {
      return list;
    }
    token_ = at;
    return Expected(block == nullptr ? "axes without blocks"
                                     : "a block size behind the axes, or /balanced");
  }

  // "(dp,hp:max)": the axes of one reduction stand together.
  absl::Status Partial(Sharding& sharding) {
    ORRERY_RETURN_IF_ERROR(Mark('('));
    do {
      const Token at = token_;
      ORRERY_ASSIGN_OR_RETURN(const AxisList axes, Axes());
      Reduction reduction = Reduction::kSum;
      if (TakeMark(':')) {
        const auto named = ParseReduction(token_.kind == TokenKind::kWord ? token_.text : "");
        if (!named.has_value()) return Expected("sum, avg, product, max or min");
        Advance();
        reduction = *named;
      }
      for (const AxisIndex axis : axes.axes()) {
        if (sharding.partial.contains(axis)) {
          token_ = at;
          return Expected("partial axes, each once");
        }
        sharding.partial.push_back(axis);
        sharding.reductions[axis] = reduction;
      }
    } while (TakeMark(','));
    sharding.partial = sharding.partial.Sorted();
    return Mark(')');
  }

  absl::StatusOr<TensorType> Type() {
    const auto dtype =
        token_.kind == TokenKind::kWord ? ParseDType(token_.text) : std::optional<DType>();
    if (!dtype.has_value()) return Expected("a type, such as f32[8,16]");
    Advance();
    TensorType type{.dtype = *dtype, .dims = {}, .sharding = {}};
    std::vector<std::pair<AxisList, int64_t>> split;
    ORRERY_RETURN_IF_ERROR(Mark('['));
    while (!TakeMark(']')) {
      ORRERY_ASSIGN_OR_RETURN(const int64_t dim, Integer("a dimension"));
      type.dims.push_back(dim);
      auto& [axes, block] = split.emplace_back(AxisList(), kNestedChunks);
      if (TakeMark('@')) {
        ORRERY_ASSIGN_OR_RETURN(axes, Axes(&block));
      }
      if (!TakeMark(',') && !IsMark(']')) return Expected("',' or ']'");
    }
    for (size_t d = 0; d < split.size(); ++d) {
      type.sharding.Set(d, split.size(), split[d].first, split[d].second);
    }
    if (TakeWord("partial")) ORRERY_RETURN_IF_ERROR(Partial(type.sharding));
    return type;
  }

  absl::Status OneOp() {
    std::vector<Token> results;
    std::vector<TensorType> types;
    absl::flat_hash_set<std::string> keys;
    if (token_.kind != TokenKind::kWord) {
      do {
        ORRERY_ASSIGN_OR_RETURN(Token result, NewValue());
        if (!keys.insert(Key(result)).second)
          return Expected("results of different names before this");
        ORRERY_ASSIGN_OR_RETURN(TensorType type, Type());
        results.push_back(std::move(result));
        types.push_back(std::move(type));
      } while (TakeMark(','));
      ORRERY_RETURN_IF_ERROR(Mark('='));
    }
    const auto kind = token_.kind == TokenKind::kWord ? FindOp(token_.text) : std::nullopt;
    if (!kind.has_value()) return Expected(WantedOp(token_.text));
    Advance();
    ORRERY_ASSIGN_OR_RETURN(const std::vector<ValueId> operands, Operands());
    ORRERY_ASSIGN_OR_RETURN(const AttributeSet attributes, Attributes());
    std::vector<absl::string_view> names;
    for (const Token& result : results) names.push_back(NameOf(result));
    const OpId op =
        function_->AddOp(*kind, operands, function_->InternAttributes(attributes), types, names);
    for (size_t i = 0; i < results.size(); ++i) {
      values_[Key(results[i])] = function_->result(op, static_cast<int32_t>(i));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ValueId>> Operands() {
    std::vector<ValueId> operands;
    ORRERY_RETURN_IF_ERROR(Mark('('));
    while (!TakeMark(')')) {
      ORRERY_ASSIGN_OR_RETURN(const ValueId value, OldValue());
      operands.push_back(value);
      if (!TakeMark(',') && !IsMark(')')) return Expected("',' or ')'");
    }
    return operands;
  }

  absl::StatusOr<AttributeSet> Attributes() {
    AttributeSet attributes;
    if (!TakeMark('{')) return attributes;
    while (!TakeMark('}')) {
      if (token_.kind != TokenKind::kWord && token_.kind != TokenKind::kString) {
        return Expected("the name of an attribute");
      }
      const std::string name = token_.text;
      if (attributes.Find(name) != nullptr) return Expected("an attribute that is not set yet");
      Advance();
      ORRERY_RETURN_IF_ERROR(Mark('='));
      ORRERY_ASSIGN_OR_RETURN(Attribute value, OneAttribute());
      attributes.Set(name, std::move(value));
      if (!TakeMark(',') && !IsMark('}')) return Expected("',' or '}'");
    }
    return attributes;
  }

  absl::StatusOr<Attribute> OneAttribute() {
    if (token_.kind == TokenKind::kString) {
      Attribute text = token_.text;
      Advance();
      return text;
    }
    if (TakeMark('[')) return List();
    return Number();
  }

  // A whole number, or a floating-point number when it has a point, an exponent or a name.
  absl::StatusOr<Attribute> Number() {
    std::string text = token_.kind == TokenKind::kWord ? token_.text : "";
    const Token at = token_;
    if (!text.empty()) Advance();
    if (!text.empty() && text.back() == 'e' && TakeMark('+')) {  // 1e+20 is three tokens
      ORRERY_ASSIGN_OR_RETURN(const std::string exponent, Word("an exponent"));
      text += exponent;
    }
    if (int64_t whole = 0; absl::SimpleAtoi(text, &whole)) return Attribute(whole);
    double real = 0;
    if (text.find_first_of(".enf") != std::string::npos &&
        text.find_first_of("xX") == std::string::npos && absl::SimpleAtod(text, &real)) {
      return Attribute(real);
    }
    token_ = at;
    return Expected("a number, a text or a list");
  }

  absl::StatusOr<Attribute> List() {
    std::vector<int64_t> whole;
    std::vector<double> real;
    bool reals = TakeWord("f");
    while (!TakeMark(']')) {
      ORRERY_ASSIGN_OR_RETURN(const Attribute number, Number());
      if (std::holds_alternative<int64_t>(number)) {
        whole.push_back(std::get<int64_t>(number));
      } else {
        real.push_back(std::get<double>(number));
        reals = true;
      }
      if (!TakeMark(',') && !IsMark(']')) return Expected("',' or ']'");
    }
    if (reals && !whole.empty()) return Expected("a list of one kind of numbers before this");
    return reals ? Attribute(std::move(real)) : Attribute(std::move(whole));
  }

  absl::Status OneOutput() {
    Output output;
    ORRERY_ASSIGN_OR_RETURN(output.value, OldValue());
    ORRERY_RETURN_IF_ERROR(Mark(':'));
    for (const EnumName<OutputRole>& role : kOutputRoleNames) {
      if (!TakeWord(role.name)) continue;
      output.role = role.value;
      if (TakeMark('(')) {
        ORRERY_ASSIGN_OR_RETURN(output.of, OldValue());
        ORRERY_RETURN_IF_ERROR(Mark(')'));
      }
      function_->AddOutput(output);
      return absl::OkStatus();
    }
    return Expected(kOutputRoleNames.List(" or "));
  }

  Lexer lexer_;
  Token token_;
  std::optional<Function> function_;
  absl::flat_hash_map<std::string, ValueId> values_;
};

absl::StatusOr<Function> TheOne(std::vector<Function> functions) {
  if (functions.size() == 1) return std::move(functions[0]);
  return absl::InvalidArgumentError(
      absl::StrCat("found ", functions.size(), " functions; wanted one"));
}

}  // namespace
}  // namespace parser_cc

absl::StatusOr<std::vector<Function>> ParseFunctions(absl::string_view text) {
  return parser_cc::Parser(text).Functions();
}

absl::StatusOr<Function> ParseFunction(absl::string_view text) {
  ORRERY_ASSIGN_OR_RETURN(std::vector<Function> functions, ParseFunctions(text));
  return parser_cc::TheOne(std::move(functions));
}

absl::StatusOr<Function> ParseFunctionDroppingDeadOps(absl::string_view text) {
  ORRERY_ASSIGN_OR_RETURN(std::vector<Function> functions,
                          parser_cc::Parser(text).Functions(/*drops_dead_ops=*/true));
  return parser_cc::TheOne(std::move(functions));
}

}  // namespace orrery::ir
