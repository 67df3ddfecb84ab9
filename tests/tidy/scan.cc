#include "tests/tidy/scan.h"

#include <algorithm>
#include <cctype>
#include <regex>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace orrery::tidy {
namespace scan_cc {
namespace {

enum class Layer : uint8_t { kCode, kComment, kText, kPreprocessor };

// The end of the literal that starts at `at` with a quote: past its closing quote.
size_t LiteralEnd(absl::string_view text, size_t at) {
  if (text[at] == '"' && at > 0 && text[at - 1] == 'R') {
    const size_t open = text.find('(', at);
    const std::string close = absl::StrCat(")", text.substr(at + 1, open - at - 1), "\"");
    const size_t end = text.find(close, open);
    return end == absl::string_view::npos ? text.size() : end + close.size();
  }
  for (size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text[at]) {
      return i + 1;
    }
  }
  return std::min(text.size(), at + 1);
}

bool IsDigitSeparator(absl::string_view text, size_t at) {
  return text[at] == '\'' && at > 0 &&
         absl::ascii_isxdigit(static_cast<unsigned char>(text[at - 1]));
}

size_t CommentEnd(absl::string_view text, size_t at) {
  const bool line = text[at + 1] == '/';
  const size_t end = text.find(line ? "\n" : "*/", at + 2);
  if (end == absl::string_view::npos) return text.size();
  return line ? end : end + 2;
}

// The end of the preprocessor line at `at`, with the lines that backslashes join to it.
size_t PreprocessorEnd(absl::string_view text, size_t at) {
  while (true) {
    const size_t end = text.find('\n', at);
    if (end == absl::string_view::npos) return text.size();
    if (end == 0 || text[end - 1] != '\\') return end;
    at = end + 1;
  }
}

bool StartsLine(absl::string_view text, size_t at) {
  while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t')) --at;
  return at == 0 || text[at - 1] == '\n';
}

// What each character belongs to.
std::vector<Layer> Layers(absl::string_view text) {
  std::vector<Layer> layers(text.size(), Layer::kCode);
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    Layer layer = Layer::kCode;
    if (text[i] == '/' && i + 1 < text.size() && (text[i + 1] == '/' || text[i + 1] == '*')) {
      layer = Layer::kComment;
      end = CommentEnd(text, i);
    } else if (text[i] == '#' && StartsLine(text, i)) {
      layer = Layer::kPreprocessor;
      end = PreprocessorEnd(text, i);
    } else if (text[i] == '"' || (text[i] == '\'' && !IsDigitSeparator(text, i))) {
      layer = Layer::kText;
      end = LiteralEnd(text, i);
    }
    std::fill(layers.begin() + static_cast<ptrdiff_t>(i),
              layers.begin() + static_cast<ptrdiff_t>(end), layer);
    i = end;
  }
  return layers;
}

// Whether a brace behind `head`, outside of functions, opens the body of one: it follows a
// parameter list, the qualifiers and the result type behind that, or a constructor's initializers.
bool OpensFunction(const std::string& head) {
  static const auto& kScope = *new std::regex(
      R"(^\s*(template\s*<.*>\s*)?(inline\s+)?(namespace|class|struct|union|enum)\b[^()]*$)");
  static const auto& kBody = *new std::regex(
      R"(\)\s*(const|noexcept|override|final|mutable|&|\s)*(->[\w\s:<>,*&\[\]]+)?$)");
  static const auto& kInitializers = *new std::regex(R"(\)\s*(noexcept\s*)?:[^:][^]*[)}]\s*$)");
  if (std::regex_search(head, kScope)) return false;
  return std::regex_search(head, kBody) || std::regex_search(head, kInitializers);
}

std::string GuardOf(absl::string_view path) {
  return absl::StrCat(
      "ORRERY_", absl::StrReplaceAll(absl::AsciiStrToUpper(path), {{"/", "_"}, {".", "_"}}), "_");
}

}  // namespace
}  // namespace scan_cc

std::string BlankNonCode(absl::string_view text) {
  const std::vector<scan_cc::Layer> layers = scan_cc::Layers(text);
  std::string code(text);
  for (size_t i = 0; i < code.size(); ++i) {
    if (layers[i] != scan_cc::Layer::kCode && code[i] != '\n') code[i] = ' ';
  }
  return code;
}

LineCounts CountLines(absl::string_view text) {
  const std::vector<scan_cc::Layer> layers = scan_cc::Layers(text);
  LineCounts counts;
  bool code = false, comment = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      counts.code += code ? 1 : 0;
      counts.comment += comment ? 1 : 0;
      ++counts.total;
      code = comment = false;
    } else if (!absl::ascii_isspace(static_cast<unsigned char>(text[i]))) {
      (layers[i] == scan_cc::Layer::kComment ? comment : code) = true;
    }
  }
  return counts;
}

std::vector<FunctionSpan> FindFunctions(absl::string_view text) {
  const std::string code = BlankNonCode(text);
  std::vector<FunctionSpan> functions;
  std::vector<std::string> heads = {""};  // of each brace that is open: what stood before it
  size_t body_depth = 0;                  // braces open around the function we are in; 0: in none
  int32_t line = 1, head_line = 1;
  FunctionSpan function;
  for (const char c : code) {
    std::string& head = heads.back();
    if (c == '\n') ++line;
    if (c == '{') {
      if (body_depth == 0 && scan_cc::OpensFunction(head)) {
        body_depth = heads.size();
        function = {
            .head = std::string(absl::StripAsciiWhitespace(head)), .line = head_line, .lines = 0};
      }
      heads.emplace_back();
    } else if (c == '}') {
      if (heads.size() > 1) heads.pop_back();
      const bool ends_function = body_depth == heads.size();
      if (ends_function) {
        function.lines = line - function.line + 1;
        functions.push_back(function);
        body_depth = 0;
      }
      // Initializers, `a_{1}`, are part of the head that they stand in.
      if (ends_function || heads.back().find('(') == std::string::npos) {
        heads.back().clear();
      } else {
        heads.back() += "}";
      }
    } else if (c == ';') {
      head.clear();
    } else if (body_depth == 0) {
      if (absl::StripAsciiWhitespace(head).empty()) head_line = line;
      head += c;
    }
  }
  return functions;
}

std::vector<std::string> TextFaults(const Source& source) {
  std::vector<std::string> faults;
  const auto fault = [&](size_t line, absl::string_view what) {
    faults.push_back(absl::StrCat(source.path, ":", line, ": ", what));
  };
  const std::vector<std::string> lines = absl::StrSplit(source.text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (absl::StrContains(lines[i], "\t")) fault(i + 1, "tab");
    if (absl::EndsWith(lines[i], " ")) fault(i + 1, "trailing blank");
    if (absl::StrContains(lines[i], absl::StrCat("..", "/shared"))) {
      fault(i + 1, "path that leaves the repository");
    }
  }
  if (!absl::EndsWith(source.text, "\n")) fault(lines.size(), "no line end");
  if (absl::EndsWith(source.path, ".h")) {
    const std::string guard = scan_cc::GuardOf(source.path);
    const bool guarded = lines.size() > 2 && lines[0] == absl::StrCat("#ifndef ", guard) &&
                         lines[1] == absl::StrCat("#define ", guard);
    if (!guarded) fault(1, absl::StrCat("wanted the guard ", guard));
  }
  return faults;
}

bool IsTest(absl::string_view path) {
  return absl::EndsWith(path, "_test.cc") || absl::EndsWith(path, "_test_util.h") ||
         absl::StartsWith(path, "tests/");
}

}  // namespace orrery::tidy
