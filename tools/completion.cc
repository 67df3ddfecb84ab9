#include "tools/completion.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "support/printable.h"

namespace orrery::tools {
namespace completion_cc {
namespace {

constexpr absl::string_view kInstalledBefore = "orrery-";

// The name of a shell's function: "_orrery_grid_search", whichever of its names there are.
std::string FunctionOf(const CompletedProgram& program) {
  absl::string_view name = program.names.back();
  absl::ConsumePrefix(&name, kInstalledBefore);
  return absl::StrCat("_orrery_", absl::StrReplaceAll(name, {{"-", "_"}}));
}

// `text` between single quotes.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// The arm of the script's `case` for a flag.
std::string BashArm(const CompletedFlag& flag) {
  std::string what;
  if (!flag.values.empty()) {
    absl::StrAppend(&what, " words=", Quoted(absl::StrJoin(flag.values, " ")));
  }
  if (flag.takes_file) absl::StrAppend(&what, " files=1");
  if (what.empty()) what = " return";  // a number, or anything
  return absl::StrCat("    --", flag.name, ")", what, " ;;\n");
}

// What bash gives a function, it has cut at each '=' and ':'; so the line is read anew, and of what
// is offered the part is taken off that bash does not replace.
constexpr absl::string_view kBashBegin =
    R"(  local line=${COMP_LINE:0:COMP_POINT} flag='' words='' files='' value word before list
  word=${line##*[[:space:]]}
  before=${line%"$word"}
  before=${before%"${before##*[![:space:]]}"}
  before=${before##*[[:space:]]}
  value=$word
  if [[ $word == --*=* ]]; then
    flag=${word%%=*} value=${word#*=}
  elif [[ $before == --* && $before != *=* ]]; then
    flag=$before
  fi
  case $flag in
)";
constexpr absl::string_view kBashEnd = R"(  esac
  list=''
  if [[ -n $flag && -z $files && $value == *,* ]]; then list=${value%,*},; fi
  mapfile -t COMPREPLY < <(compgen -P "$list" -W "$words" -- "${value#"$list"}")
  if [[ -n $files ]]; then
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$value")
    compopt -o filenames 2>/dev/null
  fi
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *: ]]; then compopt -o nospace 2>/dev/null; fi
  local kept=${COMP_WORDS[COMP_CWORD]}
  if [[ $kept == [=:] ]]; then kept=''; fi
  if [[ $value == *"$kept" ]]; then
    local cut=${value%"$kept"}
    COMPREPLY=("${COMPREPLY[@]#"$cut"}")
  fi
}
)";

std::string BashScript(const CompletedProgram& program) {
  const std::string function = FunctionOf(program);
  std::string arms, names, without_flag = "    *)";
  for (const CompletedFlag& flag : program.flags) {
    if (flag.name.empty()) continue;
    absl::StrAppend(&names, names.empty() ? "--" : " --", flag.name);
    if (flag.takes_value) arms += BashArm(flag);
  }
  const auto bare = std::ranges::find(program.flags, "", &CompletedFlag::name);
  std::string words = absl::StrCat("words=", Quoted(names));
  if (bare != program.flags.end()) {
    // Flags once a dash is there.
    absl::StrAppend(&without_flag, "\n      if [[ $word == -* ]]; then ", words,
                    "; else words=", Quoted(absl::StrJoin(bare->values, " ")),
                    bare->takes_file ? " files=1" : "",
                    "; fi\n      flag='' value=$word\n      ;;\n");
  } else {
    absl::StrAppend(&without_flag, " flag='' value=$word ", words, " ;;\n");
  }
  return absl::StrCat("# Completes flags and their values in bash: made by ", program.names.front(),
                      " --completion bash.\n", function, "() {\n", kBashBegin, arms, without_flag,
                      kBashEnd, "complete -F ", function, " ", absl::StrJoin(program.names, " "),
                      "\n");
}

// What zsh's _arguments calls an action: what to offer for a value.
std::string ZshAction(const CompletedFlag& flag) {
  std::vector<std::string> whole, begun;
  for (const std::string& value : flag.values) {
    (absl::EndsWith(value, ":") ? begun : whole).push_back(ShellWord(value));
  }
  std::string action;
  if (!whole.empty()) {
    // Of a list the last one is completed.
    absl::StrAppend(&action, "compset -P \"*,\"; compadd - ", absl::StrJoin(whole, " "));
  }
  if (!begun.empty()) {
    absl::StrAppend(&action, action.empty() ? "" : "; ", "compadd -S \"\" - ",
                    absl::StrJoin(begun, " "));
  }
  if (flag.takes_file) absl::StrAppend(&action, action.empty() ? "" : "; ", "_files");
  return action.empty() ? " " : absl::StrCat("{", absl::StrReplaceAll(action, {{":", "\\:"}}), "}");
}

std::string ZshSpec(const CompletedFlag& flag) {
  const std::string action = ZshAction(flag);
  if (flag.name.empty()) return Quoted(absl::StrCat("*:input:", action));
  const std::string help = absl::StrReplaceAll(
      flag.help, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"\n", " "}});
  // '*': a flag may stand there again, as --symbol may.
  std::string spec = absl::StrCat("*--", flag.name, flag.takes_value ? "=" : "", "[", help, "]");
  if (flag.takes_value) absl::StrAppend(&spec, ":", flag.name, ":", action);
  return Quoted(spec);
}

std::string ZshScript(const CompletedProgram& program) {
  const std::string function = FunctionOf(program), names = absl::StrJoin(program.names, " ");
  std::string specs;
  for (const CompletedFlag& flag : program.flags) {
    absl::StrAppend(&specs, " \\\n    ", ZshSpec(flag));
  }
  // In a folder of $fpath the file is the body of a function of its own name; else it is read.
  return absl::StrCat("#compdef ", names, "\n# Completes flags and their values in zsh: made by ",
                      program.names.front(), " --completion zsh.\n", function,
                      "() {\n  _arguments -s -S", specs, "\n}\n", "if [[ ${funcstack[1]-} == _",
                      program.names.back(), " ]]; then\n  ", function, " \"$@\"\nelse\n  compdef ",
                      function, " ", names, "\nfi\n");
}

}  // namespace
}  // namespace completion_cc

absl::StatusOr<std::string> CompletionScript(absl::string_view shell,
                                             const CompletedProgram& program) {
  if (shell == "bash") return completion_cc::BashScript(program);
  if (shell == "zsh") return completion_cc::ZshScript(program);
  return absl::InvalidArgumentError(absl::StrCat("--completion '", shell, "': wanted bash or zsh"));
}

std::vector<std::string> ProgramNames(absl::string_view command) {
  const size_t slash = command.rfind('/');
  const std::string name(slash == absl::string_view::npos ? command : command.substr(slash + 1));
  if (absl::StartsWith(name, completion_cc::kInstalledBefore)) return {name};
  return {name,
          absl::StrCat(completion_cc::kInstalledBefore, absl::StrReplaceAll(name, {{"_", "-"}}))};
}

}  // namespace orrery::tools
