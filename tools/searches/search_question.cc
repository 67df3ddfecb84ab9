#include "tools/searches/search_question.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/text/text.h"
#include "search/journal/journal.h"
#include "support/file.h"
#include "support/status.h"

namespace orrery::tools {
namespace search_question_cc {
namespace {

// Flags that change where results go and who finds them, but none of them. How many of the best are
// wanted decides what is pruned.
constexpr absl::string_view kNotAsked[] = {"threads",        "progress",
                                           "quiet",          "csv",
                                           "json",           "report",
                                           "plot",           "part",
                                           "resume",         "merge",
                                           "method",         "budget",
                                           "seed",           "price",
                                           "diff",           "tokens",
                                           "samples",        "emit",
                                           "trace",          "trace-level",
                                           "trace-ranks",    "trace-microbatches",
                                           "memory-snapshot"};

bool IsAsked(const FlagText& flag) {
  return std::ranges::find(kNotAsked, flag.flag) == std::end(kNotAsked);
}

absl::StatusOr<search::Ingredient> Program() {
  // Another build may find other figures, by a change or by another compiler.
  ORRERY_ASSIGN_OR_RETURN(const std::string program, ReadFile("/proc/self/exe"));
  return search::Ingredient{
      .name = "the program", .text = "grid_search", .fingerprint = search::Fingerprint(program)};
}

absl::Status AddFiles(const FlagText& flag, search::Question& question) {
  if (flag.flag == "model") return absl::OkStatus();  // its training step counts
  for (const std::string& file : FilesNamedIn(flag.text)) {
    ORRERY_ASSIGN_OR_RETURN(const std::string contents, ReadFile(file));
    const search::Ingredient ingredient = {.name = absl::StrCat("the file of --", flag.flag),
                                           .text = file,
                                           .fingerprint = search::Fingerprint(contents)};
    if (std::ranges::find(question.ingredients, ingredient) == question.ingredients.end()) {
      question.ingredients.push_back(ingredient);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace search_question_cc

absl::StatusOr<search::Question> QuestionOf(const std::vector<FlagText>& given,
                                            const search::Settings& settings, size_t candidates) {
  search::Question question = {.ingredients = {}, .candidates = static_cast<int64_t>(candidates)};
  ORRERY_ASSIGN_OR_RETURN(question.ingredients.emplace_back(), search_question_cc::Program());
  std::vector<FlagText> asked;
  std::ranges::copy_if(given, std::back_inserter(asked), search_question_cc::IsAsked);
  // The order of flags says nothing, but of what one says more than once.
  std::ranges::stable_sort(asked, {}, &FlagText::flag);
  for (const FlagText& flag : asked) {
    question.ingredients.push_back(
        {.name = absl::StrCat("--", flag.flag), .text = flag.text, .fingerprint = ""});
    ORRERY_RETURN_IF_ERROR(search_question_cc::AddFiles(flag, question));
  }
  for (const auto& [key, setting] : settings.all()) {
    question.ingredients.push_back({.name = absl::StrCat("the training step of ", key),
                                    .text = setting.model_name,
                                    .fingerprint = search::Fingerprint(ir::Print(setting.step))});
  }
  return question;
}

absl::StatusOr<std::vector<FlagText>> FlagsOfJournals(const std::vector<FlagText>& given) {
  const auto named = std::ranges::find_if(given, [](const FlagText& flag) {
    std::error_code ignored;
    return flag.flag == "merge" ||
           (flag.flag == "resume" && std::filesystem::is_regular_file(flag.text, ignored) &&
            std::filesystem::file_size(flag.text, ignored) > 0);
  });
  const auto is_given = [&](absl::string_view flag) {
    return std::ranges::find(given, flag, &FlagText::flag) != given.end();
  };
  const bool begins = is_given("model") || is_given("preset") || is_given("batch-size");
  std::vector<FlagText> flags;
  if (named == given.end()) {
    if (begins || !is_given("resume")) return flags;
    return absl::NotFoundError(
        "`resume`: there is no journal of a search yet; wanted one to go on with, or what to "
        "search: `model`, `batch-size` and `cluster`");
  }
  const absl::StatusOr<search::JournalContents> journal =
      search::ReadJournal(JournalFiles({named->text}).front());
  // One that was killed before it was begun is begun anew, by who knows the question.
  if (!journal.ok() && named->flag == "resume" && begins) return flags;
  ORRERY_RETURN_IF_ERROR(journal.status());
  for (const search::Ingredient& ingredient : journal->header.question.ingredients) {
    absl::string_view name = ingredient.name;
    if (!absl::ConsumePrefix(&name, "--")) continue;
    if (std::ranges::find(given, name, &FlagText::flag) != given.end()) continue;
    flags.push_back({std::string(name), ingredient.text});
  }
  // Who says nothing but the journal goes on with its part.
  if (named->flag == "resume" && !journal->header.part.is_whole() && !is_given("part") &&
      !is_given("model")) {
    flags.push_back({"part", ToString(journal->header.part)});
  }
  return flags;
}

std::vector<std::string> JournalFiles(const std::vector<std::string>& words) {
  std::vector<std::string> files;
  for (const std::string& word : words) {
    std::error_code ignored;
    if (std::filesystem::exists(word, ignored)) {
      files.push_back(word);
      continue;
    }
    for (const absl::string_view file : absl::StrSplit(word, ',')) files.emplace_back(file);
  }
  return files;
}

}  // namespace orrery::tools
