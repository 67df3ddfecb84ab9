#include "tests/tidy/docstrings.h"

#include <regex>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace orrery::tidy {
namespace docstrings_cc {
namespace {

// A namespace or a type whose brace is open, and the statement in it that is being read.
struct Scope {
  std::string type;   // its name; empty: a namespace
  bool shown = true;  // what is read now is public, as is all around it
  std::string statement;
  int32_t line = 1;  // where the statement begins
};

std::string Strip(absl::string_view text) { return std::string(absl::StripAsciiWhitespace(text)); }

bool Matches(const std::string& text, const std::regex& pattern) {
  return std::regex_search(text, pattern);
}

// What a statement declares; what it cannot tell is the last word.
std::string NameOf(const std::string& statement) {
  static const auto& kTemplate = *new std::regex(R"(^template\s*<[^;{]*?>\s*(?=\w))");
  static const auto& kAliasOrType =
      *new std::regex(R"(^(?:using|enum\s+class|enum|struct|class)\s+(\w+))");
  static const auto& kFunction = *new std::regex(R"(^[^=(]*?(operator\s*[^\s(]+|~?\w+)\s*\()");
  static const auto& kVariable = *new std::regex(R"((\w+)\s*(?:\[\w*\]\s*)?(?:=|\{|$))");
  const std::string plain =
      std::regex_replace(statement, kTemplate, "", std::regex_constants::format_first_only);
  std::smatch match;
  for (const std::regex* pattern : {&kAliasOrType, &kFunction, &kVariable}) {
    if (std::regex_search(plain, match, *pattern)) return match[1];
  }
  return plain;
}

class Reader {
 public:
  explicit Reader(absl::string_view text)
      : lines_(absl::StrSplit(text, '\n')), code_(BlankNonCode(text)) {}

  std::vector<Declaration> Read() {
    for (at_ = 0; at_ < code_.size(); ++at_) {
      if (code_[at_] == '\n') ++line_;
      body_ > 0 ? ReadBody(code_[at_]) : ReadOutside(code_[at_]);
    }
    return std::move(found_);
  }

 private:
  // In the body of a function, the values of a variable, the names of an enumeration.
  void ReadBody(char c) {
    body_ += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (body_ > 0) return;
    static const auto& kFunction = *new std::regex(R"(\)[^=;]*$)");
    const size_t next = code_.find_first_not_of(" \n", at_ + 1);
    const bool goes_on = next != std::string::npos && absl::StrContains(";,{", code_[next]);
    if (!goes_on && Matches(scopes_.back().statement, kFunction)) End();
  }

  void ReadOutside(char c) {
    Scope& scope = scopes_.back();
    if (Strip(scope.statement).empty() && !absl::ascii_isspace(static_cast<unsigned char>(c))) {
      scope.line = line_;
    }
    parentheses_ += c == '(' ? 1 : c == ')' ? -1 : 0;
    const std::string word = c == ':' ? Strip(scope.statement) : "";
    if (word == "public" || word == "private" || word == "protected") {
      scope.shown = word == "public" && scopes_[scopes_.size() - 2].shown;
      scope.statement.clear();
    } else if (parentheses_ == 0 && c == '{') {
      Open();
    } else if (parentheses_ == 0 && c == '}') {
      if (scopes_.size() > 1) scopes_.pop_back();
      scopes_.back().statement.clear();
    } else if (parentheses_ == 0 && c == ';') {
      End();
    } else {
      scope.statement += c;
    }
  }

  void Open() {
    static const auto& kNamespace = *new std::regex(R"(^(inline\s+)?namespace\s*[\w:]*$)");
    static const auto& kType = *new std::regex(
        R"(^(?:template\s*<[^]*>\s*)?(struct|class)\s+(\w+)\s*(final\s*)?(:[^:][^()]*)?$)");
    const std::string head = Strip(scopes_.back().statement);
    scopes_.back().statement += " {";
    std::smatch match;
    Scope inner = {.type = "", .shown = scopes_.back().shown, .statement = ""};
    if (std::regex_match(head, match, kType)) {
      inner.type = match[2];
      inner.shown = inner.shown && match[1] == "struct";
      End();
    } else if (!std::regex_match(head, kNamespace)) {
      body_ = 1;
      return;
    }
    scopes_.back().statement.clear();
    scopes_.push_back(std::move(inner));
  }

  // The statement is complete: it declares something.
  void End() {
    Scope& scope = scopes_.back();
    const std::string statement = Strip(scope.statement);
    scope.statement.clear();
    if (statement.empty() || !scope.shown) return;
    const std::string above =
        scope.line > 1 ? Strip(lines_[static_cast<size_t>(scope.line) - 2]) : "";
    found_.push_back({.scope = scope.type,
                      .name = NameOf(statement),
                      .statement = statement,
                      .line = scope.line,
                      .documented = absl::StartsWith(above, "///")});
  }

  const std::vector<std::string> lines_;
  const std::string code_;
  size_t at_ = 0;
  int32_t line_ = 1;
  int32_t body_ = 0;         // braces that are open and not looked into
  int32_t parentheses_ = 0;  // that are open
  std::vector<Scope> scopes_ = std::vector<Scope>(1);
  std::vector<Declaration> found_;
};

// Whether a statement makes nothing new: it speaks of what is declared elsewhere, or is a macro.
bool IsOfOthers(const std::string& statement) {
  static const auto& kOfOthers = *new std::regex(
      R"(^(friend|extern|namespace|static_assert|using\s+[\w:]+$|using\s+namespace|ORRERY_))");
  static const auto& kForward =
      *new std::regex(R"(^(class|struct|enum\s+class|enum)\s+\w+(\s*:\s*\w+)?$)");
  return Matches(statement, kOfOthers) || Matches(statement, kForward);
}

// Whether a declaration is of those that want no sentence; see Undocumented.
bool IsPlain(const Declaration& declared) {
  static const auto& kAsAlways =
      *new std::regex(R"(=\s*(default|delete)$|\boverride\b|\boperator\b)");
  static const auto& kGetter = *new std::regex(R"(\b[a-z]\w*\s*\(\s*\)\s*const\b)");
  static const auto& kFunction = *new std::regex(R"(^[^=(]*\((?!\*))");
  static const auto& kConstant = *new std::regex(R"(\bstatic\b|^using\b|^(enum|struct|class)\b)");
  const std::string& statement = declared.statement;
  if (Matches(statement, kAsAlways)) return true;
  if (declared.name == "ToString" || declared.name == "AbslHashValue") return true;
  if (declared.scope.empty()) return false;
  if (declared.name == declared.scope || declared.name == absl::StrCat("~", declared.scope)) {
    return true;
  }
  if (Matches(statement, kGetter)) return true;
  return !Matches(statement, kFunction) && !Matches(statement, kConstant);
}

}  // namespace
}  // namespace docstrings_cc

std::vector<Declaration> FindDeclarations(absl::string_view text) {
  return docstrings_cc::Reader(text).Read();
}

std::vector<std::string> Undocumented(const Source& header) {
  std::set<std::pair<std::string, std::string>> documented;
  std::vector<std::string> faults;
  for (const Declaration& declared : FindDeclarations(header.text)) {
    if (docstrings_cc::IsOfOthers(declared.statement)) continue;
    const std::pair<std::string, std::string> name = {declared.scope, declared.name};
    if (declared.documented) documented.insert(name);
    if (documented.contains(name) || docstrings_cc::IsPlain(declared)) continue;
    faults.push_back(
        absl::StrCat(header.path, ":", declared.line, ": ", declared.name, " has no sentence"));
  }
  return faults;
}

}  // namespace orrery::tidy
