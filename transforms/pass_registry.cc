#include "transforms/pass_registry.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/names/near_names.h"
#include "support/status.h"

namespace orrery::transforms {

#define ORRERY_PASS(name, file) extern const PassInfo k##name##Pass;
#include "transforms/pass/passes.def"
#undef ORRERY_PASS

namespace pass_registry_cc {
namespace {

constexpr const PassInfo* kPasses[] = {
#define ORRERY_PASS(name, file) &k##name##Pass,
#include "transforms/pass/passes.def"
#undef ORRERY_PASS
};

// "a=1,b=2" as a map; an option without '=' is an error.
absl::StatusOr<PassOptions> ParseOptions(absl::string_view text) {
  PassOptions options;
  for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    if (item.find('=') == absl::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat("option '", item, "' has no value"));
    }
    const std::string name(absl::StripAsciiWhitespace(parts.first));
    const std::string value(absl::StripAsciiWhitespace(parts.second));
    if (options.emplace(name, value).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("option '", name, "' is there twice; wanted it once"));
  }
  return options;
}

absl::StatusOr<const PassInfo*> FindPass(absl::string_view name) {
  for (const PassInfo* pass : AllPasses()) {
    if (pass->name == name) return pass;
  }
  std::vector<absl::string_view> names;
  for (const PassInfo* pass : AllPasses()) names.push_back(pass->name);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no pass '", name, "'; ", WantedNames(name, names, "list-passes")));
}

// The call `text`, "name" or "name{options}".
absl::StatusOr<PassCall> ParseCall(absl::string_view text) {
  const size_t brace = text.find('{');
  PassCall call;
  ORRERY_ASSIGN_OR_RETURN(call.pass, FindPass(absl::StripAsciiWhitespace(text.substr(0, brace))));
  ORRERY_ASSIGN_OR_RETURN(call.options, ParseOptions(call.pass->options));
  if (brace == absl::string_view::npos) return call;
  absl::string_view inside = text.substr(brace + 1);
  if (!absl::ConsumeSuffix(&inside, "}")) {
    return absl::InvalidArgumentError(absl::StrCat("pass '", text, "' has no closing '}'"));
  }
  ORRERY_ASSIGN_OR_RETURN(const PassOptions given, ParseOptions(inside));
  for (const auto& [name, value] : given) {
    if (!call.options.contains(name)) {
      return absl::InvalidArgumentError(absl::StrCat("pass '", call.pass->name, "' has no option '",
                                                     name, "'; it has {", call.pass->options, "}"));
    }
    call.options[name] = value;
  }
  return call;
}

}  // namespace
}  // namespace pass_registry_cc

std::span<const PassInfo* const> AllPasses() { return pass_registry_cc::kPasses; }

absl::StatusOr<std::vector<PassCall>> ParsePasses(absl::string_view text) {
  std::vector<PassCall> calls;
  size_t begin = 0;
  int depth = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (at < text.size() && (c != ',' || depth > 0)) continue;
    const absl::string_view item = absl::StripAsciiWhitespace(text.substr(begin, at - begin));
    begin = at + 1;
    if (item.empty()) continue;
    ORRERY_ASSIGN_OR_RETURN(PassCall call, pass_registry_cc::ParseCall(item));
    calls.push_back(std::move(call));
  }
  return calls;
}

absl::StatusOr<bool> RunPass(const PassCall& call, ir::Function& function, std::string* story) {
  std::string unheard;
  absl::StatusOr<bool> changed =
      call.pass->run != nullptr
          ? call.pass->run(function, call.options)
          : call.pass->run_and_tell(function, call.options, story != nullptr ? *story : unheard);
  if (!changed.ok()) return Annotate(changed.status(), call.pass->name);
  return changed;
}

}  // namespace orrery::transforms
