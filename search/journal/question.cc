#include "search/journal/question.h"

#include <zlib.h>

#include <algorithm>
#include <exception>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "support/status.h"

namespace orrery::search {
namespace question_cc {
namespace {

using Json = nlohmann::ordered_json;

// A change of what lines say makes another format.
constexpr int kFormat = 1;
constexpr const char* kKey = "orrery_journal";

// The ingredients of one name, in their order: a flag may be given more than once.
std::vector<Ingredient> Of(const Question& question, const std::string& name) {
  std::vector<Ingredient> found;
  std::ranges::copy_if(question.ingredients, std::back_inserter(found),
                       [&](const Ingredient& ingredient) { return ingredient.name == name; });
  return found;
}

std::string TextOf(const std::vector<Ingredient>& found) {
  return absl::StrJoin(found, " ", [](std::string* out, const Ingredient& ingredient) {
    absl::StrAppend(out, ingredient.text);
  });
}

std::string Difference(const std::string& name, const std::vector<Ingredient>& there,
                       const std::vector<Ingredient>& here) {
  if (here.empty()) return absl::StrCat(name, " is ", TextOf(there), " there and not given here");
  if (there.empty()) return absl::StrCat(name, " is not given there and ", TextOf(here), " here");
  if (TextOf(there) == TextOf(here)) {
    return absl::StrCat(name, " (", TextOf(here), ") has other contents");
  }
  return absl::StrCat(name, " is ", TextOf(there), " there and ", TextOf(here), " here");
}

std::string Text(const Json& json) {
  std::string text;
  if (!absl::CUnescape(json.get<std::string>(), &text)) throw std::invalid_argument("a text");
  return text;
}

}  // namespace
}  // namespace question_cc

std::string Fingerprint(absl::string_view bytes) {
  const auto* const data = reinterpret_cast<const Bytef*>(bytes.data());
  return absl::StrFormat("%08x%08x-%d", crc32_z(0, data, bytes.size()),
                         adler32_z(1, data, bytes.size()), bytes.size());
}

std::string Differences(const Question& there, const Question& here) {
  constexpr size_t kMost = 4;
  std::vector<std::string> names;
  for (const Question* question : {&there, &here}) {
    for (const Ingredient& ingredient : question->ingredients) {
      if (std::ranges::find(names, ingredient.name) == names.end()) {
        names.push_back(ingredient.name);
      }
    }
  }
  std::vector<std::string> differences;
  for (const std::string& name : names) {
    const auto of_there = question_cc::Of(there, name), of_here = question_cc::Of(here, name);
    if (of_there == of_here) continue;
    differences.push_back(question_cc::Difference(name, of_there, of_here));
  }
  if (there.candidates != here.candidates) {
    differences.push_back(absl::StrCat("there are ", there.candidates, " candidates there and ",
                                       here.candidates, " here"));
  }
  // What a user has chosen comes first; the rest follows from it.
  std::stable_partition(differences.begin(), differences.end(),
                        [](const std::string& text) { return absl::StartsWith(text, "--"); });
  if (differences.size() > kMost) differences.resize(kMost);
  return absl::StrJoin(differences, ", ");
}

std::string HeaderText(const JournalHeader& header) {
  using question_cc::Json;
  Json ingredients = Json::array();
  for (const Ingredient& ingredient : header.question.ingredients) {
    Json json = {{"name", absl::CEscape(ingredient.name)},
                 {"text", absl::CEscape(ingredient.text)}};
    if (!ingredient.fingerprint.empty()) json["fingerprint"] = ingredient.fingerprint;
    ingredients.push_back(std::move(json));
  }
  return Json{{question_cc::kKey, question_cc::kFormat},
              {"part", ToString(header.part)},
              {"candidates", header.question.candidates},
              {"question", std::move(ingredients)}}
      .dump();
}

absl::StatusOr<JournalHeader> ParseHeader(absl::string_view text) {
  using question_cc::Json;
  JournalHeader header;
  try {
    const Json json = Json::parse(text.begin(), text.end());
    if (const int format = json.at(question_cc::kKey).get<int>(); format != question_cc::kFormat) {
      return absl::InvalidArgumentError(absl::StrCat("is of format ", format, "; wanted ",
                                                     question_cc::kFormat,
                                                     "; try the program that began it"));
    }
    ORRERY_ASSIGN_OR_RETURN(header.part, ParsePart(json.at("part").get<std::string>()));
    header.question.candidates = json.at("candidates").get<int64_t>();
    for (const Json& ingredient : json.at("question")) {
      header.question.ingredients.push_back({.name = question_cc::Text(ingredient.at("name")),
                                             .text = question_cc::Text(ingredient.at("text")),
                                             .fingerprint = ingredient.value("fingerprint", "")});
    }
    return header;
  } catch (const std::exception&) {
    return absl::InvalidArgumentError("is no journal of a search; try another file");
  }
}

}  // namespace orrery::search
