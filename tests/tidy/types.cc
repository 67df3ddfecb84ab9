#include "tests/tidy/types.h"

#include <algorithm>
#include <map>
#include <regex>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace orrery::tidy {
namespace types_cc {
namespace {

enum class Scope : uint8_t { kNamespace, kType, kOther };

// A brace that is open, and the statement behind it that is being read.
struct Brace {
  Scope scope = Scope::kNamespace;
  TypeSpan type;  // of Scope::kType; its name is that of the namespace for the others
  bool is_enum = false;
  std::string statement;
  int32_t line = 1;  // where the statement begins
};

// How many parts the commas outside of all brackets part `text` in.
int32_t Parts(absl::string_view text) {
  int32_t parts = 1, depth = 0;
  for (const char c : text) {
    if (absl::StrContains("([{<", c)) ++depth;
    if (absl::StrContains(")]}>", c)) --depth;
    if (c == ',' && depth == 0) ++parts;
  }
  return parts;
}

// The text between the bracket at `open` and the one that closes it.
std::string Inside(const std::string& text, size_t open) {
  int32_t depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return text.substr(open + 1, i - open - 1);
  }
  return text.substr(open + 1);
}

// The fields that a statement of a type's body declares.
int32_t FieldsOf(const std::string& statement) {
  static const auto& kNoField = *new std::regex(
      R"(^(using|typedef|friend|static|template|struct|class|enum|union|explicit|virtual)\b|\boperator\b|^~)");
  static const auto& kFunction = *new std::regex(R"(^[^=(]*\((?!\*))");
  if (statement.empty() || std::regex_search(statement, kNoField)) return 0;
  std::string plain;  // without what stands in angle brackets, such as a function's type
  int32_t depth = 0;
  for (const char c : statement) {
    if (c == '<') ++depth;
    if (depth == 0) plain += c;
    if (c == '>') --depth;
  }
  return std::regex_search(plain, kFunction) ? 0 : Parts(statement);
}

int32_t ConstructorParametersOf(const std::string& statement, const std::string& type) {
  const std::string name = type.substr(type.rfind(':') + 1);
  const std::regex constructor(
      absl::StrCat(R"(^((explicit|constexpr|inline)\s+)*)", name, R"(\s*\()"));
  if (!std::regex_search(statement, constructor)) return 0;
  const std::string parameters = Inside(statement, statement.find('('));
  return absl::StripAsciiWhitespace(parameters).empty() ? 0 : Parts(parameters);
}

// Whether a colon behind `statement` ends the words that say who may use what follows.
bool SaysAccess(absl::string_view statement) {
  statement = absl::StripAsciiWhitespace(statement);
  return statement == "public" || statement == "private" || statement == "protected";
}

void EndStatement(Brace& brace) {
  const std::string statement(absl::StripAsciiWhitespace(brace.statement));
  if (brace.scope == Scope::kType && !brace.is_enum) {
    brace.type.fields += FieldsOf(statement);
    brace.type.constructor_parameters = std::max(
        brace.type.constructor_parameters, ConstructorParametersOf(statement, brace.type.name));
  }
  brace.statement.clear();
}

std::string Join(const std::string& scope, const std::string& name) {
  return scope.empty() || name.empty() ? absl::StrCat(scope, name)
                                       : absl::StrCat(scope, "::", name);
}

// The comment lines that end above `line`.
std::string CommentAbove(const std::vector<std::string>& lines, int32_t line) {
  auto first = static_cast<size_t>(line - 1);
  while (first > 0 && absl::StartsWith(absl::StripAsciiWhitespace(lines[first - 1]), "//")) --first;
  return absl::StrJoin(lines.begin() + static_cast<ptrdiff_t>(first),
                       lines.begin() + static_cast<ptrdiff_t>(line - 1), " ");
}

// What the brace behind the statement of `outer` opens.
Brace Open(const Brace& outer, const std::vector<std::string>& lines) {
  static const auto& kNamespace = *new std::regex(R"(^(inline\s+)?namespace\s*([\w:]*)$)");
  static const auto& kType = *new std::regex(
      R"(^(?:template\s*<[^]*>\s*)?(enum\s+(?:class\s+)?|struct\s+|class\s+)(\w+)\s*(final\s*)?(:[^:][^()]*)?$)");
  const std::string head(absl::StripAsciiWhitespace(outer.statement));
  Brace brace;
  brace.type.name = outer.type.name;
  std::smatch match;
  if (outer.scope == Scope::kNamespace && std::regex_match(head, match, kNamespace)) {
    const std::string name = match[2];
    brace.type.name = Join(outer.type.name, name.empty() ? "(unnamed)" : name);
  } else if (std::regex_match(head, match, kType)) {
    brace.scope = Scope::kType;
    brace.is_enum = absl::StartsWith(std::string(match[1]), "enum");
    brace.type.name = Join(outer.type.name, match[2]);
    brace.type.line = outer.line;
    brace.type.comment = CommentAbove(lines, outer.line);
  } else {
    brace.scope = Scope::kOther;
  }
  return brace;
}

// Whether a brace behind `statement` begins a value: `int a = {1}`, `int a{1}`.
bool OpensValue(const Brace& outer) {
  static const auto& kBody =
      *new std::regex(R"(\)\s*(const|noexcept|override|final|\s)*(:[^]*)?$)");
  const std::string head(absl::StripAsciiWhitespace(outer.statement));
  if (outer.scope != Scope::kType || outer.is_enum) return false;
  static const auto& kNested = *new std::regex(R"(^(template\b[^]*)?(enum|struct|class|union)\b)");
  return !std::regex_search(head, kBody) && !std::regex_search(head, kNested);
}

}  // namespace
}  // namespace types_cc

std::vector<TypeSpan> FindTypes(absl::string_view text) {
  using types_cc::Brace;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::vector<Brace> open(1);
  std::vector<bool> values;  // of each brace inside a statement or a body that is not looked at
  std::vector<TypeSpan> types;
  int32_t line = 1;
  for (const char c : BlankNonCode(text)) {
    if (c == '\n') ++line;
    Brace& brace = open.back();
    if (!values.empty()) {
      if (c == '{') values.push_back(values.back());
      if (c != '}') continue;
      if (!values.back() && values.size() == 1) types_cc::EndStatement(brace);
      values.pop_back();
    } else if (c == '{' && types_cc::OpensValue(brace)) {
      values.push_back(true);
    } else if (c == '{') {
      Brace inner = types_cc::Open(brace, lines);
      if (inner.scope == types_cc::Scope::kOther) {
        values.push_back(false);
      } else {
        brace.statement.clear();
        open.push_back(std::move(inner));
      }
    } else if (c == '}') {
      if (brace.scope == types_cc::Scope::kType) types.push_back(brace.type);
      if (open.size() > 1) open.pop_back();
      open.back().statement.clear();
    } else if (c == ';') {
      types_cc::EndStatement(brace);
    } else if (c == ':' && types_cc::SaysAccess(brace.statement)) {
      brace.statement.clear();
    } else {
      if (absl::StripAsciiWhitespace(brace.statement).empty()) brace.line = line;
      brace.statement += c;
    }
  }
  return types;
}

std::vector<std::string> TypesDefinedTwice(const std::vector<Source>& sources) {
  std::map<std::string, std::string> first;
  std::vector<std::string> faults;
  for (const Source& source : sources) {
    if (!absl::EndsWith(source.path, ".h")) continue;
    for (const TypeSpan& type : FindTypes(source.text)) {
      const auto [other, inserted] = first.emplace(type.name, source.path);
      if (inserted || other->second == source.path) continue;
      faults.push_back(absl::StrCat(other->second, " and ", source.path, " define ", type.name));
    }
  }
  return faults;
}

std::vector<std::string> LargeTypes(const Source& source, const TypeLimits& limits) {
  std::vector<std::string> faults;
  const auto expect = [&](const TypeSpan& type, int32_t count, int32_t limit,
                          absl::string_view what) {
    const std::string comment = absl::AsciiStrToLower(type.comment);
    if (count <= limit || absl::StrContains(comment, absl::StrCat("so many ", what))) return;
    faults.push_back(
        absl::StrCat(source.path, ":", type.line, ": ", type.name, " has ", count, " ", what));
  };
  for (const TypeSpan& type : FindTypes(source.text)) {
    expect(type, type.fields, limits.fields, "fields");
    expect(type, type.constructor_parameters, limits.constructor_parameters, "parameters");
  }
  return faults;
}

}  // namespace orrery::tidy
