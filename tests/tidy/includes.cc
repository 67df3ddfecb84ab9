#include "tests/tidy/includes.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace orrery::tidy {
namespace includes_cc {
namespace {

std::string ParentOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? "" : std::string(path.substr(0, slash));
}

// Depth first; the stack is the path from where the search began.
bool Visit(const Graph& graph, const std::string& node, std::map<std::string, bool>& left,
           std::vector<std::string>& stack) {
  if (const auto seen = left.find(node); seen != left.end()) {
    if (seen->second) return false;
    stack.erase(stack.begin(), std::find(stack.begin(), stack.end(), node));
    stack.push_back(node);
    return true;
  }
  left[node] = false;
  stack.push_back(node);
  if (const auto edges = graph.find(node); edges != graph.end()) {
    for (const std::string& next : edges->second) {
      if (Visit(graph, next, left, stack)) return true;
    }
  }
  stack.pop_back();
  left[node] = true;
  return false;
}

// All that `name` links, itself too, in the folders by name.
void AddLinked(const std::map<std::string, const FolderTarget*>& by_name, const std::string& name,
               std::set<std::string>& linked) {
  if (!linked.insert(name).second) return;
  const auto target = by_name.find(name);
  if (target == by_name.end()) return;
  for (const std::string& link : target->second->links) AddLinked(by_name, link, linked);
}

// The words of each call of `function` in the text of a CMakeLists.txt.
std::vector<std::vector<std::string>> CallsOf(absl::string_view function, absl::string_view cmake) {
  std::string code;
  for (const absl::string_view line : absl::StrSplit(cmake, '\n')) {
    absl::StrAppend(&code, line.substr(0, line.find('#')), " ");
  }
  const std::string call = absl::StrCat(function, "(");
  std::vector<std::vector<std::string>> calls;
  for (size_t at = code.find(call); at != std::string::npos; at = code.find(call, at + 1)) {
    const size_t begin = at + call.size();
    calls.push_back(absl::StrSplit(code.substr(begin, code.find(')', begin) - begin), ' ',
                                   absl::SkipWhitespace()));
  }
  return calls;
}

}  // namespace
}  // namespace includes_cc

std::vector<std::string> Includes(absl::string_view text) {
  std::vector<std::string> paths;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "#include \"")) continue;
    paths.emplace_back(line.substr(0, line.find('"')));
  }
  return paths;
}

Graph IncludeGraph(const std::vector<Source>& sources) {
  Graph graph;
  for (const Source& source : sources) graph[source.path];
  for (const Source& source : sources) {
    for (const std::string& path : Includes(source.text)) {
      if (graph.count(path) > 0) graph[source.path].insert(path);
    }
  }
  return graph;
}

std::set<std::string> FoldersOf(const std::vector<Source>& sources) {
  std::set<std::string> folders;
  for (const Source& source : sources) folders.insert(includes_cc::ParentOf(source.path));
  return folders;
}

Graph FolderGraph(const std::vector<Source>& sources, const std::set<std::string>& folders) {
  FolderTargets targets;
  for (const std::string& folder : folders) targets[folder].name = folder;
  Graph graph;
  for (const Source& source : sources) {
    const std::string from = FolderOf(source.path, targets);
    if (from.empty() || IsTest(source.path)) continue;
    for (const std::string& path : Includes(source.text)) {
      const std::string to = FolderOf(path, targets);
      if (!to.empty() && to != from) graph[from].insert(to);
    }
  }
  return graph;
}

std::vector<std::string> FindCycle(const Graph& graph) {
  std::map<std::string, bool> left;  // of the nodes seen: whether the search is done with them
  for (const auto& [node, edges] : graph) {
    std::vector<std::string> stack;
    if (includes_cc::Visit(graph, node, left, stack)) return stack;
  }
  return {};
}

std::vector<FolderTarget> ParseFolderTargets(absl::string_view cmake) {
  std::vector<FolderTarget> targets;
  for (const auto& words : includes_cc::CallsOf("orrery_add_folder", cmake)) {
    if (words.empty()) continue;
    FolderTarget target = {.name = words[0], .links = {}, .test_links = {}};
    std::set<std::string>* list = nullptr;
    for (const std::string& word : words) {
      absl::string_view name = word;
      if (word == "DEPS" || word == "PRIVATE_DEPS")
        list = &target.links;
      else if (word == "TEST_DEPS")
        list = &target.test_links;
      else if (word == "SOURCES" || word == "TEST_SOURCES" || word == "REGISTRY")
        list = nullptr;
      else if (word == "FOR_TESTS")
        target.for_tests = true;
      else if (list != nullptr && absl::ConsumePrefix(&name, "orrery::"))
        list->emplace(name);
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

std::set<std::string> ParseProgramLinks(absl::string_view cmake) {
  std::set<std::string> links;
  for (const auto& words : includes_cc::CallsOf("target_link_libraries", cmake)) {
    for (const std::string& word : words) {
      absl::string_view name = word;
      if (absl::ConsumePrefix(&name, "orrery::") || absl::ConsumePrefix(&name, "orrery_")) {
        links.emplace(name);
      }
    }
  }
  return links;
}

Graph LinkGraph(const FolderTargets& targets) {
  Graph graph;
  for (const auto& [path, target] : targets) graph[target.name] = target.links;
  return graph;
}

std::string FolderOf(absl::string_view path, const FolderTargets& targets) {
  for (std::string folder = includes_cc::ParentOf(path); !folder.empty();
       folder = includes_cc::ParentOf(folder)) {
    if (targets.count(folder) > 0) return folder;
  }
  return "";
}

std::vector<std::string> UpwardIncludes(const std::vector<Source>& sources,
                                        const FolderTargets& targets) {
  std::map<std::string, const FolderTarget*> by_name;
  for (const auto& [path, target] : targets) by_name[target.name] = &target;
  std::vector<std::string> faults;
  for (const Source& source : sources) {
    const std::string folder = FolderOf(source.path, targets);
    if (folder.empty()) continue;
    const FolderTarget& target = targets.at(folder);
    std::set<std::string> linked;
    includes_cc::AddLinked(by_name, target.name, linked);
    if (IsTest(source.path)) {
      for (const std::string& link : target.test_links)
        includes_cc::AddLinked(by_name, link, linked);
    }
    for (const std::string& path : Includes(source.text)) {
      const std::string other = FolderOf(path, targets);
      if (other.empty() || linked.count(targets.at(other).name) > 0) continue;
      faults.push_back(absl::StrCat(source.path, " includes ", path, "; ", target.name,
                                    " does not link ", targets.at(other).name));
    }
  }
  return faults;
}

}  // namespace orrery::tidy
